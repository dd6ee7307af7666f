import { toWireJson } from '../plant/json.js'
import type { PlantStore } from '../stores/store.js'
import { busy } from './errors.js'
import { openApi } from './openapi.js'
import { type InFlight, parseIdempotencyKey, parseNewPlant } from './request.js'
import type { Route } from './router.js'

export interface PlantRoutesOptions {
  store: PlantStore
  /** "" or "/v1" */
  basePath: string
  /** how many creates may wait for the store */
  queueLimit: number
  inFlight: InFlight
}

/** The specification's operation on a store, and the description of the interface. */
export function plantRoutes({ store, basePath, queueLimit, inFlight }: PlantRoutesOptions): Route[] {
  const description = Buffer.from(openApi(basePath)) // one for all answers
  return [
    {
      method: 'POST',
      path: '/plants',
      right: 'create',
      async handler(call, router) {
        const bytes = await router.readBody(call)
        const idempotencyKey = parseIdempotencyKey(call.request.headers)
        const plant = parseNewPlant(bytes)
        if (inFlight.creates >= queueLimit) throw busy()
        inFlight.creates += 1
        inFlight.bytes += bytes.length
        try {
          const created = await store.create(plant, { idempotencyKey })
          return { outcome: 'created', status: 200, body: toWireJson(created) }
        } finally {
          inFlight.creates -= 1
          inFlight.bytes -= bytes.length
        }
      },
    },
    {
      method: 'GET',
      path: '/openapi.json',
      right: undefined,
      handler: () => ({ outcome: 'described', status: 200, body: description }),
    },
  ]
}
