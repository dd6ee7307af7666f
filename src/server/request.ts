import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonType, parseInt64, parseJson } from '../plant/json.js'
import { acceptNewPlant, idRule, invalidPlant, isIdempotencyKey, isObject, type NewPlant } from '../plant/plant.js'
import { problemOf, problemsOf } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import type { ListQuery } from '../stores/common/store.js'
import { busy, HttpError, invalidHttp } from './errors.js'
import { listLimits } from './openapi.js'

/** Headers that must not be repeated (RFC 9110, 5.3). Node's parser rejects a second Content-Length; Bun's accepts an equal one. */
const singleHeaders = new Set(['host', 'content-length', 'content-type', 'content-encoding', 'authorization', 'transfer-encoding'])

/**
 * Checks what node:http does not: the version, a missing Host, repeated headers, and transfer codings.
 *
 * @returns the response to an invalid request, which must not be processed
 */
export function validateHead({ rawHeaders, headers, httpVersion }: IncomingMessage): HttpError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new HttpError(400, `HTTP/${httpVersion} is not supported, only HTTP/1.1`)
  if (Object.keys(headers).length < rawHeaders.length / 2) {
    const names = rawHeaders.flatMap((text, at) => (at % 2 === 0 ? text.toLowerCase() : []))
    const repeated = names.findIndex((name, at) => singleHeaders.has(name) && names.indexOf(name) < at)
    if (names[repeated] === 'content-length') return invalidHttp
    if (repeated >= 0) return new HttpError(400, `The header ${rawHeaders[2 * repeated]} must be given once`)
  }
  // RFC 9112, 6.1: other codings are not decoded here, and HTTP/1.0 has none, so a proxy in front may have parsed the body differently.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return invalidHttp
  return headers.host !== undefined || httpVersion === '1.0' ? undefined : new HttpError(400, 'The header Host is missing')
}

/** @throws {HttpError} 415 for a body that is not declared as JSON or is compressed; 413 for a Content-Length over the limit */
export function validateBodyHeaders(headers: IncomingHttpHeaders, bodyLimit: number): void {
  const type = headers['content-type']
  if (type === undefined) throw new HttpError(415, 'Content-Type must be application/json, but is missing')
  if (!isJsonType(type)) throw new HttpError(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  if (parseFloat(headers['content-length'] ?? '0') > bodyLimit) throw tooLarge(bodyLimit)
}

function tooLarge(bodyLimit: number): HttpError {
  return new HttpError(413, `The body is larger than ${bodyLimit} bytes`)
}

export interface BodyOptions {
  /** bytes */
  bodyLimit: number
  inFlight: InFlight
}

export interface InFlight {
  /** requests that wait for the store */
  waiting: number
  /** bytes of request bodies that are arriving, or that wait for the store */
  bytes: number
  /** bytes of responses that clients have not read yet */
  unread: number
}

/** The limit of all bodies in flight, as a multiple of the limit of one body. */
const maxLargestBodies = 64

export const noBody = Buffer.alloc(0)

/** Why a body of this length is too much, if `total` bytes are in flight. */
function sizeError(length: number, total: number, bodyLimit: number): HttpError | undefined {
  if (length > bodyLimit) return tooLarge(bodyLimit)
  return total > maxLargestBodies * bodyLimit ? busy() : undefined
}

/**
 * Reads the body of a request that is `complete`.
 *
 * @throws {HttpError} 413, or 503 when the bodies in flight exceed their limit
 */
export function takeBody(request: IncomingMessage, { bodyLimit, inFlight }: BodyOptions): Buffer {
  const error = sizeError(request.readableLength, inFlight.bytes + request.readableLength, bodyLimit)
  if (error) throw error
  const bytes: Buffer | null = request.read()
  return bytes ?? noBody
}

/**
 * Reads a body as it arrives, until the response is closed. Copies the chunks into one buffer: node:http would keep each small one as an
 * object of hundreds of bytes.
 *
 * @returns rejects like `takeBody`; never settles if the response is closed first
 */
export function receiveBody(response: ServerResponse, { bodyLimit, inFlight }: BodyOptions): Promise<Buffer> {
  const { req: request } = response
  const body = new Promise<Buffer>((resolve, reject) => {
    let buffer: Buffer = noBody
    let length = 0
    const append = (chunk: Buffer) => {
      const start = length
      length += chunk.length
      inFlight.bytes += chunk.length
      const error = sizeError(length, inFlight.bytes, bodyLimit)
      if (error) {
        stop()
        return reject(error)
      }
      if (length > buffer.length) buffer = Buffer.concat([buffer], 2 * length)
      chunk.copy(buffer, start)
    }
    const end = () => {
      resolve(buffer.subarray(0, length))
      stop()
    }
    const stop = () => {
      request.off('data', append).off('end', end)
      response.off('close', stop)
      inFlight.bytes -= length
    }
    request.on('data', append).on('end', end)
    response.on('close', stop)
  })
  body.catch(() => undefined) // it may reject before anything awaits it
  return body
}

/**
 * Parses the specification's NewPlant or, with the `id` of a path, a Plant.
 *
 * @throws {HttpError} 400 or 422
 */
export function parsePlant(bytes: Buffer, id?: bigint): NewPlant {
  const body = parseBody(bytes)
  const value = id !== undefined && isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body
  const plant = acceptNewPlant(value)
  if (!plant) throw new HttpError(422, invalidPlant(problemsOf(value)))
  if (id !== undefined && plant.id !== id) throw new HttpError(422, invalidPlant([`id must be ${id}, as in the path, but was ${plant.id}`]))
  return plant
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, `The body ${parsed.isSeveral ? 'contains' : 'is not JSON:'} ${parsed.message}`)
}

/** @throws {HttpError} 400 for a key that is malformed or repeated */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a comma and a space, and a key cannot contain a space.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw new HttpError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated')
}

/**
 * Parses an id in a path or a query. Only canonical decimal digits are valid, so that a plant has one URL.
 *
 * @throws {HttpError} 400
 */
export function parseId(text: string, name = 'id'): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? parseInt64(text) : undefined
  if (id === undefined || String(id) !== text) throw invalid(`${name} must be ${idRule}, in decimal digits`, text)
  return id
}

/**
 * Parses the query of a list.
 *
 * @param url the request target
 * @param maxLimit the maximum of `limit`
 * @throws {HttpError} 400 for a parameter that is unknown, repeated or malformed
 */
export function parseListQuery(url: string, maxLimit = listLimits.max): ListQuery {
  const query: ListQuery = {}
  for (const [name, value] of parametersOf(url)) {
    const read = Object.hasOwn(readers, name) ? readers[name] : undefined
    if (!read) throw unknownParameter(name, `, only ${Object.keys(readers).join(', ')}`)
    if (Object.hasOwn(query, name)) throw new HttpError(400, `The parameter ${name} must be given once`)
    read(query, value, maxLimit)
  }
  return query
}

/** @throws {HttpError} 400 for any parameter in the query of a request target */
export function requireNoQuery(url: string): void {
  for (const [name] of parametersOf(url)) throw unknownParameter(name)
}

function unknownParameter(name: string, others = ''): HttpError {
  return new HttpError(400, `There is no parameter ${quote(name)}${others}`)
}

function parametersOf(url: string): [name: string, value: string][] {
  const parts = url.replace(/^[^?]*\??|#.*$/gs, '').split('&')
  return parts.flatMap((part): [string, string][] => {
    const [name = '', value = ''] = (/^([^=]*)=?(.*)$/s.exec(part) ?? []).slice(1).map(decode)
    return part === '' ? [] : [[name, value]]
  })
}

const readers: Record<string, (query: ListQuery, text: string, maxLimit: number) => void> = {
  limit(query, text, maxLimit) {
    query.limit = /^\d{1,15}$/.test(text) ? parseInt(text, 10) : 0
    if (query.limit < 1 || query.limit > maxLimit) throw invalid(`limit must be a whole number from 1 to ${maxLimit}`, text)
  },
  after(query, text) {
    query.after = parseId(text, 'after')
  },
  tag(query, text) {
    query.tag = plantText('tag', text)
  },
  search(query, text) {
    query.search = plantText('search', text)
  },
}

function plantText(name: string, text: string): string {
  const problem = problemOf('tag', text)
  if (problem !== undefined) throw new HttpError(400, problem.replace('tag', name))
  return text
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new HttpError(400, 'The query of the request is not valid')
  }
}

function invalid(rule: string, text: string): HttpError {
  return new HttpError(400, `${rule}, but was ${quote(text)}`)
}

const ndjsonRanges = ['*/*', 'application/*', 'application/x-ndjson']
const jsonRanges = ['*/*', 'application/*', 'application/json']

/** Whether a client prefers NDJSON to JSON: by the weights in its Accept, then by the more specific range. */
export function prefersNdjson(accept = ''): boolean {
  const ranges = Array.from(accept.matchAll(/(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g), ([range]) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const weight = parameters.find((parameter) => /^q\s*=/.test(parameter))?.replace(/^q\s*=/, '')
    return { type, weight: weight === undefined ? 1 : parseFloat(weight) }
  })
  const types = ranges.map(({ type }) => type)
  /** that of the most specific range that matches (RFC 9110, 12.5.1); the names of ranges become more specific */
  const matchOf = (names: readonly string[]) => {
    const specificity = names.findLastIndex((name) => types.includes(name))
    const range = ranges.find(({ type }) => type === names[specificity])
    return { specificity, weight: range ? range.weight : 0 }
  }
  const [ndjson, json] = [matchOf(ndjsonRanges), matchOf(jsonRanges)]
  if (ndjson.weight !== json.weight) return ndjson.weight > json.weight
  return ndjson.weight > 0 && ndjson.specificity > json.specificity
}

/** A strong entity tag (RFC 9110, 8.8.3), a hash of the JSON of a plant. */
export function etagOf(json: string): string {
  return `"${hash('sha256', json, 'base64url').slice(0, 22)}"`
}

/** Whether a header lists an entity tag, or is `*`. A weak tag matches If-None-Match (RFC 9110, 13.1.2), never If-Match (13.1.1). */
export function listsTag(header: string, etag: string, { isWeakEqual }: { isWeakEqual: boolean }): boolean {
  if (header.trim() === '*') return true
  return Array.from(header.matchAll(/(W\/)?("[^"]*")/g)).some(([, weak, tag]) => tag === etag && (isWeakEqual || weak === undefined))
}

function quote(text: string): string {
  return JSON.stringify(shorten(text))
}
