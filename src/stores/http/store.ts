import { setMaxListeners } from 'node:events'
import { equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { comparesPlants } from '../common/conflict.js'
import {
  type Batch,
  type Block,
  type BulkStore,
  type CountQuery,
  type CreateManyOptions,
  type CreateOptions,
  defaultConcurrency,
  type ListQuery,
  type OpenOptions,
  type ReadableStore,
  type SnapshotQuery,
} from '../common/store.js'
import { type Expected, expectedPlant, expectStored } from './classify.js'
import { HttpClient, type HttpRequest } from './client.js'
import { type Description, operationOf, readDescription } from './description.js'
import { ask, exchange, type Remote } from './exchange.js'
import { newKey, requestToCorrect, requestToCreate } from './request.js'
import { RetryPolicy, reportWait } from './retry.js'
import type { Uploader } from './upload.js'

/** A Plant Store behind HTTP: this program's own service, or any other that follows the specification. */
export class RemoteStore implements ReadableStore, BulkStore {
  readonly #remote: Remote
  /** read from the service once, when first needed */
  #description: Description | undefined
  /** the strong entity tags of plants that were read */
  readonly #etags = new WeakMap<NewPlant, string>()
  readonly #keepEtag = (plant: NewPlant, etag: string) => void this.#etags.set(plant, etag)
  #uploader: Uploader | undefined

  private constructor(remote: Remote) {
    this.#remote = remote
  }

  /** Opens a store. It connects with the first request. Throws the errors of `options.access`. */
  static async open(address: RemoteAddress, options: OpenOptions): Promise<RemoteStore> {
    const access = await options.access(address)
    setMaxListeners(0, options.clock.signal) // each create adds a listener
    const client = await HttpClient.open(address, access, options.concurrency ?? defaultConcurrency)
    return new RemoteStore({ address, access, options, client })
  }

  /**
   * Also throws `unauthorized`, `refused`, `unanswered`, and `unusable` for a response that is not in the specification. Retries with
   * backoff what is safe to retry, until the timeout.
   */
  async create(plant: NewPlant, { idempotencyKey, signal }: CreateOptions = {}): Promise<Plant> {
    const key = idempotencyKey ?? newKey()
    const { value } = await this.#write(requestToCreate(this.#remote.access, plant, key), expectedPlant, {
      signal,
      isIdempotent: false,
      conflictHint: idempotencyKey === undefined ? undefined : 'Choose another id or another key: a key belongs to one plant only',
      unknownHint: (hasWarned) => this.#howToRepeat(plant.id, key, hasWarned),
    })
    return value
  }

  async greatestId(): Promise<bigint | undefined> {
    await this.#require('list')
    const { findGreatestId } = await import('./read.js')
    return findGreatestId(this.#remote)
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    await this.#require('read')
    return this.#read(id)
  }

  /** By their stream, which is of one moment. */
  async count(query: CountQuery = {}): Promise<bigint> {
    let count = 0n
    for await (const { plants } of this.snapshot({ ...query, record: 'json' })) count += BigInt(plants)
    return count
  }

  async *list(query: ListQuery = {}): AsyncGenerator<NewPlant[]> {
    await this.#require('list')
    const { listPages } = await import('./read.js')
    yield* listPages(this.#remote, query)
  }

  async *snapshot(query: SnapshotQuery): AsyncGenerator<Block> {
    await this.#require('list')
    const { readSnapshot } = await import('./read.js')
    yield* readSnapshot(this.#remote, query)
  }

  async replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('update')
    const { value, lost } = await this.#change('PUT', plant.id, only, plantOf(plant))
    if (typeof value === 'object') return value
    // An earlier try whose response was lost may have replaced the plant, which changes its entity tag.
    const now = value === 'changed' && lost ? await this.#read(plant.id) : undefined
    return now && equalPlants(now, plant) ? now : undefined
  }

  async delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    await this.#require('delete')
    const { value, lost } = await this.#change('DELETE', id, only)
    if (typeof value === 'object') return value
    // An earlier try whose response was lost may have deleted the plant.
    if (value === 'missing' && lost && !only) throw lost
    return value === 'missing' && lost ? only : undefined
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
    const { Upload, Uploader } = await import('./upload.js')
    this.#uploader ??= new Uploader(this.#remote)
    await new Upload(this.#uploader, batch, options, description.supportsKeys).run()
  }

  /**
   * Whether the description of the service lists Idempotency-Key.
   *
   * @throws {PlantsError} `unavailable` when the description cannot be read
   */
  async supportsIdempotencyKeys(): Promise<boolean> {
    return (await this.#describe()).supportsKeys
  }

  async close(): Promise<void> {
    this.#remote.client.close()
  }

  /** The description of the service, read once. Throws the reason of the signal, and the errors of `readDescription`. */
  async #describe(signal = this.#remote.options.clock.signal): Promise<Description> {
    if (this.#description) return this.#description
    const { access, options } = this.#remote
    const policy = new RetryPolicy(options)
    const read = readDescription(this.#remote, {
      policy,
      signals: [signal],
      onRetry: async (failure, tries) => {
        if (tries === 2) await access.notify(policy.explain(failure))
      },
    })
    this.#description = await reportWait(access, options.clock, read)
    return this.#description
  }

  /** @throws {PlantsError} `malformed` if the service does not offer an operation */
  async #require(operation: keyof typeof operationOf): Promise<void> {
    const { operations } = await this.#describe()
    if (operations.has(operationOf[operation])) return
    const offers = Object.values(operationOf).some((name) => operations.has(name))
    const what = offers ? 'does not offer this' : 'can only create plants'
    throw new PlantsError('malformed', `This service ${what}: its openapi.json lists no ${operationOf[operation]}`, {
      hint: 'Run the command on the host of the service, or select another store with --store',
    })
  }

  async #read(id: bigint): Promise<NewPlant | undefined> {
    const request = requestToCorrect(this.#remote.access, 'GET', id)
    const plant = await ask(this.#remote, request, expectStored(id, [[404, 'missing']], this.#keepEtag))
    return typeof plant === 'object' ? plant : undefined
  }

  /** Replaces or deletes a plant; with `only`, only if it still equals that plant. */
  async #change(method: 'PUT' | 'DELETE', id: bigint, only: NewPlant | undefined, body?: Plant) {
    const current = only && !this.#etags.has(only) ? await this.#read(id) : only
    if (only && (!current || !equalPlants(current, only))) return { value: 'changed' as const, lost: undefined }
    const request = requestToCorrect(this.#remote.access, method, id, { body, ifMatch: current && this.#etags.get(current) })
    const settled = [[404, 'missing'] as const, [412, 'changed'] as const]
    return this.#write(request, expectStored(id, settled, this.#keepEtag), {
      isIdempotent: true,
      unknownHint: () => `Whether the plant ${id} was changed is unknown. ${this.#howToLook(id)}`,
    })
  }

  /**
   * Sends a request that changes something, and retries it until it is settled. Throws an unknown outcome if it may have been processed.
   *
   * @returns the value, and the error of an earlier try that may have been processed, too
   */
  async #write<T>(
    request: HttpRequest,
    expected: Expected<T>,
    options: WriteOptions,
  ): Promise<{ value: T; lost: PlantsError | undefined }> {
    const { access, address, options: opened } = this.#remote
    const signals = options.signal ? [opened.clock.signal, options.signal] : [opened.clock.signal]
    const policy = new RetryPolicy(opened)
    let unknown: PlantsError | undefined
    let hasWarned = false
    const warn = async (explanation: string) => {
      if (hasWarned || signals.some(({ aborted }) => aborted)) return
      hasWarned = true
      await access.notify(explanation)
    }
    /** A request that may have been received is repeated only if the service supports idempotency keys. */
    const mayRepeat = async () => {
      try {
        this.#description ??= await readDescription(this.#remote, {
          signals,
          policy,
          onRetry: (failure) => warn(policy.explain(failure, unknown)),
        })
        return this.#description.supportsKeys
      } catch (error) {
        if (signals.some(({ aborted }) => aborted) || !(error instanceof PlantsError)) throw error
        return false
      }
    }
    const explain = (error: PlantsError) => {
      // If the plant may have been stored, only a response to its own key settles that.
      const settles = error.kind === 'conflict' && this.#description?.supportsKeys === true
      const last = unknown && !settles ? unknown : error
      const { kind, message, hint, retryable, status, requestId, cause } = last
      const usualHint = kind === 'conflict' ? (options.conflictHint ?? hint) : hint
      const lastHint = last.exitCode === 5 ? options.unknownHint(hasWarned) : usualHint
      return new PlantsError(kind, message, { hint: lastHint, retryable, error: last.error, status, cause, requestId })
    }
    const sent = exchange(this.#remote, {
      request,
      expected,
      policy,
      signals,
      sends: request.body === undefined ? 'the request' : 'the plant',
      onUnknown: (error) => {
        unknown = error
      },
      mayRetry: async (failure) => {
        if (unknown && !options.isIdempotent && !(await mayRepeat())) return false
        await warn(policy.explain(failure))
        return true
      },
      explain: ({ error }) => explain(error),
    })
    try {
      const value = await reportWait(access, opened.clock, sent)
      return { value, lost: unknown && explain(unknown) }
    } catch (error) {
      const reason: unknown = signals.find(({ aborted }) => aborted)?.reason
      if (error !== reason || !(reason instanceof PlantsError)) throw error
      const message = unknown ? `${reason.message} before ${address.name} answered` : `${reason.message}, nothing was stored`
      throw new PlantsError(reason.kind, message, { hint: unknown && options.unknownHint(hasWarned), cause: reason })
    }
  }

  #howToRepeat(id: bigint, key: string, hasWarned: boolean): string {
    const { supportsKeys, operations } = this.#description ?? {}
    const look = operations?.has(operationOf.read) ? this.#howToLook(id) : undefined
    const unknown = `Whether the plant ${id} is stored is unknown`
    if (supportsKeys === false)
      return `${unknown}, and this service does not support idempotency keys${look === undefined ? ': check the service before you repeat it' : `. ${look}`}`
    const repeat = `${look === undefined ? '' : `${look}. `}To avoid a second plant, repeat it with: --idempotency-key ${shellWord(key)}`
    const guess = this.#remote.address.url.protocol === 'http:' && hasWarned ? '. If it uses TLS, use https://' : ''
    return `${unknown}. ${repeat}${supportsKeys ? '' : `, if the service supports such keys${guess}`}`
  }

  #howToLook(id: bigint): string {
    return `Look at it with: plants get ${id} --store ${shellWord(this.#remote.address.name)}`
  }
}

interface WriteOptions {
  signal?: AbortSignal | undefined
  /** whether the request can be repeated without a key */
  isIdempotent: boolean
  /** the hint for a conflict, instead of the usual one */
  conflictHint?: string | undefined
  /** The hint for an unknown outcome. */
  unknownHint(hasWarned: boolean): string
}
