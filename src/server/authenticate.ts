import { hash, timingSafeEqual } from 'node:crypto'
import type { Right } from '../stores/tokens.js'
import { HttpError } from './http-error.js'

export interface Caller {
  /** Log lines and quotas use this name: the id of a token of the store, or a fixed word. */
  name: string
  rights: readonly Right[]
  /** Returns whether the token is still accepted, as far as the service knows. */
  isAccepted(): boolean
}

/**
 * A token source finds the caller of a token. It returns undefined for a token that is not
 * accepted.
 */
export type TokenSource = (token: string) => Caller | undefined | Promise<Caller | undefined>

/**
 * @param authorization the header. Its scheme is case-insensitive (RFC 9110, 11.1).
 * @throws {HttpError} 401
 */
export async function authenticate(authorization = '', findCaller: TokenSource): Promise<Caller> {
  const token = /^Bearer +(?<token>.*[^ ]) *$/i.exec(authorization)?.groups?.['token']
  if (token === undefined) {
    const message =
      'The request has no bearer token: send it in the header Authorization, as "Bearer TOKEN"'
    throw createChallengeError(401, message)
  }
  const caller = await findCaller(token)
  if (caller) return caller
  throw createChallengeError(401, 'This token is not accepted', ', error="invalid_token"')
}

/**
 * @param parameters follow the realm in the header WWW-Authenticate (RFC 6750, 3), such as
 *   `, error="invalid_token"`
 */
export function createChallengeError(
  status: 401 | 403,
  message: string,
  parameters = '',
): HttpError {
  return new HttpError(status, message, ['WWW-Authenticate', `Bearer realm="plants"${parameters}`])
}

/**
 * A store keeps only the hash of a token, so nobody can use the tokens in a backup. Tokens are
 * random, so they need no salt and no slow hash.
 */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/**
 * Creates a source that accepts one token. Its comparison takes the same time for each wrong token.
 */
export function createFixedTokenSource(
  token: string,
  identity: Pick<Caller, 'name' | 'rights'>,
): TokenSource {
  const caller = { ...identity, isAccepted: () => true }
  const expectedDigest = hashToken(token)
  return (text) => (timingSafeEqual(expectedDigest, hashToken(text)) ? caller : undefined)
}
