import { isUtf8 } from 'node:buffer'
import { textFields } from '../../plant/fields.js'
import { isJsonType, parseJson } from '../../plant/json.js'
import { acceptNewPlant, isObject, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { readRecord } from '../../plant/records.js'
import { type Kind, PlantsError } from '../../platform/errors.js'
import type { Access } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { defaultRights, rights } from '../common/store.js'
import type { HttpResponse, NoResponse } from './client.js'
import { isFinal, isRefused, unanswered, unreached } from './failure.js'

/** A request that failed, or whose outcome is unknown. */
export interface Failure {
  /**
   * "retry": nothing was stored, and the same request may succeed later. "unknown": the service may have processed the request, and only
   * a repetition can settle that. The others are final: "conflict": another plant has the id. "rejected": the service rejects this plant.
   * "unauthorized": it rejects the token. "incompatible": it does not follow the specification.
   */
  kind: 'retry' | 'unknown' | 'conflict' | 'rejected' | 'unauthorized' | 'incompatible'
  error: PlantsError
  /** why the request failed, if that affects the retry */
  reason?: 'overload' | 'refused'
  /** `Retry-After`, in milliseconds */
  retryAfter?: number
}

/** The expected response to a request. */
export interface Expected<T> {
  /** the name of its content, for messages: "Plant" */
  what: string
  /** Parses a response with status 200; undefined if its content is something else. */
  read(response: HttpResponse): T | undefined
  /** the values of other statuses, if the `error` of the body equals the status: 404 for a missing plant */
  settled?: ReadonlyMap<number, T>
  /** the value of every other response that would be a final failure */
  otherwise?: T
}

/** The meaning of a response other than 200; the first rule that fits applies. */
interface Rule {
  /** @param error the `error` of the response, or its status */
  fits(status: number, error: number): boolean
  kind: Failure['kind']
  error: Kind
  /** whether the message reports a failure of the service, or the target of a redirect, instead of the message of the response */
  names?: 'failure' | 'location'
  hint?: string
}

const addressHint = 'Is the address right? It is the base url: what stands before /plants'
const redirectHint =
  'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store'
const conflictHint = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const oneOf =
  (...values: number[]) =>
  (value: number) =>
    values.includes(value)
const rejects = oneOf(400, 413, 422)

const rules: Rule[] = [
  { fits: oneOf(429, 503), kind: 'retry', error: 'unavailable', hint: 'Nothing was stored. Try again later' },
  { fits: oneOf(301, 302, 307, 308), kind: 'incompatible', error: 'unavailable', names: 'location', hint: redirectHint },
  { fits: (status) => status >= 300 && status < 400, kind: 'incompatible', error: 'unusable', names: 'location' },
  { fits: (status) => status >= 500, kind: 'unknown', error: 'unusable', names: 'failure' },
  { fits: (status) => status < 400, kind: 'incompatible', error: 'unusable', names: 'failure' },
  { fits: (status, error) => [status, error].some(oneOf(401, 403)), kind: 'unauthorized', error: 'unauthorized' },
  { fits: (_, error) => error === 409, kind: 'conflict', error: 'conflict', hint: conflictHint },
  { fits: (_, error) => oneOf(404, 405)(error), kind: 'incompatible', error: 'refused', hint: addressHint },
  { fits: (_, error) => error === 415, kind: 'incompatible', error: 'refused' },
  { fits: (status, error) => rejects(status) && error === 413, kind: 'rejected', error: 'refused', hint: 'Shorten the name or the tag' },
  { fits: (status) => rejects(status), kind: 'rejected', error: 'refused' },
  { fits: () => true, kind: 'incompatible', error: 'refused' },
]

/**
 * Checks a response against the specification and the contract.
 *
 * @param name the name of the service in messages
 * @param tokenHint how to set another token
 */
export function classifyResponse<T>(
  response: HttpResponse,
  expected: Expected<T>,
  { name, tokenHint }: { name: string; tokenHint: string },
): Failure | { kind: 'done'; value: T } {
  const { status } = response
  const requestId = requestIdOf(response)
  const serviceError = status === 200 ? undefined : errorIn(readJson(response))
  const meaning = serviceError?.error === status ? expected.settled?.get(status) : undefined
  const value = status === 200 ? expected.read(response) : meaning
  if (value !== undefined) return { kind: 'done', value }
  if (status === 200) {
    const message = `${name} answered ${describe(response, expected.what)}`
    return { kind: 'incompatible', error: new PlantsError('unusable', message, { status, requestId }) }
  }
  const error = serviceError?.error ?? status
  const rule = rules.find(({ fits }) => fits(status, error))
  if (!rule) throw new Error('The last rule fits everything')
  const isSettled = rule.kind !== 'retry' && rule.kind !== 'unknown'
  if (isSettled && expected.otherwise !== undefined) return { kind: 'done', value: expected.otherwise }
  const failure = new PlantsError(rule.error, messageOf(rule, response, serviceError, name), {
    status,
    requestId,
    ...(status >= 400 && isSettled && { error }),
    hint: hintFor(rule, response, name, tokenHint),
    retryable: rule.kind === 'retry',
  })
  if (rule.kind !== 'retry') return { kind: rule.kind, error: failure }
  return { kind: 'retry', error: failure, reason: 'overload', retryAfter: retryAfterOf(response) }
}

function hintFor(rule: Rule, response: HttpResponse, name: string, tokenHint: string): string | undefined {
  if (rule.kind !== 'unauthorized') return rule.hint ?? (rule.error === 'refused' ? `This message is from ${name}` : undefined)
  const [, scope] = /\binsufficient_scope\b.*\bscope="(\w+)"/.exec(headerOf(response, 'www-authenticate') ?? '') ?? [] // RFC 6750, 3.1
  if (!rights.some((right) => right === scope)) return tokenHint
  const wanted = rights.filter((right) => right === scope || defaultRights.includes(right))
  const more = scope === 'read' ? '. To update or delete plants, add these rights' : ''
  return `Ask its operator for a token with this right: plants tokens create --allow ${wanted.join()}${more}`
}

/**
 * Classifies a request without a response.
 *
 * @param what the name of what was sent, for the message
 */
export function classifyFailure({ cause, isSent }: NoResponse, address: RemoteAddress, access: Access, what?: string): Failure {
  if (isSent) return { kind: 'unknown', error: unanswered(address, cause, what) }
  const error = unreached(address, access, cause)
  if (isFinal(cause)) return { kind: 'incompatible', error }
  return { kind: 'retry', error, ...(isRefused(cause) && { reason: 'refused' }) }
}

function messageOf({ names }: Rule, response: HttpResponse, serviceError: ServiceError | undefined, name: string): string {
  if (names === 'location') {
    const target = headerOf(response, 'location')
    return `${name} answered ${response.status}${target === undefined ? '' : `, and redirects to ${target.slice(0, 300)}`}`
  }
  if (names === 'failure' && serviceError) return `${name} failed: ${serviceError.message}`
  const unknown = names === 'failure' ? ', which is not in the specification' : ''
  return serviceError?.message ?? `${name} answered ${describe(response)}${unknown}`
}

/** Describes a response that does not follow the specification. */
function describe(response: HttpResponse, what = 'Error'): string {
  const { status, body, maxBody, isWhole } = response
  const type = headerOf(response, 'content-type')?.slice(0, 80)
  if (!isWhole) return `${status} with more than ${maxBody / 1_048_576} MiB`
  if (body.length === 0) return `${status} with nothing`
  if (headerOf(response, 'content-encoding') !== undefined) return `${status} with a compressed body`
  return readJson(response) === undefined
    ? `${status} with ${isJson(response) ? 'invalid JSON' : (type ?? 'no JSON')}`
    : `${status} with JSON that is no ${what}`
}

interface ServiceError {
  error: number
  message: string
}

function errorIn(value: unknown): ServiceError | undefined {
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string') return undefined
  return { error, message: Array.from(message.slice(0, 2000)).slice(0, 1000).join('') }
}

function isPlant(value: unknown): value is Plant {
  if (!isObject(value)) return false
  return textFields.every(({ name, isRequired }) => typeof value[name] === 'string' || (!isRequired && value[name] === undefined))
}

/** The specification's Plant. */
export const expectedPlant: Expected<Plant> = {
  what: 'Plant',
  read(response) {
    const value = readJson(response)
    return isPlant(value) ? plantOf(value) : undefined
  },
}

/**
 * Expects the StoredPlant with an id.
 *
 * @param settled the values of statuses that mean that there is none
 * @param onEtag is called with its strong entity tag
 */
export function expectStored<T extends string>(
  id: bigint,
  settled: readonly (readonly [status: number, meaning: T])[],
  onEtag?: (plant: NewPlant, etag: string) => void,
): Expected<NewPlant | T> {
  return {
    what: 'StoredPlant',
    settled: new Map(settled),
    read(response) {
      const plant = readRecord(jsonTextOf(response) ?? '')
      if (plant?.id !== id) return undefined
      const etag = headerOf(response, 'etag')
      if (etag?.startsWith('"')) onEtag?.(plant, etag)
      return plant
    },
  }
}

/** Parses the StoredPlants of a page, with exact ids; undefined for anything else. */
export function readPage(response: HttpResponse): NewPlant[] | undefined {
  const parsed = parseJson(jsonTextOf(response) ?? '')
  if (!('value' in parsed && Array.isArray(parsed.value))) return undefined
  const plants = parsed.value.map((value) => acceptNewPlant(value)?.plant)
  return plants.every((plant) => plant !== undefined) ? plants : undefined
}

/** Parses the JSON of a response; undefined if it is invalid, compressed or too long. */
function readJson(response: HttpResponse): unknown {
  const text = jsonTextOf(response)
  try {
    return text === undefined ? undefined : JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}

/** The body of a response that is declared as JSON. */
function jsonTextOf(response: HttpResponse): string | undefined {
  const { body, isWhole } = response
  if (!isWhole || !isJson(response) || headerOf(response, 'content-encoding') !== undefined || !isUtf8(body)) return undefined
  return body.toString()
}

function isJson(response: HttpResponse): boolean {
  return isJsonType(headerOf(response, 'content-type') ?? '')
}

function requestIdOf(response: HttpResponse): string | undefined {
  const id = headerOf(response, 'request-id') ?? headerOf(response, 'x-request-id')
  return id === undefined || !/^[\x21-\x7e]{1,200}$/.test(id) ? undefined : id
}

/** `Retry-After` in milliseconds, from seconds or a date (RFC 9110, 10.2.3); 0 without one. */
function retryAfterOf(response: HttpResponse): number {
  const text = headerOf(response, 'retry-after')?.trim() ?? ''
  if (/^\d+$/.test(text)) return parseFloat(text) * 1000
  const date = Date.parse(text)
  const now = Date.parse(headerOf(response, 'date') ?? '')
  return Number.isNaN(date) || Number.isNaN(now) ? 0 : Math.max(0, date - now)
}

export function headerOf({ headers }: HttpResponse, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}
