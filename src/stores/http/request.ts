import { randomUUID } from 'node:crypto'
import { toWireJson } from '../../plant/json.js'
import type { NewPlant } from '../../plant/plant.js'
import type { RemoteAddress } from '../address.js'
import type { Access, WireRequest } from './types.js'

export interface Request {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

/**
 * The request of a create: the specification's one operation.
 *
 * @param plant or an empty object, which no service takes for one
 */
export function requestToCreate({ token, userAgent }: Access, plant: NewPlant | Record<string, never>, idempotencyKey?: string) {
  const headers = {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    'user-agent': userAgent,
  }
  return { method: 'POST', path: '/plants', headers, body: toWireJson(plant) } satisfies Request
}

/** The key of a create that was given none, so that it can be sent again. */
export const newKey: () => string = randomUUID

/** Where the paths of requests begin. */
export function baseOf({ url }: RemoteAddress): { origin: string; path: string } {
  return { origin: url.origin, path: url.pathname.replace(/\/$/, '') }
}

/** What a create would send. */
export function describeCreate(address: RemoteAddress, access: Access, plant: NewPlant, idempotencyKey = newKey()): WireRequest {
  const { method, path, headers, body } = requestToCreate(access, plant, idempotencyKey)
  const base = baseOf(address)
  return { method, url: base.origin + base.path + path, headers, body }
}
