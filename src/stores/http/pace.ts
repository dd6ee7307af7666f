/** When requests may be sent: so many in a second, and none during a pause. Times are milliseconds of one clock. */
export class Pace {
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
