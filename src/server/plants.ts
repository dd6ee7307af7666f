import { toWireJson } from '../plant/json.js'
import { type NewPlant, textLength } from '../plant/plant.js'
import { Semaphore } from '../platform/semaphore.js'
import { queryText } from '../stores/common/pages.js'
import type { ListQuery, Right, ServedStore } from '../stores/common/store.js'
import { busy, HttpError } from './errors.js'
import { listLimits, openApi, operations } from './openapi.js'
import {
  etagOf,
  type InFlight,
  listsTag,
  parseId,
  parseIdempotencyKey,
  parseListQuery,
  parsePlant,
  prefersNdjson,
  requireNoQuery,
} from './request.js'
import { type Answer, type Call, closeSignal, type Route } from './router.js'

export interface PlantRoutesOptions {
  store: ServedStore
  rights: readonly Right[]
  /** "" or "/v1" */
  basePath: string
  inFlight: InFlight
}

/** the maximum number of requests that wait for the store */
const maxWaiting = 10_000

/** the maximum number of pages that are read at a time: a search may scan all plants, and keeps its results in memory */
const maxPages = 4

const pageCharacters = 1_000_000

/** the maximum number of plants that are read, replaced or deleted at a time: how large they are is known only then */
const maxPlants = 64

/** the maximum number of concurrent snapshots: each lasts as long as its client takes to read it */
const maxSnapshots = 8

/** The routes of the operations on a store, and of the OpenAPI description. */
export function plantRoutes({ store, rights, basePath, inFlight }: PlantRoutesOptions): Route[] {
  const pages = new Semaphore(maxPages)
  const plants = new Semaphore(maxPlants)
  const readers = new Set<string>()

  /** Runs an action on the store. Throws 503 when the queue is full. */
  const queued = async <T>({ body }: Call, action: () => Promise<T>): Promise<T> => {
    if (inFlight.waiting >= maxWaiting) throw busy()
    inFlight.waiting += 1
    inFlight.bytes += body.length
    try {
      return await action()
    } finally {
      inFlight.waiting -= 1
      inFlight.bytes -= body.length
    }
  }

  const limited = <T>(call: Call, action: () => Promise<T>): Promise<T> =>
    queued(call, async () => {
      await plants.enter()
      try {
        return await action()
      } finally {
        plants.leave()
      }
    })

  /** The plant that meets the conditions of a request; undefined if its content does not matter. Throws 404 or 412. */
  const expected = async ({ request }: Call, id: bigint): Promise<NewPlant | undefined> => {
    const { 'if-match': match, 'if-none-match': noneMatch } = request.headers
    if (match === undefined && noneMatch === undefined) return undefined
    const plant = await store.get(id)
    if (!plant) throw missing(id)
    const etag = etagOf(toWireJson(plant))
    if (match !== undefined && !listsTag(match, etag, { isWeakEqual: false })) throw changed(id)
    if (noneMatch !== undefined && listsTag(noneMatch, etag, { isWeakEqual: true }))
      throw new HttpError(412, `The plant ${id} matches If-None-Match`)
    return match?.trim() === '*' && noneMatch === undefined ? undefined : plant
  }

  /** Replaces or deletes the plant that meets the conditions of a request. Throws 404 or 412. */
  const change = (call: Call, id: bigint, action: (only: NewPlant | undefined) => Promise<NewPlant | undefined>): Promise<NewPlant> =>
    limited(call, async () => {
      const only = await expected(call, id)
      const plant = await action(only)
      if (!plant) throw only ? changed(id) : missing(id)
      return plant
    })

  const snapshot = async function* (query: ListQuery, token: string): AsyncGenerator<string> {
    if (readers.has(token)) throw busy('This token is reading a stream already, and may read one at a time')
    if (readers.size >= Math.min(maxSnapshots, store.maxSnapshots)) throw busy()
    readers.add(token)
    try {
      for await (const { text } of store.snapshot({ ...query, record: 'json' })) yield `${text}\n`
    } finally {
      readers.delete(token)
    }
  }

  const page = async (call: Call): Promise<Answer> => {
    const { request, response } = call
    const { limit = listLimits.default, ...query } = parseListQuery(request.url ?? '')
    const signal = closeSignal(response)
    const { plants, hasNext } = await queued(call, async () => {
      await pages.enter(signal)
      try {
        return await pageOf(store.list({ ...query, limit: limit + 1, signal }), limit)
      } finally {
        pages.leave()
      }
    })
    const body = `[${plants.map(toWireJson).join()}]`
    const next = `<plants?${queryText({ ...query, limit, after: plants.at(-1)?.id })}>; rel="next"`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  const handlers: Record<(typeof operations)[number]['operationId'], Route['handler']> = {
    async createPlant(call) {
      const idempotencyKey = parseIdempotencyKey(call.request.headers)
      const plant = parsePlant(call.body)
      const created = await queued(call, () => store.create(plant, { idempotencyKey }))
      return { outcome: 'created', status: 200, body: toWireJson(created) }
    },
    listPlants(call) {
      const { request, caller } = call
      const { headers, url = '' } = request
      if (!prefersNdjson(headers.accept)) return page(call)
      const query = parseListQuery(url, Number.MAX_SAFE_INTEGER)
      return { outcome: 'read', status: 200, contentType: 'application/x-ndjson', body: '', pieces: snapshot(query, caller?.name ?? '') }
    },
    async getPlant(call) {
      const id = idOf(call)
      const plant = await limited(call, () => store.get(id))
      if (!plant) throw missing(id)
      return stored(plant, 'read', call.request.headers['if-none-match'])
    },
    async replacePlant(call) {
      const plant = parsePlant(call.body, idOf(call))
      return stored(await change(call, plant.id, (only) => store.replace(plant, only)), 'replaced')
    },
    async deletePlant(call) {
      const id = idOf(call)
      const deleted = await change(call, id, (only) => store.delete(id, only))
      return { outcome: 'deleted', status: 200, body: toWireJson(deleted) }
    },
  }

  const offered = operations.filter(({ right }) => rights.includes(right))
  // The specification's operation exists in every service: one that does not offer it rejects each create.
  const existing = operations.filter(({ right }) => right === 'create' || rights.includes(right))
  const routes = existing.map(({ method, path, right, requestBody, operationId }) => ({
    method: method.toUpperCase(),
    path: `${basePath}${path}`,
    right,
    isOffered: rights.includes(right),
    hasBody: requestBody !== undefined,
    varies: operationId === 'listPlants',
    handler: handlers[operationId],
  }))
  const description = Buffer.from(openApi(basePath, offered)) // shared by all responses
  const describe = () => ({ outcome: 'described', status: 200, body: description })
  const open = { right: undefined, isOffered: true, hasBody: false, varies: false }
  return [...routes, { ...open, method: 'GET', path: `${basePath}/openapi.json`, handler: describe }]
}

async function pageOf(list: AsyncIterable<NewPlant[]>, limit: number): Promise<{ plants: NewPlant[]; hasNext: boolean }> {
  const found: NewPlant[] = []
  let characters = 0
  for await (const plants of list) {
    if (characters >= pageCharacters) return { plants: found, hasNext: true }
    found.push(...plants)
    characters += plants.reduce((sum, plant) => sum + textLength(plant), 0)
  }
  return { plants: found.slice(0, limit), hasNext: found.length > limit }
}

/** The id in the path of a request, which has no parameters. Throws 400. */
function idOf({ id, request }: Call): bigint {
  requireNoQuery(request.url ?? '')
  return parseId(id)
}

/** A response with a StoredPlant and its entity tag; 304 if the client knows it (If-None-Match). */
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
