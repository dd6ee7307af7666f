/** How many requests may be in flight: so many, and half after each time that this was too much, from which it grows again one by one. */
export class ConcurrencyLimit {
  readonly #max: number
  #limit: number
  #successes = 0

  constructor(max: number) {
    this.#max = max
    this.#limit = max
  }

  get limit(): number {
    return this.#limit
  }

  /** The service had too much to do. */
  halve(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / 2))
    this.#successes = 0
  }

  /** A request was settled. */
  succeeded(): void {
    if (this.#limit === this.#max) return
    this.#successes += 1
    if (this.#successes < this.#limit) return
    this.#limit += 1
    this.#successes = 0
  }
}

/** When requests may be sent: so many in a second, and none during a pause. Times are milliseconds of one clock. */
export class RateLimiter {
  readonly #interval: number
  #pauseEnd = -Infinity
  #next = -Infinity

  /** @param rate requests in a second at most */
  constructor(rate = Infinity) {
    this.#interval = 1000 / rate
  }

  /** Sends nothing before a time, or before the later one that was named earlier. */
  pauseUntil(time: number): void {
    this.#pauseEnd = Math.max(this.#pauseEnd, time)
  }

  /** Milliseconds until the next request may be sent; 0 or less when that is now. */
  delay(now: number): number {
    return Math.max(this.#pauseEnd, this.#next) - now
  }

  /** Takes note of a request that is sent. */
  spend(now: number): void {
    this.#next = Math.max(this.#next, now - leeway) + this.#interval
  }
}

/** milliseconds that a timer may be late without a loss */
const leeway = 10
