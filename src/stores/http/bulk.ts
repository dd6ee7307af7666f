import { toJson } from '../../plant/json.js'
import { plantOf } from '../../plant/plant.js'
import { backoff, maxTimer, secondsOf, timeIsOver } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import { Outcome } from '../conflict.js'
import { type Batch, type CreateManyOptions, defaultConcurrency, type OpenOptions } from '../store.js'
import { type Consequence, consequenceOf, type Setback, type Settled } from './answer.js'
import type { Answer, Connection, NoAnswer } from './exchange.js'
import type { Remote } from './keys.js'
import { type Errand, Errands, Flow, Pace } from './queue.js'
import { requestToCreate } from './request.js'
import type { Access } from './types.js'

/** What is known of a service that is sent many plants, from batch to batch. */
export class Bulk {
  readonly address: RemoteAddress
  readonly connection: Connection
  readonly options: OpenOptions
  readonly flow: Flow
  readonly pace: Pace
  /** with the token that was found last */
  access: Access
  /** requests so far */
  sent = 0
  readonly #told = new Set<string>()

  constructor({ address, access, options, connection }: Remote) {
    this.address = address
    this.access = access
    this.options = options
    this.connection = connection
    this.flow = new Flow(options.concurrency ?? defaultConcurrency, options.clock.now())
    this.pace = new Pace(options.rate)
  }

  /**
   * Does what a store's `createMany` does.
   *
   * @param isKeyed whether a request may be repeated under its key
   */
  async createMany(batch: Batch, options: CreateManyOptions, isKeyed: boolean): Promise<void> {
    this.flow.rest(this.options.clock.now())
    await new Sending(this, batch, options, isKeyed).run()
  }

  /** Tells a person about something that may happen to thousands of plants, the first time. */
  async tellOnce(topic: string, text: string): Promise<void> {
    if (this.#told.has(topic)) return
    this.#told.add(topic)
    await this.access.notify(text)
  }
}

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
    if (why) this.#batch.rejections.set(row, { error: why.error, message: why.message }) // which has no stack
    if (this.#options.stopsAtReject && outcome >= Outcome.taken) this.#hasRefused = true
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

interface Listener {
  fail(error: unknown): void
  /** A renewal has ended. */
  tell(): void
}

/** Finds a newer token when a service refuses the one that there is. */
export class Renewal {
  readonly #bulk: Bulk
  readonly #listener: Listener
  #end: Promise<void> | undefined
  /** nothing was settled with the token yet */
  #isNew = false

  constructor(bulk: Bulk, listener: Listener) {
    this.#bulk = bulk
    this.#listener = listener
  }

  /** when the renewal under way will have ended, if there is one */
  get end(): Promise<void> | undefined {
    return this.#end
  }

  /** The token was accepted. */
  proven(): void {
    this.#isNew = false
  }

  /** @param refusal what the service says of the token, and what is told when there is no other */
  begin(refusal: PlantsError): void {
    const { renew } = this.#bulk.access
    if (!renew || this.#isNew) this.#listener.fail(refusal)
    else this.#end ??= this.#renew(renew, refusal)
  }

  async #renew(renew: () => Promise<string | undefined>, refusal: PlantsError): Promise<void> {
    const { access } = this.#bulk
    try {
      const token = await renew()
      if (token === undefined || token === access.token) this.#listener.fail(refusal)
      else this.#bulk.access = { ...access, token }
    } catch (error) {
      this.#listener.fail(error)
    }
    this.#isNew = true
    this.#end = undefined
    this.#listener.tell()
  }
}

/** What one loop waits for, and any number of callbacks tell. */
export class Change {
  #isTold = false
  #wake: (() => void) | undefined

  readonly tell = (): void => {
    this.#isTold = true
    this.#wake?.()
  }

  /** Resolves when something was told since the last time, or so many milliseconds later; they may be without end. */
  async within(milliseconds: number): Promise<void> {
    if (!this.#isTold) {
      await new Promise<void>((resolve) => {
        const timer = milliseconds === Infinity ? undefined : setTimeout(resolve, Math.min(Math.ceil(milliseconds), maxTimer))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#wake = undefined
    this.#isTold = false
  }
}
