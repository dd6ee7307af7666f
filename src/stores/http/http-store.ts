import { setMaxListeners } from 'node:events'
import { createUsageError, PlantsError } from '../../errors.js'
import type { StoredPlant } from '../../plant/plant.js'
import { quoteWord } from '../../platform/shell.js'
import { parseUrl } from '../../platform/urls.js'
import type { HttpAddress } from '../address.js'
import { type Change, getTargetId, type Outcome } from '../change.js'
import { type CountQuery, formatQuery, pageRows, type ReadQuery } from '../query.js'
import { compare, matches } from '../select.js'
import type { Store, WriteOptions } from '../store.js'
import type { ExpectedValue, HttpRequest } from './http-client.js'
import { buildCountRequest, expectedPlant, parseStoredPlant, readJson } from './plant-request.js'
import { fetchPlant, type Send, sendChange, sendChanges, toOutcomeType } from './send-changes.js'
import { ServiceClient } from './service-client.js'
import type { HttpOptions } from './transport.js'

export class HttpStore implements Store {
  readonly #client: ServiceClient

  constructor(address: HttpAddress, options: HttpOptions) {
    setMaxListeners(0, options.runtime.getStopSignal()) // each create adds a listener
    this.#client = new ServiceClient({ address, ...options })
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const sendRequest: Send = (request) => this.#client.send(request)
    const plants = await Promise.all(ids.map((id) => fetchPlant(sendRequest, id)))
    return new Map(plants.flatMap((plant) => (plant ? [[plant.id, plant]] : [])))
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.sort !== undefined && query.sort !== 'id') {
      const message = `${this.#client.service.address.name} lists plants only in the order of their ids`
      throw createUsageError(message, 'Leave out --sort')
    }
    yield* fetchPages(this.#client, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change] = changes
    return change && changes.length === 1 && !isFromImport(change)
      ? [await this.#writeOne(change, options)]
      : sendChanges(this.#client, changes, options)
  }

  async #writeOne(change: Change, options: WriteOptions): Promise<Outcome> {
    const { name } = this.#client.service.address
    const stopSignal = this.#client.service.runtime.getStopSignal()
    const signal = options.signal ? AbortSignal.any([stopSignal, options.signal]) : stopSignal
    const sendRequest: Send = (request) => this.#client.send(request, { signal })
    const key = (change.type === 'create' && change.key) || crypto.randomUUID()
    try {
      return await sendChange(sendRequest, change.type === 'create' ? { ...change, key } : change)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      const problem = explainFailure(error, change, { name, key, signal })
      return { type: toOutcomeType(error), problem }
    }
  }

  /**
   * Asks the service for the count. If the service lacks this operation, the plants of its list are
   * counted.
   */
  async count(query: CountQuery = {}): Promise<bigint> {
    try {
      return await this.#client.send(buildCountRequest(query))
    } catch (error) {
      const status = error instanceof PlantsError ? error.status : undefined
      // The service takes `count` for an id, or does not know the path.
      if (![400, 404, 405, 422].includes(status ?? 0)) throw error
    }
    let count = 0n
    for await (const plants of this.read(query)) count += BigInt(plants.length)
    return count
  }

  /**
   * Asks whether the token may update and delete plants, by requests for `-`, which is no id.
   *
   * @throws {PlantsError} `forbidden` for a right that is missing, and `accessDenied` for a service
   *   that lacks an operation
   */
  async check(): Promise<void> {
    for (const request of rightProbes)
      try {
        await this.#client.send(request)
      } catch (cause) {
        const status = cause instanceof PlantsError ? cause.status : undefined
        if (status === 400 || status === 422) continue // It rejects the id.
        if (status !== 404 && status !== 405) throw cause
        const message = `${this.#client.service.address.name} does not offer to change and delete plants`
        throw new PlantsError('accessDenied', message, { status, cause })
      }
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}

const rightProbes: readonly HttpRequest[] = [
  { method: 'PATCH', path: '/plants/-', body: '{}', expectedValue: expectedPlant },
  { method: 'DELETE', path: '/plants/-', expectedValue: expectedPlant },
]

/** An import prints its own hint, because it has no option for a key. */
function isFromImport(change: Change): boolean {
  const hasPolicy = 'ifExists' in change && change.ifExists !== undefined
  return hasPolicy || 'ifMissing' in change || 'expectedPlant' in change
}

/** Says of a change that failed whether it may have been made, and how to find out. */
function explainFailure(
  error: PlantsError,
  change: Change,
  { name, key, signal }: { name: string; key: string; signal: AbortSignal },
): PlantsError {
  const id = getTargetId(change)
  const isCreate = change.type === 'create'
  const isUnknown = error.isOutcomeUnknown
  const lookupHint = `Look at it with: plants get ${id} --store ${quoteWord(name)}`
  const repetitionHint = `If the service has keys, repeat with: --idempotency-key ${quoteWord(key)}`
  const unknownHint = isCreate ? repetitionHint : lookupHint
  const otherHint = error.mayBeOwnPlant ? lookupHint : error.hint
  const hint = isUnknown ? unknownHint : otherHint
  const uncertainty = isUnknown ? `. Plant ${id} may be ${isCreate ? 'stored' : 'changed'}` : ''
  const { reason } = signal
  if (!(reason instanceof PlantsError)) {
    const { kind, message, cause } = error
    return new PlantsError(kind, message + uncertainty, { ...error, cause, hint })
  }
  const interruption = isUnknown ? ` before ${name} answered` : ', nothing was stored'
  const message = reason.message + interruption + uncertainty
  return new PlantsError(reason.kind, message, { hint, cause: error })
}

async function* fetchPages(client: ServiceClient, query: ReadQuery): AsyncGenerator<StoredPlant[]> {
  let { limit: left = Infinity } = query
  // Only two plants show whether a service ignores the order, so they are read before one is used.
  const minPlants = query.desc ? 2 : 1
  const limit = Math.min(Math.max(left, minPlants), pageRows)
  let path: string | undefined = `/plants?${formatQuery({ ...query, limit })}`
  let plants: StoredPlant[] = []
  let previousPlant: StoredPlant | undefined
  while (path !== undefined && left > 0) {
    const page: Page = await client.send({ method: 'GET', path, expectedValue: expectedPage })
    for (const plant of page.plants) {
      assertMatchesQuery(client, plant, query, previousPlant)
      previousPlant = plant
    }
    if (page.plants.length === 0 && page.nextPath !== undefined)
      throw createForeignServiceError(client, 'answered an empty page with a link to the next one')
    plants = plants.concat(page.plants)
    path = page.nextPath
    if (plants.length < minPlants && path !== undefined) continue
    if (plants.length > 0) yield plants.slice(0, left)
    left -= plants.length
    plants = []
  }
}

/**
 * Rejects a plant that the query does not select, because the service ignores a parameter.
 * Otherwise `plants delete` could delete such a plant.
 */
function assertMatchesQuery(
  client: ServiceClient,
  plant: StoredPlant,
  query: ReadQuery,
  previousPlant: StoredPlant | undefined,
): void {
  if (!matches(plant, query)) {
    const parameter = findIgnoredParameter(plant, query)
    const problem = `ignores the parameter ${parameter}: it answered plant ${plant.id}`
    throw createForeignServiceError(client, problem, 'List all plants, and select from the list')
  }
  if (!previousPlant || compare(query)(previousPlant, plant) < 0) return
  const problem = `ignores the order of a list: it answered plant ${plant.id} after plant`
  throw createForeignServiceError(client, `${problem} ${previousPlant.id}`)
}

function findIgnoredParameter(
  plant: StoredPlant,
  { after, desc, tag, search }: ReadQuery,
): string | undefined {
  const parts = {
    after: { after, desc },
    [tag === false ? 'noTag' : 'tag']: { tag },
    search: { search },
  }
  return Object.entries(parts).find(([, part]) => !matches(plant, part))?.[0]
}

interface Page {
  plants: StoredPlant[]
  nextPath: string | undefined
}

const expectedPage: ExpectedValue<Page> = {
  noun: 'list of plants',
  // A page of `plants serve` has at most a million characters, which JSON may escape by six bytes
  // each, and a plant of 1 MiB.
  maxBytes: 8 * 1_048_576,
  read(response) {
    const list = readJson(response)
    const plants = Array.isArray(list) ? list.map((item) => parseStoredPlant(item)) : undefined
    const nextPath = findNextPath(String(response.headers['link'] ?? ''))
    return plants?.every((plant) => plant !== undefined) ? { plants, nextPath } : undefined
  },
}

/**
 * Returns the path of the next page, by a Link header with `rel="next"` (RFC 8288). Only the query
 * is taken from the link, because the token must be sent to no other address.
 */
function findNextPath(link: string): string | undefined {
  const target = /<(?<target>[^<>]*)>[^,<]*;\s*rel\s*=\s*"?next\b/i.exec(link)?.groups?.['target']
  if (target === undefined) return undefined
  return `/plants${parseUrl(target, 'http://localhost')?.search ?? ''}`
}

function createForeignServiceError(
  { service }: ServiceClient,
  problem: string,
  hint = 'Check that the address is that of a Plant Store',
): PlantsError {
  return new PlantsError('accessDenied', `${service.address.name} ${problem}`, { hint })
}
