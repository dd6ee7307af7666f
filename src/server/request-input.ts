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
import { bodyTooLarge, HttpError, headersTooLarge, invalidHttp } from './answer.js'

/** In plants. */
const maxPage = 1000

export const maxHeaderLines = 100

/** An address in brackets or a name, which may be empty (RFC 3986, 3.2.2). */
const validHost = /^(?:\[[\da-z:.~!$&'()*+,;=_-]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i

/** Throws for what node:http accepts. */
export function validateHead({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  if (rawHeaders.length > 2 * maxHeaderLines) throw headersTooLarge
  const { host, 'transfer-encoding': coding = 'chunked' } = headers
  if (isRepeated('content-length', rawHeaders)) throw invalidHttp // Bun's parser accepts an equal one
  // RFC 9112, 3.2: whoever routes by the host may have chosen the other one.
  if (host !== undefined && (isRepeated('host', rawHeaders) || !validHost.test(host)))
    throw new HttpError(400, 'The header Host must be one host, with or without a port')
  // RFC 9112, 6.1: a proxy in front may have parsed a body with another coding differently, or one in HTTP/1.0.
  if (httpVersion === '1.0' && headers['transfer-encoding'] === undefined) return
  if (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked') throw invalidHttp
  if (host === undefined) throw new HttpError(400, 'The header Host is missing')
}

/**
 * `headersDistinct` would copy all headers of each request.
 *
 * @param rawHeaders names and values in turn
 */
function isRepeated(name: string, rawHeaders: readonly string[]): boolean {
  const isNamed = (text: string, index: number) => index % 2 === 0 && text.toLowerCase() === name
  return rawHeaders.findIndex(isNamed) !== rawHeaders.findLastIndex(isNamed)
}

const patchTypes = 'application/merge-patch+json, application/json'

/** Throws 415 or 413. */
export function validateBodyHeaders({ method, headers }: IncomingMessage, bodyLimit: number): void {
  const {
    'content-type': type = '',
    'content-encoding': coding = 'identity',
    'content-length': length = '0',
  } = headers
  const isPatch = method === 'PATCH'
  if (
    !isJsonType(type) &&
    !(isPatch && isJsonType(type.replace(/^application\/merge-patch\+/i, 'application/')))
  ) {
    const found = headers['content-type'] === undefined ? 'is missing' : `was ${quote(type)}`
    const types = isPatch ? 'application/merge-patch+json or application/json' : 'application/json'
    const message = `Content-Type must be ${types}, but ${found}`
    throw new HttpError(415, message, isPatch ? ['Accept-Patch', patchTypes] : [])
  }
  if (coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  if (parseFloat(length) > bodyLimit) throw bodyTooLarge(bodyLimit)
}

/** The specification's NewPlant. Throws 400 or 422. */
export function plantInBody(bytes: Buffer): NewPlant {
  const value = parseBody(bytes)
  const plant = parsePlant(value)
  if (plant) return plant
  throw new HttpError(422, invalidPlant(problemsOf(value)))
}

/** A merge patch (RFC 7396) for the plant of a path. Throws 400 or 422. */
export function patchInBody(bytes: Buffer, id: bigint): PlantPatch {
  const body = parseBody(bytes)
  const value = isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body
  const patch = parsePlant(value, 'patch')
  if (!patch) throw new HttpError(422, invalidPlant(problemsOf(value, 'patch')))
  if (patch.id !== id)
    throw new HttpError(
      422,
      invalidPlant([`id must be ${id}, as in the path, but was ${patch.id}`]),
    )
  return patch
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, `The body is not JSON: ${parsed.reason}`)
}

/** Throws 400. */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a comma and a space, and a key cannot contain a space.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw new HttpError(
    400,
    'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated',
  )
}

/** Only canonical decimal digits are valid, so that a plant has one URL. Throws 400. */
export function parseIdText(text: string, name = 'id'): bigint {
  const id = /^-?\d{1,19}$/.test(text) ? parseInt64(text) : undefined
  if (id === undefined || String(id) !== text)
    throw invalid(`${name} must be ${idRule}, in decimal digits`, text)
  return id
}

/** Throws 400 for a parameter that is unknown, repeated or inputError. */
export function parseListQuery(url: string, maxLimit = maxPage): ReadQuery {
  const parameters = parametersOf(url, ['limit', 'order', 'after', 'tag', 'noTag', 'search'])
  const { limit, order = 'asc', after, tag, noTag = 'false', search } = parameters
  const count = /^\d{1,15}$/.test(limit ?? '') ? Number(limit) : 0
  if (limit !== undefined && (count < 1 || count > maxLimit))
    throw invalid(`limit must be a whole number from 1 to ${maxLimit}`, limit)
  if (order !== 'asc' && order !== 'desc') throw invalid('order must be asc or desc', order)
  if (noTag !== 'true' && noTag !== 'false') throw invalid('noTag must be true or false', noTag)
  if (noTag === 'true' && tag !== undefined)
    throw new HttpError(400, 'tag and noTag cannot be used together')
  const { length } = Array.from(search ?? '')
  if (length > maxSearch)
    throw new HttpError(400, `search must have at most ${maxSearch} characters, but has ${length}`)
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

/** Throws 400 for a parameter, and for a condition (RFC 9110, 13.1) of a change. */
export function requireUnconditional({ method, url = '', headers }: IncomingMessage): void {
  parametersOf(url, [])
  const condition = ['If-Match', 'If-None-Match'].find(
    (name) => headers[name.toLowerCase()] !== undefined,
  )
  if (condition !== undefined && method !== 'GET' && method !== 'HEAD')
    throw new HttpError(
      400,
      `${condition} is not supported: this service has no conditional requests`,
    )
}

function parametersOf<Name extends string>(
  url: string,
  known: readonly Name[],
): Partial<Record<Name, string>> {
  const parameters: Partial<Record<Name, string>> = {}
  for (const part of url.replace(/^[^?]*\??|#.*$/gs, '').split('&')) {
    if (part === '') continue
    const given = decode(part.replace(/=.*/s, ''))
    const name = known.find((each) => each === given)
    const others = known.length > 0 ? `, only ${known.join(', ')}` : ''
    if (name === undefined)
      throw new HttpError(400, `There is no parameter ${quote(given)}${others}`)
    if (name in parameters) throw new HttpError(400, `The parameter ${name} must be given once`)
    parameters[name] = decode(part.replace(/^[^=]*=?/, ''))
  }
  return parameters
}

/** Strict, unlike `URLSearchParams`. */
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

function quote(text: string): string {
  return JSON.stringify(shorten(text))
}
