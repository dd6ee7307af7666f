import { hash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Right, Token, TokenStore } from '../stores/store.js'
import { busy, HttpError } from './errors.js'

/** What is known of an accepted token. */
export interface Caller {
  /** as the log may show it */
  name: string
  rights: readonly Right[]
}

/** Looks a token up; returns undefined for one that is not accepted. */
export type TokenSource = (token: string) => Caller | undefined | Promise<Caller | undefined>

/** milliseconds after which a token is looked up again: one that was revoked is not accepted for longer */
const freshness = 500

/** How many tokens that were not found before are looked up at a time; each may wait for a connection to a database. */
const maxLookups = 32

/** Authenticates requests (RFC 6750). The last token on each connection is remembered, where nobody else can try it. */
export class Authenticator {
  readonly #findToken: TokenSource
  readonly #now: () => number
  readonly #accepted = new WeakMap<object, { authorization: string | undefined; caller: Caller; until: number }>()

  /** @param now milliseconds, never going back */
  constructor(findToken: TokenSource, now: () => number) {
    this.#findToken = findToken
    this.#now = now
  }

  /**
   * @param authorization the header
   * @param connection its identity
   * @throws {HttpError} 401
   */
  authenticate(authorization: string | undefined, connection: object): Caller | Promise<Caller> {
    const accepted = this.#accepted.get(connection)
    if (accepted && accepted.authorization === authorization && accepted.until > this.#now()) return accepted.caller
    const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization ?? '')?.[1]
    if (token === undefined) throw unauthorized('No bearer token: send one in the header Authorization, as "Bearer TOKEN"', '')
    const accept = (caller: Caller | undefined) => {
      if (caller === undefined) throw unauthorized('This token is not accepted', ', error="invalid_token"')
      this.#accepted.set(connection, { authorization, caller, until: this.#now() + freshness / 2 })
      return caller
    }
    const found = this.#findToken(token)
    return found instanceof Promise ? found.then(accept) : accept(found)
  }
}

function unauthorized(message: string, parameter: string): HttpError {
  return new HttpError(401, message, ['WWW-Authenticate', `Bearer realm="plants"${parameter}`])
}

/** A new bearer token: 256 random bits, after a prefix by which scanners for leaked secrets find it. */
export function newToken(): string {
  return `plants_${randomBytes(32).toString('base64url')}`
}

/** SHA-256 of a token: all that a store keeps of it. */
export function digestOf(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Whether a token is neither revoked nor expired. */
export function isUsable({ revokedAt, expiresAt }: Token, time: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt.getTime() > time)
}

/**
 * Accepts the tokens of a store. They are found by their SHA-256, so that the time it takes reveals nothing about a token.
 *
 * @param now milliseconds, never going back
 * @param time milliseconds since 1970
 */
export function tokensOfStore(store: TokenStore, { now, time }: { now(): number; time(): number }): TokenSource {
  const found = new Map<string, { token: Token; until: number }>()
  /** by token: all who need one meanwhile share its lookup */
  const lookups = new Map<string, Promise<Token | undefined>>()
  const callerOf = (token: Token | undefined) =>
    token && isUsable(token, time()) ? { name: String(token.id), rights: token.rights } : undefined
  const lookUp = async (digest: Uint8Array, key: string) => {
    const until = now() + freshness // from the start of the lookup, since a store elsewhere may take its time
    try {
      const token = await store.find(digest)
      if (token === undefined) found.delete(key)
      else found.set(key, { token, until })
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

/** Accepts fixed tokens, given with their names, which all have the same rights. They are compared in constant time, all of them each time. */
export function fixedTokens(names: ReadonlyMap<string, string>, rights: readonly Right[]): TokenSource {
  const tokens = [...names].map(([token, name]) => ({ digest: digestOf(token), caller: { name, rights } }))
  return (text) => {
    const digest = digestOf(text)
    return tokens.reduce<Caller | undefined>((found, token) => (timingSafeEqual(token.digest, digest) ? token.caller : found), undefined)
  }
}

/**
 * Accepts tokens that may change, given with their names.
 *
 * @param read returns undefined while they are the same
 */
export function changingTokens(
  first: ReadonlyMap<string, string>,
  rights: readonly Right[],
  read: () => ReadonlyMap<string, string> | undefined,
  now: () => number,
): TokenSource {
  let find = fixedTokens(first, rights)
  let until = now() + freshness
  return (text) => {
    if (until <= now()) {
      const names = read()
      if (names) find = fixedTokens(names, rights)
      until = now() + freshness
    }
    return find(text)
  }
}
