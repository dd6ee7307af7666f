import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Right, Token, TokenStore } from '../stores/common/token-store.js'
import { HttpError } from './answer.js'
import { Shares } from './memory.js'

export interface Caller {
  /** The log shows it. */
  name: string
  rights: readonly Right[]
}

/** Or why a token that is in the store is no longer accepted, which its holder may know. */
type Lookup = Caller | string | undefined
/** An unknown token may wait until the client leaves. */
export type TokenSource = (token: string, response: ServerResponse) => Lookup | Promise<Lookup>

/** A revoked token may still be accepted for so many milliseconds. */
export const freshness = 500

/** Lookups of unknown tokens at a time. Each may wait for a database connection. */
const maxLookups = 32

/** Rejects with 401 (RFC 6750). */
export async function authenticate(
  response: ServerResponse,
  findToken: TokenSource,
): Promise<Caller> {
  const { authorization = '' } = response.req.headers
  const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization)?.[1]
  if (token === undefined)
    throw unauthorized(
      'No bearer token: send one in the header Authorization, as "Bearer TOKEN"',
      '',
    )
  const caller = await findToken(token, response)
  if (caller === undefined)
    throw unauthorized('This token is not accepted', ', error="invalid_token"')
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
  return expiresAt && expiresAt.getTime() <= time
    ? `The token expired on ${dayOf(expiresAt)}`
    : undefined
}

/**
 * By their SHA-256: the timing reveals nothing about a token, and only its holder learns that it has ended.
 *
 * @param now milliseconds, monotonic
 * @param time milliseconds since 1970
 * @param timeout milliseconds
 */
export function tokensOfStore(
  store: TokenStore,
  now: () => number,
  time: () => number,
  timeout: number,
): TokenSource {
  /** Lookups of found tokens, and those in progress, which requests with the same token share. */
  const lookups = new Map<string, { found: Promise<Token | undefined>; until: number }>()
  // Of connections: each has one request at a time, and so they take turns.
  const unknown = new Shares(maxLookups, timeout, now)

  const lookUp = async (digest: Uint8Array, key: string) => {
    const found = store.find(digest)
    lookups.set(key, { found, until: now() + freshness }) // from the start of the lookup: a database may be slow
    if (!(await found.catch(() => undefined))) lookups.delete(key)
    return found
  }

  const find = (digest: Uint8Array, key: string) => {
    const last = lookups.get(key)
    return last && last.until > now() ? last.found : lookUp(digest, key)
  }

  return async (text, response) => {
    const digest = digestOf(text)
    const key = digest.toString('latin1')
    const hold = lookups.has(key) ? undefined : await unknown.ask(response.req.socket, 1, response)
    const token = await find(digest, key).finally(() => hold?.release())
    return token && (endOf(token, time()) ?? { name: String(token.id), rights: token.rights })
  }
}

/** Accepts one token, which is compared in constant time. */
export function fixedToken(token: string, caller: Caller): TokenSource {
  const expected = digestOf(token)
  return (text) => (timingSafeEqual(expected, digestOf(text)) ? caller : undefined)
}
