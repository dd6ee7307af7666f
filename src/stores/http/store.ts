import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { comparesPlants } from '../common/conflict.js'
import type {
  Batch,
  Block,
  BulkStore,
  CountQuery,
  CreateManyOptions,
  CreateOptions,
  ListQuery,
  OpenOptions,
  ReadableStore,
  SnapshotQuery,
} from '../common/store.js'
import { addressHint, expectStored } from './classify.js'
import { HttpClient, type HttpRequest } from './client.js'
import { type Description, operationOf, requestToDescribe } from './description.js'
import type { Failure } from './failure.js'
import { requestTo, requestToCreate } from './request.js'
import { ask, exchange, Retries } from './retry.js'

export class RemoteStore implements ReadableStore, BulkStore {
  readonly #client: HttpClient
  /** read from the service once, when first needed */
  #description: Description | undefined
  #describing: Promise<Description> | undefined
  readonly #etags = new WeakMap<NewPlant, string>()
  readonly #keepEtag = (plant: NewPlant, etag: string) => void this.#etags.set(plant, etag)

  private constructor(client: HttpClient) {
    this.#client = client
  }

  static async open(address: RemoteAddress, options: OpenOptions): Promise<RemoteStore> {
    const access = await options.access(address)
    setMaxListeners(0, options.clock.signal) // each create adds a listener
    return new RemoteStore(await HttpClient.open(address, access, options))
  }

  /**
   * Also throws `unauthorized`, `rejected`, `unanswered`, and `unusable` for a response that is not in the specification. Retries with
   * backoff what is safe to retry, until the timeout.
   */
  async create(plant: NewPlant, { idempotencyKey }: CreateOptions = {}): Promise<Plant> {
    const key = idempotencyKey ?? randomUUID()
    const retries = new Retries(this.#client)
    return this.#write(requestToCreate(this.#client.access, plant, key), retries, {
      conflict: idempotencyKey === undefined ? undefined : 'Choose another id or another key: a key belongs to one plant only',
      unknown: () => this.#howToRepeat(plant.id, key, retries),
    })
  }

  async greatestId(): Promise<bigint | undefined> {
    const { findGreatestId } = await this.#reading()
    return findGreatestId(this.#client)
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    await this.#require('read')
    return this.#read(id)
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

  async replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('update')
    const { value, lost } = await this.#change('PUT', plant.id, only, plantOf(plant))
    if (typeof value === 'object') return value
    // An earlier try whose response was lost may have replaced the plant, which changes its entity tag.
    const now = value === 412 && lost ? await this.#read(plant.id) : undefined
    return now && equalPlants(now, plant) ? now : undefined
  }

  async delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('delete')
    const { value, lost } = await this.#change('DELETE', id, only)
    if (typeof value === 'object') return value
    // An earlier try whose response was lost may have deleted the plant.
    if (value === 404 && lost && !only) throw lost
    return value === 404 && lost ? only : undefined
  }

  /**
   * Sends rows in order, many concurrently. Retries what is safe to retry, until nothing has been settled for the timeout. Throws the
   * errors of `create` that do not concern a single plant, when nothing is in flight any more. Rows that are pending then were not stored,
   * or can be sent again safely with the same keys.
   */
  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { stop, ifExists } = options
    const description = await this.#describe(stop).catch((error: unknown) => {
      if (!stop.aborted) throw error
    })
    if (description === undefined) return
    if (comparesPlants(ifExists)) await this.#require('read')
    if (ifExists === 'update') await this.#require('update')
    const { Upload } = await import('./upload.js')
    await new Upload(this.#client, { batch, options, isKeyed: description.supportsKeys }).run()
  }

  async close(): Promise<void> {
    this.#client.close()
  }

  async #describe(signal?: AbortSignal): Promise<Description> {
    if (this.#description) return this.#description
    this.#describing ??= this.#askToDescribe(signal)
    try {
      this.#description = await this.#describing
      return this.#description
    } finally {
      this.#describing = undefined
    }
  }

  #askToDescribe(signal: AbortSignal | undefined): Promise<Description> {
    const retries = new Retries(this.#client, signal)
    const onRetry = async (failure: Failure, tries: number) => {
      if (tries === 2) await retries.warn(failure)
    }
    return ask(this.#client, requestToDescribe(this.#client), { retries, onRetry })
  }

  async #reading(): Promise<typeof import('./read.js')> {
    await this.#require('list')
    return import('./read.js')
  }

  /** @throws {PlantsError} `malformed` if the service does not offer an operation */
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
    throw new PlantsError('malformed', `This service ${what}: its openapi.json lists no ${operationOf[operation]}`, {
      hint: 'Run the command on the host of the service, or select another store with --store',
    })
  }

  async #read(id: bigint): Promise<NewPlant | undefined> {
    const expected = expectStored(id, [404], this.#keepEtag)
    const plant = await ask(this.#client, requestTo(this.#client.access, { method: 'GET', path: `/plants/${id}`, expected }))
    return plant === 404 ? undefined : plant
  }

  /**
   * Replaces or deletes a plant; with `only`, only if it still equals that plant.
   *
   * @returns the value, and the error of an earlier try that may have been processed, too
   */
  async #change(method: 'PUT' | 'DELETE', id: bigint, only: NewPlant | undefined, body?: Plant) {
    const current = only && !this.#etags.has(only) ? await this.#read(id) : only
    if (only && (!current || !equalPlants(current, only))) return { value: 412 as const, lost: undefined }
    const ifMatch = current && this.#etags.get(current)
    const expected = expectStored(id, [404, 412], this.#keepEtag)
    const request = requestTo(this.#client.access, { method, path: `/plants/${id}`, expected, body, ifMatch })
    const retries = new Retries(this.#client)
    const hints = { unknown: () => `Whether plant ${id} was changed is unknown. ${this.#howToLook(id)}` }
    const value = await this.#write(request, retries, hints)
    return { value, lost: retries.unknown && this.#explain(retries.unknown, retries, hints) }
  }

  async #write<T>(request: HttpRequest<T>, retries: Retries, hints: Hints): Promise<T> {
    const { address } = this.#client
    const onRetry = async (failure: Failure) => {
      if (retries.unknown && request.method === 'POST' && !(await this.#supportsKeys(retries))) return false
      return retries.warn(failure)
    }
    try {
      return await ask(this.#client, request, { retries, onRetry })
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      if (error !== retries.signal.reason) throw this.#explain(error, retries, hints)
      const message = retries.unknown ? `${error.message} before ${address.name} answered` : `${error.message}, nothing was stored`
      throw new PlantsError(error.type, message, { hint: retries.unknown && hints.unknown(), cause: error })
    }
  }

  /** Whether a create that may have been received can be repeated. */
  async #supportsKeys(retries: Retries): Promise<boolean> {
    try {
      this.#description ??= await exchange(this.#client, requestToDescribe(this.#client), { retries })
      return this.#description.supportsKeys
    } catch (error) {
      if (retries.signal.aborted || !(error instanceof PlantsError)) throw error
      return false
    }
  }

  #explain(error: PlantsError, { unknown }: Retries, hints: Hints): PlantsError {
    // If the plant may have been stored, only a response to its own key settles that.
    const settles = error.type === 'conflict' && this.#description?.supportsKeys === true
    const last = unknown && !settles ? unknown : error
    const { type, message, cause } = last
    const hint = type === 'conflict' ? (hints.conflict ?? last.hint) : last.hint
    return new PlantsError(type, message, { ...last, cause, hint: last.isOutcomeUnknown ? hints.unknown() : hint })
  }

  #howToRepeat(id: bigint, key: string, { hasWarned }: Retries): string {
    const { supportsKeys, operations } = this.#description ?? {}
    const unknown = `Whether plant ${id} is stored is unknown`
    const look = operations?.has(operationOf.read) ? `. ${this.#howToLook(id)}` : undefined
    if (supportsKeys === false)
      return `${unknown}, and this service does not support idempotency keys${look ?? ': check the service before you repeat it'}`
    const repeat = `${unknown}${look ?? ''}. To avoid a second plant, repeat it with: --idempotency-key ${shellWord(key)}`
    const guess = this.#client.address.url.protocol === 'http:' && hasWarned ? '. If it uses TLS, use https://' : ''
    return supportsKeys ? repeat : `${repeat}, if the service supports such keys${guess}`
  }

  #howToLook(id: bigint): string {
    return `Look at it with: plants get ${id} --store ${shellWord(this.#client.address.name)}`
  }
}

interface Hints {
  conflict?: string | undefined
  unknown(): string
}
