/**
 * Finds the callers of tokens in a store, and remembers them.
 *
 * Every request has a token, and looking it up is a call to the store. So a token that was found is
 * not looked up again for half a second. If it is revoked in that time, it is accepted until then.
 *
 * A flood of wrong tokens must neither fill the memory nor keep the store busy. So an unknown token
 * and a remembered token are looked up in different ways:
 *
 * - For an unknown token, each request makes its own lookup (`#lookUpFirst`). At most
 *   `maxFirstLookups` of these run at a time, whatever their tokens are. The lookup is remembered
 *   only if it finds the token.
 * - For a remembered token, one lookup serves all requests of half a second, also those that come
 *   while it runs (`#lookUpAgain`). It does not wait for the lookups of unknown tokens, so a flood
 *   delays nobody with an accepted token. If the lookup fails, or does not find the token any more,
 *   the token is unknown again.
 */
import { Slots } from '../platform/slots.js'
import { isValidToken, type Token, type TokenStore } from '../stores/tokens.js'
import { type Caller, hashToken } from './authenticate.js'

interface Clock {
  /** Returns the milliseconds of a clock that nobody can set, such as `performance.now`. */
  now(): number
  /** Returns the milliseconds since 1970, with which the expiry of a token is compared. */
  getTimeMs(): number
}

/** The latest lookup of a remembered token. It may still be running. */
interface Lookup {
  token: Promise<Token | undefined>
  /** What the latest lookup has found that has ended. */
  latestToken: Token
  /** The token is not looked up again until then, on the clock of `now`. */
  freshUntilMs: number
}

const freshnessMs = 500

const maxFirstLookups = 32

export class TokenCache {
  readonly #firstLookups = new Slots(maxFirstLookups)
  /**
   * The lookups of all remembered tokens, by the SHA-256 of the token. A search by the token itself
   * could take longer for a token that begins with the right characters, which would help to guess
   * it.
   */
  readonly #lookups = new Map<string, Lookup>()

  constructor(
    private readonly store: TokenStore,
    private readonly clock: Clock,
  ) {}

  async findCaller(bearerToken: string): Promise<Caller | undefined> {
    const digest = hashToken(bearerToken)
    const key = digest.toString('base64')
    const token = await this.#findToken(key, digest)
    if (!this.#isValid(token)) return undefined
    return {
      name: String(token.id),
      rights: token.rights,
      isAccepted: () => this.#isStillAccepted(key, digest),
    }
  }

  #isValid(token: Token | undefined): token is Token {
    return token !== undefined && isValidToken(token, this.clock.getTimeMs())
  }

  /** Answers at once. After half a second without a request, the answer may be the earlier one. */
  #isStillAccepted(key: string, digest: Buffer): boolean {
    const lookup = this.#lookups.get(key)
    if (!lookup) return false
    // If the lookup fails, the token is unknown until the next request, which reports the failure.
    if (!this.#isFresh(lookup))
      this.#lookUpAgain(key, digest, lookup.latestToken).catch(() => undefined)
    return this.#isValid(lookup.latestToken)
  }

  /** @param key the digest in base64, by which `#lookups` has it */
  #findToken(key: string, digest: Buffer): Promise<Token | undefined> {
    const lookup = this.#lookups.get(key)
    if (!lookup) return this.#lookUpFirst(key, digest)
    return this.#isFresh(lookup) ? lookup.token : this.#lookUpAgain(key, digest, lookup.latestToken)
  }

  #isFresh({ freshUntilMs }: Lookup): boolean {
    return this.clock.now() < freshUntilMs
  }

  async #lookUpFirst(key: string, digest: Buffer): Promise<Token | undefined> {
    const freshUntilMs = this.clock.now() + freshnessMs
    const token = await this.#firstLookups.run(() => this.store.find(digest))
    if (token)
      this.#lookups.set(key, { token: Promise.resolve(token), latestToken: token, freshUntilMs })
    return token
  }

  async #lookUpAgain(key: string, digest: Buffer, latestToken: Token): Promise<Token | undefined> {
    const freshUntilMs = this.clock.now() + freshnessMs
    const lookup = { token: this.store.find(digest), latestToken, freshUntilMs }
    this.#lookups.set(key, lookup)
    let token: Token | undefined
    try {
      token = await lookup.token
    } finally {
      if (token) lookup.latestToken = token
      else this.#lookups.delete(key)
    }
    return token
  }
}
