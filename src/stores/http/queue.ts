import type { NewPlant } from '../../plant/plant.js'
import { Outcome } from '../conflict.js'
import type { Batch } from '../store.js'

/** A row on its way into a service, from the first time that it is sent until it is settled. */
export interface Errand {
  row: number
  plant: NewPlant
  /** `beforeSend` has resolved for it */
  isAnnounced: boolean
  /** how often it was sent */
  tries: number
  /** when it was sent first, and last, on the clock */
  firstSent: number
  lastSent: number
  /** counts the requests of an import */
  number: number
  token: string
  /** ends the request under way, with a reason */
  end(reason: unknown): void
}

/** The rows of a batch that are to be sent: those that came to nothing when their time has come, then the others in their order. */
export class Errands {
  readonly #batch: Batch
  #next = 0
  readonly #again: { errand: Errand; due: number }[] = []

  constructor(batch: Batch) {
    this.#batch = batch
    this.#skipSettled()
  }

  /** Milliseconds until there is one to send: 0 or less when that is now, without end when there is none. */
  delay(now: number): number {
    const dues = this.#again.map(({ due }) => due - now)
    return Math.min(this.#hasNew && this.#again.length < longestQueue ? 0 : Infinity, ...dues)
  }

  /** The next one, which there must be. */
  take(now: number): Errand {
    const index = this.#again.findIndex(({ due }) => due <= now)
    const [found] = index < 0 ? [] : this.#again.splice(index, 1)
    if (found) return found.errand
    const row = this.#next
    this.#next += 1
    this.#skipSettled()
    const plant = this.#batch.rows.at(row)
    return { row, plant, isAnnounced: false, tries: 0, firstSent: now, lastSent: now, number: 0, token: '', end: () => undefined }
  }

  /** Takes one back that is to be sent again at a time. */
  putBack(errand: Errand, due: number): void {
    this.#again.push({ errand, due })
  }

  get #hasNew(): boolean {
    return this.#next < this.#batch.rows.length
  }

  #skipSettled(): void {
    const { rows, outcomes } = this.#batch
    while (this.#next < rows.length && outcomes[this.#next] !== Outcome.pending) this.#next += 1
  }
}

/** rows that wait for another try while new ones are still begun */
const longestQueue = 256

/**
 * How many requests a service is sent at once: few at first, and more as long as that makes it answer faster; the number goes
 * back when it does not. When the service says that it was too much, it goes down to half, and grows again little by little
 * to a little less than that (AIMD).
 *
 * Times are milliseconds of one clock.
 */
export class Flow {
  #limit: number
  readonly #ceiling: number
  #step = 2
  /** what was good before the number that is tried now */
  #before: number | undefined
  /** up to where it grows without a question */
  #known: number
  /** whether a round went well since the service had enough */
  #isProven = false
  /** answers in a millisecond at the last number that was good */
  #speed = 0
  /** rounds until the next try */
  #rest = 0
  #longestRest = shortestRest
  #answers = 0
  #start: number

  /** @param ceiling requests at most */
  constructor(ceiling: number, now: number) {
    this.#ceiling = ceiling
    this.#limit = Math.min(firstLimit, ceiling)
    this.#known = this.#limit
    this.#start = now
  }

  /** requests that may be under way now */
  get limit(): number {
    return this.#limit
  }

  /** Begins to count again, after a time in which nothing was sent. */
  rest(now: number): void {
    this.#answers = Math.min(this.#answers, 0)
    this.#start = now
  }

  /** Takes note of an answer that settled something. */
  answered(now: number): void {
    this.#answers += 1
    if (this.#answers <= 0) this.#start = now
    if (this.#answers < this.#limit || now - this.#start < shortestRound) return
    const speed = this.#answers / (now - this.#start)
    this.#answers = 0
    this.#start = now
    this.#isProven = true
    if (this.#before !== undefined) this.#judge(speed, this.#before)
    else if (this.#limit < this.#known) this.#set(this.#limit + Math.ceil(this.#limit / 8))
    else this.#hold(speed)
  }

  /** Takes note of a service that has had enough. What was sent before it said so counts once. */
  slow(now: number): void {
    if (this.#isProven) {
      this.#known = Math.max(1, Math.floor(this.#limit * 0.9))
      this.#restLonger()
    }
    this.#isProven = false
    this.#before = undefined
    this.#step = carefulStep
    this.#speed = 0
    this.#set(Math.max(1, Math.floor(this.#limit / 2)))
    this.#start = now
  }

  /** Whether the number that is tried was worth it. */
  #judge(speed: number, before: number): void {
    if (speed >= this.#speed * worthwhile) {
      this.#speed = speed
      this.#longestRest = shortestRest
      this.#try()
    } else {
      this.#before = undefined
      this.#restLonger()
      this.#set(before)
    }
  }

  #hold(speed: number): void {
    this.#speed = this.#speed === 0 ? speed : (this.#speed + speed) / 2
    this.#rest -= 1
    if (this.#rest <= 0) this.#try()
  }

  /** Waits longer with the next try than with the last. */
  #restLonger(): void {
    this.#rest = this.#longestRest
    this.#longestRest = Math.min(2 * this.#longestRest, longestRest)
  }

  #try(): void {
    const before = this.#limit
    this.#set(Math.ceil(before * this.#step))
    this.#before = this.#limit === before ? undefined : before
  }

  #set(limit: number): void {
    this.#limit = Math.min(limit, this.#ceiling)
    this.#answers = -this.#limit // what is on its way says nothing of the new number
  }
}

const firstLimit = 4

/** by how much more a number is tried once the service has had enough */
const carefulStep = 1.25

/** how much faster the answers must come for a larger number to stay */
const worthwhile = 1.05

/** milliseconds in which chance weighs little */
const shortestRound = 50

const shortestRest = 1
const longestRest = 64

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
