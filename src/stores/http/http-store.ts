import { setMaxListeners } from 'node:events'
import { PlantsError, usageError } from '../../errors.js'
import type { StoredPlant } from '../../plant/plant.js'
import { quoteWord } from '../../platform/shell.js'
import type { HttpAddress } from '../address.js'
import { type Change, getTargetId, type Outcome } from '../change.js'
import type { CountQuery, ReadQuery } from '../query.js'
import type { Store, WriteOptions } from '../store.js'
import { HttpClient } from './http-client.js'
import type { HttpOptions } from './http-options.js'
import { requestToCount } from './plant-request.js'
import { listPages } from './read.js'
import { send } from './requests.js'
import { fetchPlant, type Send, sendChange, sendChanges, toOutcomeType } from './send-changes.js'

export class HttpStore implements Store {
  readonly #client: HttpClient

  constructor(address: HttpAddress, options: HttpOptions) {
    setMaxListeners(0, options.runtime.handleSignals()) // each create adds a listener
    this.#client = new HttpClient(address, options)
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const ask: Send = (request) => send(this.#client, request)
    const plants = await Promise.all(ids.map((id) => fetchPlant(ask, id)))
    return new Map(plants.flatMap((plant) => (plant ? [[plant.id, plant]] : [])))
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.sort !== undefined && query.sort !== 'id') {
      const message = `${this.#client.address.name} lists plants only in the order of their ids`
      throw usageError(message, 'Leave out --sort')
    }
    yield* listPages(this.#client, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change] = changes
    // An import says itself how to continue: it has no option for a key.
    const isOfImport = options.isRepetition !== undefined
    return change && changes.length === 1 && !isOfImport
      ? [await this.#writeOne(change, options)]
      : sendChanges(this.#client, changes, options)
  }

  async #writeOne(change: Change, options: WriteOptions): Promise<Outcome> {
    const { name } = this.#client.address
    const stop = this.#client.options.runtime.handleSignals()
    const signal = options.signal ? AbortSignal.any([stop, options.signal]) : stop
    const ask: Send = (request) => send(this.#client, request, { signal })
    const key = (change.type === 'create' && change.key) || crypto.randomUUID()
    try {
      return await sendChange(ask, change.type === 'create' ? { ...change, key } : change)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      const type = toOutcomeType(error)
      const isUnknown = type === 'unknown'
      const hint = isUnknown
        ? createUnknownHint(change, key, name, error)
        : findHint(change, name, error)
      const { reason } = signal
      if (!(reason instanceof PlantsError)) {
        const { kind, message, cause } = error
        return { type, problem: new PlantsError(kind, message, { ...error, cause, hint }) }
      }
      const end = isUnknown ? ` before ${name} answered` : ', nothing was stored'
      const message = reason.message + end
      return { type, problem: new PlantsError(reason.kind, message, { hint, cause: error }) }
    }
  }

  /** Asks the service, or counts the plants of its list if it has no such operation. */
  async count(query: CountQuery = {}): Promise<bigint> {
    try {
      return await send(this.#client, requestToCount(query))
    } catch (error) {
      if (!lacksOperation(error)) throw error
    }
    let count = 0n
    for await (const plants of this.read(query)) count += BigInt(plants.length)
    return count
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}

/** Whether a service lacks the operation: it takes `count` for an id, or knows no such path. */
function lacksOperation(error: unknown): boolean {
  return error instanceof PlantsError && [400, 404, 405, 422].includes(error.status ?? 0)
}

function findHint(change: Change, service: string, error: PlantsError): string | undefined {
  return error.mayBeOwnPlant ? describeLook(getTargetId(change), service) : error.hint
}

function describeLook(id: bigint, service: string): string {
  return `Look at it with: plants get ${id} --store ${quoteWord(service)}`
}

function createUnknownHint(
  change: Change,
  key: string,
  service: string,
  { kind, hint }: PlantsError,
): string {
  const id = getTargetId(change)
  const start = hint === undefined ? '' : `${hint}. `
  if (change.type === 'create') {
    const repeat = `repeat the command with: --idempotency-key ${quoteWord(key)}`
    const unknown = `${start}Whether plant ${id} is stored is unknown`
    return `${unknown}. If the service supports idempotency keys, ${repeat}`
  }
  const unknown = `${start}Whether plant ${id} was changed is unknown`
  // The hint names another address, because nothing can be looked up at this one.
  if (kind === 'noResponse' && hint !== undefined) return unknown
  return `${unknown}. ${describeLook(id, service)}`
}
