import { toWireJson } from '../plant/exact-json.js'
import { plantOf, type StoredPlant, textLength } from '../plant/plant.js'
import { documentIn } from '../plant/records.js'
import { type Change, writeOne } from '../stores/common/change.js'
import { queryText, type ReadQuery } from '../stores/common/query.js'
import type { OwnStore } from '../stores/common/store.js'
import { busy, HttpError } from './answer.js'
import type { Handlers, OperationInput } from './handler.js'
import {
  parseIdempotencyKey,
  parseIdText,
  parseListQuery,
  patchInBody,
  plantInBody,
  requireUnconditional,
} from './request-input.js'
import type { Answer } from './routes.js'

/** Plants in a page. */
const defaultLimit = 100
const pageCharacters = 1_000_000

export function plantHandlers(store: OwnStore): Handlers {
  const changed = async (change: Change, outcome: string, { waited }: OperationInput) => {
    const { plant } = await writeOne(store, change, { waited })
    return { outcome, status: 200, body: toWireJson(plant) }
  }

  const page = async (
    { response, waited }: OperationInput,
    { limit = defaultLimit, ...query }: ReadQuery,
  ): Promise<Answer> => {
    const closed = new AbortController()
    response.once('close', () => closed.abort(busy()))
    const list = store.read({
      ...query,
      limit: limit + 1,
      signal: closed.signal,
      waited,
      inPages: true,
    })
    const { plants, hasNext } = await pageOf(list, limit)
    const next = `<plants?${queryText({ ...query, limit, after: plants.at(-1)?.id })}>; rel="next"`
    const body = `[${plants.map(toWireJson).join()}]`
    return { outcome: 'read', status: 200, body, headers: hasNext ? ['Link', next] : [] }
  }

  async function* snapshot(query: ReadQuery): AsyncGenerator<string> {
    const { add } = documentIn('ndjson')
    for await (const plants of store.read(query)) yield add(plants)
  }

  return {
    createPlant: async ({ request, body, waited }) => {
      const key = parseIdempotencyKey(request.headers)
      const { plant } = await writeOne(
        store,
        { type: 'create', plant: plantInBody(body), key },
        { waited },
      )
      return { outcome: 'created', status: 200, body: toWireJson(plantOf(plant)) }
    },
    listPlants: async (input) => {
      const { headers, url = '' } = input.request
      if (!/application\/x-ndjson/i.test(headers.accept ?? ''))
        return page(input, parseListQuery(url))
      const pieces = snapshot({
        ...parseListQuery(url, Number.MAX_SAFE_INTEGER),
        waited: input.waited,
      })
      return { outcome: 'read', status: 200, contentType: 'application/x-ndjson', body: '', pieces }
    },
    getPlant: async (input) => {
      const id = idInPath(input)
      const plant = (await store.get([id], { waited: input.waited })).get(id)
      if (!plant) throw new HttpError(404, `No plant has id ${id}`)
      return { outcome: 'read', status: 200, body: toWireJson(plant) }
    },
    updatePlant: async (input) =>
      changed(
        { type: 'update', patch: patchInBody(input.body, idInPath(input)) },
        'updated',
        input,
      ),
    deletePlant: async (input) =>
      changed({ type: 'delete', id: idInPath(input) }, 'deleted', input),
  }
}

async function pageOf(list: AsyncIterable<StoredPlant[]>, limit: number) {
  const found: StoredPlant[] = []
  let characters = 0
  for await (const plants of list) {
    if (characters >= pageCharacters) return { plants: found, hasNext: true }
    found.push(...plants)
    characters += plants.reduce((sum, plant) => sum + textLength(plant), 0)
  }
  return { plants: found.slice(0, limit), hasNext: found.length > limit }
}

/** Throws 400, also for a query and a condition. */
function idInPath({ id, request }: OperationInput): bigint {
  requireUnconditional(request)
  return parseIdText(id)
}
