import { setMaxListeners } from 'node:events'
import { assertDefined, type ErrorKind, PlantsError } from '../../errors.js'
import { toWireJson } from '../../plant/json.js'
import {
  applyPatch,
  haveEqualFields,
  type PlantPatch,
  type StoredPlant,
} from '../../plant/plant.js'
import {
  type Change,
  createExistsOutcome,
  createMissingOutcome,
  createNotFoundProblem,
  createRejectedOutcome,
  findOtherNameOutcome,
  getTargetId,
  type Outcome,
} from '../change.js'
import type { WriteOptions } from '../store.js'
import { isPlantFailure } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'
import { defaultConcurrency } from './http-options.js'
import { requestForPlant, requestToCreate } from './plant-request.js'
import { send } from './requests.js'

export type Send = <T>(request: HttpRequest<T>) => Promise<T>
type ChangeOfType<Type> = Extract<Change, { type: Type }>

/** @throws {PlantsError} a failure that leaves the outcome open, or the reason of the signal */
export async function sendChange(ask: Send, change: Change): Promise<Outcome> {
  if (change.type === 'create') return sendCreate(ask, change)
  if (change.type === 'update') return sendUpdate(ask, change)
  const plant = await catchErrorsOfKinds(['notFound'], ask(requestForPlant('DELETE', change.id)))
  return plant
    ? { type: 'deleted', plant }
    : createRejectedOutcome(createNotFoundProblem(change.id))
}

async function sendCreate(ask: Send, change: ChangeOfType<'create'>): Promise<Outcome> {
  const { plant, key = crypto.randomUUID(), ifExists, isFoundByName } = change
  try {
    return { type: 'created', plant: { id: plant.id, ...(await ask(requestToCreate(plant, key))) } }
  } catch (error) {
    // A service with idempotency keys would have recognized this create, so a conflict is with
    // another plant.
    if (!(error instanceof PlantsError) || error.kind !== 'conflict') throw error
    if (ifExists === 'skip' && !isFoundByName) return { type: 'skipped' }
    if (ifExists !== 'same' && !isFoundByName) throw error
    const get = ask(requestForPlant('GET', plant.id))
    const stored = await catchErrorsOfKinds(['notFound', 'forbidden', 'rejected'], get)
    if (!stored) throw error
    const outcome = createExistsOutcome(change, stored)
    if (outcome.type !== 'rejected' || !error.mayBeOwnPlant) return outcome
    return createRejectedOutcome({ ...outcome.problem, mayBeOwnPlant: true })
  }
}

/**
 * Sends an update. A service has no request that creates or changes a plant, so a complete record
 * of an import is sent as a create first. If its id exists, it is sent as a change.
 */
async function sendUpdate(ask: Send, change: ChangeOfType<'update'>): Promise<Outcome> {
  const { patch, ifMissing, isFoundByName, key } = change
  // Only a plant that was found by its name must be looked at: it may have another name now.
  const stored = isFoundByName && key === undefined ? await fetchPlant(ask, patch.id) : undefined
  const otherNameOutcome = findOtherNameOutcome(change, stored)
  if (otherNameOutcome) return otherNameOutcome
  if (stored && haveEqualFields(stored, assertDefined(applyPatch(patch, stored))))
    return { type: 'updated', plant: stored, before: stored }
  const completePlant = ifMissing === 'create' && !stored ? applyPatch(patch) : undefined
  if (completePlant) {
    const create = { type: 'create', ifExists: 'skip', isFoundByName, key } as const
    const outcome = await sendCreate(ask, { ...create, plant: completePlant })
    const isIdTaken = outcome.type === 'skipped'
    if (!isIdTaken) return outcome
  }
  const plant = await sendPatch(ask, patch)
  if (plant) return { type: 'updated', plant }
  // If the plant was there a moment ago, it was deleted since, and its name is not missing.
  const wasThere = completePlant ?? stored
  return wasThere
    ? createRejectedOutcome(createNotFoundProblem(patch.id))
    : createMissingOutcome(change)
}

/** @returns the changed plant; undefined if no plant has the id */
function sendPatch(ask: Send, { id, ...fields }: PlantPatch): Promise<StoredPlant | undefined> {
  const request = { ...requestForPlant('PATCH', id), body: toWireJson(fields) }
  return catchErrorsOfKinds(['notFound'], ask(request))
}

export function fetchPlant(ask: Send, id: bigint): Promise<StoredPlant | undefined> {
  return catchErrorsOfKinds(['notFound'], ask(requestForPlant('GET', id)))
}

/** Returns undefined if the action fails with an error of one of the kinds. */
async function catchErrorsOfKinds<T>(
  kinds: ErrorKind[],
  action: Promise<T>,
): Promise<T | undefined> {
  try {
    return await action
  } catch (error) {
    if (error instanceof PlantsError && kinds.includes(error.kind)) return undefined
    throw error
  }
}

/**
 * Sends several changes at once, but the changes of one id one after the other. A failure of one
 * plant is the outcome of its change. After a failure of the service, no further change is sent,
 * and those in flight still get their outcomes.
 */
export async function sendChanges(
  client: HttpClient,
  changes: readonly Change[],
  { signal, isRepetition = false }: WriteOptions,
): Promise<Outcome[]> {
  const { runtime, concurrency = defaultConcurrency } = client.options
  const failed = new AbortController()
  const furtherSignals = signal ? [signal] : []
  const stop = AbortSignal.any([runtime.handleSignals(), failed.signal, ...furtherSignals])
  setMaxListeners(0, stop) // each pause of a change adds a listener
  const ask: Send = (request) => send(client, request, { signal: stop, finishesSent: true })
  const outcomes: Outcome[] = []
  const lastSentById = new Map<bigint, Promise<void>>()

  const sendOne = async (index: number) => {
    if (stop.aborted) return
    const outcome = await tryToSend(ask, assertDefined(changes[index]), stop)
    if (!outcome) return
    outcomes[index] = explainConflict(outcome, isRepetition)
    // Any failure but the rejection of one plant is a failure of the service.
    if (outcome.type === 'unknown' || outcome.type === 'notSent') failed.abort(outcome.problem)
  }

  let next = 0
  const work = async () => {
    while (next < changes.length && !stop.aborted) {
      const index = next
      next += 1
      const id = getTargetId(assertDefined(changes[index]))
      const sending = Promise.resolve(lastSentById.get(id)).then(() => sendOne(index))
      lastSentById.set(id, sending)
      await sending
    }
  }

  try {
    await Promise.all(Array.from({ length: concurrency }, work))
  } finally {
    failed.abort()
  }
  return changes.map((_, index) => outcomes[index] ?? { type: 'notSent', problem: stop.reason })
}

/** Returns undefined if the signal has ended the change before it was sent. */
async function tryToSend(
  ask: Send,
  change: Change,
  stop: AbortSignal,
): Promise<Outcome | undefined> {
  try {
    return await sendChange(ask, change)
  } catch (error) {
    if (error === stop.reason) return undefined
    if (!(error instanceof PlantsError)) throw error
    return { type: toOutcomeType(error), problem: error }
  }
}

/** Adds to a conflict that the stored plant may come from an earlier try of the same change. */
function explainConflict(outcome: Outcome, isRepetition: boolean): Outcome {
  if (outcome.type !== 'rejected' || outcome.problem.kind !== 'conflict') return outcome
  const { kind, error, message, hint, mayBeOwnPlant } = outcome.problem
  if (!isRepetition && !mayBeOwnPlant) return outcome
  const explained = `${message}. It may be the plant of this record, changed since it was stored`
  return createRejectedOutcome({ kind, error, message: explained, hint })
}

export function toOutcomeType(error: PlantsError): 'unknown' | 'rejected' | 'notSent' {
  if (error.isOutcomeUnknown) return 'unknown'
  return isPlantFailure(error) ? 'rejected' : 'notSent'
}
