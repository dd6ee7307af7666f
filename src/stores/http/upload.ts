import { toJson } from '../../plant/json.js'
import { equalFields, equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { backoff, maxTimer, timeIsOver } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { Access } from '../common/access.js'
import { comparesPlants, idExists, Outcome, resolveConflict } from '../common/conflict.js'
import { type Batch, type CreateManyOptions, defaultConcurrency } from '../common/store.js'
import { classifyFailure, classifyResponse, expectedPlant, expectStored, type Failure } from './classify.js'
import { type HttpResponse, NoResponse } from './client.js'
import type { Remote } from './exchange.js'
import { ConcurrencyLimit, RateLimiter } from './limits.js'
import { requestToCorrect, requestToCreate } from './request.js'
import { RetryPolicy } from './retry.js'

/** The state of a service that persists from one uploaded batch to the next. */
export class Uploader {
  readonly remote: Remote
  readonly concurrency: ConcurrencyLimit
  readonly rate: RateLimiter
  /** with the current token */
  access: Access
  readonly #warned = new Set<string>()

  constructor(remote: Remote) {
    this.remote = remote
    this.access = remote.access
    this.concurrency = new ConcurrencyLimit(remote.options.concurrency ?? defaultConcurrency)
    this.rate = new RateLimiter(remote.options.rate)
  }

  /** Warns once per topic, which may concern thousands of plants. */
  warnOnce(topic: string, text: string): void {
    if (this.#warned.has(topic)) return
    this.#warned.add(topic)
    void this.access.notify(text)
  }
}

/** A row that has been sent or queued, but is not settled. */
interface Pending {
  row: number
  plant: NewPlant
  /** the next request: its create; or, if its id exists, reading the plant with that id, and replacing it */
  step: 'create' | 'read' | 'replace'
  /** whether `beforeSend` has resolved for it */
  isAnnounced: boolean
  tries: number
  /** times on the clock: when it was first and last sent, and when it may be sent again */
  firstSent: number
  lastSent: number
  due: number
  token: string
  /** aborts the request in flight, with a reason */
  end(reason: unknown): void
}

/** Sends a batch to a service. */
export class Upload {
  readonly #uploader: Uploader
  readonly #batch: Batch
  readonly #options: CreateManyOptions
  readonly #isKeyed: boolean
  readonly #policy: RetryPolicy
  /** in the order of sending */
  readonly #inFlight = new Set<Pending>()
  /** rows to send again */
  readonly #queue: Pending[] = []
  /** with `update`, the ids of all of these: plants with the same id must be sent one after the other */
  readonly #ids = new Set<bigint>()
  /** the first row that has not been sent */
  #next = -1
  #lastSettled: number
  /** rounds of failures since something was settled; requests that were in flight together count as one round */
  #failures = 0
  /** when the last round was counted */
  #lastRound = -Infinity
  #lastFailure: PlantsError | undefined
  #isHopeless = false
  #hasRejected = false
  #failure: { error: unknown } | undefined
  #tokenRefresh: Promise<void> | undefined
  /** whether nothing has been settled with the current token */
  #isTokenNew = false
  #isNotified = false
  #wake: (() => void) | undefined

  /** @param isKeyed whether the service supports idempotency keys, so that a request may be repeated */
  constructor(uploader: Uploader, batch: Batch, options: CreateManyOptions, isKeyed: boolean) {
    this.#uploader = uploader
    this.#batch = batch
    this.#options = options
    this.#isKeyed = isKeyed
    this.#policy = new RetryPolicy(uploader.remote.options)
    this.#lastSettled = this.#now()
    this.#skipSettled()
  }

  /** Settles when nothing is in flight any more. */
  async run(): Promise<void> {
    const { stop } = this.#options
    const { timeout } = this.#uploader.remote.options
    const timer = setInterval(() => this.#tick(), Math.min(Math.max(timeout / 20, 5), 250))
    stop.addEventListener('abort', this.#notify)
    try {
      for (;;) {
        const pause = await this.#sendDue().catch((error: unknown) => this.#fail(error))
        if (pause === undefined && this.#inFlight.size === 0) break
        await this.#notification(pause ?? Infinity)
      }
      await this.#tokenRefresh
    } finally {
      clearInterval(timer)
      stop.removeEventListener('abort', this.#notify)
      await this.#uploader.access.onWait?.(undefined)
    }
    if (this.#failure) throw this.#failure.error
  }

  /** Sends what may be sent now. Returns the milliseconds until more may be sent; undefined if there is nothing more to send. */
  async #sendDue(): Promise<number | undefined> {
    while (!this.#isOver()) {
      const now = this.#now()
      const pause = this.#pause(now)
      if (pause === undefined || pause > 0) return pause
      const pending = this.#take(now)
      if (this.#isKeyed || pending.isAnnounced) this.#send(pending)
      else {
        await this.#options.beforeSend(pending.row)
        pending.isAnnounced = true
        this.#queue.push(pending) // check again whether it may be sent
      }
    }
    return undefined
  }

  #isOver(): boolean {
    if (this.#failure || this.#options.stop.aborted || this.#hasRejected) return true
    if (this.#isHopeless && this.#inFlight.size === 0) this.#fail(this.#lastFailure)
    return this.#isHopeless
  }

  #pause(now: number): number | undefined {
    const { rows } = this.#batch
    const hasNew = this.#next < rows.length && this.#queue.length < maxQueue && !this.#ids.has(rows.idAt(this.#next))
    const due = this.#queue.reduce((first, pending) => Math.min(first, pending.due), hasNew ? now : Infinity)
    if (due === Infinity) return undefined
    const { concurrency, rate } = this.#uploader
    // A single request shows whether the service has recovered. With stopsAtReject, what is sent together with a rejected plant stays.
    const limit = this.#failures > 0 || this.#options.stopsAtReject ? 1 : concurrency.limit
    if (this.#inFlight.size >= limit || this.#tokenRefresh !== undefined) return Infinity
    return Math.max(due - now, rate.delay(now))
  }

  /** The next row to send; there must be one. */
  #take(now: number): Pending {
    const index = this.#queue.findIndex(({ due }) => due <= now)
    const [found] = index < 0 ? [] : this.#queue.splice(index, 1)
    if (found) return found
    const row = this.#next
    this.#skipSettled()
    const plant = this.#batch.rows.at(row)
    if (this.#options.ifExists === 'update') this.#ids.add(plant.id)
    return {
      row,
      plant,
      step: 'create',
      isAnnounced: false,
      tries: 0,
      firstSent: now,
      lastSent: now,
      due: now,
      token: '',
      end: () => undefined,
    }
  }

  #skipSettled(): void {
    const { rows, outcomes } = this.#batch
    do this.#next += 1
    while (this.#next < rows.length && outcomes[this.#next] !== Outcome.pending)
  }

  #send(pending: Pending): void {
    const uploader = this.#uploader
    const { access } = uploader
    const { plant, row, step } = pending
    const request =
      step === 'create'
        ? requestToCreate(access, plant, this.#options.keyOf(row))
        : requestToCorrect(access, step === 'read' ? 'GET' : 'PUT', plant.id, step === 'read' ? {} : { body: plantOf(plant) })
    pending.lastSent = this.#now()
    pending.tries += 1
    pending.token = access.token
    uploader.rate.spend(pending.lastSent)
    this.#inFlight.add(pending)
    pending.end = uploader.remote.client.start(request, (result) => {
      this.#inFlight.delete(pending)
      try {
        this.#receive(pending, result)
      } catch (error) {
        this.#fail(error)
      }
      this.#notify()
    })
  }

  #receive(pending: Pending, response: HttpResponse | NoResponse): void {
    const { access, remote } = this.#uploader
    const { address } = remote
    const { plant, step } = pending
    const result =
      response instanceof NoResponse
        ? classifyFailure(response, address, access)
        : classifyResponse<Plant | NewPlant | 'missing'>(response, step === 'create' ? expectedPlant : expectStored(plant.id, notFound), {
            name: address.name,
            tokenHint: access.tokenHint,
          })
    switch (result.kind) {
      case 'done':
        this.#finish(pending, result.value)
        break
      case 'retry':
      case 'unknown':
        this.#retry(pending, result)
        break
      case 'conflict':
        // A service with idempotency keys would have recognized this row, so the conflict is with another plant.
        if (comparesPlants(this.#options.ifExists)) this.#sendAgain(pending, 'read')
        else if (this.#options.ifExists === 'skip') this.#settle(pending, Outcome.skipped)
        else this.#settle(pending, Outcome.taken, result.error)
        break
      case 'rejected':
        this.#settle(pending, Outcome.refused, result.error)
        break
      case 'unauthorized':
        this.#refreshToken(pending, result.error)
        break
      case 'incompatible':
        if (result.error.exitCode === 5 && !this.#isKeyed && step === 'create') this.#note(pending, Outcome.unknown, result.error)
        this.#fail(result.error)
    }
  }

  #finish(pending: Pending, value: Plant | NewPlant | 'missing'): void {
    const { plant, step } = pending
    if (value === 'missing')
      this.#sendAgain(pending, 'create') // it was deleted meanwhile
    else if (step === 'read' && 'id' in value) {
      const outcome = resolveConflict(this.#options.ifExists, () => equalPlants(value, plant))
      if (outcome === Outcome.updated) this.#sendAgain(pending, 'replace')
      else this.#settle(pending, outcome, outcome === Outcome.taken ? idExists(plant.id) : undefined)
    } else {
      this.#settle(pending, step === 'create' ? Outcome.created : Outcome.updated)
      this.#compare(plant, value)
    }
  }

  #sendAgain(pending: Pending, step: Pending['step']): void {
    this.#noteSuccess()
    this.#queue.push(Object.assign(pending, { step, tries: 0, due: this.#now() }))
  }

  #settle(pending: Pending, outcome: number, why?: PlantsError): void {
    this.#noteSuccess()
    this.#note(pending, outcome, why)
  }

  /** Records that the service has answered as expected. */
  #noteSuccess(): void {
    this.#lastSettled = this.#now()
    this.#failures = 0
    this.#isHopeless = false
    this.#isTokenNew = false
    this.#policy.reset()
    this.#uploader.concurrency.succeeded()
  }

  #note({ row, plant }: Pending, outcome: number, why?: PlantsError): void {
    this.#ids.delete(plant.id)
    this.#batch.outcomes[row] = outcome
    if (why) this.#batch.rejections.set(row, { error: why.error, message: why.message }) // without its stack, to save memory
    if (this.#options.stopsAtReject && outcome >= Outcome.taken) this.#hasRejected = true
    this.#options.onProgress()
  }

  #compare(sent: NewPlant, plant: Plant): void {
    if (equalFields(plant, sent)) return
    const text = `${toJson({ ...plant })} instead of ${toJson({ ...plantOf(sent) })} for the plant ${sent.id}`
    this.#uploader.warnOnce('other', `The store returns plants that differ from those that were sent, such as ${text}`)
  }

  /** Queues a row to send again, unless it is hopeless. Pauses all requests if the service needs that. */
  #retry(pending: Pending, failure: Failure): void {
    const { kind, error, reason, retryAfter = 0 } = failure
    const now = this.#now()
    const limit = this.#policy.limit(failure)
    this.#lastFailure = error
    if (pending.lastSent >= this.#lastRound) this.#countRound(failure, now)
    if (now >= limit && (reason === 'refused' || this.#failures > 1)) this.#isHopeless = true // a single failure may be an accident
    const isUnknown = kind === 'unknown'
    const isLone = isUnknown && this.#failures < 2 // connections break now and then
    if (!isLone) this.#uploader.rate.pauseUntil(Math.min(now + retryAfter + this.#backoff(this.#failures, 1000), limit))
    pending.due = isUnknown ? now + this.#backoff(pending.tries, 5000) : now
    if (isUnknown && ((!this.#isKeyed && pending.step === 'create') || this.#isOfPlant(pending, now)))
      this.#note(pending, Outcome.unknown, error)
    else this.#queue.push(pending)
  }

  #countRound(failure: Failure, now: number): void {
    this.#lastRound = now
    this.#failures += 1
    if (failure.reason === 'overload') this.#uploader.concurrency.halve()
    if (this.#failures >= roundsUntilWarning) this.#uploader.warnOnce('retry', this.#policy.explain(failure))
  }

  /** Whether the plant itself causes the failure: others were settled while this one was retried. */
  #isOfPlant({ tries, firstSent }: Pending, now: number): boolean {
    return tries >= triesOfOne && now - firstSent >= this.#uploader.remote.options.timeout && this.#lastSettled > firstSent
  }

  #backoff(tries: number, max: number): number {
    return backoff(tries, { base: 50, max, random: this.#uploader.remote.options.clock.random })
  }

  /** Queues a row to send again with a newer token, if there is one. */
  #refreshToken(pending: Pending, refusal: PlantsError): void {
    const { access } = this.#uploader
    this.#queue.push(Object.assign(pending, { due: this.#now() }))
    if (pending.token !== access.token) return
    const { renew } = access
    if (!renew || this.#isTokenNew) this.#failUnlessStopped(refusal)
    else this.#tokenRefresh ??= this.#findToken(renew, refusal)
  }

  async #findToken(renew: () => Promise<string | undefined>, refusal: PlantsError): Promise<void> {
    const { access } = this.#uploader
    try {
      const token = await renew()
      if (token === undefined || token === access.token) this.#failUnlessStopped(refusal)
      else this.#uploader.access = { ...access, token }
    } catch (error) {
      this.#failUnlessStopped(error)
    }
    this.#isTokenNew = true
    this.#tokenRefresh = undefined
    this.#notify()
  }

  #failUnlessStopped(error: unknown): void {
    if (!this.#options.stop.aborted) this.#fail(error)
  }

  #fail(error: unknown): undefined {
    this.#failure ??= { error }
  }

  /** Aborts requests that have timed out, and reports the wait for the service. */
  #tick(): void {
    const now = this.#now()
    for (const pending of this.#inFlight) {
      if (now - pending.lastSent < this.#uploader.remote.options.timeout) break
      pending.end(timeIsOver())
    }
    const waited = now - this.#lastSettled
    const isWaiting = waited >= 1000 && (this.#failures > 0 || this.#inFlight.size > 0)
    void this.#uploader.access.onWait?.(isWaiting ? waited : undefined)
  }

  #now(): number {
    return this.#uploader.remote.options.clock.now()
  }

  /** Wakes `run` to check for work. */
  readonly #notify = (): void => {
    this.#isNotified = true
    this.#wake?.()
  }

  /** Resolves at the next `#notify`, at once if there was one since the last call, or after `milliseconds`, which may be infinite. */
  async #notification(milliseconds: number): Promise<void> {
    if (!this.#isNotified) {
      await new Promise<void>((resolve) => {
        const timer = milliseconds === Infinity ? undefined : setTimeout(resolve, Math.min(Math.ceil(milliseconds), maxTimer))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#wake = undefined
    this.#isNotified = false
  }
}

/** the maximum number of queued rows at which new ones are still sent */
const maxQueue = 256

/** the tries after which a plant that is never settled, while others are, counts as the cause */
const triesOfOne = 5

const roundsUntilWarning = 3

const notFound = [[404, 'missing']] as const
