import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { isJsonType, isObject, parseJson, toWireJson } from '../../plant/exact-json.js'
import { acceptNewPlant, type NewPlant, type Plant, type PlantPatch } from '../../plant/plant.js'
import type { Access, WireRequest } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { type Expected, type HttpRequest, type HttpResponse, headersOf, pathIn } from './http-client.js'

export function requestToCreate(plant: NewPlant, idempotencyKey: string): HttpRequest<Plant> {
  const headers = { 'idempotency-key': idempotencyKey }
  return { method: 'POST', path: '/plants', headers, body: toWireJson(plant), expected: expectedPlant }
}

/** By the specification, a service that accepts the token must reject it with 400. */
export function requestWithoutPlant(): HttpRequest<Plant> {
  return { method: 'POST', path: '/plants', body: '{}', expected: expectedPlant }
}

export function describeCreate(
  { url }: RemoteAddress,
  access: Access,
  plant: NewPlant,
  key: string = randomUUID(),
): WireRequest {
  const request = requestToCreate(plant, key)
  const { method, path, body = '' } = request
  return { method, url: url.origin + pathIn(url, path), headers: headersOf(request, access), body }
}

export function requestToRead(id: bigint): HttpRequest<NewPlant> {
  return requestForPlant('GET', id)
}

/** May be sent again when the answer is lost. */
export function requestToUpdate({ id, ...patch }: PlantPatch): HttpRequest<NewPlant> {
  return { ...requestForPlant('PATCH', id), body: toWireJson(patch) }
}

export function requestToDelete(id: bigint): HttpRequest<NewPlant> {
  return requestForPlant('DELETE', id)
}

/** bytes: by default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold */
export const maxRead = 16_777_216

function requestForPlant(method: 'GET' | 'PATCH' | 'DELETE', id: bigint): HttpRequest<NewPlant> {
  const expected: Expected<NewPlant> = {
    what: `StoredPlant with id ${id}`,
    maxBody: maxRead,
    read(response) {
      const plant = storedPlantIn(readJson(response))
      return plant?.id === id ? plant : undefined
    },
  }
  return { method, path: `/plants/${id}`, isOfOnePlant: true, expected }
}

const expectedPlant: Expected<Plant> = { what: 'Plant', read: (response) => plantIn(readJson(response)) }

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

export function readJson({ headers, body, maxBody }: HttpResponse): unknown {
  const isReadable = body.length <= maxBody && headers['content-encoding'] === undefined && isUtf8(body)
  const parsed = isReadable && isJsonType(headers['content-type'] ?? '') && parseJson(body.toString(), { isList: true })
  return parsed && 'value' in parsed ? parsed.value : undefined
}

export function errorIn(response: HttpResponse): { error: number; message: string } | undefined {
  const value = response.status === 200 ? undefined : readJson(response)
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string') return undefined
  return { error, message: excerpt(message) }
}

/** Of a service's own words, in one line. */
export function excerpt(text: string): string {
  const words = Array.from(text.slice(0, 1000).replace(/\s+/g, ' ').trim())
  return words.length > maxWords ? `${words.slice(0, maxWords - 1).join('')}…` : words.join('')
}

/** Unicode characters */
const maxWords = 200

/** The answer is for `supportsKeys` and `offers`. */
export const requestToDescribe: HttpRequest<object> = {
  method: 'GET',
  path: '/openapi.json',
  isPublic: true,
  expected: {
    what: 'OpenAPI description',
    read({ body, maxBody }) {
      const parsed = parseJson(body.length <= maxBody ? body.toString() : '')
      const document = 'value' in parsed ? parsed.value : undefined
      return isObject(at(document, 'paths')) && isObject(document) ? document : undefined
    },
  },
}

/** Such as "GET /plants/{id}". */
export function operationOf({ method, path }: HttpRequest<unknown>): string {
  return `${method} ${path.replace(/\?.*/s, '').replace(/\/-?\d+$/, '/{id}')}`
}

/** Whether a service has an operation, whatever the names of its parameters are. */
export function offers(document: unknown, operation: string): boolean {
  return Object.entries(at(document, 'paths') ?? {}).some(([path, item]) => {
    const methods = Object.keys(isObject(item) ? item : {})
    return methods.some((method) => operation === `${method.toUpperCase()} ${path.replace(/\{[^{}/]+\}/g, '{id}')}`)
  })
}

/** Whether a parameter of creates, or its target (`$ref`), is the header of idempotency keys. */
export function supportsKeys(document: unknown): boolean {
  const plants = at(document, 'paths', '/plants')
  const parameters = [at(plants, 'parameters'), at(plants, 'post', 'parameters')].filter(Array.isArray).flat()
  return parameters.some((parameter: unknown) => {
    const [isLocal, ...path] = String(at(parameter, '$ref')).split('/')
    const target = isLocal === '#' ? at(document, ...path) : parameter
    return at(target, 'in') === 'header' && String(at(target, 'name')).toLowerCase() === 'idempotency-key'
  })
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce((object, key) => (isObject(object) ? object[key] : undefined), value)
}
