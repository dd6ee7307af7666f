import { lstatSync, readFileSync } from 'node:fs'
import { systemCode } from '../../platform/errors.js'
import { untrustedReason } from '../../platform/files.js'
import type { PostgresAddress } from '../common/address.js'
import type { Login } from '../common/store.js'

/** A database, and the credentials for it. */
export interface Account {
  address: PostgresAddress
  login: Login
}

/** The login methods, as named by libpq's `require_auth`. GSSAPI and SSPI are not supported. */
const loginMethods = ['password', 'md5', 'gss', 'sspi', 'scram-sha-256', 'none'] as const

export type LoginMethod = (typeof loginMethods)[number]

/** The server requests a login method that is not allowed, or has not proved its identity. */
export class LoginError extends Error {
  readonly hint: string

  constructor(message: string, hint = 'Is it the right server? Ask the operator of the database how to log in') {
    super(message)
    this.hint = hint
  }
}

/** The server requires a password, but none is set. */
export class MissingPassword extends LoginError {}

/**
 * Parses `require_auth`: methods of which the server must use one, or, each after a "!", methods that it must not use.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-REQUIRE-AUTH
 * @returns undefined for invalid text
 */
export function parseRequireAuth(text: string): { isNegated: boolean; methods: LoginMethod[] } | undefined {
  const words = text.split(',').map((word) => word.trim())
  const isNegated = text.trimStart().startsWith('!')
  const methods = words.flatMap((word) => loginMethods.find((method) => word === `${isNegated ? '!' : ''}${method}`) ?? [])
  return methods.length === words.length && new Set(methods).size === methods.length ? { isNegated, methods } : undefined
}

/** The rules for the login of a connection. */
interface LoginRules {
  /** `require_auth` of the address */
  requireAuth: string | undefined
  /** whether the peer is authenticated and nobody else can read the connection, so that the password itself may be sent */
  isTrusted: boolean
  hasPassword: boolean
}

/** @throws {LoginError} when the server requests a method that is not allowed */
export function checkMethod(method: LoginMethod, { requireAuth, isTrusted, hasPassword }: LoginRules): void {
  const required = requireAuth === undefined ? undefined : parseRequireAuth(requireAuth)
  if (required && required.methods.includes(method) === required.isNegated)
    throw new LoginError(`the server uses the login method "${method}", and require_auth does not allow it`)
  if (method !== 'none' && !hasPassword) throw new MissingPassword('it requires a password, but none is set')
  const how = { password: 'in clear text', md5: 'as MD5' }[String(method)]
  if (how === undefined || isTrusted || required?.isNegated === false) return
  throw new LoginError(
    `the server requests the password ${how} over a connection that others could read`,
    'Add to the address: sslmode=verify-full. Or on a network that only you use: require_auth=password or require_auth=md5',
  )
}

/**
 * Checks the owner of a connected Unix socket: a user who creates the socket while the server is down would receive the password and the
 * plants. Also trusts PostgreSQL's own account, and a group that can write to the folder, as on Debian.
 *
 * @param requirePeer the name or number of the only user who may own it, as in libpq's `requirepeer`
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and the system's error if the socket no longer exists
 */
export function checkSocketOwner(path: string, requirePeer: string | undefined, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  if (requirePeer !== undefined) {
    const { uid } = lstatSync(path)
    const name = nameOf(uid)
    if (requirePeer === name || requirePeer === String(uid)) return
    throw new LoginError(`its socket belongs to ${name ?? `the user ${uid}`}, and requirepeer is ${requirePeer}`)
  }
  const isPostgres = (uid: number) => ['postgres', '_postgres'].includes(nameOf(uid) ?? '')
  const reason = untrustedReason(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (reason !== undefined) throw new LoginError(reason, 'If that user runs the database, add to the address: requirepeer=USER')
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
