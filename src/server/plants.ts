import { toWireJson } from '../plant/exact-json.js'
import { type NewPlant, plantOf, textLength } from '../plant/plant.js'
import { recordWriter } from '../plant/records.js'
import { type Change, writeOne } from '../stores/common/change.js'
import { queryText } from '../stores/common/pages.js'
import type { OwnStore, ReadQuery, Right } from '../stores/common/store.js'
import { busy, HttpError } from './http-error.js'
import { type OperationId, openApi, operations } from './openapi.js'
import {
  parseId,
  parseIdempotencyKey,
  parseListQuery,
  parsePatch,
  parsePlant,
  requireUnconditional,
} from './request-input.js'
import { type Answer, type Call, closeSignal, type Route } from './router.js'

/** read at a time: a search may scan all plants, and keeps its results in memory */
const maxPages = 4

const line = recordWriter('json')

/** plants in a page */
const defaultLimit = 100

const pageCharacters = 1_000_000

/** plants that are read at a time, and that are changed or deleted at a time: how large they are is known only then */
const maxReads = 16
const maxChanges = 64

/** at a time: each lasts as long as its client takes to read it */
const maxSnapshots = 8

/** @param rights those whose operations are offered */
export function plantRoutes(store: OwnStore, rights: readonly Right[], basePath: string): Route[] {
  const handlers = new PlantHandlers(store)
  // The specification's operation exists in every service: one that does not offer it rejects each create.
  const existing = operations.filter(({ right }) => right === 'create' || rights.includes(right))
  const routes = existing.map(({ id, path, ...operation }) => ({
    ...operation,
    path: `${basePath}${path}`,
    isOffered: rights.includes(operation.right),
    varies: id === 'listPlants',
    handler: (call: Call) => handlers[id](call),
  }))
  const body = Buffer.from(openApi(basePath, rights))
  const handler = async () => ({ outcome: 'described', status: 200, body })
  return [...routes, { method: 'GET', path: `${basePath}/openapi.json`, right: undefined, isOffered: true, handler }]
}

class PlantHandlers implements Record<OperationId, Route['handler']> {
  readonly #store: OwnStore
  readonly #pages = new Semaphore(maxPages)
  readonly #reads = new Semaphore(maxReads)
  readonly #changes = new Semaphore(maxChanges)
  /** the tokens that are reading a stream */
  readonly #readers = new Set<string>()

  constructor(store: OwnStore) {
    this.#store = store
  }

  async createPlant({ request, body }: Call): Promise<Answer> {
    const key = parseIdempotencyKey(request.headers)
    const { plant } = await writeOne(this.#store, { type: 'create', plant: parsePlant(body), key })
    return { outcome: 'created', status: 200, body: toWireJson(plantOf(plant)) }
  }

  async listPlants(call: Call): Promise<Answer> {
    const { request, caller } = call
    const { headers, url = '' } = request
    if (!/application\/x-ndjson/i.test(headers.accept ?? '')) return this.#page(call, parseListQuery(url))
    const pieces = this.#snapshot(parseListQuery(url, Number.MAX_SAFE_INTEGER), caller?.name ?? '')
    return { outcome: 'read', status: 200, contentType: 'application/x-ndjson', body: '', pieces }
  }

  async getPlant(call: Call): Promise<Answer> {
    const id = idOf(call)
    const plant = (await this.#reads.run(() => this.#store.get([id]))).get(id)
    if (!plant) throw new HttpError(404, `No plant has id ${id}`)
    return { outcome: 'read', status: 200, body: toWireJson(plant) }
  }

  async updatePlant(call: Call): Promise<Answer> {
    const patch = parsePatch(call.body, idOf(call))
    return this.#change({ type: 'update', patch }, 'updated')
  }

  async deletePlant(call: Call): Promise<Answer> {
    return this.#change({ type: 'delete', id: idOf(call) }, 'deleted')
  }

  #change(change: Change, outcome: string): Promise<Answer> {
    return this.#changes.run(async () => {
      const { plant } = await writeOne(this.#store, change)
      return { outcome, status: 200, body: toWireJson(plant) }
    })
  }

  async #page({ response }: Call, { limit = defaultLimit, ...query }: ReadQuery): Promise<Answer> {
    const signal = closeSignal(response)
    const list = () => pageOf(this.#store.read({ ...query, limit: limit + 1, signal, inPages: true }), limit)
    const { plants, hasNext } = await this.#pages.run(list, signal)
    const next = `<plants?${queryText({ ...query, limit, after: plants.at(-1)?.id })}>; rel="next"`
    const body = `[${plants.map(toWireJson).join()}]`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  async *#snapshot(query: ReadQuery, token: string): AsyncGenerator<string> {
    if (this.#readers.has(token)) throw busy('This token is reading a stream already, and may read one at a time')
    if (this.#readers.size >= Math.min(maxSnapshots, this.#store.maxSnapshots)) throw busy()
    this.#readers.add(token)
    try {
      for await (const plants of this.#store.read(query)) yield `${plants.map(line).join('\n')}\n`
    } finally {
      this.#readers.delete(token)
    }
  }
}

async function pageOf(
  list: AsyncIterable<NewPlant[]>,
  limit: number,
): Promise<{ plants: NewPlant[]; hasNext: boolean }> {
  const found: NewPlant[] = []
  let characters = 0
  for await (const plants of list) {
    if (characters >= pageCharacters) return { plants: found, hasNext: true }
    found.push(...plants)
    characters += plants.reduce((sum, plant) => sum + textLength(plant), 0)
  }
  return { plants: found.slice(0, limit), hasNext: found.length > limit }
}

/** Throws 400, also for a query and a condition. */
function idOf({ id, request }: Call): bigint {
  requireUnconditional(request)
  return parseId(id)
}

/** Callers wait in order of arrival. */
export class Semaphore {
  readonly #size: number
  #inside = 0
  readonly #waiters = new Set<() => void>()

  constructor(size: number) {
    this.#size = size
  }

  /** `leave` releases the permit. Throws the reason of the signal when it aborts first. */
  async enter(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#inside < this.#size) {
      this.#inside += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiters.delete(enter)
        reject(signal?.reason)
      }
      this.#waiters.add(enter)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** Throws the reason of the signal when it aborts before there is a permit. */
  async run<T>(action: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.enter(signal)
    try {
      return await action()
    } finally {
      this.leave()
    }
  }

  leave(): void {
    const [next] = this.#waiters
    if (next === undefined) {
      this.#inside -= 1
      return
    }
    this.#waiters.delete(next)
    next()
  }
}
