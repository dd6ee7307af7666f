/**
 * Finds the callers of tokens in a store, and remembers them for a moment.
 *
 * Every request has a token, and looking it up is a call to the store. So a token that was found is
 * not looked up again for half a second. If it is revoked in that time, it is accepted until then.
 *
 * A token that was not found is not remembered, because a flood of wrong tokens would fill the
 * memory. Nor must a flood keep the store busy. So the lookups of a token are of two kinds:
 *
 * - The first ones, until one of them finds the token: each request makes its own. Only
 *   `maxFirstLookups` of all tokens run at a time, and only one that finds the token is remembered.
 * - The later ones: each serves all requests of half a second, also while it still runs. It does
 *   not wait for any of the first ones, so a flood delays nobody with an accepted token. If it
 *   fails, or the token is gone, it is forgotten: the next lookup is a first one again.
 */
import { hash } from 'node:crypto'
import { Slots } from '../platform/slots.js'
import { isValidToken, type Token, type TokenStore } from '../stores/tokens.js'
import { type Caller, hashToken } from './authenticate.js'

interface Clock {
  /** Returns the milliseconds of a clock that nobody can set, such as `performance.now`. */
  now(): number
  /** Returns the milliseconds since 1970, with which the expiry of a token is compared. */
  getTimeMs(): number
}

/** The first lookup that has found a token, or a later lookup of the same token. */
interface Lookup {
  token: Promise<Token | undefined>
  /** The token is not looked up again until then, on the clock of `now`. */
  freshUntilMs: number
}

const freshnessMs = 500

const maxFirstLookups = 32

export class TokenCache {
  readonly #store: TokenStore
  readonly #clock: Clock
  readonly #firstLookups = new Slots(maxFirstLookups)
  /**
   * The latest lookup of each token that was found, by the SHA-256 of the token. A search by the
   * token itself could take longer for a token that begins with the right characters, which would
   * help to guess it.
   */
  readonly #lookups = new Map<string, Lookup>()

  constructor(store: TokenStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async findCaller(bearerToken: string): Promise<Caller | undefined> {
    const token = await this.#findToken(hash('sha256', bearerToken, 'base64'), bearerToken)
    const isAccepted = token !== undefined && isValidToken(token, this.#clock.getTimeMs())
    return isAccepted ? { name: String(token.id), rights: token.rights } : undefined
  }

  /** @param key the SHA-256 of the token, by which `#lookups` has it */
  #findToken(key: string, bearerToken: string): Promise<Token | undefined> {
    const latestLookup = this.#lookups.get(key)
    if (!latestLookup) return this.#lookUpFirst(key, bearerToken)
    const isFresh = this.#clock.now() < latestLookup.freshUntilMs
    return isFresh ? latestLookup.token : this.#lookUpAgain(key, bearerToken)
  }

  async #lookUpFirst(key: string, bearerToken: string): Promise<Token | undefined> {
    const freshUntilMs = this.#clock.now() + freshnessMs
    const digest = hashToken(bearerToken)
    const token = await this.#firstLookups.run(() => this.#store.find(digest))
    if (token) this.#lookups.set(key, { token: Promise.resolve(token), freshUntilMs })
    return token
  }

  async #lookUpAgain(key: string, bearerToken: string): Promise<Token | undefined> {
    const freshUntilMs = this.#clock.now() + freshnessMs
    const lookup = { token: this.#store.find(hashToken(bearerToken)), freshUntilMs }
    this.#lookups.set(key, lookup)
    let token: Token | undefined
    try {
      token = await lookup.token
    } finally {
      if (!token) this.#lookups.delete(key)
    }
    return token
  }
}
