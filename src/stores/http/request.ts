import { randomUUID } from 'node:crypto'
import { toWireJson } from '../../plant/json.js'
import type { NewPlant } from '../../plant/plant.js'
import type { RemoteAddress } from '../address.js'
import type { HttpRequest } from './client.js'
import type { Access, WireRequest } from './types.js'

/**
 * The request of a create: the specification's one operation.
 *
 * @param plant or an empty object, which no service takes for one
 */
export function requestToCreate({ token, userAgent }: Access, plant: NewPlant | Record<string, never>, idempotencyKey?: string) {
  const headers: Record<string, string> = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
  }
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  headers['user-agent'] = userAgent
  return { method: 'POST', path: '/plants', headers, body: toWireJson(plant) } satisfies HttpRequest
}

/** The key of a create that was given none, so that it can be sent again. */
export const newKey: () => string = randomUUID

/** What a create would send. */
export function describeCreate({ url }: RemoteAddress, access: Access, plant: NewPlant, idempotencyKey = newKey()): WireRequest {
  const { method, path, headers, body } = requestToCreate(access, plant, idempotencyKey)
  return { method, url: url.origin + url.pathname.replace(/\/$/, '') + path, headers, body }
}
