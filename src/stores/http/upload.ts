import { setMaxListeners } from 'node:events'
import { toJson } from '../../plant/exact-json.js'
import { equalFields, type NewPlant, type Plant, type PlantPatch, patchedPlant, plantOf } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { comparesPlants, idExists, incompletePlant, Outcome, policyFor, resolveRecord } from '../common/conflict.js'
import { type Batch, type CreateManyOptions, defaultConcurrency } from '../common/store.js'
import type { HttpClient } from './http-client.js'
import { requestToCreate, requestToRead } from './plant-request.js'
import { replacePlant } from './replace.js'
import { Requests, type Result, triesOfOne } from './retry.js'

interface Task {
  batch: Batch
  options: CreateManyOptions
  /** whether the service supports idempotency keys, so that a create may be repeated */
  isKeyed: boolean
}

export class Upload {
  readonly #client: HttpClient
  readonly #task: Task
  readonly #requests: Requests
  readonly #end = new AbortController()
  /** the rows in flight by their ids: plants with the same id are sent one after the other */
  readonly #sending = new Map<bigint, Promise<void>>()
  #failure: { error: unknown } | undefined

  constructor(client: HttpClient, task: Task) {
    this.#client = client
    this.#task = task
    this.#requests = new Requests(client, { signal: this.#end.signal, isUpload: true })
    setMaxListeners(0, this.#end.signal) // each pause of a row adds a listener
  }

  async run(): Promise<void> {
    const { stop, stopsAtReject } = this.#task.options
    const end = () => this.#end.abort()
    stop.addEventListener('abort', end)
    if (stop.aborted) end()
    const rows = this.#pendingRows()
    const workers = stopsAtReject ? 1 : (this.#client.options.concurrency ?? defaultConcurrency)
    await this.#requests.report(Promise.all(Array.from({ length: workers }, () => this.#work(rows))))
    stop.removeEventListener('abort', end)
    if (this.#failure) throw this.#failure.error
  }

  *#pendingRows(): Generator<number> {
    const { outcomes } = this.#task.batch
    for (const [row, outcome] of outcomes.entries())
      if (outcome === Outcome.pending && !this.#end.signal.aborted) yield row
  }

  async #work(rows: Generator<number>): Promise<void> {
    for (const row of rows) {
      const id = this.#task.batch.rows.idAt(row)
      const settled = Promise.resolve(this.#sending.get(id)).then(() => this.#settle(row))
      const sent = settled.catch((error: unknown) => this.#fail(error))
      this.#sending.set(id, sent)
      await sent
      if (this.#sending.get(id) === sent) this.#sending.delete(id)
    }
  }

  async #settle(row: number): Promise<void> {
    const patch = this.#task.batch.rows.at(row)
    const plant = patchedPlant(patch)
    for (let tries = 1; ; tries += 1) {
      if (plant && !(await this.#create(row, plant))) return
      if (!(await this.#update(row, patch))) return
      if (tries === triesOfOne) break
      await this.#requests.pause(tries)
    }
    const message = `Plant ${patch.id} was not updated: others changed it during each of ${triesOfOne} tries`
    this.#note(row, Outcome.rejected, new PlantsError('conflict', message))
  }

  /** Returns whether the row depends on the plant that has its id; otherwise the row is settled. */
  async #create(row: number, plant: NewPlant): Promise<boolean> {
    const { options, isKeyed } = this.#task
    const request = requestToCreate(this.#client.access, plant, options.keyOf(row))
    const result = await this.#requests.send(request, { mayRepeat: async () => isKeyed })
    if (result.outcome === 'done') this.#noteStored(row, Outcome.created, plant, result.value)
    // A service with idempotency keys would have recognized this row, so a conflict is with another plant.
    else if (result.outcome !== 'rejected' || result.error.type !== 'conflict') this.#noteFailure(row, result, !isKeyed)
    else if (comparesPlants(policyFor(plant.id, options))) return true
    else this.#note(row, resolveRecord(options, plant, true).outcome, result.error)
    return false
  }

  /** Returns whether the plant has changed since it was read; otherwise the row is settled. */
  async #update(row: number, patch: PlantPatch): Promise<boolean> {
    const read = await this.#requests.send(requestToRead(this.#client, patch.id))
    if (read.outcome !== 'done') return this.#noteFailure(row, read)
    const existing = read.value === 404 ? undefined : read.value
    const { outcome, plant } = resolveRecord(this.#task.options, patch, existing)
    if (outcome === Outcome.created) return true
    if (outcome !== Outcome.updated || !plant) return this.#note(row, outcome)
    const replaced = await replacePlant(this.#requests, plant, existing)
    if (replaced.outcome !== 'done') return this.#noteFailure(row, replaced)
    if (typeof replaced.value === 'number') return true
    return this.#noteStored(row, outcome, plant, replaced.value)
  }

  #noteStored(row: number, outcome: Outcome, plant: NewPlant, stored: Plant): false {
    if (!equalFields(stored, plant)) {
      const text = `${toJson({ ...stored })} instead of ${toJson({ ...plantOf(plant) })} for plant ${plant.id}`
      const message = `The store returns plants that differ from those that were sent, such as ${text}`
      void this.#client.warnOnce('other', message)
    }
    return this.#note(row, outcome)
  }

  #note(row: number, outcome: Outcome, reason?: PlantsError): false {
    const { batch, options } = this.#task
    batch.outcomes[row] = outcome
    if (outcome >= Outcome.exists) {
      const patch = batch.rows.at(row)
      const { error, message } =
        reason ?? (outcome === Outcome.rejected ? incompletePlant(patch) : idExists(patch.id, options.ifExists))
      batch.rejections.set(row, { error, message }) // without its stack, to save memory
      if (options.stopsAtReject) this.#end.abort()
    }
    options.onProgress()
    return false
  }

  /** @param isOnce whether not to repeat the request: a try that may have been processed settles the row */
  #noteFailure(row: number, result: Exclude<Result<unknown>, { outcome: 'done' }>, isOnce = false): false {
    const { outcome, lost } = result
    if (outcome === 'rejected') return this.#note(row, Outcome.rejected, result.error)
    if (outcome === 'aborted') return isOnce && lost ? this.#note(row, Outcome.unknown, lost) : false
    const endsAll = outcome !== 'unknown' || this.#requests.isOver(result)
    if (result.error.isOutcomeUnknown && (isOnce || !endsAll)) this.#note(row, Outcome.unknown, result.error)
    if (endsAll && !this.#end.signal.aborted) this.#fail(result.error)
    return false
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.#end.abort()
  }
}
