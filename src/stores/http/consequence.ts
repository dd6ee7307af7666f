import { equalFields, type NewPlant, type Plant } from '../../plant/plant.js'
import { isTimeout } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import { Outcome } from '../conflict.js'
import type { Access, CreateManyOptions, RemoteAddress } from '../store.js'
import { judge, type Verdict } from './answer.js'
import { type Answer, NoAnswer } from './exchange.js'
import { unanswered, unreached } from './failure.js'

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
