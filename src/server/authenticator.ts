import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Right, Token, TokenStore } from '../stores/common/store.js'
import { busy, HttpError } from './errors.js'

export interface Caller {
  /** for the log */
  name: string
  rights: readonly Right[]
  /** milliseconds until the token expires; undefined if it does not */
  validFor?: number | undefined
}

/** Why a token that is in the store is no longer accepted. Its holder may know. */
export interface EndedToken {
  reason: string
}

type Lookup = Caller | EndedToken | undefined

export type TokenSource = (token: string) => Lookup | Promise<Lookup>

/** milliseconds after which a token is looked up again, and so the longest time that a revoked token is accepted */
export const freshness = 500

/** The maximum number of concurrent lookups of new tokens; each may wait for a database connection. */
const maxLookups = 32

/** Accepts the `Authorization` header of a request, whose connection any object identifies. Rejects with the `HttpError` 401. */
export type Authenticate = (authorization: string | undefined, connection: object) => Caller | Promise<Caller>

/**
 * Authenticates requests (RFC 6750). Caches the last accepted token of each connection, where no other client can probe it.
 *
 * @param now milliseconds, monotonic
 */
export function authenticator(findToken: TokenSource, now: () => number): Authenticate {
  const accepted = new WeakMap<object, { authorization: string | undefined; caller: Caller; until: number }>()
  const lookUp = async (authorization: string | undefined, connection: object) => {
    const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) throw unauthorized('No bearer token: send one in the header Authorization, as "Bearer TOKEN"', '')
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

/** A new bearer token: 256 random bits, with a prefix that lets secret scanners recognize it. */
export function newToken(): string {
  return `plants_${randomBytes(32).toString('base64url')}`
}

/** The SHA-256 of a token, which is all that a store keeps. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export function endOf({ revokedAt, expiresAt }: Token, time: number): EndedToken | undefined {
  const dayOf = (date: Date) => date.toISOString().slice(0, 10)
  if (revokedAt) return { reason: `The token was revoked on ${dayOf(revokedAt)}` }
  return expiresAt && expiresAt.getTime() <= time ? { reason: `The token expired on ${dayOf(expiresAt)}` } : undefined
}

interface StoreTokensOptions {
  /** milliseconds, monotonic */
  now(): number
  /** milliseconds since 1970 */
  time(): number
  warn(message: string): void
}

/**
 * Accepts the tokens of a store. Looks them up by their SHA-256, so that the timing reveals nothing about a token, and
 * only its holder learns that it has ended. Saves once a day (UTC) that a token is used; a request does not wait for that.
 */
export function tokensOfStore(store: TokenStore, { now, time, warn }: StoreTokensOptions): TokenSource {
  const found = new Map<string, { token: Token; until: number }>()
  /** lookups in progress: concurrent requests with the same token share one */
  const lookups = new Map<string, Promise<Token | undefined>>()
  /** the day on which the use of a token was last saved, or at least tried, by its id */
  const used = new Map<bigint, number>()
  const markUsed = ({ id, lastUsedAt }: Token) => {
    const dayOf = (milliseconds: number) => Math.floor(milliseconds / 86_400_000)
    const today = dayOf(time())
    if (today <= (used.get(id) ?? dayOf(lastUsedAt?.getTime() ?? -Infinity))) return
    used.set(id, today)
    const failed = ({ message }: Error) => warn(`The last use of token ${id} could not be saved: ${message}`)
    store.markUsed(id, new Date(time())).catch(failed)
  }
  const callerOf = (token: Token | undefined): Lookup => {
    const at = time()
    const ended = token && endOf(token, at)
    if (!token || ended) return ended
    markUsed(token)
    const { id, rights, expiresAt } = token
    return { name: String(id), rights, validFor: expiresAt && expiresAt.getTime() - at }
  }
  const lookUp = async (digest: Uint8Array, key: string) => {
    const until = now() + freshness // from the start of the lookup: a remote store may be slow
    try {
      const token = await store.find(digest)
      if (token) found.set(key, { token, until })
      else found.delete(key)
      return token
    } finally {
      lookups.delete(key)
    }
  }
  return (text) => {
    const digest = digestOf(text)
    const key = digest.toString('latin1')
    const known = found.get(key)
    if (known && known.until > now()) return callerOf(known.token)
    if (!known && lookups.size >= maxLookups && !lookups.has(key)) throw busy()
    const lookup = lookups.get(key) ?? lookUp(digest, key)
    lookups.set(key, lookup)
    return lookup.then(callerOf)
  }
}

/** Accepts a fixed set of tokens, mapped to their names, with the same rights. Always compares all of them, in constant time. */
export function fixedTokens(names: ReadonlyMap<string, string>, rights: readonly Right[]): TokenSource {
  const tokens = [...names].map(([token, name]) => ({ digest: digestOf(token), caller: { name, rights } }))
  return (text) => {
    const digest = digestOf(text)
    return tokens.filter((token) => timingSafeEqual(token.digest, digest)).at(-1)?.caller
  }
}
