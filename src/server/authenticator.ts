import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Right, Token, TokenStore } from '../stores/common/store.js'
import { busy, HttpError } from './answer.js'

export interface Caller {
  /** for the log */
  name: string
  rights: readonly Right[]
}

/** Or why a token that is in the store is no longer accepted, which its holder may know. */
type Lookup = Caller | string | undefined
export type TokenSource = (token: string) => Lookup | Promise<Lookup>

/** milliseconds for which a revoked token may still be accepted */
export const freshness = 500

/** of new tokens at a time; each may wait for a database connection */
const maxLookups = 32

/** Rejects with 401 (RFC 6750). */
export async function authenticate(authorization = '', findToken: TokenSource): Promise<Caller> {
  const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization)?.[1]
  if (token === undefined)
    throw unauthorized('No bearer token: send one in the header Authorization, as "Bearer TOKEN"', '')
  const caller = await findToken(token)
  if (caller === undefined) throw unauthorized('This token is not accepted', ', error="invalid_token"')
  if (typeof caller !== 'string') return caller
  throw unauthorized(caller, `, error="invalid_token", error_description="${caller}"`)
}

function unauthorized(message: string, parameters: string): HttpError {
  return new HttpError(401, message, ['WWW-Authenticate', `Bearer realm="plants"${parameters}`])
}

/** 256 random bits, with a prefix that lets secret scanners recognize it. */
export function newToken(): string {
  return `plants_${randomBytes(32).toString('base64url')}`
}

/** All that a store keeps of a token. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export function endOf({ revokedAt, expiresAt }: Token, time: number): string | undefined {
  const dayOf = (date: Date) => date.toISOString().slice(0, 10)
  if (revokedAt) return `The token was revoked on ${dayOf(revokedAt)}`
  return expiresAt && expiresAt.getTime() <= time ? `The token expired on ${dayOf(expiresAt)}` : undefined
}

/**
 * By their SHA-256: the timing reveals nothing about a token, and only its holder learns that it has ended.
 *
 * @param now milliseconds, monotonic
 * @param time milliseconds since 1970
 */
export function tokensOfStore(store: TokenStore, now: () => number, time: () => number): TokenSource {
  /** of found tokens, and those in progress, which requests with the same token share */
  const lookups = new Map<string, { found: Promise<Token | undefined>; until: number }>()
  let pending = 0

  const lookUp = async (digest: Uint8Array, key: string) => {
    pending += 1
    const found = store.find(digest).finally(() => {
      pending -= 1
    })
    lookups.set(key, { found, until: now() + freshness }) // from the start of the lookup: a database may be slow
    if (!(await found.catch(() => undefined))) lookups.delete(key)
    return found
  }

  return async (text) => {
    const digest = digestOf(text)
    const key = digest.toString('latin1')
    const last = lookups.get(key)
    if (!last && pending >= maxLookups) throw busy()
    const token = await (last && last.until > now() ? last.found : lookUp(digest, key))
    return token && (endOf(token, time()) ?? { name: String(token.id), rights: token.rights })
  }
}

/** Accepts one token, which is compared in constant time. */
export function fixedToken(token: string, caller: Caller): TokenSource {
  const expected = digestOf(token)
  return (text) => (timingSafeEqual(expected, digestOf(text)) ? caller : undefined)
}
