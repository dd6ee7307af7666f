import { isUtf8 } from 'node:buffer'
import { isJsonType, isObject, parseJson, toWireJson } from '../../plant/exact-json.js'
import { type NewPlant, type Plant, parsePlant, type StoredPlant } from '../../plant/plant.js'
import { type PlantsError, usageError } from '../../platform/errors.js'
import type { Expected, HttpRequest, HttpResponse } from './http-client.js'

export function requestToCreate(plant: NewPlant, idempotencyKey: string): HttpRequest<Plant> {
  const headers = { 'idempotency-key': idempotencyKey }
  return {
    method: 'POST',
    path: '/plants',
    headers,
    body: toWireJson(plant),
    expected: expectedPlant,
  }
}

/** In bytes. By default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold. */
export const maxRead = 16_777_216

/** May be sent again when the answer is lost. */
export function requestForPlant(
  method: 'GET' | 'PATCH' | 'DELETE',
  id: bigint,
): HttpRequest<StoredPlant> {
  const expected: Expected<StoredPlant> = {
    what: `StoredPlant with id ${id}`,
    maxBody: maxRead,
    read(response) {
      const plant = storedPlantIn(readJson(response))
      return plant?.id === id ? plant : undefined
    },
  }
  return { method, path: `/plants/${id}`, isOfOnePlant: true, expected }
}

export const expectedPlant: Expected<Plant> = {
  what: 'Plant',
  read: (response) => plantIn(readJson(response)),
}

/** Some services write `"tag":null` for no tag. */
function plantIn(value: unknown): Plant | undefined {
  if (!isObject(value)) return undefined
  const { name, tag } = value
  if (typeof name !== 'string' || (typeof tag !== 'string' && tag != null)) return undefined
  return tag == null ? { name } : { name, tag }
}

export function storedPlantIn(value: unknown): StoredPlant | undefined {
  return isObject(value) ? parsePlant({ ...plantIn(value), id: value['id'] }) : undefined
}

export function readJson({ headers, body, maxBody }: HttpResponse): unknown {
  const isReadable =
    body.length <= maxBody && headers['content-encoding'] === undefined && isUtf8(body)
  const parsed =
    isReadable &&
    isJsonType(headers['content-type'] ?? '') &&
    parseJson(body.toString(), { isList: true })
  return parsed && 'value' in parsed ? parsed.value : undefined
}

export function errorIn(response: HttpResponse): { error: number; message: string } | undefined {
  const value = response.status === 200 ? undefined : readJson(response)
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string')
    return undefined
  return { error, message: excerpt(message) }
}

/** Shortens a service's own words to one line of at most 200 characters. */
export function excerpt(text: string): string {
  const characters = Array.from(text.slice(0, 1000).replace(/\s+/g, ' ').trim())
  return characters.length > 200 ? `${characters.slice(0, 199).join('')}…` : characters.join('')
}

/** The answer is for `supportsKeys`, `listsWithToken` and `unsupportedError`. */
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

/** If a service does not list an operation, whatever the names of its parameters are. */
export function unsupportedError(
  document: object,
  { method, path }: HttpRequest<unknown>,
): PlantsError | undefined {
  const template = path.replace(/\?.*/s, '').replace(/\/-?\d+$/, '/{id}')
  const items = Object.entries(at(document, 'paths') ?? {}).filter(
    ([name]) => name.replace(/\{[^{}/]+\}/g, '{id}') === template,
  )
  if (items.some(([, item]) => isObject(item) && method.toLowerCase() in item)) return undefined
  const message = `This service does not offer this: its openapi.json lists no ${method} ${template}`
  return usageError(
    message,
    'Run the command on the host of the service, or select another store with --store',
  )
}

/** Whether the description says that plants are listed only with a token. */
export function listsWithToken(document: object | undefined): boolean {
  const security = at(document, 'paths', '/plants', 'get', 'security') ?? at(document, 'security')
  return Array.isArray(security) && security.length > 0
}

/** Whether a parameter of creates, or its target (`$ref`), is the header of idempotency keys. */
export function supportsKeys(document: object | undefined): boolean {
  const plants = at(document, 'paths', '/plants')
  const parameters = [at(plants, 'parameters'), at(plants, 'post', 'parameters')]
    .filter(Array.isArray)
    .flat()
  return parameters.some((parameter: unknown) => {
    const reference = at(parameter, '$ref')
    const isLocal = typeof reference === 'string' && reference.startsWith('#/')
    const target = isLocal ? reference.slice(2).split('/').reduce(memberOf, document) : parameter
    const name = at(target, 'name')
    return (
      at(target, 'in') === 'header' &&
      typeof name === 'string' &&
      name.toLowerCase() === 'idempotency-key'
    )
  })
}

function at(value: unknown, ...path: string[]): unknown {
  return path.reduce(memberOf, value)
}

function memberOf(value: unknown, key: string): unknown {
  return isObject(value) ? value[key] : undefined
}
