import { toJson } from '../../plant/json.js'
import { equalFields, equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { backoff, maxTimer } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import { comparesPlants, idExists, Outcome, resolveConflict } from '../common/conflict.js'
import type { Batch, CreateManyOptions } from '../common/store.js'
import { classify, expectStored } from './classify.js'
import type { HttpClient, HttpRequest } from './client.js'
import type { Failure, RequestResult } from './failure.js'
import { requestTo, requestToCreate } from './request.js'
import { RetryPolicy, reportWait } from './retry.js'
import type { SendLimits } from './send-limits.js'

/** A row that has been sent or queued, but is not settled. */
interface Pending {
  row: number
  plant: NewPlant
  /** the next request: its create; or, if its id exists, reading the plant with that id, and replacing it */
  step: 'create' | 'read' | 'replace'
  tries: number
  /** times on the clock: when it was first and last sent, and when it may be sent again */
  firstSent: number
  lastSent: number
  due: number
}

type Stored = Plant | NewPlant | 404

interface Task {
  batch: Batch
  options: CreateManyOptions
  /** whether the service supports idempotency keys, so that a create may be repeated */
  isKeyed: boolean
}

/** Sends a batch to a service. */
export class Upload {
  readonly #client: HttpClient
  readonly #limits: SendLimits
  readonly #task: Task
  readonly #policy: RetryPolicy
  #inFlight = 0
  /** rows to send again */
  readonly #queue: Pending[] = []
  /** with `update`, the ids of all rows in flight or queued: plants with the same id must be sent one after the other */
  readonly #ids = new Set<bigint>()
  /** the first row that has not been sent */
  #next = -1
  #lastSettled: number
  /** rounds of failures since something was settled; requests that were in flight together count as one round */
  #failures = 0
  /** when the last round was counted */
  #lastRound = -Infinity
  /** the last failure, if retries have lasted too long */
  #hopeless: PlantsError | undefined
  #hasRejected = false
  #failure: { error: unknown } | undefined
  #tokenRefresh: Promise<void> | undefined
  /** whether nothing has been settled with the current token */
  #isTokenNew = false
  /** Ends the wait of `run` for an event. */
  #wake = () => {}

  constructor(client: HttpClient, limits: SendLimits, task: Task) {
    this.#client = client
    this.#limits = limits
    this.#task = task
    this.#policy = new RetryPolicy(client)
    this.#lastSettled = this.#now()
    this.#skipSettled()
  }

  /** Settles when nothing is in flight any more. */
  async run(): Promise<void> {
    const { stop } = this.#task.options
    const wake = () => this.#wake()
    stop.addEventListener('abort', wake)
    const isWaiting = () => this.#failures > 0 || this.#inFlight > 0
    try {
      await reportWait(this.#client, this.#sendAll(), () => (isWaiting() ? this.#now() - this.#lastSettled : 0))
    } finally {
      stop.removeEventListener('abort', wake)
    }
    if (this.#failure) throw this.#failure.error
  }

  async #sendAll(): Promise<void> {
    for (let pause = this.#pause(); pause !== undefined || this.#inFlight > 0; pause = this.#pause()) {
      if (pause !== undefined && pause <= 0) await this.#sendNext().catch((error: unknown) => this.#fail(error))
      else await this.#event(pause)
    }
    await this.#tokenRefresh
  }

  /** Milliseconds until a row may be sent, infinite until the next event; undefined if there is nothing more to send. */
  #pause(): number | undefined {
    const { batch, options } = this.#task
    if (this.#failure || this.#hasRejected || options.stop.aborted) return undefined
    if (this.#hopeless) {
      if (this.#inFlight === 0) this.#fail(this.#hopeless)
      return undefined
    }
    const now = this.#now()
    const hasNew = this.#next < batch.rows.length && this.#queue.length < maxQueue && !this.#ids.has(batch.rows.idAt(this.#next))
    const due = this.#queue.reduce((first, pending) => Math.min(first, pending.due), hasNew ? now : Infinity)
    if (due === Infinity) return undefined
    // A single request shows whether the service has recovered. With stopsAtReject, what is sent together with a rejected plant stays.
    const limit = this.#failures > 0 || options.stopsAtReject ? 1 : this.#limits.concurrency
    if (this.#inFlight >= limit || this.#tokenRefresh !== undefined) return Infinity
    return Math.max(due - now, this.#limits.delay(now))
  }

  /** Waits until something has happened that `#pause` depends on, or for so many milliseconds. */
  async #event(pause = Infinity): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (pause < Infinity) timer = setTimeout(resolve, Math.min(Math.ceil(pause), maxTimer))
    })
    clearTimeout(timer)
  }

  /** Sends a row that is to be sent again, or else the next one. */
  async #sendNext(): Promise<void> {
    const { batch, options, isKeyed } = this.#task
    const now = this.#now()
    const index = this.#queue.findIndex(({ due }) => due <= now)
    const [queued] = index < 0 ? [] : this.#queue.splice(index, 1)
    if (queued) return void this.#send(queued)
    const row = this.#next
    this.#skipSettled()
    const plant = batch.rows.at(row)
    if (options.ifExists === 'update') this.#ids.add(plant.id)
    const pending: Pending = { row, plant, step: 'create', tries: 0, firstSent: now, lastSent: now, due: now }
    if (isKeyed) return void this.#send(pending)
    await options.beforeSend(row)
    this.#queue.push(pending) // whether it may be sent is checked again
  }

  #skipSettled(): void {
    const { rows, outcomes } = this.#task.batch
    do this.#next += 1
    while (this.#next < rows.length && outcomes[this.#next] !== Outcome.pending)
  }

  async #send(pending: Pending): Promise<void> {
    const { access, options } = this.#client
    pending.lastSent = this.#now()
    pending.tries += 1
    this.#limits.spend(pending.lastSent)
    this.#inFlight += 1
    try {
      const request = this.#requestFor(pending)
      const response = await this.#client.send(request, options.timeout)
      this.#receive(pending, classify(this.#client, request, response), access.token)
    } catch (error) {
      this.#fail(error)
    }
    this.#inFlight -= 1
    this.#wake()
  }

  #requestFor({ row, plant, step }: Pending): HttpRequest<Stored> {
    const { access } = this.#client
    if (step === 'create') return requestToCreate(access, plant, this.#task.options.keyOf(row))
    const target = { path: `/plants/${plant.id}`, expected: expectStored(plant.id, [404]) }
    return requestTo(access, step === 'read' ? { method: 'GET', ...target } : { method: 'PUT', ...target, body: plantOf(plant) })
  }

  #receive(pending: Pending, result: RequestResult<Stored>, token: string): void {
    const { isKeyed } = this.#task
    switch (result.kind) {
      case 'retry':
      case 'unknown':
        this.#retry(pending, result)
        break
      case 'unauthorized':
        this.#queue.push(Object.assign(pending, { due: this.#now() }))
        if (token === this.#client.access.token) this.#tokenRefresh ??= this.#refreshToken(result.error)
        break
      case 'incompatible':
        if (result.error.isOutcomeUnknown && pending.step === 'create' && !isKeyed) this.#note(pending, Outcome.unknown, result.error)
        this.#fail(result.error)
        break
      default: {
        this.#noteSuccess()
        const next = this.#outcomeOf(pending, result)
        if (typeof next === 'string') this.#queue.push(Object.assign(pending, { step: next, tries: 0, due: this.#now() }))
        else this.#note(pending, next, result.kind === 'done' ? undefined : result.error)
      }
    }
  }

  /** The outcome of a row whose request was settled, or its next request. */
  #outcomeOf({ plant, step }: Pending, result: RequestResult<Stored>): Outcome | Pending['step'] {
    const { ifExists } = this.#task.options
    if (result.kind === 'rejected') return Outcome.refused
    // A service with idempotency keys would have recognized this row, so the conflict is with another plant.
    if (result.kind !== 'done') return comparesPlants(ifExists) ? 'read' : resolveConflict(ifExists, () => false)
    const { value } = result
    if (value === 404) return 'create' // it was deleted meanwhile
    if (step === 'read' && 'id' in value) {
      const outcome = resolveConflict(ifExists, () => equalPlants(value, plant))
      return outcome === Outcome.updated ? 'replace' : outcome
    }
    if (!equalFields(value, plant)) {
      const text = `${toJson({ ...value })} instead of ${toJson({ ...plantOf(plant) })} for the plant ${plant.id}`
      this.#client.warnOnce('other', `The store returns plants that differ from those that were sent, such as ${text}`)
    }
    return step === 'create' ? Outcome.created : Outcome.updated
  }

  /** Records that the service has answered as expected. */
  #noteSuccess(): void {
    this.#lastSettled = this.#now()
    this.#failures = 0
    this.#hopeless = undefined
    this.#isTokenNew = false
    this.#policy.reset()
    this.#limits.succeeded()
  }

  #note({ row, plant }: Pending, outcome: Outcome, reason?: PlantsError): void {
    const { batch, options } = this.#task
    this.#ids.delete(plant.id)
    batch.outcomes[row] = outcome
    if (outcome >= Outcome.taken) {
      const { error, message } = reason ?? idExists(plant.id)
      batch.rejections.set(row, { error, message }) // without its stack, to save memory
      if (options.stopsAtReject) this.#hasRejected = true
    }
    options.onProgress()
  }

  /** Queues a row to send again, unless it is hopeless. Pauses all requests if the service needs that. */
  #retry(pending: Pending, failure: Failure): void {
    const { timeout, clock } = this.#client.options
    const { kind, error, reason, retryAfter = 0 } = failure
    const { step, tries, firstSent } = pending
    const now = this.#now()
    const limit = this.#policy.limit(failure)
    if (pending.lastSent >= this.#lastRound) this.#countRound(failure, now)
    if (now >= limit && (reason === 'refused' || this.#failures > 1)) this.#hopeless = error // a single failure may be an accident
    const isUnknown = kind === 'unknown'
    const backoffFor = (count: number, max: number) => backoff(count, { base: 50, max, random: clock.random })
    const isLone = isUnknown && this.#failures < 2 // connections break now and then
    if (!isLone) this.#limits.pauseUntil(Math.min(now + retryAfter + backoffFor(this.#failures, 1000), limit))
    pending.due = isUnknown ? now + backoffFor(tries, 5000) : now
    // The plant itself causes the failure if others were settled while this one was retried.
    const isOfPlant = tries >= triesOfOne && now - firstSent >= timeout && this.#lastSettled > firstSent
    if (isUnknown && (isOfPlant || (step === 'create' && !this.#task.isKeyed))) this.#note(pending, Outcome.unknown, error)
    else this.#queue.push(pending)
  }

  #countRound(failure: Failure, now: number): void {
    this.#lastRound = now
    this.#failures += 1
    if (failure.reason === 'overload') this.#limits.halve()
    if (this.#failures >= roundsUntilWarning) this.#client.warnOnce('retry', this.#policy.explain(failure))
  }

  /** Finds a newer token after one was rejected. */
  async #refreshToken(refusal: PlantsError): Promise<void> {
    const { access } = this.#client
    try {
      const token = this.#isTokenNew ? undefined : await access.renew?.()
      if (token === undefined || token === access.token) throw refusal
      this.#client.access = { ...access, token }
      this.#isTokenNew = true
    } catch (error) {
      if (!this.#task.options.stop.aborted) this.#fail(error)
    }
    this.#tokenRefresh = undefined
    this.#wake()
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
  }

  #now(): number {
    return this.#client.options.clock.now()
  }
}

/** the maximum number of queued rows at which new ones are still sent */
const maxQueue = 256

/** the tries after which a plant that is never settled, while others are, counts as the cause */
const triesOfOne = 5

const roundsUntilWarning = 3
