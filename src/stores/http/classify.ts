import { isUtf8 } from 'node:buffer'
import { textFields, textsInWords } from '../../plant/fields.js'
import { isJsonType, parseJson } from '../../plant/json.js'
import { acceptNewPlant, isObject, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { type ErrorType, PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { defaultRights, rights } from '../common/store.js'
import type { Expected, HttpClient, HttpRequest, HttpResponse, NoResponse } from './client.js'
import { classifyFailure, type Failure, type RequestResult } from './failure.js'

interface Meaning {
  outcome: Failure['outcome']
  error: ErrorType
  /** whether the message reports a failure of the service, or the target of a redirect, instead of the message of the response */
  names?: 'failure' | 'location'
  hint?: string | ((address: RemoteAddress) => string)
}

export function addressHint({ name, url }: RemoteAddress): string {
  const question = 'Is the address right? It is the base URL: the part before /plants'
  return url.pathname.endsWith('/plants') ? `${question}. Try: --store ${shellWord(name.replace(/:?\/plants$/, ''))}` : question
}

const redirectHint =
  'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store'
const conflictHint = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const oneOf =
  (...values: number[]) =>
  (value: number) =>
    values.includes(value)
const rejects = oneOf(400, 413, 422)

/** The first rule that fits applies; `error` is the one of the response, or its status. */
const rules: (Meaning & { fits(status: number, error: number): boolean })[] = [
  { fits: oneOf(200), outcome: 'incompatible', error: 'unusable' },
  { fits: oneOf(429, 503), outcome: 'retry', error: 'unavailable', hint: 'Nothing was stored. Try again later' },
  { fits: oneOf(301, 302, 307, 308), outcome: 'incompatible', error: 'unavailable', names: 'location', hint: redirectHint },
  { fits: (status) => status >= 300 && status < 400, outcome: 'incompatible', error: 'unusable', names: 'location' },
  { fits: (status) => status >= 500, outcome: 'unknown', error: 'unusable', names: 'failure' },
  { fits: (status) => status < 400, outcome: 'incompatible', error: 'unusable', names: 'failure' },
  { fits: (status, error) => [status, error].some(oneOf(401, 403)), outcome: 'unauthorized', error: 'unauthorized' },
  { fits: (_, error) => error === 409, outcome: 'conflict', error: 'conflict', hint: conflictHint },
  { fits: (_, error) => error === 404 || error === 405, outcome: 'incompatible', error: 'rejected', hint: addressHint },
  { fits: (_, error) => error === 415, outcome: 'incompatible', error: 'rejected' },
  {
    fits: (status, error) => rejects(status) && error === 413,
    outcome: 'rejected',
    error: 'rejected',
    hint: `Shorten the ${textsInWords}`,
  },
  { fits: rejects, outcome: 'rejected', error: 'rejected' },
]

const otherwise: Meaning = { outcome: 'incompatible', error: 'rejected' }

export function classify<T>(client: HttpClient, request: HttpRequest<T>, response: HttpResponse | NoResponse): RequestResult<T> {
  if (!('status' in response)) return classifyFailure(client, request, response)
  const { status } = response
  const error = errorIn(response)?.error ?? status
  const meaning = rules.find(({ fits }) => fits(status, error)) ?? otherwise
  const isFinal = meaning.outcome !== 'retry' && meaning.outcome !== 'unknown'
  const value = isFinal ? request.expected.read(response) : undefined
  if (value !== undefined) return { outcome: 'done', value }
  const what = status === 200 ? request.expected.what : 'Error'
  const failure = new PlantsError(meaning.error, messageOf(meaning, response, client.address.name, what), {
    status,
    requestId: requestIdOf(response),
    ...(status >= 400 && isFinal && { error }),
    hint: hintFor(meaning, response, client),
    retryable: meaning.outcome === 'retry',
  })
  if (meaning.outcome !== 'retry') return { outcome: meaning.outcome, error: failure }
  return { outcome: 'retry', error: failure, reason: 'overload', retryAfter: retryAfterOf(response) }
}

function hintFor(meaning: Meaning, { headers }: HttpResponse, { address, access, options }: HttpClient): string | undefined {
  const { outcome, error, hint } = meaning
  if (outcome !== 'unauthorized')
    return typeof hint === 'function'
      ? hint(address)
      : (hint ?? (error === 'rejected' ? `This message is from ${address.name}` : undefined))
  const challenge = headers['www-authenticate'] ?? '' // RFC 6750, 3.1
  const [lacksScope, scope] = /\binsufficient_scope\b(?:.*\bscope="(\w+)")?/.exec(challenge) ?? []
  if (lacksScope !== undefined && scope === undefined) return `This message is from ${address.name}`
  if (!rights.some((right) => right === scope)) return access.tokenHint
  const wanted = [scope, ...defaultRights, ...(options.needs ?? [])]
  const allowed = rights.filter((right) => wanted.includes(right))
  return `Ask the operator of the service for a token with these rights: plants tokens create --allow ${allowed.join()}`
}

function messageOf({ names }: Meaning, response: HttpResponse, name: string, expected: string): string {
  const { status, headers } = response
  if (names === 'location') {
    const target = headers.location?.slice(0, 300)
    return `${name} answered ${status}${target === undefined ? '' : `, and redirects to ${target}`}`
  }
  const message = errorIn(response)?.message
  if (message !== undefined) return names === 'failure' ? `${name} failed: ${message}` : message
  return `${name} answered ${describe(response, expected)}${names === 'failure' ? ', which is not in the specification' : ''}`
}

/** a response that does not follow the specification */
function describe(response: HttpResponse, expected: string): string {
  const { status, headers, body, maxBody } = response
  if (body.length > maxBody) return `${status} with more than ${maxBody / 1_048_576} MiB`
  if (body.length === 0) return `${status} with nothing`
  if (headers['content-encoding'] !== undefined) return `${status} with a compressed body`
  if (readJson(response) !== undefined) return `${status} with JSON that is no ${expected}`
  return `${status} with ${isJson(response) ? 'invalid JSON' : (headers['content-type']?.slice(0, 80) ?? 'no JSON')}`
}

function errorIn(response: HttpResponse): { error: number; message: string } | undefined {
  const value = response.status === 200 ? undefined : readJson(response)
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string') return undefined
  return { error, message: Array.from(message.slice(0, 2000)).slice(0, 1000).join('') }
}

export const expectedPlant: Expected<Plant> = {
  what: 'Plant',
  read(response) {
    const value = response.status === 200 ? readJson(response) : undefined
    return isPlant(value) ? plantOf(value) : undefined
  },
}

function isPlant(value: unknown): value is Plant {
  if (!isObject(value)) return false
  return textFields.every(({ name, isRequired }) => typeof value[name] === 'string' || (!isRequired && value[name] === undefined))
}

/** The maximum size of what is read, in bytes: by default a plant has at most 1 MiB, and JSON escapes grow it up to sixfold. */
export const maxRead = 16_777_216

/**
 * Expects the StoredPlant with an id.
 *
 * @param settled other statuses that are a value, if the `error` of the body equals the status: 404 for a missing plant
 * @param onEtag is called with its strong entity tag
 */
export function expectStored<S extends number>(
  id: bigint,
  settled: readonly S[],
  onEtag?: (plant: NewPlant, etag: string) => void,
): Expected<NewPlant | S> {
  return {
    what: 'StoredPlant',
    maxBody: maxRead,
    read(response) {
      const { status } = response
      if (status !== 200) return settled.find((value) => value === status && value === errorIn(response)?.error)
      const plant = acceptNewPlant(readJson(response))
      if (plant?.id !== id) return undefined
      const { etag } = response.headers
      if (etag?.startsWith('"')) onEtag?.(plant, etag)
      return plant
    },
  }
}

export function readJson(response: HttpResponse): unknown {
  const parsed = parseJson(jsonTextOf(response) ?? '', { isList: true })
  return 'value' in parsed ? parsed.value : undefined
}

function jsonTextOf(response: HttpResponse): string | undefined {
  const { headers, body, maxBody } = response
  if (body.length > maxBody || !isJson(response) || headers['content-encoding'] !== undefined || !isUtf8(body)) return undefined
  return body.toString()
}

function isJson({ headers }: HttpResponse): boolean {
  return isJsonType(headers['content-type'] ?? '')
}

function requestIdOf({ headers }: HttpResponse): string | undefined {
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  return /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined
}

/** `Retry-After` in milliseconds, from seconds or a date (RFC 9110, 10.2.3); 0 without one. */
function retryAfterOf({ headers }: HttpResponse): number {
  const text = headers['retry-after']?.trim() ?? ''
  if (/^\d+$/.test(text)) return parseFloat(text) * 1000
  const pause = Date.parse(text) - Date.parse(headers.date ?? '')
  return Number.isNaN(pause) ? 0 : Math.max(0, pause)
}
