import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { isJsonType, isObject, parseJson, toWireJson } from '../../plant/exact-json.js'
import { acceptNewPlant, type NewPlant, type Plant, type PlantPatch } from '../../plant/plant.js'
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
  body?: Omit<PlantPatch, 'id'> | undefined
  idempotencyKey?: string | undefined
}

export function requestTo<T>({ token, userAgent }: Access, options: RequestOptions<T>): HttpRequest<T> {
  const { method, path, expected, accept = 'application/json', body, idempotencyKey } = options
  const headers: Record<string, string> = { accept, authorization: bearer(token) }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
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

export function requestToRead({ access }: HttpClient, id: bigint): HttpRequest<NewPlant | 404> {
  return requestTo(access, { method: 'GET', path: `/plants/${id}`, expected: expectStored(id) })
}

/** Both may be sent again when the answer is lost. */
export function requestToUpdate({ access }: HttpClient, { id, ...body }: PlantPatch): HttpRequest<NewPlant | 404> {
  return requestTo(access, { method: 'PATCH', path: `/plants/${id}`, expected: expectStored(id), body })
}

export function requestToDelete({ access }: HttpClient, id: bigint): HttpRequest<NewPlant | 404> {
  return requestTo(access, { method: 'DELETE', path: `/plants/${id}`, expected: expectStored(id) })
}

export const expectedPlant: Expected<Plant> = {
  what: 'Plant',
  read(response) {
    const value = response.status === 200 ? readJson(response) : undefined
    return plantIn(value)
  },
}

/** Some services write `"tag":null` for no tag. */
function plantIn(value: unknown): Plant | undefined {
  if (!isObject(value)) return undefined
  const { name, tag } = value
  if (typeof name !== 'string' || (typeof tag !== 'string' && tag != null)) return undefined
  return tag == null ? { name } : { name, tag }
}

export function storedPlantIn(value: unknown): NewPlant | undefined {
  return isObject(value) ? acceptNewPlant({ ...plantIn(value), id: value['id'] }) : undefined
}

/** bytes: by default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold */
export const maxRead = 16_777_216

/** 404 for a missing plant, if the `error` of the body says so, too. */
function expectStored(id: bigint): Expected<NewPlant | 404> {
  return {
    what: `StoredPlant with id ${id}`,
    maxBody: maxRead,
    read(response) {
      if (response.status === 404) return errorIn(response)?.error === 404 ? 404 : undefined
      const plant = response.status === 200 ? storedPlantIn(readJson(response)) : undefined
      return plant?.id === id ? plant : undefined
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
  supportsKeys: boolean
  /** such as "GET /plants/{id}", regardless of how the service names the parameter */
  operations: ReadonlySet<string>
}

export const operationOf = {
  read: 'GET /plants/{id}',
  list: 'GET /plants',
  update: 'PATCH /plants/{id}',
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
    return { supportsKeys: parameters.some((parameter) => isKey(document, parameter)), operations }
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
