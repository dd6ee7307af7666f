import { hash, timingSafeEqual } from 'node:crypto'
import type { Right } from '../stores/tokens.js'
import { HttpError } from './http-error.js'

export interface Caller {
  name: string
  rights: readonly Right[]
}

/** Finds the caller of a token. Returns undefined for a token that is not accepted. */
export type TokenSource = (token: string) => Caller | undefined | Promise<Caller | undefined>

/** @throws {HttpError} 401 */
export async function authenticate(authorization = '', findCaller: TokenSource): Promise<Caller> {
  const token = /^Bearer +(?<token>.*[^ ]) *$/i.exec(authorization)?.groups?.['token']
  if (token === undefined) {
    const message = 'No bearer token: send one in the header Authorization, as "Bearer TOKEN"'
    throw createChallengeError(401, message)
  }
  const caller = await findCaller(token)
  if (caller) return caller
  throw createChallengeError(401, 'This token is not accepted', ', error="invalid_token"')
}

/** @param parameters of the header WWW-Authenticate, after the realm (RFC 6750, 3) */
export function createChallengeError(
  status: 401 | 403,
  message: string,
  parameters = '',
): HttpError {
  return new HttpError(status, message, ['WWW-Authenticate', `Bearer realm="plants"${parameters}`])
}

/** A store keeps nothing of a token but this. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Accepts one token. The comparison takes the same time for any other one. */
export function createFixedTokenSource(token: string, caller: Caller): TokenSource {
  const expected = hashToken(token)
  return (text) => (timingSafeEqual(expected, hashToken(text)) ? caller : undefined)
}
