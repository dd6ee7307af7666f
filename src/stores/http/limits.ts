/** The maximum number of requests in flight: halved at each overload, then increased one by one (AIMD). */
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

  /** Call when the service is overloaded. */
  halve(): void {
    this.#limit = Math.max(1, Math.floor(this.#limit / 2))
    this.#successes = 0
  }

  /** Call when a request is settled. */
  succeeded(): void {
    if (this.#limit === this.#max) return
    this.#successes += 1
    if (this.#successes < this.#limit) return
    this.#limit += 1
    this.#successes = 0
  }
}

/** Limits requests per second, and sends none during a pause. Times are milliseconds of one clock. */
export class RateLimiter {
  readonly #interval: number
  #pauseEnd = -Infinity
  #next = -Infinity

  /** @param rate the maximum number of requests per second */
  constructor(rate = Infinity) {
    this.#interval = 1000 / rate
  }

  /** Pauses until a time, unless a later one is already set. */
  pauseUntil(time: number): void {
    this.#pauseEnd = Math.max(this.#pauseEnd, time)
  }

  /** Milliseconds until the next request may be sent; 0 or less for now. */
  delay(now: number): number {
    return Math.max(this.#pauseEnd, this.#next) - now
  }

  /** Counts a request that is sent. */
  spend(now: number): void {
    this.#next = Math.max(this.#next, now - leeway) + this.#interval
  }
}

/** milliseconds that a timer may be late without lowering the rate */
const leeway = 10
