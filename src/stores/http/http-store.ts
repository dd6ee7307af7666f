import { setMaxListeners } from 'node:events'
import { createUsageError, PlantsError } from '../../errors.js'
import type { StoredPlant } from '../../plant/plant.js'
import { quoteWord } from '../../platform/shell.js'
import type { HttpAddress } from '../address.js'
import { type Change, getTargetId, type Outcome } from '../change.js'
import type { CountQuery, ReadQuery } from '../query.js'
import type { Store, WriteOptions } from '../store.js'
import { HttpClient } from './http-client.js'
import { buildCountRequest } from './plant-request.js'
import { fetchPages } from './read.js'
import { send } from './requests.js'
import { fetchPlant, type Send, sendChange, sendChanges, toOutcomeType } from './send-changes.js'
import type { HttpOptions } from './transport.js'

export class HttpStore implements Store {
  readonly #client: HttpClient

  constructor(address: HttpAddress, options: HttpOptions) {
    setMaxListeners(0, options.runtime.getStopSignal()) // each create adds a listener
    this.#client = new HttpClient(address, options)
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const sendRequest: Send = (request) => send(this.#client, request)
    const plants = await Promise.all(ids.map((id) => fetchPlant(sendRequest, id)))
    return new Map(plants.flatMap((plant) => (plant ? [[plant.id, plant]] : [])))
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.sort !== undefined && query.sort !== 'id') {
      const message = `${this.#client.address.name} lists plants only in the order of their ids`
      throw createUsageError(message, 'Leave out --sort')
    }
    yield* fetchPages(this.#client, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change] = changes
    // Only an import sets `mayHaveBeenSent`. An import prints its own hint, because it has no
    // option for a key.
    const isFromImport = options.mayHaveBeenSent !== undefined
    return change && changes.length === 1 && !isFromImport
      ? [await this.#writeOne(change, options)]
      : sendChanges(this.#client, changes, options)
  }

  async #writeOne(change: Change, options: WriteOptions): Promise<Outcome> {
    const { name } = this.#client.address
    const stopSignal = this.#client.options.runtime.getStopSignal()
    const signal = options.signal ? AbortSignal.any([stopSignal, options.signal]) : stopSignal
    const sendRequest: Send = (request) => send(this.#client, request, { signal })
    const key = (change.type === 'create' && change.key) || crypto.randomUUID()
    try {
      return await sendChange(sendRequest, change.type === 'create' ? { ...change, key } : change)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      const type = toOutcomeType(error)
      const isUnknown = type === 'unknown'
      const hint = isUnknown
        ? describeUnknownOutcome(change, key, name, error)
        : chooseFailureHint(change, name, error)
      const { reason } = signal
      if (!(reason instanceof PlantsError)) {
        const { kind, message, cause } = error
        return { type, problem: new PlantsError(kind, message, { ...error, cause, hint }) }
      }
      const messageEnd = isUnknown ? ` before ${name} answered` : ', nothing was stored'
      const message = reason.message + messageEnd
      return { type, problem: new PlantsError(reason.kind, message, { hint, cause: error }) }
    }
  }

  /**
   * Asks the service for the count. If the service lacks this operation, the plants of its list are
   * counted.
   */
  async count(query: CountQuery = {}): Promise<bigint> {
    try {
      return await send(this.#client, buildCountRequest(query))
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

/**
 * Returns true if a service lacks the operation: the service takes `count` for an id, or does not
 * know the path.
 */
function lacksOperation(error: unknown): boolean {
  return error instanceof PlantsError && [400, 404, 405, 422].includes(error.status ?? 0)
}

function chooseFailureHint(
  change: Change,
  service: string,
  error: PlantsError,
): string | undefined {
  return error.mayBeOwnPlant ? describeLookup(getTargetId(change), service) : error.hint
}

function describeLookup(id: bigint, service: string): string {
  return `Look at it with: plants get ${id} --store ${quoteWord(service)}`
}

function describeUnknownOutcome(
  change: Change,
  key: string,
  service: string,
  { kind, hint }: PlantsError,
): string {
  const id = getTargetId(change)
  const hintStart = hint === undefined ? '' : `${hint}. `
  if (change.type === 'create') {
    const repetitionAdvice = `repeat the command with: --idempotency-key ${quoteWord(key)}`
    const uncertainty = `${hintStart}Whether plant ${id} is stored is unknown`
    return `${uncertainty}. If the service supports idempotency keys, ${repetitionAdvice}`
  }
  const uncertainty = `${hintStart}Whether plant ${id} was changed is unknown`
  // The hint of the error names another address, because no plant can be looked up at this address.
  if (kind === 'noResponse' && hint !== undefined) return uncertainty
  return `${uncertainty}. ${describeLookup(id, service)}`
}
