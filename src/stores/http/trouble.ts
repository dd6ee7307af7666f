import { backoff, secondsOf } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { Bulk } from './bulk.js'
import type { Setback } from './consequence.js'
import type { Errand } from './errands.js'

/** What came to nothing since something was last settled, and what is done about it. */
export class Trouble {
  readonly #bulk: Bulk
  #lastSettled: number
  #error: PlantsError | undefined
  #time = 0
  /** how often in a row; what was under way together counts once */
  #count = 0
  /** the number of the first request that will count */
  #next = 0

  constructor(bulk: Bulk) {
    this.#bulk = bulk
    this.#lastSettled = bulk.options.clock.now()
  }

  get last(): PlantsError | undefined {
    return this.#error
  }

  /** Whether nothing was settled for the time-out. One request alone may have gone astray, and is tried once more. */
  get isHopeless(): boolean {
    return this.#count > 1 && this.#time >= this.#deadline
  }

  /** Whether others were settled while this one was tried again and again. */
  isOf({ tries, firstSent }: Errand, now: number): boolean {
    return tries >= triesOfOne && now - firstSent >= this.#bulk.options.timeout && this.#lastSettled > firstSent
  }

  /** Something was settled. */
  end(now: number): void {
    this.#lastSettled = now
    this.#error = undefined
    this.#count = 0
  }

  /**
   * Takes note of a request that came to nothing, and leaves the service alone for a while where it needs that.
   *
   * @returns when it may be sent again
   */
  note({ number, tries }: Errand, setback: Setback, now: number): number {
    this.#error = setback.error
    this.#time = now
    if (number >= this.#next) this.#countRound(setback, now)
    const { kind, seconds = 0 } = setback
    const isLone = kind === 'open' && this.#count < 2 // a connection ends now and then
    if (!isLone) this.#bulk.pace.pauseUntil(Math.min(now + 1000 * seconds + this.#pauseAfter(this.#count, 1000), this.#deadline))
    return kind === 'open' ? now + this.#pauseAfter(tries, 5000) : now
  }

  #countRound({ error, isTooMuch }: Setback, now: number): void {
    this.#count += 1
    this.#next = this.#bulk.sent
    if (isTooMuch || this.#count > 1) this.#bulk.flow.slow(now)
    if (this.#count < roundsUntilTold) return
    const left = secondsOf(this.#lastSettled + this.#bulk.options.timeout - now)
    void this.#bulk.tellOnce('trouble', `${error.message}. Trying again for up to ${left}`)
  }

  /** milliseconds, more after each try */
  #pauseAfter(tries: number, longest: number): number {
    return backoff(tries, { base: 50, max: longest, random: this.#bulk.options.clock.random })
  }

  /** After it, a try would have too little time to say more than the one before. */
  get #deadline(): number {
    const { timeout } = this.#bulk.options
    return this.#lastSettled + timeout - Math.min(1000, timeout / 10)
  }
}

/** of a plant that comes to nothing while others do not */
const triesOfOne = 5

const roundsUntilTold = 3
