import { toWireJson } from '../plant/json.js'
import { plantOf, type StoredPlant, textLength } from '../plant/plant.js'
import { type Change, writeOne } from '../stores/change.js'
import { queryText, type ReadQuery } from '../stores/query.js'
import type { OwnStore } from '../stores/store.js'
import type { Handlers } from './handler.js'
import { createBusyError, HttpError } from './http-error.js'
import { parseListQuery } from './parse-query.js'
import {
  parseIdempotencyKey,
  parseIdText,
  parsePatchBody,
  parsePlantBody,
} from './parse-request.js'

/** A page with more ends before its limit. */
const pageCharacters = 1_000_000

export function plantHandlers(store: OwnStore): Handlers {
  const change = async (outcome: string, change: Change) => {
    const { plant } = await writeOne(store, change)
    return { outcome, status: 200, body: toWireJson(plant) }
  }

  return {
    createPlant: async (input) => {
      const key = parseIdempotencyKey(input.response.req.headers)
      const given = parsePlantBody(input.body)
      input.id = given.id
      const { plant } = await writeOne(store, { type: 'create', plant: given, key })
      return { outcome: 'created', status: 200, body: toWireJson(plantOf(plant)) }
    },
    listPlants: async ({ response }) => {
      const { limit, ...query } = parseListQuery(response.req.url ?? '')
      const closed = new AbortController()
      response.once('close', () => closed.abort(createBusyError()))
      const { plants, hasNext } = await pageOf(store, { ...query, signal: closed.signal }, limit)
      const next = queryText({ ...query, limit, after: plants.at(-1)?.id })
      const headers = hasNext ? ['Link', `<plants?${next}>; rel="next"`] : []
      return { outcome: 'read', status: 200, body: `[${plants.map(toWireJson).join()}]`, headers }
    },
    getPlant: async ({ idText }) => {
      const id = parseIdText(idText)
      const plant = (await store.get([id])).get(id)
      if (!plant) throw new HttpError(404, `No plant has id ${id}`)
      return { outcome: 'read', status: 200, body: toWireJson(plant) }
    },
    updatePlant: async (input) => {
      const id = parseIdText(input.idText)
      input.id = id
      return change('updated', { type: 'update', patch: parsePatchBody(input.body, id) })
    },
    deletePlant: async (input) => {
      const id = parseIdText(input.idText)
      input.id = id
      return change('deleted', { type: 'delete', id })
    },
  }
}

async function pageOf(store: OwnStore, query: ReadQuery, limit: number) {
  const found: StoredPlant[] = []
  let characters = 0
  // One more than the page has tells whether there is a next one.
  for await (const plants of store.read({ ...query, limit: limit + 1, inPages: true })) {
    if (characters >= pageCharacters) return { plants: found, hasNext: true }
    found.push(...plants)
    characters += plants.reduce((sum, plant) => sum + textLength(plant), 0)
  }
  return { plants: found.slice(0, limit), hasNext: found.length > limit }
}
