import { randomUUID } from 'node:crypto'
import { toWireJson } from '../../plant/json.js'
import type { NewPlant, Plant } from '../../plant/plant.js'
import type { Access, WireRequest } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { expectedPlant } from './classify.js'
import { bearer, type HttpRequest } from './client.js'

interface RequestOptions<T> extends Pick<HttpRequest<T>, 'method' | 'path' | 'expected'> {
  sends?: string
  accept?: string
  body?: Plant | Record<string, never> | undefined
  idempotencyKey?: string | undefined
  ifMatch?: string | undefined
}

export function requestTo<T>({ token, userAgent }: Access, options: RequestOptions<T>): HttpRequest<T> {
  const { method, path, expected, accept = 'application/json', body, idempotencyKey, ifMatch } = options
  const { sends = body ? 'the plant' : 'the request' } = options
  const headers: Record<string, string> = { accept, authorization: bearer(token) }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (ifMatch !== undefined) headers['if-match'] = ifMatch
  headers['user-agent'] = userAgent
  return { method, path, headers, body: body && toWireJson(body), sends, expected }
}

export function requestToCreate(access: Access, plant: NewPlant, idempotencyKey: string): HttpRequest<Plant> {
  return requestTo(access, { method: 'POST', path: '/plants', expected: expectedPlant, body: plant, idempotencyKey })
}

export function describeCreate({ url }: RemoteAddress, access: Access, plant: NewPlant, key: string = randomUUID()): WireRequest {
  const { method, path, headers, body = '' } = requestToCreate(access, plant, key)
  return { method, url: url.origin + url.pathname.replace(/\/$/, '') + path, headers, body }
}
