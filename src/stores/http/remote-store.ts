import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { largestId, type NewPlant, type Plant } from '../../plant/plant.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { comparesPlants, policyFor } from '../common/conflict.js'
import {
  type Batch,
  type Block,
  type BulkStore,
  type CountByQuery,
  type CountQuery,
  type CreateManyOptions,
  type CreateOptions,
  defaultConcurrency,
  type ListQuery,
  type OpenOptions,
  type ReadableStore,
  type SnapshotQuery,
} from '../common/store.js'
import { addressHint } from './classify.js'
import { HttpClient } from './http-client.js'
import { type Description, operationOf, requestToCreate, requestToDescribe, requestToRead } from './plant-request.js'
import { changePlant, replacePlant } from './replace.js'
import { ask, Requests, type Result } from './retry.js'

export class RemoteStore implements ReadableStore, BulkStore {
  readonly #client: HttpClient
  #description: Description | undefined
  #describing: Promise<Description> | undefined

  private constructor(client: HttpClient) {
    this.#client = client
  }

  static async open(address: RemoteAddress, options: OpenOptions): Promise<RemoteStore> {
    const access = await options.access(address)
    setMaxListeners(0, options.clock.signal) // each create adds a listener
    return new RemoteStore(await HttpClient.open(address, access, options))
  }

  /** Also throws `unauthorized`, `rejected`, `unanswered`, and `unusable` for a response outside the specification. */
  async create(plant: NewPlant, { idempotencyKey }: CreateOptions = {}): Promise<Plant> {
    const key = idempotencyKey ?? randomUUID()
    const requests = new Requests(this.#client)
    const mayRepeat = (lost: PlantsError) => this.#supportsKeys(requests, lost)
    const request = requestToCreate(this.#client.access, plant, key)
    const result = await requests.report(requests.send(request, { mayRepeat }))
    return this.#valueOf(result, {
      conflict: idempotencyKey && 'Choose another id or another key: a key belongs to one plant only',
      unknown: () => this.#howToRepeat(plant.id, key),
    })
  }

  async greatestId(): Promise<bigint | undefined> {
    const { findGreatestId } = await this.#reading()
    return findGreatestId(this.#client)
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    await this.#require('read')
    const plant = await ask(this.#client, requestToRead(this.#client, id))
    return plant === 404 ? undefined : plant
  }

  /** Whether the service lets this token read. */
  async isReadable(): Promise<boolean> {
    const { operations } = await this.#describe()
    if (!operations.has(operationOf.read)) return false
    try {
      await ask(this.#client, requestToRead(this.#client, 0n))
      return true
    } catch (error) {
      if (error instanceof PlantsError && error.error === 403) return false
      throw error
    }
  }

  async getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    const found = new Map<bigint, NewPlant>()
    const { concurrency = defaultConcurrency } = this.#client.options
    for (let from = 0; from < ids.length; from += concurrency) {
      const plants = await Promise.all(ids.slice(from, from + concurrency).map((id) => this.get(id)))
      for (const plant of plants) if (plant) found.set(plant.id, plant)
    }
    return found
  }

  /** of one moment */
  async count(query: CountQuery = {}): Promise<bigint> {
    let count = 0n
    for await (const { plants } of this.snapshot({ ...query, record: 'json' })) count += BigInt(plants)
    return count
  }

  async *list(query: ListQuery = {}): AsyncGenerator<NewPlant[]> {
    const { listPages } = await this.#reading()
    yield* listPages(this.#client, query)
  }

  async *snapshot(query: SnapshotQuery): AsyncGenerator<Block> {
    const { readSnapshot } = await this.#reading()
    yield* readSnapshot(this.#client, query)
  }

  async *countBy(query: CountByQuery): AsyncGenerator<Block> {
    const { countTexts } = await this.#reading()
    yield* countTexts(this.#client, query)
  }

  async replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('update')
    const requests = new Requests(this.#client)
    const result = await requests.report(replacePlant(requests, plant, only))
    const value = this.#valueOf(result, this.#changeHints(plant.id))
    return typeof value === 'object' ? value : undefined
  }

  async delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('delete')
    const requests = new Requests(this.#client)
    const result = await requests.report(changePlant(requests, { method: 'DELETE', id }, only))
    const hints = this.#changeHints(id)
    const value = this.#valueOf(result, hints)
    if (typeof value === 'object') return value
    if (!result.lost) return undefined
    // An earlier try whose response was lost may have deleted the plant, for which other services answer 412, too.
    if (!only || value === 412) throw this.#explain(result.lost, hints)
    return only
  }

  /**
   * Retries what is safe to retry, until nothing has been settled for the timeout. Throws the errors of `create` that
   * do not concern a single plant. Rows that are pending then can be sent again safely with the same keys.
   */
  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { stop, ifExists } = options
    const description = await this.#describe(stop).catch((error: unknown) => {
      if (!stop.aborted) throw error
    })
    if (description === undefined) return
    if (comparesPlants(policyFor(largestId, options))) await this.#require('read')
    if (ifExists === 'update') await this.#require('update')
    const { Upload } = await import('./upload.js')
    await new Upload(this.#client, { batch, options, isKeyed: description.supportsKeys }).run()
  }

  async close(): Promise<void> {
    this.#client.close()
  }

  async #describe(signal?: AbortSignal): Promise<Description> {
    if (this.#description) return this.#description
    this.#describing ??= ask(this.#client, requestToDescribe(this.#client), signal).finally(() => {
      this.#describing = undefined
    })
    this.#description = await this.#describing
    return this.#description
  }

  /** Whether a create that may have been received can be repeated. */
  async #supportsKeys(requests: Requests, lost: PlantsError): Promise<boolean> {
    if (!this.#description) {
      const result = await requests.send(requestToDescribe(this.#client), { because: lost })
      if (result.outcome === 'done') this.#description = result.value
    }
    return this.#description?.supportsKeys === true
  }

  async #reading(): Promise<typeof import('./read.js')> {
    await this.#require('list')
    return import('./read.js')
  }

  async #require(operation: keyof typeof operationOf): Promise<void> {
    const { status, operations } = await this.#describe()
    if (operations.has(operationOf[operation])) return
    const { address } = this.#client
    if (status !== 200) {
      const verb = operation === 'list' ? 'read' : operation
      const message = `${address.name}/openapi.json answered ${status}, so it is unknown whether this service can ${verb} plants`
      throw new PlantsError('malformed', message, { hint: addressHint(address), status })
    }
    const offers = Object.values(operationOf).some((name) => operations.has(name))
    const what = offers ? 'does not offer this' : 'can only create plants'
    const hint = 'Run the command on the host of the service, or select another store with --store'
    throw malformed(`This service ${what}: its openapi.json lists no ${operationOf[operation]}`, hint)
  }

  #valueOf<T>(result: Result<T>, hints: Hints): T {
    if (result.outcome === 'done') return result.value
    const { lost } = result
    if (result.outcome === 'aborted') {
      const { address, options } = this.#client
      const { reason } = options.clock.signal
      if (!(reason instanceof PlantsError)) throw reason
      const ending = lost ? ` before ${address.name} answered` : ', nothing was stored'
      throw new PlantsError(reason.type, reason.message + ending, { hint: lost && hints.unknown(), cause: reason })
    }
    // If the plant may have been stored, only a response to its own key settles that.
    throw this.#explain(lost && result.error.type !== 'conflict' ? lost : result.error, hints)
  }

  #explain(error: PlantsError, hints: Hints): PlantsError {
    const { type, message, cause } = error
    const hint = type === 'conflict' ? (hints.conflict ?? error.hint) : error.hint
    return new PlantsError(type, message, { ...error, cause, hint: error.isOutcomeUnknown ? hints.unknown() : hint })
  }

  #howToRepeat(id: bigint, key: string): string {
    const unknown = `Whether plant ${id} is stored is unknown`
    const supportsKeys = this.#description?.supportsKeys
    if (supportsKeys === false)
      return `${unknown}, and this service does not support idempotency keys: check the service before you repeat it`
    const condition = supportsKeys ? '' : ', if the service supports such keys'
    return `${unknown}. To avoid a second plant, repeat it with: --idempotency-key ${shellWord(key)}${condition}`
  }

  #changeHints(id: bigint): Hints {
    const look = `Look at it with: plants get ${id} --store ${shellWord(this.#client.address.name)}`
    return { unknown: () => `Whether plant ${id} was changed is unknown. ${look}` }
  }
}

interface Hints {
  conflict?: string | undefined
  unknown(): string
}
