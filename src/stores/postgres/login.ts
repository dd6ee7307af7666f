import { readFileSync } from 'node:fs'
import { systemCode } from '../../platform/errors.js'
import { untrustedReason } from '../../platform/files.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'

export interface Account {
  address: PostgresAddress
  login: Login
}

/** GSSAPI and SSPI are not supported. */
export type LoginMethod = 'password' | 'md5' | 'scram-sha-256' | 'none'

/** The server requests a login method that is not allowed, or has not proved its identity. */
export class LoginError extends Error {
  readonly hint: string

  constructor(message: string, hint = 'Is it the right server? Ask the operator of the database how to log in') {
    super(message)
    this.hint = hint
  }
}

export class MissingPassword extends LoginError {}

interface LoginRules {
  /** whether the peer is authenticated and nobody else can read the connection, so that the password itself may be sent */
  isTrusted: boolean
  hasPassword: boolean
}

export function checkMethod(method: LoginMethod, { isTrusted, hasPassword }: LoginRules): void {
  if (method !== 'none' && !hasPassword) throw new MissingPassword('it requires a password, but none is set')
  const how = { password: 'in clear text', md5: 'as MD5' }[String(method)]
  if (how === undefined || isTrusted) return
  throw new LoginError(
    `the server requests the password ${how} over a connection that others could read`,
    'Add to the address: sslmode=verify-full. Or let the server use scram-sha-256',
  )
}

/**
 * Checks the owner of a connected Unix socket: a user who creates the socket while the server is down would receive the password and the
 * plants. Also trusts PostgreSQL's own account, and a group that can write to the folder, as on Debian.
 *
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and the system's error if the socket no longer exists
 */
export function checkSocketOwner(path: string, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  const isPostgres = (uid: number) => ['postgres', '_postgres'].includes(nameOf(uid) ?? '')
  const reason = untrustedReason(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (reason !== undefined) throw new LoginError(reason, 'If that user runs the database, connect over TCP: host=localhost')
}

/** The name of a user in /etc/passwd; undefined for any other, such as one from a directory service. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find(([, , number]) => number === String(uid))?.[0]
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}
