/** Parses the headers, the path and the body of a request. `parse-query.ts` parses its query. */
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { idRule } from '../plant/fields.js'
import { isObject, parseJson } from '../plant/json.js'
import { explainSyntaxError } from '../plant/json-syntax.js'
import {
  describeInvalidPlant,
  isIdempotencyKey,
  type NewPlant,
  type PlantPatch,
  parseDecimalId,
  parsePlant,
} from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { maxSmallBodyBytes } from './body.js'
import { HttpError } from './http-error.js'

/** A request with more header lines is rejected. */
export const maxHeaderLines = 100

/**
 * Returns true if a request has header lines that node:http did not keep. Any of them may change
 * what the kept ones mean, as a second Content-Length would.
 */
export function hasUnseenHeaderLines({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length / 2 > maxHeaderLines
}

/**
 * Returns true if any proxy must have understood the request as node:http did. A proxy may have
 * taken it for something else if there is no Host or more than one (RFC 9112, 3.2), if the body has
 * another transfer coding than `chunked`, or if it is chunked in HTTP/1.0 (RFC 9112, 6.1).
 */
export function isUnambiguous({ headers, httpVersion }: IncomingMessage): boolean {
  const { host, 'transfer-encoding': coding } = headers
  const isHttp10 = httpVersion === '1.0'
  // With `joinDuplicateHeaders`, node:http joins repeated lines with ", ", which no host contains.
  const hasOneHost = host === undefined ? isHttp10 : !host.includes(',')
  const hasClearCoding = coding === undefined || (coding.toLowerCase() === 'chunked' && !isHttp10)
  return hasOneHost && hasClearCoding
}

/**
 * Parses the specification's NewPlant.
 *
 * @throws {HttpError} 400 or 422
 */
export function parsePlantBody(bytes: Buffer): NewPlant {
  const value = parseJsonBody(bytes)
  const plant = parsePlant(value)
  if (plant) return plant
  throw new HttpError(422, describeInvalidPlant(findProblems(value)))
}

/**
 * Parses a merge patch (RFC 7396).
 *
 * @param id the id in the path. The patch may repeat it, but have no other.
 * @throws {HttpError} 400 or 422
 */
export function parsePatchBody(bytes: Buffer, id: bigint): PlantPatch {
  const body = parseJsonBody(bytes)
  const value = isObject(body) ? { id, ...body } : body
  const patch = parsePlant(value, 'patch')
  if (patch?.id === id) return patch
  const problems = patch
    ? [`the id must be ${id}, as in the path, but was ${patch.id}`]
    : findProblems(value, 'patch')
  throw new HttpError(422, describeInvalidPlant(problems))
}

function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const text = bytes.toString()
  const result = parseJson(text)
  if ('value' in result) return result.value
  // To find the error takes long in a large body.
  const explanation =
    bytes.length > maxSmallBodyBytes ? '' : `: ${explainSyntaxError(text).description}`
  throw new HttpError(400, `The body is not JSON${explanation}`)
}

/** @throws {HttpError} 400 */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  // node:http joins repeated lines with ", ". A key contains no space, so the result is no key.
  if (typeof key === 'string' && isIdempotencyKey(key)) return key
  const rule = 'must be 1 to 255 visible ASCII characters, and must not be repeated'
  throw new HttpError(400, `Idempotency-Key ${rule}`)
}

/**
 * @param name an error names the parameter like this
 * @throws {HttpError} 400
 */
export function parseIdText(text: string, name = 'id'): bigint {
  const id = parseDecimalId(text)
  if (id === undefined) throw new HttpError(400, `${name} must be ${idRule}, in decimal digits`)
  return id
}
