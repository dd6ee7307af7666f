import { isUtf8 } from 'node:buffer'
import { textFields } from '../../plant/fields.js'
import { isJsonType } from '../../plant/json.js'
import { equalFields, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { isTimeout } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import { Outcome } from '../conflict.js'
import type { CreateManyOptions } from '../store.js'
import { type Answer, NoAnswer } from './exchange.js'
import { unanswered, unreached } from './failure.js'
import type { Access } from './types.js'

/** What an answer to a create settles. */
export type Verdict =
  | { plant: Plant }
  | { error: PlantsError }
  /** nothing was stored: in so many seconds it may work, if the service says when */
  | { error: PlantsError; comeAgain: number | undefined }
  /** the service may have stored it, and the same request would tell */
  | { error: PlantsError; isOpen: true }

/**
 * Holds an answer against the specification and the contract, with the care that a request gets.
 *
 * @param name what people call the service
 * @param tokenHint how to give another token
 */
export function judge(answer: Answer, name: string, tokenHint: string): Verdict {
  const { status } = answer
  if (status === 200) return judgePlant(answer, name)
  const told = readError(answer)
  const details = { status, requestId: requestIdOf(answer) }
  if (status === 503 || status === 429) {
    const message = told?.message ?? `${name} answered ${describe(answer)}`
    const hint = 'Nothing was stored. Try again later'
    return { error: new PlantsError('unavailable', message, { ...details, hint, retryable: true }), comeAgain: retryAfterOf(answer) }
  }
  if (status >= 300 && status < 400) return { error: moved(answer, name, details) }
  if (status < 400 || status >= 500) {
    const message = told ? `${name} failed: ${told.message}` : `${name} answered ${describe(answer)}, which the specification does not know`
    const error = new PlantsError('unusable', message, details)
    return status >= 500 ? { error, isOpen: true } : { error }
  }
  return { error: refusal(answer, told, name, { ...details, tokenHint }) }
}

function judgePlant(answer: Answer, name: string): Verdict {
  const value = readJson(answer)
  if (
    isObject(value) &&
    textFields.every(({ name: field, isRequired }) => typeof value[field] === 'string' || (!isRequired && value[field] === undefined))
  ) {
    return { plant: plantOf(value as unknown as Plant) } // as was just checked
  }
  const why = value === undefined ? describe(answer) : '200 with JSON that is no Plant'
  return { error: new PlantsError('unusable', `${name} answered ${why}`, { status: 200, requestId: requestIdOf(answer) }) }
}

interface Told {
  error: number
  message: string
}

type Details = { status: number; requestId: string | undefined }

function refusal(
  answer: Answer,
  told: Told | undefined,
  name: string,
  { tokenHint, ...details }: Details & { tokenHint: string },
): PlantsError {
  const error = told?.error ?? answer.status
  const message = told?.message ?? `${name} answered ${describe(answer)}`
  if (error === 401 || error === 403 || answer.status === 401 || answer.status === 403) {
    return new PlantsError('unauthorized', message, { ...details, error, hint: tokenHint })
  }
  const hint = hints[error] ?? `This is what ${name} says of it`
  return new PlantsError(error === 409 ? 'conflict' : 'refused', message, { ...details, error, hint })
}

const hints: Record<number, string> = {
  404: 'Is the address right? It is the base url: what stands before /plants',
  405: 'Is the address right? It is the base url: what stands before /plants',
  409: 'Choose another id; to repeat an earlier create safely, give both the same --idempotency-key',
  413: 'Shorten the name or the tag',
}

/** Whether a redirect may have followed on a plant that was stored: only 303 says "done, look there". */
function moved(answer: Answer, name: string, details: Details): PlantsError {
  const target = headerOf(answer, 'location')
  const message = `${name} answered ${answer.status}${target === undefined ? '' : `, and points to ${target.slice(0, 300)}`}`
  const isMoved = [301, 302, 307, 308].includes(answer.status)
  if (!isMoved) return new PlantsError('unusable', message, details)
  const hint = 'Redirects are not followed, because the token is for this address alone. If the new one is right, give it with --store'
  return new PlantsError('unavailable', message, { ...details, hint })
}

/** What came instead of what the specification says. */
function describe(answer: Answer): string {
  const { status, body, isWhole } = answer
  const type = headerOf(answer, 'content-type')?.slice(0, 80)
  if (!isWhole) return `${status} with more than 1 MiB`
  if (body.length === 0) return `${status} with nothing`
  if (headerOf(answer, 'content-encoding') !== undefined) return `${status} with a packed body`
  return readJson(answer) === undefined
    ? `${status} with ${isJson(answer) ? 'broken JSON' : (type ?? 'no JSON')}`
    : `${status} with JSON that is no Error`
}

function readError(answer: Answer): Told | undefined {
  const value = readJson(answer)
  if (!isObject(value)) return undefined
  const { error, message } = value
  if (typeof error !== 'number' || (error | 0) !== error || typeof message !== 'string') return undefined
  return { error, message: Array.from(message.slice(0, 2000)).slice(0, 1000).join('') }
}

/** The JSON of an answer; undefined when it is none, is packed, or is too long. */
function readJson(answer: Answer): unknown {
  if (!answer.isWhole || !isJson(answer) || headerOf(answer, 'content-encoding') !== undefined || !isUtf8(answer.body)) return undefined
  try {
    return JSON.parse(answer.body.toString())
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}

function isJson(answer: Answer): boolean {
  return isJsonType(headerOf(answer, 'content-type') ?? '')
}

function requestIdOf(answer: Answer): string | undefined {
  const id = headerOf(answer, 'request-id') ?? headerOf(answer, 'x-request-id')
  return id === undefined || !/^[\x21-\x7e]{1,200}$/.test(id) ? undefined : id
}

/** Seconds that a service wants to be left alone, from a number of them or a date (RFC 9110, 10.2.3). */
function retryAfterOf(answer: Answer): number | undefined {
  const text = headerOf(answer, 'retry-after')?.trim() ?? ''
  if (/^\d+$/.test(text)) return parseFloat(text)
  const date = Date.parse(text)
  const now = Date.parse(headerOf(answer, 'date') ?? '')
  return Number.isNaN(date) || Number.isNaN(now) ? undefined : Math.max(0, (date - now) / 1000)
}

function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value[0] : value
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What follows for a row, and for those behind it, from what came of its request. */
export type Consequence = Settled | Setback | { kind: 'locked'; error: PlantsError } | { kind: 'useless'; error: PlantsError }

export interface Settled {
  kind: 'settled'
  outcome: number
  why: PlantsError | undefined
  /** the plant that the service answered, where it is another than it was given */
  other: Plant | undefined
}

/** It came to nothing. */
export type Setback = {
  /** "later": nothing was stored; "open": it may have been, and the same request would tell */
  kind: 'later' | 'open'
  error: PlantsError
  /** for which the service wants to be left alone, if it says so */
  seconds: number | undefined
  /** whether it had too much to do */
  isTooMuch: boolean
}

interface Circumstances {
  address: RemoteAddress
  access: Access
  ifExists: CreateManyOptions['ifExists']
}

/** "locked" is a token that is not accepted, "useless" a service that is not what it should be. */
export function consequenceOf(result: Answer | NoAnswer, plant: NewPlant, { address, access, ifExists }: Circumstances): Consequence {
  if (!(result instanceof NoAnswer)) return ofVerdict(judge(result, address.name, access.tokenHint), result.status, plant, ifExists)
  const { cause, isSent } = result
  const error = isSent ? unanswered(address, cause) : unreached(address, access, cause)
  return { kind: isSent ? 'open' : 'later', error, seconds: undefined, isTooMuch: isTimeout(cause) }
}

function ofVerdict(verdict: Verdict, status: number, plant: NewPlant, ifExists: Circumstances['ifExists']): Consequence {
  if ('plant' in verdict) return ofPlant(verdict.plant, plant)
  const { error } = verdict
  if ('comeAgain' in verdict) return { kind: 'later', error, seconds: verdict.comeAgain, isTooMuch: true }
  if ('isOpen' in verdict) return { kind: 'open', error, seconds: undefined, isTooMuch: false }
  if (error.kind === 'unauthorized') return { kind: 'locked', error }
  if (error.kind === 'conflict') return ofConflict(error, ifExists)
  if (isOfPlant(error, status)) return { kind: 'settled', outcome: Outcome.refused, why: error, other: undefined }
  return { kind: 'useless', error }
}

function ofPlant(answer: Plant, plant: NewPlant): Settled {
  return { kind: 'settled', outcome: Outcome.created, why: undefined, other: equalFields(answer, plant) ? undefined : answer }
}

/** The service knows the key of a row, if it knows any, so it speaks of another plant. */
function ofConflict(error: PlantsError, ifExists: Circumstances['ifExists']): Settled {
  if (ifExists !== 'error') return { kind: 'settled', outcome: Outcome.skipped, why: undefined, other: undefined }
  return { kind: 'settled', outcome: Outcome.taken, why: error, other: undefined }
}

/** Whether a service refuses this plant, and not each one. */
function isOfPlant({ kind, error }: PlantsError, status: number): boolean {
  return kind === 'refused' && plantStatuses.has(status) && !serviceErrors.has(error)
}

const plantStatuses = new Set([400, 413, 422])

/** errors of the contract that a status of 400 can stand for as well */
const serviceErrors = new Set([404, 405, 415])
