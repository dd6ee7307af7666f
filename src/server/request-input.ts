import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJsonType, isObject, parseInt64, parseJson } from '../plant/exact-json.js'
import { idRule } from '../plant/fields.js'
import { acceptNewPlant, invalidPlant, isIdempotencyKey, type NewPlant, type PlantPatch } from '../plant/plant.js'
import { problemOf, problemsOf } from '../plant/plant-schema.js'
import { shorten } from '../platform/escape.js'
import { maxSearch, type ReadQuery } from '../stores/common/store.js'
import { tooLarge } from './body.js'
import { HttpError, headersTooLarge, invalidHttp } from './http-error.js'

/**
 * Headers that must not be repeated (RFC 9110, 5.3). Node's parser rejects a second Content-Length; Bun's accepts an
 * equal one.
 */
const singleHeaders = ['Host', 'Content-Length', 'Content-Type', 'Content-Encoding', 'Authorization']

/** plants in a page that a client may ask for */
const maxPage = 1000

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
  if (rawHeaders.length > 2 * maxHeaderLines) return headersTooLarge
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
export function validateBodyHeaders({ method, headers }: IncomingMessage, bodyLimit: number): void {
  const { 'content-type': type, 'content-encoding': coding, 'content-length': length = '0' } = headers
  const isPatch = method === 'PATCH'
  if (!isJsonType(type ?? '') && !(isPatch && /^application\/merge-patch\+json[\t ]*(?:;|$)/i.test(type ?? ''))) {
    const wanted = `Content-Type must be application/${isPatch ? 'merge-patch+json' : 'json'}`
    const message = `${wanted}, but ${type === undefined ? 'is missing' : `was ${quote(type)}`}`
    throw new HttpError(415, message, isPatch ? ['Accept-Patch', patchTypes] : [])
  }
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  if (parseFloat(length) > bodyLimit) throw tooLarge(bodyLimit)
}

const patchTypes = 'application/merge-patch+json, application/json'

/** Whether a client waits with the body for a 100 response, which HTTP/1.0 does not have (RFC 9110, 10.1.1). */
export function expectsContinue({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' && headers.expect?.toLowerCase() === '100-continue'
}

/** The specification's NewPlant. Throws 400 or 422. */
export function parsePlant(bytes: Buffer): NewPlant {
  const value = parseBody(bytes)
  const plant = acceptNewPlant(value)
  if (plant) return plant
  throw new HttpError(422, invalidPlant(problemsOf(value)))
}

/** A merge patch (RFC 7396) for the plant of a path. Throws 400 or 422. */
export function parsePatch(bytes: Buffer, id: bigint): PlantPatch {
  const body = parseBody(bytes)
  const value = isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body
  const patch = acceptNewPlant(value, 'patch')
  if (!patch) throw new HttpError(422, invalidPlant(problemsOf(value, 'patch')))
  if (patch.id !== id) throw new HttpError(422, invalidPlant([`id must be ${id}, as in the path, but was ${patch.id}`]))
  return patch
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, `The body is not JSON: ${parsed.reason}`)
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
export function parseListQuery(url: string, maxLimit = maxPage): ReadQuery {
  const texts = parametersOf(url, ['limit', 'order', 'after', 'tag', 'noTag', 'search'])
  const parsed = <T>(name: string, parse: (text: string, name: string) => T): T | undefined => {
    const text = texts.get(name)
    return text === undefined ? undefined : parse(text, name)
  }
  const tag = parsed('tag', plantText)
  const isUntagged = parsed('noTag', parseBoolean) === true
  if (isUntagged && tag !== undefined) throw new HttpError(400, 'tag and noTag cannot be used together')
  return {
    limit: parsed('limit', (text) => parseLimit(text, maxLimit)),
    desc: parsed('order', parseOrder) === 'desc',
    after: parsed('after', parseId),
    tag: isUntagged ? false : tag,
    search: parsed('search', searchText),
  }
}

/** @throws {HttpError} 400 for a parameter, and for a condition (RFC 9110, 13.1) of a change */
export function requireUnconditional({ method, url = '', headers }: IncomingMessage): void {
  parametersOf(url, [])
  const condition = ['If-Match', 'If-None-Match'].find((name) => headers[name.toLowerCase()] !== undefined)
  if (condition !== undefined && method !== 'GET' && method !== 'HEAD')
    throw new HttpError(400, `${condition} is not supported: this service has no conditional requests`)
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

function parseOrder(text: string): string {
  if (text !== 'asc' && text !== 'desc') throw invalid('order must be asc or desc', text)
  return text
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

function quote(text: string): string {
  return JSON.stringify(shorten(text))
}
