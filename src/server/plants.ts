import { toWireJson } from '../plant/exact-json.js'
import { type NewPlant, plantOf, textLength } from '../plant/plant.js'
import { documentIn } from '../plant/records.js'
import { type Change, writeOne } from '../stores/common/change.js'
import { type OwnStore, queryText, type ReadQuery } from '../stores/common/store.js'
import { busy, HttpError } from './answer.js'
import {
  parseId,
  parseIdempotencyKey,
  parseListQuery,
  parsePatch,
  parsePlant,
  requireUnconditional,
} from './request-input.js'
import { type Answer, type Call, closeSignal, type Handlers } from './router.js'

/** in a page */
const defaultLimit = 100
const pageCharacters = 1_000_000

/** at a time: each lasts as long as its client takes to read it */
const maxSnapshots = 8

export function plantHandlers(store: OwnStore): Handlers {
  /** the tokens that are reading a stream */
  const readers = new Set<string>()

  const changed = async (change: Change, outcome: string) => {
    const { plant } = await writeOne(store, change)
    return { outcome, status: 200, body: toWireJson(plant) }
  }

  const page = async ({ response }: Call, { limit = defaultLimit, ...query }: ReadQuery): Promise<Answer> => {
    const signal = closeSignal(response)
    const list = store.read({ ...query, limit: limit + 1, signal, inPages: true })
    const { plants, hasNext } = await pageOf(list, limit)
    const next = `<plants?${queryText({ ...query, limit, after: plants.at(-1)?.id })}>; rel="next"`
    const body = `[${plants.map(toWireJson).join()}]`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  async function* snapshot(query: ReadQuery, token: string): AsyncGenerator<string> {
    if (readers.has(token)) throw busy('This token is reading a stream already, and may read one at a time')
    if (readers.size >= Math.min(maxSnapshots, store.maxSnapshots)) throw busy()
    readers.add(token)
    try {
      const { add } = documentIn('ndjson')
      for await (const plants of store.read(query)) yield add(plants)
    } finally {
      readers.delete(token)
    }
  }

  return {
    createPlant: async ({ request, body }) => {
      const key = parseIdempotencyKey(request.headers)
      const { plant } = await writeOne(store, { type: 'create', plant: parsePlant(body), key })
      return { outcome: 'created', status: 200, body: toWireJson(plantOf(plant)) }
    },
    listPlants: async (call) => {
      const { headers, url = '' } = call.request
      if (!/application\/x-ndjson/i.test(headers.accept ?? '')) return page(call, parseListQuery(url))
      const pieces = snapshot(parseListQuery(url, Number.MAX_SAFE_INTEGER), call.caller?.name ?? '')
      return { outcome: 'read', status: 200, contentType: 'application/x-ndjson', body: '', pieces }
    },
    getPlant: async (call) => {
      const id = idOf(call)
      const plant = (await store.get([id])).get(id)
      if (!plant) throw new HttpError(404, `No plant has id ${id}`)
      return { outcome: 'read', status: 200, body: toWireJson(plant) }
    },
    updatePlant: async (call) => changed({ type: 'update', patch: parsePatch(call.body, idOf(call)) }, 'updated'),
    deletePlant: async (call) => changed({ type: 'delete', id: idOf(call) }, 'deleted'),
  }
}

async function pageOf(list: AsyncIterable<NewPlant[]>, limit: number) {
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
