import { setMaxListeners } from 'node:events'
import { toJson } from '../../plant/json.js'
import { equalFields, equalPlants, type NewPlant, type Plant, type PlantPatch, patchedPlant, plantOf } from '../../plant/plant.js'
import { maxTimer, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { comparesPlants, idExists, incompletePlant, Outcome, resolveRecord } from '../common/conflict.js'
import { type Batch, type CreateManyOptions, defaultConcurrency } from '../common/store.js'
import { classify, expectStored } from './classify.js'
import type { HttpClient, HttpRequest } from './client.js'
import type { Failure, RequestResult } from './failure.js'
import { requestTo, requestToCreate } from './request.js'
import { Retries, reportWait } from './retry.js'

interface Pending {
  row: number
  patch: PlantPatch
  idempotencyKey: string
  /** the next request: its create; or, if its id exists, a read of that plant, and a replace */
  step: 'create' | 'read' | 'replace'
  /** what the next request creates or replaces; undefined before a read */
  plant: NewPlant | undefined
  etag: string | undefined
  lost: NewPlant | undefined
  /** between its read and its replace */
  conflicts: number
  tries: number
  isUnauthorized: boolean
  firstSent: number
  lastSent: number
}

type Stored = Plant | NewPlant | 404 | 412

interface Task {
  batch: Batch
  options: CreateManyOptions
  /** whether the service supports idempotency keys, so that a create may be repeated */
  isKeyed: boolean
}

export class Upload {
  readonly #client: HttpClient
  readonly #task: Task
  readonly #retries: Retries
  /** the maximum number of requests in flight: halved at each overload */
  #concurrency: number
  #inFlight = 0
  /** the time until which nothing is sent, because the service is overloaded or away */
  #pauseEnd = -Infinity
  readonly #open = new Map<bigint, Promise<void>>()
  #lastTurn: Promise<boolean> = Promise.resolve(true)
  #lastSettled: number
  /** since something was settled; requests that were in flight together count as one */
  #failures = 0
  #lastRound = -Infinity
  #failure: { error: unknown } | undefined
  readonly #end = new AbortController()
  #wake = () => {}

  constructor(client: HttpClient, task: Task) {
    this.#client = client
    this.#task = task
    this.#retries = new Retries(client)
    this.#concurrency = client.options.concurrency ?? defaultConcurrency
    this.#lastSettled = this.#now()
    setMaxListeners(0, this.#end.signal) // each pause of a row adds a listener
    this.#end.signal.addEventListener('abort', () => this.#wake())
  }

  async run(): Promise<void> {
    const { stop } = this.#task.options
    const end = () => this.#end.abort()
    stop.addEventListener('abort', end)
    if (stop.aborted) end()
    const isWaiting = () => this.#failures > 0 || this.#inFlight > 0
    try {
      await reportWait(this.#client, this.#sendAll(), () => (isWaiting() ? this.#now() - this.#lastSettled : 0))
    } finally {
      stop.removeEventListener('abort', end)
    }
    if (this.#failure) throw this.#failure.error
  }

  async #sendAll(): Promise<void> {
    await this.#sendRows().catch((error: unknown) => this.#fail(error))
    await Promise.all(this.#open.values())
  }

  async #sendRows(): Promise<void> {
    const { batch, options, isKeyed } = this.#task
    const { rows, outcomes } = batch
    for (let row = 0; row < rows.length && !this.#end.signal.aborted; row += 1) {
      if (outcomes[row] !== Outcome.pending) continue
      const patch = rows.at(row)
      await this.#open.get(patch.id) // plants with the same id are sent one after the other
      if (!isKeyed) await options.beforeSend(row)
      if (!(await this.#turn())) return
      const now = this.#now()
      const plant = patchedPlant(patch)
      const settled = this.#settle({
        ...{ row, patch, idempotencyKey: options.keyOf(row), plant, step: plant ? 'create' : 'read' },
        ...{ etag: undefined, lost: undefined, conflicts: 0, tries: 0, isUnauthorized: false, firstSent: now, lastSent: now },
      })
      this.#open.set(patch.id, settled)
      if (options.stopsAtReject) await settled // what is sent together with a rejected plant stays
    }
  }

  /** Waits, in the order of the calls, until a request may be sent, and counts it as in flight. Returns false if none may be sent any more. */
  #turn(): Promise<boolean> {
    this.#lastTurn = this.#lastTurn.then(async () => {
      for (let pause = this.#pause(); pause > 0; pause = this.#pause()) {
        if (this.#end.signal.aborted) return false
        await this.#event(pause)
      }
      this.#inFlight += 1
      return true
    })
    return this.#lastTurn
  }

  /** infinite until the next event */
  #pause(): number {
    // A single request shows whether the service has recovered.
    const limit = this.#failures > 0 ? 1 : this.#concurrency
    const mustWait = this.#end.signal.aborted || this.#inFlight >= limit
    return mustWait ? Infinity : this.#pauseEnd - this.#now()
  }

  /** Ends after so many milliseconds, or when something has happened that `#pause` depends on. */
  async #event(pause: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (pause < Infinity) timer = setTimeout(resolve, Math.min(Math.ceil(pause), maxTimer))
    })
    clearTimeout(timer)
  }

  async #settle(pending: Pending): Promise<void> {
    for (let pause = await this.#send(pending); pause !== undefined; pause = await this.#send(pending)) {
      if (pause > 0) await wait(pause, [this.#end.signal]).catch(() => undefined) // the next turn shows that it has aborted
      if (!(await this.#turn())) break
    }
    this.#open.delete(pending.patch.id)
  }

  /** Returns the milliseconds until the next request of the row; undefined if there is none. */
  async #send(pending: Pending): Promise<number | undefined> {
    const { options } = this.#client
    pending.lastSent = this.#now()
    pending.tries += 1
    let pause: number | undefined
    try {
      const request = this.#requestFor(pending)
      const response = await this.#client.send(request, options.timeout)
      const result = classify(this.#client, request, response)
      const isUnauthorized = result.outcome === 'unauthorized'
      const isRenewable = isUnauthorized && !pending.isUnauthorized
      pending.isUnauthorized = isUnauthorized
      pause = isRenewable ? await this.#renewToken(request, result.error) : this.#receive(pending, result)
    } catch (error) {
      this.#fail(error)
    }
    this.#inFlight -= 1
    this.#wake()
    return pause
  }

  #requestFor(pending: Pending): HttpRequest<Stored> {
    const { patch, plant, step, etag, idempotencyKey } = pending
    const { access } = this.#client
    if (step === 'create' && plant) return requestToCreate(access, plant, idempotencyKey)
    const path = `/plants/${patch.id}`
    if (step === 'replace' && plant) {
      if (etag === undefined)
        this.#client.warnOnce('etag', 'The service has no strong ETag: what others change during this import may be overwritten')
      const expected = expectStored(patch.id, [404, 412])
      return requestTo(access, { method: 'PUT', path, expected, body: plantOf(plant), ifMatch: etag })
    }
    pending.etag = undefined
    const onEtag = (_: NewPlant, tag: string) => {
      pending.etag = tag
    }
    const expected = expectStored(patch.id, [404], onEtag)
    return requestTo(access, { method: 'GET', path, expected })
  }

  /** Returns the milliseconds until the next request of the row; undefined if there is none. */
  #receive(pending: Pending, result: RequestResult<Stored>): number | undefined {
    const { isKeyed } = this.#task
    switch (result.outcome) {
      case 'retry':
      case 'unknown':
        return this.#retry(pending, result)
      case 'unauthorized':
      case 'incompatible':
        if (result.error.isOutcomeUnknown && pending.step === 'create' && !isKeyed) this.#note(pending, Outcome.unknown, result.error)
        return this.#fail(result.error)
      default: {
        this.#noteSuccess()
        const next = this.#outcomeOf(pending, result)
        if (typeof next !== 'string') return this.#note(pending, next, result.outcome === 'done' ? undefined : result.error)
        pending.step = next
        pending.tries = 0
        const isChanged = result.outcome === 'done' && (result.value === 412 || result.value === 404)
        return isChanged ? this.#pauseAfterConflict(pending) : 0
      }
    }
  }

  #outcomeOf(pending: Pending, result: RequestResult<Stored>): Outcome | Pending['step'] {
    const { patch, plant, step } = pending
    const { ifExists } = this.#task.options
    if (result.outcome === 'rejected') return Outcome.rejected
    // A service with idempotency keys would have recognized this row, so the conflict is with another plant.
    if (result.outcome !== 'done') return comparesPlants(ifExists) ? 'read' : resolveRecord(ifExists, patch, true).outcome
    const { value } = result
    if (value === 412) return 'read' // somebody else has changed it since it was read
    if (value === 404 || (step === 'read' && 'id' in value)) return this.#resolve(pending, value === 404 ? undefined : value)
    if (plant && !equalFields(value, plant)) {
      const text = `${toJson({ ...value })} instead of ${toJson({ ...plantOf(plant) })} for plant ${plant.id}`
      this.#client.warnOnce('other', `The store returns plants that differ from those that were sent, such as ${text}`)
    }
    return step === 'create' ? Outcome.created : Outcome.updated
  }

  /** or the next request of the row */
  #resolve(pending: Pending, existing: NewPlant | undefined): Outcome | Pending['step'] {
    const { outcome, plant } = resolveRecord(this.#task.options.ifExists, pending.patch, existing)
    pending.plant = plant
    if (outcome === Outcome.created) return 'create'
    if (outcome === Outcome.updated) return 'replace'
    const isOurs = existing && pending.lost && equalPlants(existing, pending.lost)
    return outcome === Outcome.skipped && isOurs ? Outcome.updated : outcome
  }

  /**
   * The pause before a plant that somebody else has changed is read again. Rejects the row, and returns undefined,
   * after the timeout and several tries.
   */
  #pauseAfterConflict(pending: Pending): number | undefined {
    const { patch, conflicts, firstSent } = pending
    pending.conflicts += 1
    const isOver = pending.conflicts >= triesOfOne && this.#now() - firstSent >= this.#client.options.timeout
    if (!isOver) return this.#retries.backoff(conflicts)
    const message = `Plant ${patch.id} was not updated: others changed it during each of ${pending.conflicts} tries`
    return this.#note(pending, Outcome.rejected, new PlantsError('conflict', message))
  }

  #noteSuccess(): void {
    this.#lastSettled = this.#now()
    this.#failures = 0
    this.#retries.reset()
  }

  #note({ row, patch }: Pending, outcome: Outcome, reason?: PlantsError): undefined {
    const { batch, options } = this.#task
    batch.outcomes[row] = outcome
    if (outcome >= Outcome.exists) {
      const { error, message } = reason ?? (outcome === Outcome.rejected ? incompletePlant(patch) : idExists(patch.id, options.ifExists))
      batch.rejections.set(row, { error, message }) // without its stack, to save memory
      if (options.stopsAtReject) this.#end.abort()
    }
    options.onProgress()
  }

  /** Pauses all requests if the service needs that. Returns the additional pause of the row; undefined if it is not sent again. */
  #retry(pending: Pending, failure: Failure): number | undefined {
    const { timeout } = this.#client.options
    const { outcome, error, reason, retryAfter = 0 } = failure
    const { step, tries, firstSent } = pending
    const now = this.#now()
    this.#retries.note(failure)
    const limit = this.#retries.limit(failure)
    if (pending.lastSent >= this.#lastRound) this.#countRound(failure, now)
    const isOver = now >= limit && (reason === 'refused' || this.#failures > 1) // a single failure may be an accident
    if (isOver && !this.#end.signal.aborted) this.#fail(error)
    const isUnknown = outcome === 'unknown'
    const isLone = isUnknown && this.#failures < 2 // connections break now and then
    const pauseEnd = Math.min(now + retryAfter + this.#retries.backoff(this.#failures - 1), limit)
    if (!isLone) this.#pauseEnd = Math.max(this.#pauseEnd, pauseEnd)
    if (!isUnknown) return 0
    if (step === 'replace') pending.lost = pending.plant
    // The plant itself causes the failure if others were settled while this one was retried.
    const isOfPlant = tries >= triesOfOne && now - firstSent >= timeout && this.#lastSettled > firstSent
    const isFinal = isOfPlant || (step === 'create' && !this.#task.isKeyed)
    return isFinal ? this.#note(pending, Outcome.unknown, error) : this.#retries.backoff(tries - 1)
  }

  #countRound(failure: Failure, now: number): void {
    this.#lastRound = now
    this.#failures += 1
    if (failure.reason === 'overload' && this.#failures === 1) this.#concurrency = Math.max(1, Math.floor(this.#concurrency / 2))
    if (this.#failures >= roundsUntilWarning) this.#client.warnOnce('retry', this.#retries.explain(failure))
  }

  /** 0 if the request can be repeated with a newer token */
  async #renewToken(request: HttpRequest<Stored>, rejection: PlantsError): Promise<0 | undefined> {
    try {
      if (!(await this.#client.withNewerToken(request, rejection))) throw rejection
      return 0
    } catch (error) {
      if (!this.#end.signal.aborted) this.#fail(error)
      return undefined
    }
  }

  #fail(error: unknown): undefined {
    this.#failure ??= { error }
    this.#end.abort()
  }

  #now(): number {
    return this.#client.options.clock.now()
  }
}

/** for a plant that is never settled, while others are */
const triesOfOne = 5

const roundsUntilWarning = 3
