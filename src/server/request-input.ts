import { isUtf8 } from 'node:buffer'
import { hash } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJsonType, isObject, parseInt64, parseJson } from '../plant/exact-json.js'
import { idRule } from '../plant/fields.js'
import { acceptNewPlant, invalidPlant, isIdempotencyKey, type NewPlant } from '../plant/plant.js'
import { problemOf, problemsOf } from '../plant/plant-schema.js'
import { shorten } from '../platform/escape.js'
import { type ListQuery, maxSearch } from '../stores/common/store.js'
import { tooLarge } from './body.js'
import { HttpError, invalidHttp } from './http-error.js'
import { listLimits } from './openapi-document.js'

/**
 * Headers that must not be repeated (RFC 9110, 5.3). Node's parser rejects a second Content-Length; Bun's accepts an
 * equal one.
 */
const singleHeaders = ['Host', 'Content-Length', 'Content-Type', 'Content-Encoding', 'Authorization']

/** in a request */
export const maxHeaderLines = 100

/**
 * Checks what node:http does not: the version, the number of header lines, a missing Host, repeated headers, and
 * transfer codings.
 *
 * @returns the response to an invalid request, which must not be processed
 */
export function validateHead(request: IncomingMessage): HttpError | undefined {
  const { rawHeaders, headers, httpVersion } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    return new HttpError(400, `HTTP/${httpVersion} is not supported, only HTTP/1.1`)
  if (rawHeaders.length > 2 * maxHeaderLines)
    return new HttpError(431, `The request has more than ${maxHeaderLines} header lines`)
  if (Object.keys(headers).length < rawHeaders.length / 2) {
    const repeated = singleHeaders.find((name) => (request.headersDistinct[name.toLowerCase()]?.length ?? 0) > 1)
    if (repeated !== undefined) return new HttpError(400, `The header ${repeated} must be given once`)
  }
  // RFC 9112, 6.1: other codings are not decoded here, and HTTP/1.0 has none, so a proxy in front may have parsed the
  // body differently.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return invalidHttp
  return headers.host !== undefined || httpVersion === '1.0'
    ? undefined
    : new HttpError(400, 'The header Host is missing')
}

/**
 * @throws {HttpError} 415 for a body that is not declared as JSON or is compressed; 413 for a Content-Length over the
 * limit
 */
export function validateBodyHeaders(headers: IncomingHttpHeaders, bodyLimit: number): void {
  const type = headers['content-type']
  if (type === undefined) throw new HttpError(415, 'Content-Type must be application/json, but is missing')
  if (!isJsonType(type)) throw new HttpError(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  if (parseFloat(headers['content-length'] ?? '0') > bodyLimit) throw tooLarge(bodyLimit)
}

/** Whether a client waits with the body for a 100 response, which HTTP/1.0 does not have (RFC 9110, 10.1.1). */
export function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.expect?.toLowerCase() === '100-continue'
}

/** The specification's NewPlant or, with the `id` of a path, a Plant. Throws 400 or 422. */
export function parsePlant(bytes: Buffer, id?: bigint): NewPlant {
  const body = parseBody(bytes)
  const value = id !== undefined && isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body
  const plant = acceptNewPlant(value)
  if (!plant) throw new HttpError(422, invalidPlant(problemsOf(value)))
  if (id !== undefined && plant.id !== id)
    throw new HttpError(422, invalidPlant([`id must be ${id}, as in the path, but was ${plant.id}`]))
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

/** Only canonical decimal digits are valid, so that a plant has one URL. Throws 400. */
export function parseId(text: string, name = 'id'): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? parseInt64(text) : undefined
  if (id === undefined || String(id) !== text) throw invalid(`${name} must be ${idRule}, in decimal digits`, text)
  return id
}

/**
 * @param url the request target
 * @throws {HttpError} 400 for a parameter that is unknown, repeated or malformed
 */
export function parseListQuery(url: string, maxLimit = listLimits.max): ListQuery {
  const texts = parametersOf(url, ['limit', 'after', 'tag', 'noTag', 'search'])
  const parsed = <T>(name: string, parse: (text: string, name: string) => T): T | undefined => {
    const text = texts.get(name)
    return text === undefined ? undefined : parse(text, name)
  }
  const tag = parsed('tag', plantText)
  const isUntagged = parsed('noTag', parseBoolean) === true
  if (isUntagged && tag !== undefined) throw new HttpError(400, 'tag and noTag cannot be used together')
  return {
    limit: parsed('limit', (text) => parseLimit(text, maxLimit)),
    after: parsed('after', parseId),
    tag: isUntagged ? false : tag,
    search: parsed('search', searchText),
  }
}

/** @throws {HttpError} 400 for any parameter in the query of a request target */
export function requireNoQuery(url: string): void {
  parametersOf(url, [])
}

function parametersOf(url: string, known: readonly string[]): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const part of url.replace(/^[^?]*\??|#.*$/gs, '').split('&')) {
    if (part === '') continue
    const name = decode(part.replace(/=.*/s, ''))
    const value = decode(part.replace(/^[^=]*=?/, ''))
    const others = known.length > 0 ? `, only ${known.join(', ')}` : ''
    if (!known.includes(name)) throw new HttpError(400, `There is no parameter ${quote(name)}${others}`)
    if (parameters.has(name)) throw new HttpError(400, `The parameter ${name} must be given once`)
    parameters.set(name, value)
  }
  return parameters
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new HttpError(400, 'The query of the request is not valid')
  }
}

function parseLimit(text: string, maxLimit: number): number {
  const limit = /^\d{1,15}$/.test(text) ? parseInt(text, 10) : 0
  if (limit < 1 || limit > maxLimit) throw invalid(`limit must be a whole number from 1 to ${maxLimit}`, text)
  return limit
}

function parseBoolean(text: string, name: string): boolean {
  if (text !== 'true' && text !== 'false') throw invalid(`${name} must be true or false`, text)
  return text === 'true'
}

function plantText(text: string, name: string): string {
  const problem = problemOf('tag', text)
  if (problem !== undefined) throw new HttpError(400, problem.replace('tag', name))
  return text
}

function searchText(text: string, name: string): string {
  const { length } = Array.from(text)
  if (length > maxSearch)
    throw new HttpError(400, `${name} must have at most ${maxSearch} characters, but has ${length}`)
  return plantText(text, name)
}

function invalid(rule: string, text: string): HttpError {
  return new HttpError(400, `${rule}, but was ${quote(text)}`)
}

/** By the weights in Accept, then by the more specific range (RFC 9110, 12.5.1). */
export function prefersNdjson(accept = ''): boolean {
  const weights = new Map<string, number>()
  for (const range of accept.toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    weights.set(type, weight === undefined ? 1 : parseFloat(weight.slice(2)))
  }
  const rangesOf = (type: string) => [type, 'application/*', '*/*'].filter((range) => weights.has(range))
  const weightOf = ([mostSpecific = '']: string[]) => weights.get(mostSpecific) ?? 0
  const [ndjson, json] = [rangesOf('application/x-ndjson'), rangesOf('application/json')]
  if (weightOf(ndjson) !== weightOf(json)) return weightOf(ndjson) > weightOf(json)
  return weightOf(ndjson) > 0 && ndjson.length > json.length
}

/** A strong entity tag (RFC 9110, 8.8.3). */
export function etagOf(json: string): string {
  return `"${hash('sha256', json, 'base64url').slice(0, 22)}"`
}

/** A weak tag matches If-None-Match (RFC 9110, 13.1.2), never If-Match (13.1.1). */
export function listsTag(header: string, etag: string, { isWeakEqual }: { isWeakEqual: boolean }): boolean {
  if (header.trim() === '*') return true
  return Array.from(header.matchAll(/(W\/)?("[^"]*")/g)).some(
    ([, weak, tag]) => tag === etag && (isWeakEqual || weak === undefined),
  )
}

function quote(text: string): string {
  return JSON.stringify(shorten(text))
}
