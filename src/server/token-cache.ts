/**
 * Finds the callers of tokens in a store, and remembers them for a moment.
 *
 * Every request has a token, and looking it up is a call to the store. So a token that was found is
 * not looked up again for half a second. If it is revoked in that time, it is accepted until then.
 *
 * A token that was not found is not remembered, because a flood of wrong tokens would fill the
 * memory. Nor must a flood keep the store busy: of the tokens that were never found, only
 * `maxLookups` are looked up at a time. The lookups of tokens that were found before do not wait
 * for those.
 */
import { hash } from 'node:crypto'
import { Slots } from '../platform/slots.js'
import { isValid, type Token, type TokenStore } from '../stores/tokens.js'
import { type Caller, hashToken } from './authenticate.js'

interface Clock {
  /** Returns the milliseconds of a clock that nobody can set, such as `performance.now`. */
  now(): number
  /** Returns the milliseconds since 1970, with which the expiry of a token is compared. */
  getTimeMs(): number
}

interface Lookup {
  token: Promise<Token | undefined>
  /** The token is not looked up again until then, on the clock of `now`. */
  freshUntilMs: number
}

const freshnessMs = 500

/** The largest number of tokens, never found before, that are looked up at a time. */
const maxLookups = 32

export class TokenCache {
  readonly #store: TokenStore
  readonly #clock: Clock
  /** The lookups of tokens that were never found, or not since a lookup failed. */
  readonly #firstLookups = new Slots(maxLookups)
  /**
   * This has the lookups that found a token, by the SHA-256 of it. A search by the token itself
   * could take longer the more of it is right, and so help to guess it.
   */
  readonly #lookups = new Map<string, Lookup>()

  constructor(store: TokenStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async findCaller(text: string): Promise<Caller | undefined> {
    const key = hash('sha256', text, 'base64')
    const lookup = this.#findFreshLookup(key) ?? this.#lookUp(key, text)
    const token = await this.#waitFor(key, lookup)
    const isAccepted = token !== undefined && isValid(token, this.#clock.getTimeMs())
    return isAccepted ? { name: String(token.id), rights: token.rights } : undefined
  }

  #findFreshLookup(key: string): Lookup | undefined {
    const lookup = this.#lookups.get(key)
    return lookup && this.#clock.now() < lookup.freshUntilMs ? lookup : undefined
  }

  /**
   * Begins to look a token up.
   *
   * @param key the SHA-256 of the token, by which `#lookups` has it
   */
  #lookUp(key: string, text: string): Lookup {
    const digest = hashToken(text)
    const wasFound = this.#lookups.has(key)
    const find = () => this.#store.find(digest)
    const token = wasFound ? find() : this.#firstLookups.run(find)
    const lookup = { token, freshUntilMs: this.#clock.now() + freshnessMs }
    // Further requests share this lookup while it runs. A first one is remembered only when it has
    // found the token, because otherwise a flood of wrong tokens would fill the map.
    if (wasFound) this.#lookups.set(key, lookup)
    return lookup
  }

  /** Waits for a lookup, and remembers it only if it finds the token. */
  async #waitFor(key: string, lookup: Lookup): Promise<Token | undefined> {
    try {
      const token = await lookup.token
      if (token) this.#lookups.set(key, lookup)
      else this.#lookups.delete(key)
      return token
    } catch (error) {
      this.#lookups.delete(key)
      throw error
    }
  }
}
