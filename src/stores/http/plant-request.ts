import { isUtf8 } from 'node:buffer'
import { isInt64, isJsonType, isObject, parseJson, toWireJson } from '../../plant/json.js'
import {
  type ErrorBody,
  type NewPlant,
  type Plant,
  parsePlant,
  type StoredPlant,
} from '../../plant/plant.js'
import { takeCharacters, truncate } from '../../platform/escape.js'
import { type CountQuery, formatQuery } from '../query.js'
import type { ExpectedValue, HttpRequest, HttpResponse } from './http-client.js'

/** The answer to a create: the plant, and whether the same create has stored it before. */
interface CreateAnswer {
  plant: Plant
  isReplayed: boolean
}

export function buildCreateRequest(
  plant: NewPlant,
  idempotencyKey: string,
): HttpRequest<CreateAnswer> {
  const body = toWireJson(plant)
  const expectedValue: ExpectedValue<CreateAnswer> = {
    ...expectedPlant,
    read(response) {
      const createdPlant = expectedPlant.read(response)
      const isReplayed = response.headers['idempotent-replayed'] === 'true'
      return createdPlant && { plant: createdPlant, isReplayed }
    },
  }
  return { method: 'POST', path: '/plants', idempotencyKey, body, expectedValue }
}

export function buildPlantRequest(
  method: 'GET' | 'PATCH' | 'DELETE',
  id: bigint,
): HttpRequest<StoredPlant> {
  const expectedValue: ExpectedValue<StoredPlant> = {
    noun: `StoredPlant with id ${id}`,
    read(response) {
      const plant = parseStoredPlant(readJson(response))
      return plant?.id === id ? plant : undefined
    },
  }
  return { method, path: `/plants/${id}`, expectedValue }
}

/** @param query selects plants by the same parameters as a list */
export function buildCountRequest(query: CountQuery): HttpRequest<bigint> {
  const text = formatQuery(query)
  const path = text === '' ? '/plants/count' : `/plants/count?${text}`
  return { method: 'GET', path, expectedValue: expectedCount }
}

const expectedCount: ExpectedValue<bigint> = {
  noun: 'count',
  read(response) {
    const value = readJson(response, 'count')
    const count = isObject(value) ? value['count'] : undefined
    return isInt64(count) && count >= 0n ? count : undefined
  },
}

export const expectedPlant: ExpectedValue<Plant> = {
  noun: 'Plant',
  read: (response) => parseResponsePlant(readJson(response)),
}

/**
 * A Plant in a response may have a name and a tag that a direct store rejects, and a tag of null if
 * it has none. The parsers of responses do not use zod, because every create at a service would
 * have to load it.
 */
function parseResponsePlant(value: unknown): Plant | undefined {
  if (!isObject(value)) return undefined
  const { name, tag } = value
  if (typeof name !== 'string' || (typeof tag !== 'string' && tag != null)) return undefined
  return tag == null ? { name } : { name, tag }
}

export function parseStoredPlant(value: unknown): StoredPlant | undefined {
  return isObject(value) ? parsePlant({ ...parseResponsePlant(value), id: value['id'] }) : undefined
}

export function readJson(
  { headers, body, exceededBytes }: HttpResponse,
  idKey: 'id' | 'count' = 'id',
): unknown {
  if (exceededBytes !== undefined || findCompression(headers) !== undefined) return undefined
  if (!isUtf8(body) || !isJsonType(headers['content-type'] ?? '')) return undefined
  const result = parseJson(body.toString(), { idKey, isList: true })
  return 'value' in result ? result.value : undefined
}

/** Returns the Content-Encoding of a compressed body, such as `gzip`. */
export function findCompression(headers: HttpResponse['headers']): string | undefined {
  const encoding = headers['content-encoding'] ?? ''
  return encoding === '' || encoding.toLowerCase() === 'identity' ? undefined : encoding
}

export function parseError(response: HttpResponse): ErrorBody | undefined {
  const body = response.status === 200 ? undefined : readJson(response)
  if (!isObject(body)) return undefined
  const { error, message } = body
  const isInt32 = typeof error === 'number' && (error | 0) === error
  return isInt32 && typeof message === 'string'
    ? { error, message: truncateToLine(message) }
    : undefined
}

/**
 * Returns the beginning of a string as one line of at most 200 characters. JSON can escape half of
 * a surrogate pair, which U+FFFD replaces.
 */
export function truncateToLine(text: string): string {
  const line = takeCharacters(text, 1000).replace(/\s+/g, ' ').trim()
  return truncate(line, 200).toWellFormed()
}
