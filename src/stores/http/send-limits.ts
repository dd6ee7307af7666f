/** How many requests of an import may be in flight, and when the next one may be sent. Times are milliseconds of one clock. */
export class SendLimits {
  /** the maximum number of requests in flight: halved at each overload, then increased one by one (AIMD) */
  concurrency: number
  readonly #maxConcurrency: number
  readonly #interval: number
  #successes = 0
  #pauseEnd = -Infinity
  #next = -Infinity

  /** @param rate the maximum number of requests per second */
  constructor(concurrency: number, rate = Infinity) {
    this.concurrency = concurrency
    this.#maxConcurrency = concurrency
    this.#interval = 1000 / rate
  }

  /** Call when the service is overloaded. */
  halve(): void {
    this.concurrency = Math.max(1, Math.floor(this.concurrency / 2))
    this.#successes = 0
  }

  /** Call when a request is settled. */
  succeeded(): void {
    if (this.concurrency === this.#maxConcurrency) return
    this.#successes += 1
    if (this.#successes < this.concurrency) return
    this.concurrency += 1
    this.#successes = 0
  }

  /** Sends no requests until a time, unless a later one is already set. */
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
