import { lstatSync, readFileSync } from 'node:fs'
import { systemCode } from '../../platform/errors.js'
import { strangerAt } from '../../platform/files.js'
import type { PostgresAddress } from '../address.js'
import type { Login } from '../store.js'

/** Who logs in, and how. */
export interface Account {
  address: PostgresAddress
  login: Login
}

/** What libpq's parameter `require_auth` calls the ways to log in. GSSAPI and SSPI are not supported. */
const loginMethods = ['password', 'md5', 'gss', 'sspi', 'scram-sha-256', 'none'] as const

export type LoginMethod = (typeof loginMethods)[number]

/** The server wants another login than the one that was asked for, or has not proved that it is the right one. */
export class LoginError extends Error {
  readonly code: 'LOGIN_EXPOSED' | 'LOGIN_NO_PASSWORD' | 'LOGIN_REFUSED' | 'LOGIN_SOCKET'

  constructor(message: string, code: LoginError['code'] = 'LOGIN_REFUSED') {
    super(message)
    this.code = code
  }
}

/**
 * Reads `require_auth`: methods of which the server must use one, or, each after a "!", methods that it must not use.
 *
 * @see https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-REQUIRE-AUTH
 * @returns undefined for a text that is none
 */
export function parseRequireAuth(text: string): { isNegated: boolean; methods: LoginMethod[] } | undefined {
  const words = text.split(',').map((word) => word.trim())
  const isNegated = text.trimStart().startsWith('!')
  const methods = words.flatMap((word) => loginMethods.find((method) => word === `${isNegated ? '!' : ''}${method}`) ?? [])
  return methods.length === words.length && new Set(methods).size === methods.length ? { isNegated, methods } : undefined
}

/** How a connection may log in. */
interface LoginRules {
  /** of the address */
  requireAuth: string | undefined
  /** whether nobody else can be at its other end, or read along: who is there may get the password itself */
  isTrusted: boolean
  hasPassword: boolean
}

/** @throws {LoginError} where a server must not ask for a login in this way */
export function checkMethod(method: LoginMethod, { requireAuth, isTrusted, hasPassword }: LoginRules): void {
  const required = requireAuth === undefined ? undefined : parseRequireAuth(requireAuth)
  if (required && required.methods.includes(method) === required.isNegated)
    throw new LoginError(`the server uses the login method "${method}", and require_auth does not allow it`)
  if (method !== 'none' && !hasPassword) throw new LoginError('it asks for a password, and there is none', 'LOGIN_NO_PASSWORD')
  const how = { password: 'in clear text', md5: 'as MD5' }[String(method)]
  if (how === undefined || isTrusted || required?.isNegated === false) return
  throw new LoginError(`the server asks for the password ${how}, over a connection that others could read`, 'LOGIN_EXPOSED')
}

/**
 * Checks to whom a Unix socket belongs that was connected to: where others can make the one of a server that is away, they would get the
 * password and the plants. PostgreSQL's own account is trusted as well, and a group that may write to the folder, as Debian's may.
 *
 * @param requirePeer the name or number of the only user that it may belong to, as libpq's parameter `requirepeer`
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and what the system says of a socket that is gone
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
  const stranger = strangerAt(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (stranger !== undefined) throw new LoginError(stranger, 'LOGIN_SOCKET')
}

/** The name of a user of this machine; undefined for one that is kept elsewhere. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find(([, , number]) => number === String(uid))?.[0]
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}
