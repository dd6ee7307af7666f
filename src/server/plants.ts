import type { IncomingMessage } from 'node:http'
import { toWireJson } from '../plant/json.js'
import { type NewPlant, textLength } from '../plant/plant.js'
import { Semaphore } from '../platform/semaphore.js'
import { queryText } from '../stores/common/pages.js'
import type { ListQuery, ReadableStore, Right, ServedStore } from '../stores/common/store.js'
import { busy, HttpError } from './errors.js'
import { openApi } from './openapi.js'
import { etagOf, listLimits, listsTag, parseId, parseListQuery } from './parameters.js'
import { type InFlight, parseIdempotencyKey, parseNewPlant, parsePlant } from './request.js'
import type { Call, LoggedAnswer, Route } from './router.js'

export interface PlantRoutesOptions {
  store: Pick<ServedStore, keyof ReadableStore | 'maxSnapshots'>
  /** the rights whose operations are offered */
  rights: readonly Right[]
  /** "" or "/v1" */
  basePath: string
  /** the maximum number of requests that wait for the store */
  queueLimit: number
  inFlight: InFlight
}

/** the maximum size of the lists that clients have not read yet, on all connections, in bytes */
const maxListed = 67_108_864

/** the maximum number of concurrent lists: a search may scan all plants, and keeps its results in memory */
const maxLists = 4

/** the approximate maximum size of a page */
const pageCharacters = 1_000_000

/** the maximum number of concurrent snapshots: each lasts as long as its client takes to read it */
const maxSnapshots = 2

/** The routes of the operations on a store, and of the OpenAPI description. */
export function plantRoutes({ store, rights, basePath, queueLimit, inFlight }: PlantRoutesOptions): Route[] {
  const description = Buffer.from(openApi(basePath, rights)) // shared by all responses

  /** Runs an action on the store. Throws 503 when the queue is full. */
  const queued = async <T>(bytes: number, action: () => Promise<T>): Promise<T> => {
    if (inFlight.waiting >= queueLimit) throw busy()
    inFlight.waiting += 1
    inFlight.bytes += bytes
    try {
      return await action()
    } finally {
      inFlight.waiting -= 1
      inFlight.bytes -= bytes
    }
  }

  /** The plant that matches If-Match; undefined without a condition on its content. Throws 404 or 412. */
  const expected = async ({ headers }: IncomingMessage, id: bigint): Promise<NewPlant | undefined> => {
    const condition = headers['if-match']
    if (condition === undefined) return undefined
    const plant = await store.get(id)
    if (!plant) throw missing(id)
    if (!listsTag(condition, etagOf(plant), { isWeakEqual: false })) throw changed(id)
    return condition.trim() === '*' ? undefined : plant
  }

  const snapshot = async function* (query: ListQuery): AsyncGenerator<string> {
    if (inFlight.snapshots >= Math.min(maxSnapshots, store.maxSnapshots)) throw busy()
    inFlight.snapshots += 1
    try {
      for await (const { text } of store.snapshot({ ...query, record: 'json' })) yield `${text}\n`
    } finally {
      inFlight.snapshots -= 1
    }
  }

  const lists = new Semaphore(maxLists)

  const page = async ({ request, response }: Call): Promise<LoggedAnswer> => {
    const { limit = listLimits.default, ...query } = parseListQuery(request.url ?? '')
    const left = new AbortController()
    response.once('close', () => left.abort(busy()))
    const { signal } = left
    const { plants, hasNext } = await queued(0, async () => {
      await lists.enter(signal)
      try {
        return await pageOf(store.list({ ...query, limit: limit + 1, signal }), limit)
      } finally {
        lists.leave()
      }
    })
    const after = plants.at(-1)?.id
    const body = `[${plants.map(toWireJson).join()}]`
    const bytes = Buffer.byteLength(body)
    if (inFlight.listed + bytes > maxListed) throw busy()
    if (!response.destroyed) {
      inFlight.listed += bytes
      response.once('close', () => {
        inFlight.listed -= bytes
      })
    }
    const next = `<plants?${queryText({ ...query, limit, after })}>; rel="next"`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  const routes: Route[] = [
    {
      method: 'POST',
      path: '/plants',
      right: 'create',
      async handler(call, router) {
        const bytes = await router.readBody(call)
        const idempotencyKey = parseIdempotencyKey(call.request.headers)
        const plant = parseNewPlant(bytes)
        const created = await queued(bytes.length, () => store.create(plant, { idempotencyKey }))
        return { outcome: 'created', status: 200, body: toWireJson(created) }
      },
    },
    {
      method: 'GET',
      path: '/plants',
      right: 'read',
      handler(call) {
        const { headers, url = '' } = call.request
        if (!/\bapplication\/x-ndjson\b/i.test(headers.accept ?? '')) return page(call)
        const query = parseListQuery(url, Number.MAX_SAFE_INTEGER)
        return { outcome: 'read', contentType: 'application/x-ndjson', pieces: snapshot(query) }
      },
    },
    {
      method: 'GET',
      path: '/plants/{id}',
      right: 'read',
      async handler(call) {
        const id = idOf(call)
        const plant = await queued(0, () => store.get(id))
        if (!plant) throw missing(id)
        const known = call.request.headers['if-none-match']
        const isKnown = known !== undefined && listsTag(known, etagOf(plant), { isWeakEqual: true })
        return stored(plant, 'read', isKnown ? 304 : 200)
      },
    },
    {
      method: 'PUT',
      path: '/plants/{id}',
      right: 'update',
      async handler(call, router) {
        const bytes = await router.readBody(call)
        const plant = parsePlant(bytes, idOf(call))
        return queued(bytes.length, async () => {
          const only = await expected(call.request, plant.id)
          const replaced = await store.replace(plant, only)
          if (!replaced) throw only ? changed(plant.id) : missing(plant.id)
          return stored(replaced, 'replaced')
        })
      },
    },
    {
      method: 'DELETE',
      path: '/plants/{id}',
      right: 'delete',
      async handler(call) {
        const id = idOf(call)
        return queued(0, async () => {
          const only = await expected(call.request, id)
          const deleted = await store.delete(id, only)
          if (!deleted) throw only ? changed(id) : missing(id)
          return { outcome: 'deleted', status: 200, body: toWireJson(deleted) }
        })
      },
    },
    {
      method: 'GET',
      path: '/openapi.json',
      right: undefined,
      handler: () => ({ outcome: 'described', status: 200, body: description }),
    },
  ]
  return routes.filter(({ right }) => right === undefined || rights.includes(right))
}

/** The first `limit` plants of a list, or fewer large ones. */
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

function idOf({ params }: Call): bigint {
  return parseId(params?.['id'] ?? '')
}

/** A response with a StoredPlant and its entity tag. */
function stored(plant: NewPlant, outcome: string, status = 200): LoggedAnswer {
  return { outcome, status, body: toWireJson(plant), headers: ['ETag', etagOf(plant)] }
}

function missing(id: bigint): HttpError {
  return new HttpError(404, `No plant has the id ${id}`)
}

function changed(id: bigint): HttpError {
  return new HttpError(412, `The plant ${id} no longer matches If-Match`)
}
