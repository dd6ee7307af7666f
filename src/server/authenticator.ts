import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Right, Token, TokenStore } from '../stores/common/store.js'
import { busy, HttpError } from './http-error.js'

export interface Caller {
  /** for the log */
  name: string
  rights: readonly Right[]
  /** milliseconds until the token expires; undefined if it does not */
  validFor?: number | undefined
}

/** Why a token that is in the store is no longer accepted. Its holder may know. */
interface EndedToken {
  reason: string
}

type Lookup = Caller | EndedToken | undefined

export type TokenSource = (token: string) => Lookup | Promise<Lookup>

/** milliseconds after which a token is looked up again, and so the longest time that a revoked token is accepted */
export const freshness = 500

/** of new tokens at a time; each may wait for a database connection */
const maxLookups = 32

/** Any object can identify a connection. Rejects with the `HttpError` 401. */
export type Authenticate = (authorization: string | undefined, connection: object) => Caller | Promise<Caller>

/**
 * Authenticates requests (RFC 6750). Caches the last accepted token of each connection, where no other client can probe
 * it.
 *
 * @param now milliseconds, monotonic
 */
export function authenticator(findToken: TokenSource, now: () => number): Authenticate {
  const accepted = new WeakMap<object, { authorization: string | undefined; caller: Caller; until: number }>()
  const lookUp = async (authorization: string | undefined, connection: object) => {
    const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization ?? '')?.[1]
    if (token === undefined)
      throw unauthorized('No bearer token: send one in the header Authorization, as "Bearer TOKEN"', '')
    const caller = await findToken(token)
    if (caller === undefined) throw unauthorized('This token is not accepted', ', error="invalid_token"')
    if ('reason' in caller) {
      const { reason } = caller
      throw unauthorized(reason, `, error="invalid_token", error_description="${reason}"`)
    }
    const { validFor = Infinity } = caller
    accepted.set(connection, { authorization, caller, until: now() + Math.min(freshness / 2, validFor) })
    return caller
  }
  return (authorization, connection) => {
    const last = accepted.get(connection)
    const isAccepted = last && last.authorization === authorization && last.until > now()
    return isAccepted ? last.caller : lookUp(authorization, connection)
  }
}

function unauthorized(message: string, parameter: string): HttpError {
  return new HttpError(401, message, ['WWW-Authenticate', `Bearer realm="plants"${parameter}`])
}

/** 256 random bits, with a prefix that lets secret scanners recognize it. */
export function newToken(): string {
  return `plants_${randomBytes(32).toString('base64url')}`
}

/** All that a store keeps of a token. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export function endOf({ revokedAt, expiresAt }: Token, time: number): EndedToken | undefined {
  const dayOf = (date: Date) => date.toISOString().slice(0, 10)
  if (revokedAt) return { reason: `The token was revoked on ${dayOf(revokedAt)}` }
  return expiresAt && expiresAt.getTime() <= time ? { reason: `The token expired on ${dayOf(expiresAt)}` } : undefined
}

/**
 * Looks tokens up by their SHA-256, so that the timing reveals nothing about a token, and only its holder learns that
 * it has ended.
 *
 * @param now milliseconds, monotonic
 * @param time milliseconds since 1970
 */
export function tokensOfStore(store: TokenStore, now: () => number, time: () => number): TokenSource {
  /** found tokens, and lookups in progress: concurrent requests with the same token share one */
  const lookups = new Map<string, { found: Promise<Token | undefined>; until: number }>()
  let pending = 0

  const lookUp = async (digest: Uint8Array, key: string) => {
    pending += 1
    const found = store.find(digest).finally(() => {
      pending -= 1
    })
    lookups.set(key, { found, until: now() + freshness }) // from the start of the lookup: a remote store may be slow
    const isFound = await found.catch(() => undefined)
    if (!isFound) lookups.delete(key)
    return found
  }

  return async (text) => {
    const digest = digestOf(text)
    const key = digest.toString('latin1')
    const last = lookups.get(key)
    if (!last && pending >= maxLookups) throw busy()
    const token = await (last && last.until > now() ? last.found : lookUp(digest, key))
    const at = time()
    const ended = token && endOf(token, at)
    if (!token || ended) return ended
    const { id, rights, expiresAt } = token
    return { name: String(id), rights, validFor: expiresAt && expiresAt.getTime() - at }
  }
}

/** Accepts one token, which is compared in constant time. */
export function fixedToken(token: string, caller: Caller): TokenSource {
  const expected = digestOf(token)
  return (text) => (timingSafeEqual(expected, digestOf(text)) ? caller : undefined)
}
