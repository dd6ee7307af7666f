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
