import { timingSafeEqual } from 'node:crypto'
import type { Token, TokenStore } from '../stores/store.js'
import { busy, type Refused, refused } from './errors.js'
import { digestOf } from './tokens.js'

/** Tells the name of a token, as a log may show it, or that it is not accepted. */
export type FindToken = (token: string) => string | undefined | Promise<string | undefined>

/** A header that was accepted a moment ago; most callers send the same one each time. */
interface Known {
  authorization: string | undefined
  name: string
  until: number
}

/** Finds out who asks, and remembers it for a moment by the connection, where nobody else can try what is remembered. */
export class Guard {
  readonly #findToken: FindToken
  readonly #now: () => number
  readonly #known = new WeakMap<object, Known>()

  /** @param now milliseconds, never going back */
  constructor(findToken: FindToken, now: () => number) {
    this.#findToken = findToken
    this.#now = now
  }

  /** As `authenticate`, on a connection. */
  admit(authorization: string | undefined, connection: object): string | Promise<string> {
    const known = this.#known.get(connection)
    if (known && known.authorization === authorization && known.until > this.#now()) return known.name
    const name = authenticate(authorization, this.#findToken)
    const remember = (found: string) => {
      this.#known.set(connection, { authorization, name: found, until: this.#now() + freshness / 2 })
      return found
    }
    return typeof name === 'string' ? remember(name) : name.then(remember)
  }
}

/**
 * Finds out who asks, from the header Authorization (RFC 6750).
 *
 * @returns the name of the token
 * @throws {Refused} with `error` 401
 */
function authenticate(authorization: string | undefined, findToken: FindToken): string | Promise<string> {
  const token = /^Bearer +(.*[^ ]) *$/i.exec(authorization ?? '')?.[1]
  if (token === undefined) throw unauthorized('No bearer token: it goes into the header Authorization, as "Bearer TOKEN"', '')
  const name = findToken(token)
  return typeof name === 'object' ? name.then(accept) : accept(name)
}

function accept(name: string | undefined): string {
  if (name === undefined) throw unauthorized('This token is not accepted', ', error="invalid_token"')
  return name
}

function unauthorized(message: string, parameter: string): Refused {
  return refused(401, message, { 'WWW-Authenticate': `Bearer realm="plants"${parameter}` })
}

/** milliseconds after which a token is looked for again: one that was revoked gets no further */
const freshness = 500

/** How many tokens that were not found before are looked for at once; each may wait for a connection to a database. */
const mostAsked = 32

/**
 * Accepts the tokens of a store. They are found by their SHA-256, so that the time it takes tells nothing about a token.
 *
 * @param now milliseconds, never going back
 * @param time milliseconds since 1970
 */
export function tokensOfStore(store: TokenStore, { now, time }: { now(): number; time(): number }): FindToken {
  const known = new Map<string, { token: Token; until: number }>()
  /** what is asked at this moment: all who want to know meanwhile get the same answer */
  const asked = new Map<string, Promise<Token | undefined>>()
  const nameOf = (token: Token) => (isUsable(token, time()) ? String(token.id) : undefined)
  const ask = async (digest: Uint8Array, key: string) => {
    const until = now() + freshness // from when it is asked, since a store elsewhere may take its time
    try {
      const token = await store.find(digest)
      if (token === undefined) known.delete(key)
      else known.set(key, { token, until })
      return token
    } finally {
      asked.delete(key)
    }
  }
  return (text) => {
    const digest = digestOf(text)
    const key = digest.toString('latin1')
    const found = known.get(key)
    if (found !== undefined && found.until > now()) return nameOf(found.token)
    if (found === undefined && asked.size >= mostAsked && !asked.has(key)) throw busy()
    const answer = asked.get(key) ?? ask(digest, key)
    asked.set(key, answer)
    return answer.then((token) => token && nameOf(token))
  }
}

/** Whether a token is neither revoked nor expired. */
export function isUsable({ revokedAt, expiresAt }: Token, time: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt.getTime() > time)
}

/** Accepts fixed tokens, by the names that they have. They are compared in constant time, all of them each time. */
export function fixedTokens(names: ReadonlyMap<string, string>): FindToken {
  const tokens = [...names].map(([token, name]) => ({ digest: digestOf(token), name }))
  return (text) => {
    const digest = digestOf(text)
    return tokens.reduce<string | undefined>((found, token) => (timingSafeEqual(token.digest, digest) ? token.name : found), undefined)
  }
}

/**
 * Accepts tokens that may change, by the names that they have.
 *
 * @param read gives other tokens than before, or undefined when they are the same
 */
export function changingTokens(
  first: ReadonlyMap<string, string>,
  read: () => ReadonlyMap<string, string> | undefined,
  now: () => number,
): FindToken {
  let find = fixedTokens(first)
  let until = now() + freshness
  return (text) => {
    if (until <= now()) {
      const names = read()
      if (names) find = fixedTokens(names)
      until = now() + freshness
    }
    return find(text)
  }
}
