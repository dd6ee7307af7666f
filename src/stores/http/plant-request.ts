import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { isJsonType, isObject, parseJson, toWireJson } from '../../plant/exact-json.js'
import { textFields } from '../../plant/fields.js'
import { acceptNewPlant, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import type { Access, WireRequest } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { Right } from '../common/store.js'
import {
  basePathOf,
  bearer,
  type Expected,
  type HttpClient,
  type HttpRequest,
  type HttpResponse,
} from './http-client.js'

interface RequestOptions<T> extends Pick<HttpRequest<T>, 'method' | 'path' | 'expected'> {
  accept?: string
  body?: Plant | Record<string, never> | undefined
  idempotencyKey?: string | undefined
  ifMatch?: string | undefined
}

export function requestTo<T>({ token, userAgent }: Access, options: RequestOptions<T>): HttpRequest<T> {
  const { method, path, expected, accept = 'application/json', body, idempotencyKey, ifMatch } = options
  const headers: Record<string, string> = { accept, authorization: bearer(token) }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  if (ifMatch !== undefined) headers['if-match'] = ifMatch
  headers['user-agent'] = userAgent
  return { method, path, headers, body: body && toWireJson(body), expected }
}

export function requestToCreate(access: Access, plant: NewPlant, idempotencyKey: string): HttpRequest<Plant> {
  return requestTo(access, { method: 'POST', path: '/plants', expected: expectedPlant, body: plant, idempotencyKey })
}

export function describeCreate(
  { url }: RemoteAddress,
  access: Access,
  plant: NewPlant,
  key: string = randomUUID(),
): WireRequest {
  const { method, path, headers, body = '' } = requestToCreate(access, plant, key)
  return { method, url: url.origin + basePathOf(url) + path, headers, body }
}

export function requestToRead({ access, etags }: HttpClient, id: bigint): HttpRequest<NewPlant | 404> {
  return requestTo(access, { method: 'GET', path: `/plants/${id}`, expected: expectStored(id, [404], etags) })
}

export const expectedPlant: Expected<Plant> = {
  what: 'Plant',
  read(response) {
    const value = response.status === 200 ? readJson(response) : undefined
    return isPlant(value) ? plantOf(value) : undefined
  },
}

function isPlant(value: unknown): value is Plant {
  if (!isObject(value)) return false
  return textFields.every(
    ({ name, isRequired }) => typeof value[name] === 'string' || (!isRequired && value[name] === undefined),
  )
}

/** bytes: by default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold */
export const maxRead = 16_777_216

/** @param settled other statuses that are a value, if the `error` of the body equals them: 404 for a missing plant */
export function expectStored<S extends number>(
  id: bigint,
  settled: readonly S[],
  etags: HttpClient['etags'],
): Expected<NewPlant | S> {
  return {
    what: 'StoredPlant',
    maxBody: maxRead,
    read(response) {
      const { status } = response
      if (status !== 200) return settled.find((value) => value === status && value === errorIn(response)?.error)
      const plant = acceptNewPlant(readJson(response))
      if (plant?.id !== id) return undefined
      const { etag } = response.headers
      if (etag?.startsWith('"')) etags.set(plant, etag)
      return plant
    },
  }
}

export function readJson(response: HttpResponse): unknown {
  const { headers, body, maxBody } = response
  if (body.length > maxBody || !isJson(response) || headers['content-encoding'] !== undefined || !isUtf8(body))
    return undefined
  const parsed = parseJson(body.toString(), { isList: true })
  return 'value' in parsed ? parsed.value : undefined
}

export function isJson({ headers }: HttpResponse): boolean {
  return isJsonType(headers['content-type'] ?? '')
}

export function errorIn(response: HttpResponse): { error: number; message: string } | undefined {
  const value = response.status === 200 ? undefined : readJson(response)
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string') return undefined
  return { error, message: Array.from(message.slice(0, 2000)).slice(0, 1000).join('') }
}

export interface Description {
  status: number
  supportsKeys: boolean
  /** such as "GET /plants/{id}", regardless of how the service names the parameter */
  operations: ReadonlySet<string>
}

export const operationOf = {
  read: 'GET /plants/{id}',
  list: 'GET /plants',
  update: 'PUT /plants/{id}',
  delete: 'DELETE /plants/{id}',
} as const satisfies Partial<Record<Right | 'list', string>>

/** without the token */
export function requestToDescribe({ access }: HttpClient): HttpRequest<Description> {
  const headers = { accept: 'application/json', 'user-agent': access.userAgent }
  return { method: 'GET', path: '/openapi.json', headers, expected: expectedDescription }
}

const expectedDescription: Expected<Description> = {
  what: 'description',
  read({ status, body, maxBody }) {
    const parsed = parseJson(status === 200 && body.length <= maxBody ? body.toString() : '')
    // without one, only the operation of the specification
    const document = 'value' in parsed ? parsed.value : undefined
    const operations = new Set<string>()
    for (const [path, item] of Object.entries(objectOf(at(document, 'paths')))) {
      const name = path.replace(/\{[^{}/]+\}/g, '{id}')
      for (const method of Object.keys(objectOf(item))) operations.add(`${method.toUpperCase()} ${name}`)
    }
    const plants = at(document, 'paths', '/plants')
    const parameters = [at(plants, 'parameters'), at(plants, 'post', 'parameters')].filter(Array.isArray).flat()
    return { status, supportsKeys: parameters.some((parameter) => isKey(document, parameter)), operations }
  },
}

/** Whether a parameter, or its target (`$ref`), is the header of idempotency keys. */
function isKey(document: unknown, parameter: unknown): boolean {
  const path = /^#\/(?<path>components\/parameters\/\w+)$/.exec(String(at(parameter, '$ref')))?.groups?.['path']
  const { in: place, name } = objectOf(path === undefined ? parameter : at(document, ...path.split('/')))
  return place === 'header' && String(name).toLowerCase() === 'idempotency-key'
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((object, key) => Object.getOwnPropertyDescriptor(objectOf(object), key)?.value, value)
}

function objectOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {}
}
