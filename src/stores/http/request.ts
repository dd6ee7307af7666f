import { randomUUID } from 'node:crypto'
import { toWireJson } from '../../plant/json.js'
import type { NewPlant, Plant } from '../../plant/plant.js'
import type { Access, WireRequest } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { HttpRequest } from './client.js'

/** the maximum size of a page, and of a line of a stream, in bytes: by default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold */
export const maxRead = 16_777_216

interface RequestOptions {
  accept?: string
  /** sent as JSON */
  body?: Plant | Record<string, never> | undefined
  idempotencyKey?: string | undefined
  /** an entity tag */
  ifMatch?: string | undefined
}

/**
 * An authenticated request.
 *
 * @param path below the base_url
 */
export function requestTo(
  { token, userAgent }: Access,
  method: HttpRequest['method'],
  path: string,
  { accept = 'application/json', body, idempotencyKey, ifMatch }: RequestOptions = {},
) {
  const headers: Record<string, string> = { accept, authorization: `Bearer ${token}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (ifMatch !== undefined) headers['if-match'] = ifMatch
  headers['user-agent'] = userAgent
  return { method, path, headers, body: body && toWireJson(body) } satisfies HttpRequest
}

/** The request that creates a plant: the operation of the specification. */
export function requestToCreate(access: Access, plant: NewPlant, idempotencyKey?: string) {
  return requestTo(access, 'POST', '/plants', { body: plant, idempotencyKey })
}

/** The request that reads, replaces or deletes a plant. */
export function requestToCorrect(access: Access, method: 'GET' | 'PUT' | 'DELETE', id: bigint, options?: RequestOptions): HttpRequest {
  return { ...requestTo(access, method, `/plants/${id}`, options), maxBody: maxRead }
}

/** The idempotency key for a create without one, so that it can be retried. */
export const newKey: () => string = randomUUID

/** The request that a create would send. */
export function describeCreate({ url }: RemoteAddress, access: Access, plant: NewPlant, idempotencyKey = newKey()): WireRequest {
  const { method, path, headers, body = '' } = requestToCreate(access, plant, idempotencyKey)
  return { method, url: url.origin + url.pathname.replace(/\/$/, '') + path, headers, body }
}
