import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJsonType, isObject, parseInt64, parseJson } from '../plant/exact-json.js'
import {
  idRule,
  invalidPlant,
  isIdempotencyKey,
  type NewPlant,
  type PlantPatch,
  parsePlant,
} from '../plant/plant.js'
import { problemOf, problemsOf } from '../plant/plant-schema.js'
import { shorten } from '../platform/escape.js'
import { maxSearch, type ReadQuery } from '../stores/common/query.js'
import { HttpError } from './answer.js'
import { bodyTooLarge } from './body.js'

/** In plants. */
const maxPage = 1000

/**
 * Otherwise whoever stands in front may have understood the request differently: RFC 9112, 3.2 (no host, or two, which
 * node:http joins) and 6.1 (a body with another coding, or one in HTTP/1.0).
 */
export function isUnambiguous({ headers, httpVersion }: IncomingMessage): boolean {
  const { host, 'transfer-encoding': coding } = headers
  const isOld = httpVersion === '1.0'
  const hasHost = host === undefined ? isOld : !host.includes(',')
  return hasHost && (coding === undefined || (coding.toLowerCase() === 'chunked' && !isOld))
}

/** @throws {HttpError} 415 or 413 */
export function validateBodyHeaders(
  { method, headers }: IncomingMessage,
  bodyLimitBytes: number,
): void {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers
  const isPatch = method === 'PATCH'
  const known = isPatch ? type.replace(/^application\/merge-patch\+/i, 'application/') : type
  if (!isJsonType(known)) {
    const accepted = ['Accept-Patch', 'application/merge-patch+json, application/json']
    const message = 'Content-Type must be application/json'
    throw new HttpError(415, message, isPatch ? accepted : [])
  }
  if (coding.toLowerCase() !== 'identity')
    throw new HttpError(415, 'The body must have no Content-Encoding')
  if (parseFloat(headers['content-length'] ?? '0') > bodyLimitBytes)
    throw bodyTooLarge(bodyLimitBytes)
}

/** The specification's NewPlant. @throws {HttpError} 400 or 422 */
export function plantInBody(bytes: Buffer): NewPlant {
  const value = parseBody(bytes)
  const plant = parsePlant(value)
  if (plant) return plant
  throw new HttpError(422, invalidPlant(problemsOf(value)))
}

/** A merge patch (RFC 7396) for the plant of a path. @throws {HttpError} 400 or 422 */
export function patchInBody(bytes: Buffer, id: bigint): PlantPatch {
  const body = parseBody(bytes)
  const value = isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body
  const patch = parsePlant(value, 'patch')
  if (!patch) throw new HttpError(422, invalidPlant(problemsOf(value, 'patch')))
  if (patch.id === id) return patch
  const problem = `id must be ${id}, as in the path, but was ${patch.id}`
  throw new HttpError(422, invalidPlant([problem]))
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, `The body is not JSON: ${parsed.reason}`)
}

/** @throws {HttpError} 400 */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a comma and a space, and a key cannot contain a space.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  const rule = 'must be 1 to 255 visible ASCII characters, and must not be repeated'
  throw new HttpError(400, `Idempotency-Key ${rule}`)
}

/** @throws {HttpError} 400 */
export function parseIdText(text: string, name = 'id'): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? parseInt64(text) : undefined
  if (id === undefined) throw invalid(`${name} must be ${idRule}, in decimal digits`, text)
  return id
}

/** @throws {HttpError} 400, also for an unknown parameter, which may be one with a typing error */
export function parseListQuery(url: string): ReadQuery {
  const parameters = new URLSearchParams(url.replace(/^[^?]*/s, ''))
  const names = ['limit', 'order', 'after', 'tag', 'noTag', 'search']
  const other = [...parameters.keys()].find((name) => !names.includes(name))
  if (other !== undefined)
    throw new HttpError(400, `There is no parameter ${quote(other)}, only ${names.join(', ')}`)
  const values: Partial<Record<string, string>> = Object.fromEntries(parameters)
  const { limit, order = 'asc', after, tag, noTag = 'false', search } = values
  const count = /^\d{1,4}$/.test(limit ?? '') ? Number(limit) : 0
  if (limit !== undefined && (count < 1 || count > maxPage))
    throw invalid(`limit must be a whole number from 1 to ${maxPage}`, limit)
  if (order !== 'asc' && order !== 'desc') throw invalid('order must be asc or desc', order)
  if (noTag !== 'true' && noTag !== 'false') throw invalid('noTag must be true or false', noTag)
  if (noTag === 'true' && tag !== undefined)
    throw new HttpError(400, 'tag and noTag cannot be used together')
  if (Array.from(search ?? '').length > maxSearch)
    throw new HttpError(400, `search must have at most ${maxSearch} characters`)
  for (const [name, text = ''] of Object.entries({ tag, search })) {
    const problem = problemOf('tag', text)
    if (problem !== undefined) throw new HttpError(400, problem.replace('tag', name))
  }
  return {
    limit: limit === undefined ? undefined : count,
    desc: order === 'desc',
    after: after === undefined ? undefined : parseIdText(after, 'after'),
    tag: noTag === 'true' ? false : tag,
    search,
  }
}

function invalid(rule: string, text: string): HttpError {
  return new HttpError(400, `${rule}, but was ${quote(text)}`)
}

function quote(text: string): string {
  return JSON.stringify(shorten(text))
}
