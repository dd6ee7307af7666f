/** When the next request of an import may be sent. Times are milliseconds of one clock. */
export class RateLimiter {
  readonly #interval: number
  #pauseEnd = -Infinity
  #next = -Infinity

  /** @param rate the maximum number of requests per second */
  constructor(rate = Infinity) {
    this.#interval = 1000 / rate
  }

  /** Sends no requests until a time, unless a later one is already set. */
  pauseUntil(time: number): void {
    this.#pauseEnd = Math.max(this.#pauseEnd, time)
  }

  /** Milliseconds until the next request may be sent; 0 or less for now. */
  delay(now: number): number {
    return Math.max(this.#pauseEnd, this.#next) - now
  }

  spend(now: number): void {
    this.#next = Math.max(this.#next, now - leeway) + this.#interval
  }
}

/** milliseconds that a timer may be late without lowering the rate */
const leeway = 10
