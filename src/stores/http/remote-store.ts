import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { TextName } from '../../plant/fields.js'
import type { NewPlant } from '../../plant/plant.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { type Change, idOf, type Outcome } from '../common/change.js'
import {
  type CountQuery,
  defaultConcurrency,
  type OpenOptions,
  type ReadQuery,
  type Store,
  type TextCount,
  type WriteOptions,
} from '../common/store.js'
import { HttpClient } from './http-client.js'
import { type Description, operationOf, requestToDescribe, requestToRead } from './plant-request.js'
import { ask, Requests } from './retry.js'
import { sendChange, sendChanges, unsettledOutcome } from './send-changes.js'

export class RemoteStore implements Store {
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

  async get(ids: readonly bigint[]): Promise<Map<bigint, NewPlant>> {
    const found = new Map<bigint, NewPlant>()
    const { concurrency = defaultConcurrency } = this.#client.options
    try {
      for (let from = 0; from < ids.length; from += concurrency) {
        const some = ids.slice(from, from + concurrency)
        const plants = await Promise.all(some.map((id) => ask(this.#client, requestToRead(this.#client, id))))
        for (const plant of plants) if (plant !== 404) found.set(plant.id, plant)
      }
    } catch (error) {
      throw await this.#explained('read', error)
    }
    const unsupported = found.size < new Set(ids).size ? await this.#unsupported('read') : undefined
    if (unsupported) throw unsupported
    return found
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<NewPlant[]> {
    if (query.sort !== undefined && query.sort !== 'id') {
      const message = `${this.#client.address.name} lists plants only in the order of their ids`
      throw malformed(message, 'Leave out --sort')
    }
    const { listPages, readStream } = await import('./read.js')
    try {
      yield* query.inPages ? listPages(this.#client, query) : readStream(this.#client, query)
    } catch (error) {
      throw await this.#explained('list', error)
    }
  }

  async write(changes: readonly Change[], { maxRejected, signal }: WriteOptions = {}): Promise<Outcome[]> {
    signal?.throwIfAborted()
    const [change, ...others] = changes
    if (!change) return []
    if (others.length === 0) return [await this.#writeOne(change, signal)]
    const { supportsKeys } = await this.#describe(signal)
    const needed = new Set(changes.map(operationFor))
    for (const operation of ['read', 'update', 'delete'] as const) {
      const unsupported = needed.has(operation) ? await this.#unsupported(operation) : undefined
      if (unsupported) throw unsupported
    }
    return sendChanges(this.#client, changes, { isKeyed: supportsKeys, maxRejected, signal })
  }

  async #writeOne(change: Change, signal?: AbortSignal): Promise<Outcome> {
    const { clock } = this.#client.options
    const requests = new Requests(this.#client, { signal: signal && AbortSignal.any([clock.signal, signal]) })
    const sender = { requests, mayRepeat: (lost: PlantsError) => this.#supportsKeys(requests, lost) }
    const isCreate = change.type === 'create'
    const key = (isCreate && change.key) || randomUUID()
    const result = await requests.report(sendChange(sender, isCreate ? { ...change, key } : change))
    if (!('outcome' in result)) {
      const isMissing = result.type === 'rejected' && result.error.type === 'notFound'
      const unsupported = isMissing && !isCreate ? await this.#unsupported(change.type) : undefined
      return unsupported ? { type: 'unsent', error: unsupported } : result
    }
    const id = idOf(change)
    const hints = isCreate
      ? {
          conflict: change.key && 'Choose another id or another key: a key belongs to one plant only',
          unknown: () => this.#howToRepeat(id, key),
        }
      : this.#changeHints(id)
    if (result.outcome === 'aborted') {
      const error = this.#interruption(requests.signal.reason, result.lost, hints)
      return { type: result.lost ? 'unknown' : 'unsent', error }
    }
    const { type, error } = unsettledOutcome(result)
    return { type, error: this.#explain(isCreate ? error : await this.#explained(change.type, error), hints) }
  }

  #interruption(reason: unknown, lost: PlantsError | undefined, hints: Hints): PlantsError {
    if (!(reason instanceof PlantsError)) throw reason
    const ending = lost ? ` before ${this.#client.address.name} answered` : ', nothing was stored'
    return new PlantsError(reason.type, reason.message + ending, { hint: lost && hints.unknown(), cause: reason })
  }

  /** Whether the service lets this token read. */
  async isReadable(): Promise<boolean> {
    try {
      await ask(this.#client, requestToRead(this.#client, 0n))
      return (await this.#unsupported('read')) === undefined
    } catch (error) {
      if (error instanceof PlantsError && (error.error === 403 || (await this.#unsupported('read')))) return false
      throw error
    }
  }

  /** of one moment */
  async count(query: CountQuery = {}): Promise<bigint> {
    let count = 0n
    for await (const plants of this.read(query)) count += BigInt(plants.length)
    return count
  }

  async *countBy(by: TextName, query: CountQuery = {}): AsyncGenerator<TextCount[]> {
    const { countTexts } = await import('./read.js')
    yield* countTexts(this.#client, by, this.read(query))
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

  /** What answers 404 or 405 may not have the operation at all. */
  async #explained<E>(operation: keyof typeof operationOf, failure: E): Promise<E | PlantsError> {
    const status = failure instanceof PlantsError ? failure.status : undefined
    const isUnsupported = status === 404 || status === 405
    return (isUnsupported && (await this.#unsupported(operation))) || failure
  }

  /** Undefined unless the description of the service lists other operations. */
  async #unsupported(operation: keyof typeof operationOf): Promise<PlantsError | undefined> {
    const { operations } = await this.#describe().catch(() => noDescription)
    if (operations.size === 0 || operations.has(operationOf[operation])) return undefined
    const offers = Object.values(operationOf).some((name) => operations.has(name))
    const what = offers ? 'does not offer this' : 'can only create plants'
    const hint = 'Run the command on the host of the service, or select another store with --store'
    return malformed(`This service ${what}: its openapi.json lists no ${operationOf[operation]}`, hint)
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

/** What cannot be described explains nothing. */
const noDescription: Description = { supportsKeys: false, operations: new Set() }

/** Besides the one of the specification. */
function operationFor(change: Change): 'read' | 'update' | 'delete' | undefined {
  if (change.type === 'create') return change.ifExists === 'same' ? 'read' : undefined
  return change.type
}

interface Hints {
  conflict?: string | undefined
  unknown(): string
}
