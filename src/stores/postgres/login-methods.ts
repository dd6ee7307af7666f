/** What libpq's parameter `require_auth` calls the ways to log in. GSSAPI and SSPI are not done here. */
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
export interface LoginRules {
  /** of the address */
  requireAuth: string | undefined
  /** whether nobody else can be at its other end, or read along: who is there may get the password itself */
  isTrusted: boolean
  hasPassword: boolean
}

/** Throws a `LoginError` where a server must not ask for a login in this way. */
export function checkMethod(method: LoginMethod, { requireAuth, isTrusted, hasPassword }: LoginRules): void {
  const required = requireAuth === undefined ? undefined : parseRequireAuth(requireAuth)
  if (required && required.methods.includes(method) === required.isNegated)
    throw new LoginError(`the server uses the login method "${method}", and require_auth does not allow it`)
  if (method !== 'none' && !hasPassword) throw new LoginError('it asks for a password, and there is none', 'LOGIN_NO_PASSWORD')
  const how = { password: 'in clear text', md5: 'as MD5' }[String(method)]
  if (how === undefined || isTrusted || required?.isNegated === false) return
  throw new LoginError(`the server asks for the password ${how}, over a connection that others could read`, 'LOGIN_EXPOSED')
}
