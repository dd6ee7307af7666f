import { toJson } from '../../plant/json.js'
import { plantOf } from '../../plant/plant.js'
import { timeIsOver } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import { Outcome } from '../conflict.js'
import type { Batch, CreateManyOptions } from '../store.js'
import type { Bulk } from './bulk.js'
import { Change } from './change.js'
import { type Consequence, consequenceOf, type Setback, type Settled } from './consequence.js'
import { type Errand, Errands } from './errands.js'
import type { Answer, NoAnswer } from './exchange.js'
import { Renewal } from './renewal.js'
import { requestToCreate } from './request.js'
import { Trouble } from './trouble.js'

/** A batch on its way into a service. */
export class Sending {
  readonly #bulk: Bulk
  readonly #batch: Batch
  readonly #options: CreateManyOptions
  readonly #isKeyed: boolean
  readonly #errands: Errands
  /** in the order in which they were sent */
  readonly #underWay = new Set<Errand>()
  readonly #change = new Change()
  readonly #trouble: Trouble
  #hasRefused = false
  #failure: { error: unknown } | undefined
  readonly #renewal: Renewal

  constructor(bulk: Bulk, batch: Batch, options: CreateManyOptions, isKeyed: boolean) {
    this.#bulk = bulk
    this.#batch = batch
    this.#options = options
    this.#isKeyed = isKeyed
    this.#errands = new Errands(batch)
    this.#trouble = new Trouble(bulk)
    this.#renewal = new Renewal(bulk, {
      fail: (error) => {
        if (!options.stop.aborted) this.#fail(error)
      },
      tell: this.#change.tell,
    })
  }

  /** Resolves or rejects when nothing is under way any more. */
  async run(): Promise<void> {
    const { stop } = this.#options
    const { timeout } = this.#bulk.options
    const timer = setInterval(() => this.#endLate(), Math.min(Math.max(timeout / 20, 5), 250))
    stop.addEventListener('abort', this.#change.tell)
    try {
      for (;;) {
        const pause = await this.#begin().catch((error: unknown) => this.#fail(error))
        if (pause === undefined && this.#underWay.size === 0) break
        await this.#change.within(pause ?? Infinity)
      }
      await this.#renewal.end
    } finally {
      clearInterval(timer)
      stop.removeEventListener('abort', this.#change.tell)
    }
    if (this.#failure) throw this.#failure.error
  }

  /** Sends what may be sent now. Gives the milliseconds until there may be more, or undefined when nothing more is to be begun. */
  async #begin(): Promise<number | undefined> {
    for (;;) {
      const now = this.#bulk.options.clock.now()
      const pause = this.#isOver() ? undefined : this.#pause(now)
      if (pause === undefined || pause > 0) return pause
      const errand = this.#errands.take(now)
      if (this.#isKeyed || errand.isAnnounced) this.#send(errand)
      else await this.#announce(errand, now) // and look again whether it may be sent
    }
  }

  async #announce(errand: Errand, now: number): Promise<void> {
    await this.#options.beforeSend(errand.row)
    errand.isAnnounced = true
    this.#errands.putBack(errand, now)
  }

  #isOver(): boolean {
    if (this.#failure || this.#options.stop.aborted || this.#hasRefused) return true
    if (!this.#trouble.isHopeless) return false
    if (this.#underWay.size === 0) this.#fail(this.#trouble.last)
    return true
  }

  #pause(now: number): number | undefined {
    const delay = this.#errands.delay(now)
    if (delay === Infinity) return undefined
    if (this.#underWay.size >= this.#bulk.flow.limit || this.#renewal.end !== undefined) return Infinity
    return Math.max(delay, this.#bulk.pace.delay(now))
  }

  #send(errand: Errand): void {
    const { access, connection, pace, options } = this.#bulk
    const request = requestToCreate(access, errand.plant, this.#options.keyOf(errand.row))
    errand.lastSent = options.clock.now()
    errand.tries += 1
    errand.number = this.#bulk.sent
    errand.token = access.token
    this.#bulk.sent += 1
    pace.spend(errand.lastSent)
    this.#underWay.add(errand)
    errand.end = connection.start(request, (result) => this.#receive(errand, result))
  }

  #receive(errand: Errand, result: Answer | NoAnswer): void {
    this.#underWay.delete(errand)
    try {
      const { address, access } = this.#bulk
      this.#follow(errand, consequenceOf(result, errand.plant, { address, access, ifExists: this.#options.ifExists }))
    } catch (error) {
      this.#fail(error) // undici would swallow it
    }
    this.#change.tell()
  }

  #follow(errand: Errand, what: Consequence): void {
    const now = this.#bulk.options.clock.now()
    if (what.kind === 'settled') this.#settle(errand, what, now)
    else if (what.kind === 'useless') this.#giveUp(errand, what.error)
    else if (what.kind === 'locked') this.#unlock(errand, what.error, now)
    else this.#setBack(errand, what, now)
  }

  #settle(errand: Errand, { outcome, why, other }: Settled, now: number): void {
    this.#trouble.end(now)
    this.#renewal.proven()
    this.#bulk.flow.answered(now)
    this.#note(errand, outcome, why)
    if (!other) return
    const text = `${toJson({ ...plantOf(other) })} instead of ${toJson({ ...plantOf(errand.plant) })}, for the plant ${errand.plant.id}`
    void this.#bulk.tellOnce('other', `The store answers with other plants than it is given, such as ${text}`)
  }

  #setBack(errand: Errand, what: Setback, now: number): void {
    const due = this.#trouble.note(errand, what, now)
    const isFinal = what.kind === 'open' && (!this.#isKeyed || this.#trouble.isOf(errand, now))
    if (isFinal) this.#note(errand, Outcome.unknown, what.error)
    else this.#errands.putBack(errand, due)
  }

  #giveUp(errand: Errand, error: PlantsError): void {
    if (error.exitCode === 5 && !this.#isKeyed) this.#note(errand, Outcome.unknown, error)
    this.#fail(error)
  }

  #note({ row }: Errand, outcome: number, why: PlantsError | undefined): void {
    this.#batch.outcomes[row] = outcome
    if (why) this.#batch.refusals.set(row, { error: why.error, message: why.message }) // which has no stack
    if (this.#options.stopsAtRefusal && outcome >= Outcome.taken) this.#hasRefused = true
    this.#options.onProgress()
  }

  /** Sends it again with a newer token, if there is one. */
  #unlock(errand: Errand, error: PlantsError, now: number): void {
    this.#errands.putBack(errand, now)
    if (errand.token === this.#bulk.access.token) this.#renewal.begin(error)
  }

  #fail(error: unknown): undefined {
    this.#failure ??= { error }
  }

  #endLate(): void {
    const { clock, timeout } = this.#bulk.options
    const latest = clock.now() - timeout
    for (const errand of this.#underWay) {
      if (errand.lastSent > latest) break
      errand.end(timeIsOver())
    }
  }
}
