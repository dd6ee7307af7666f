import { toWireJson } from '../plant/exact-json.js'
import { type NewPlant, textLength } from '../plant/plant.js'
import { Semaphore } from '../platform/semaphore.js'
import { queryText } from '../stores/common/pages.js'
import type { ListQuery, Right, ServedStore } from '../stores/common/store.js'
import { busy, HttpError } from './http-error.js'
import { listLimits, type OperationId, openApi, operations } from './openapi-document.js'
import {
  etagOf,
  listsTag,
  parseId,
  parseIdempotencyKey,
  parseListQuery,
  parsePlant,
  prefersNdjson,
  requireNoQuery,
} from './request-input.js'
import { type Answer, type Call, closeSignal, type Route } from './router.js'

/** read at a time: a search may scan all plants, and keeps its results in memory */
const maxPages = 4

const pageCharacters = 1_000_000

/** plants that are read at a time, and that are replaced or deleted at a time: how large they are is known only then */
const maxReads = 16
const maxChanges = 64

/** at a time: each lasts as long as its client takes to read it */
const maxSnapshots = 8

/** @param rights those whose operations are offered */
export function plantRoutes(store: ServedStore, rights: readonly Right[], basePath: string): Route[] {
  const handlers = new PlantHandlers(store)
  // The specification's operation exists in every service: one that does not offer it rejects each create.
  const existing = operations.filter(({ right }) => right === 'create' || rights.includes(right))
  const routes = existing.map(({ method, path, right, requestBody, operationId }) => ({
    method: method.toUpperCase(),
    path: `${basePath}${path}`,
    right,
    isOffered: rights.includes(right),
    hasBody: requestBody !== undefined,
    varies: operationId === 'listPlants',
    handler: (call: Call) => handlers[operationId](call),
  }))
  const offered = operations.filter(({ right }) => rights.includes(right))
  const body = Buffer.from(openApi(basePath, offered))
  const handler = async () => ({ outcome: 'described', status: 200, body })
  return [...routes, { method: 'GET', path: `${basePath}/openapi.json`, right: undefined, isOffered: true, handler }]
}

class PlantHandlers implements Record<OperationId, Route['handler']> {
  readonly #store: ServedStore
  readonly #pages = new Semaphore(maxPages)
  readonly #reads = new Semaphore(maxReads)
  readonly #changes = new Semaphore(maxChanges)
  /** the tokens that are reading a stream */
  readonly #readers = new Set<string>()

  constructor(store: ServedStore) {
    this.#store = store
  }

  async createPlant({ request, body }: Call): Promise<Answer> {
    const idempotencyKey = parseIdempotencyKey(request.headers)
    const created = await this.#store.create(parsePlant(body), { idempotencyKey })
    return { outcome: 'created', status: 200, body: toWireJson(created) }
  }

  async listPlants(call: Call): Promise<Answer> {
    const { request, caller } = call
    const { headers, url = '' } = request
    if (!prefersNdjson(headers.accept)) return this.#page(call, parseListQuery(url))
    const pieces = this.#snapshot(parseListQuery(url, Number.MAX_SAFE_INTEGER), caller?.name ?? '')
    return { outcome: 'read', status: 200, contentType: 'application/x-ndjson', body: '', pieces }
  }

  async getPlant(call: Call): Promise<Answer> {
    const id = idOf(call)
    const plant = await this.#reads.run(() => this.#store.get(id))
    if (!plant) throw missing(id)
    return stored(plant, 'read', call.request.headers['if-none-match'])
  }

  async replacePlant(call: Call): Promise<Answer> {
    const plant = parsePlant(call.body, idOf(call))
    return stored(await this.#change(call, plant.id, (only) => this.#store.replace(plant, only)), 'replaced')
  }

  async deletePlant(call: Call): Promise<Answer> {
    const id = idOf(call)
    const deleted = await this.#change(call, id, (only) => this.#store.delete(id, only))
    return { outcome: 'deleted', status: 200, body: toWireJson(deleted) }
  }

  async #page({ response }: Call, { limit = listLimits.default, ...query }: ListQuery): Promise<Answer> {
    const signal = closeSignal(response)
    const list = () => pageOf(this.#store.list({ ...query, limit: limit + 1, signal }), limit)
    const { plants, hasNext } = await this.#pages.run(list, signal)
    const next = `<plants?${queryText({ ...query, limit, after: plants.at(-1)?.id })}>; rel="next"`
    const body = `[${plants.map(toWireJson).join()}]`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  async *#snapshot(query: ListQuery, token: string): AsyncGenerator<string> {
    if (this.#readers.has(token)) throw busy('This token is reading a stream already, and may read one at a time')
    if (this.#readers.size >= Math.min(maxSnapshots, this.#store.maxSnapshots)) throw busy()
    this.#readers.add(token)
    try {
      for await (const { text } of this.#store.snapshot({ ...query, record: 'json' })) yield `${text}\n`
    } finally {
      this.#readers.delete(token)
    }
  }

  /** Throws 404 or 412. */
  #change(
    call: Call,
    id: bigint,
    action: (only: NewPlant | undefined) => Promise<NewPlant | undefined>,
  ): Promise<NewPlant> {
    return this.#changes.run(async () => {
      const only = await this.#expected(call, id)
      const plant = await action(only)
      if (!plant) throw only ? changed(id) : missing(id)
      return plant
    })
  }

  /** Undefined if the content of the plant does not matter. Throws 404 or 412. */
  async #expected({ request }: Call, id: bigint): Promise<NewPlant | undefined> {
    const { 'if-match': match, 'if-none-match': noneMatch } = request.headers
    if (match === undefined && noneMatch === undefined) return undefined
    const plant = await this.#store.get(id)
    if (!plant) throw missing(id)
    const etag = etagOf(toWireJson(plant))
    if (match !== undefined && !listsTag(match, etag, { isWeakEqual: false })) throw changed(id)
    if (noneMatch !== undefined && listsTag(noneMatch, etag, { isWeakEqual: true }))
      throw new HttpError(412, `The plant ${id} matches If-None-Match`)
    return match?.trim() === '*' && noneMatch === undefined ? undefined : plant
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

/** Throws 400, also for a query. */
function idOf({ id, request }: Call): bigint {
  requireNoQuery(request.url ?? '')
  return parseId(id)
}

/** `known` is If-None-Match. */
function stored(plant: NewPlant, outcome: string, known?: string): Answer {
  const body = toWireJson(plant)
  const etag = etagOf(body)
  const isKnown = known !== undefined && listsTag(known, etag, { isWeakEqual: true })
  return { outcome, status: isKnown ? 304 : 200, body, headers: ['ETag', etag] }
}

function missing(id: bigint): HttpError {
  return new HttpError(404, `No plant has id ${id}`)
}

function changed(id: bigint): HttpError {
  return new HttpError(412, `The plant ${id} no longer matches If-Match`)
}
