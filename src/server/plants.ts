/** Carries out the operations of the service in the store. */
import { toWireJson } from '../plant/json.js'
import { measureFieldLength, omitId, type StoredPlant } from '../plant/plant.js'
import { type Change, writeOne } from '../stores/change.js'
import { formatQuery, type ReadQuery } from '../stores/query.js'
import type { DirectStore } from '../stores/store.js'
import { createCloseSignal } from './admission.js'
import type { OperationHandlers } from './handler.js'
import { HttpError } from './http-error.js'
import {
  parseIdempotencyKey,
  parseIdText,
  parsePatchBody,
  parsePlantBody,
} from './parse-request.js'
import type { ServiceResponse } from './respond.js'

/**
 * A plant may have a MiB, so a page of a thousand could take a GiB. A page therefore ends after the
 * block with which it has this many characters, even if its limit is not reached.
 */
const maxPageCharacters = 500_000

export function createOperationHandlers(store: DirectStore): OperationHandlers {
  return {
    createPlant: async (input) => {
      const key = parseIdempotencyKey(input.response.req.headers)
      const plant = parsePlantBody(input.body)
      input.plantId = plant.id
      const created = await writeOne(store, { type: 'create', plant, key })
      const isReplayed = created.type === 'created' && created.isReplayed === true
      const headers = isReplayed ? ['Idempotent-Replayed', 'true'] : []
      return { outcome: 'created', status: 200, body: toWireJson(omitId(created.plant)), headers }
    },
    listPlants: async ({ response, query: { limit, ...query } }) => {
      const signal = createCloseSignal(response)
      const { plants, hasNext } = await readPage(store, { ...query, signal }, limit)
      const nextQuery = formatQuery({ ...query, limit, after: plants.at(-1)?.id })
      const headers = hasNext ? ['Link', `<plants?${nextQuery}>; rel="next"`] : []
      return { outcome: 'read', status: 200, body: `[${plants.map(toWireJson).join()}]`, headers }
    },
    countPlants: async ({ response, query: { tag, search } }) => {
      const signal = createCloseSignal(response)
      const count = await store.count({ tag, search, signal, inSteps: true })
      return { outcome: 'read', status: 200, body: `{"count":${count}}` }
    },
    getPlant: async ({ idText }) => {
      const id = parseIdText(idText)
      const plant = (await store.get([id])).get(id)
      if (!plant) throw new HttpError(404, `No plant has id ${id}`)
      return { outcome: 'read', status: 200, body: toWireJson(plant) }
    },
    updatePlant: async (input) => {
      const id = parseIdText(input.idText)
      input.plantId = id
      const patch = parsePatchBody(input.body, id)
      return changePlant(store, { type: 'update', patch }, 'updated')
    },
    deletePlant: async (input) => {
      const id = parseIdText(input.idText)
      input.plantId = id
      return changePlant(store, { type: 'delete', id }, 'deleted')
    },
  }
}

async function changePlant(
  store: DirectStore,
  change: Change,
  outcome: string,
): Promise<ServiceResponse> {
  const { plant } = await writeOne(store, change)
  return { outcome, status: 200, body: toWireJson(plant) }
}

async function readPage(store: DirectStore, query: ReadQuery, limit: number) {
  const plants: StoredPlant[] = []
  let characterCount = 0
  // One plant more than the limit shows whether there is a next page.
  for await (const block of store.read({ ...query, limit: limit + 1, inPages: true })) {
    if (characterCount >= maxPageCharacters) return { plants, hasNext: true }
    plants.push(...block)
    characterCount += block.reduce((sum, plant) => sum + measureFieldLength(plant), 0)
  }
  return { plants: plants.slice(0, limit), hasNext: plants.length > limit }
}
