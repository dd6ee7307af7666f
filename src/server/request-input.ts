import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isObject, parseJson } from '../plant/json.js'
import {
  idFromText,
  idRule,
  invalidPlant,
  isIdempotencyKey,
  type NewPlant,
  type PlantPatch,
  parsePlant,
} from '../plant/plant.js'
import { problemsOf } from '../plant/schema.js'
import { HttpError } from './http-error.js'

/** The most header lines of a request. */
export const maxHeaderLines = 100

/** Whether a request has lines that nobody has seen: any of them may change what the others mean. */
export function hasUnseenHeaderLines({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length / 2 > maxHeaderLines
}

/**
 * Otherwise a proxy may have understood the request differently: RFC 9112, 3.2 (no host, or two, which node:http joins)
 * and 6.1 (a body with another coding, or one in HTTP/1.0).
 */
export function isUnambiguous({ headers, httpVersion }: IncomingMessage): boolean {
  const { host, 'transfer-encoding': coding } = headers
  const isOld = httpVersion === '1.0'
  const hasHost = host === undefined ? isOld : !host.includes(',')
  return hasHost && (coding === undefined || (coding.toLowerCase() === 'chunked' && !isOld))
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
  const value = isObject(body) ? { id, ...body } : body
  const patch = parsePlant(value, 'patch')
  if (patch?.id === id) return patch
  const problems = patch
    ? [`id must be ${id}, as in the path, but was ${patch.id}`]
    : problemsOf(value, 'patch')
  throw new HttpError(422, invalidPlant(problems))
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
  // Node joins repeated headers with a space, which no key contains.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  const rule = 'must be 1 to 255 visible ASCII characters, and must not be repeated'
  throw new HttpError(400, `Idempotency-Key ${rule}`)
}

/** @throws {HttpError} 400 */
export function parseIdText(text: string, name = 'id'): bigint {
  const id = idFromText(text)
  if (id === undefined) throw new HttpError(400, `${name} must be ${idRule}, in decimal digits`)
  return id
}
