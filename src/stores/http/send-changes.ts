import { setMaxListeners } from 'node:events'
import { assertDefined, PlantsError } from '../../errors.js'
import { toWireJson } from '../../plant/json.js'
import {
  applyPatch,
  haveEqualNameAndTag,
  type PlantPatch,
  type StoredPlant,
} from '../../plant/plant.js'
import {
  type Change,
  createNotFoundProblem,
  createOutcomeForExistingId,
  createOutcomeForMissingPlant,
  createRejectedOutcome,
  type Delete,
  findDeleteRejection,
  findRenameRejection,
  getTargetId,
  isReadRejected,
  type Outcome,
} from '../change.js'
import type { WriteOptions } from '../store.js'
import { maxConcurrency } from '../store-kind.js'
import { isPlantFailure } from './explain.js'
import type { HttpRequest } from './http-client.js'
import { buildCreateRequest, buildPlantRequest } from './plant-request.js'
import type { ServiceClient } from './service-client.js'

export type Send = <T>(request: HttpRequest<T>) => Promise<T>
type ChangeOfType<Type> = Extract<Change, { type: Type }>

/** @throws {PlantsError} a failure that leaves the outcome open, or the reason of the signal */
export async function sendChange(sendRequest: Send, change: Change): Promise<Outcome> {
  if (change.type === 'create') return sendCreate(sendRequest, change)
  if (change.type === 'update') return sendUpdate(sendRequest, change)
  return sendDelete(sendRequest, change)
}

async function sendDelete(sendRequest: Send, change: Delete): Promise<Outcome> {
  const { id, expectedPlant } = change
  const storedPlant = expectedPlant && (await fetchPlant(sendRequest, id))
  const rejection = expectedPlant && findDeleteRejection(change, storedPlant)
  if (rejection) return rejection
  const plant = await catchNotFound(sendRequest(buildPlantRequest('DELETE', id)))
  return plant ? { type: 'deleted', plant } : createRejectedOutcome(createNotFoundProblem(id))
}

async function sendCreate(sendRequest: Send, change: ChangeOfType<'create'>): Promise<Outcome> {
  const { plant, key = crypto.randomUUID(), ifExists } = change
  try {
    const answer = await sendRequest(buildCreateRequest(plant, key))
    const createdPlant = { id: plant.id, ...answer.plant }
    return answer.isReplayed
      ? { type: 'created', plant: createdPlant, isReplayed: true }
      : { type: 'created', plant: createdPlant }
  } catch (error) {
    // A service with idempotency keys recognizes a repeated create, so the conflict is with another
    // plant.
    if (!(error instanceof PlantsError) || error.kind !== 'conflict') throw error
    if (ifExists === 'skip') return { type: 'skipped' }
    if (ifExists !== 'same') throw error
    return compareWithStoredPlant(sendRequest, change, error)
  }
}

/**
 * Fetches the plant that has the id of a create, and decides what becomes of the create.
 *
 * @param conflict why the service has rejected the create
 */
async function compareWithStoredPlant(
  sendRequest: Send,
  change: ChangeOfType<'create'>,
  conflict: PlantsError,
): Promise<Outcome> {
  try {
    const storedPlant = await sendRequest(buildPlantRequest('GET', change.plant.id))
    const outcome = createOutcomeForExistingId(change, storedPlant)
    if (outcome.type !== 'rejected' || !conflict.mayBeOwnPlant) return outcome
    return createRejectedOutcome({ ...outcome.problem, mayBeOwnPlant: true })
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    if (error.kind === 'notFound') throw conflict
    if (isReadRejected(error)) return createUnreadableOutcome(conflict)
    throw error
  }
}

function createUnreadableOutcome({
  kind,
  error,
  message,
  hint,
  mayBeOwnPlant = false,
}: PlantsError): Outcome {
  const isUnreadable = true
  return createRejectedOutcome({ kind, error, message, hint, mayBeOwnPlant, isUnreadable })
}

/**
 * Sends an update. A service has no request that creates or changes a plant, so a complete record
 * of an import is sent as a create first. If its id exists, it is sent as a change.
 */
async function sendUpdate(sendRequest: Send, change: ChangeOfType<'update'>): Promise<Outcome> {
  const { patch, ifMissing, expectedName, key } = change
  // The plant must be fetched, because it may have another name now.
  const storedPlant =
    expectedName !== undefined ? await fetchPlant(sendRequest, patch.id) : undefined
  const renameRejection = findRenameRejection(change, storedPlant)
  if (renameRejection) return renameRejection
  if (
    storedPlant &&
    haveEqualNameAndTag(storedPlant, assertDefined(applyPatch(patch, storedPlant)))
  )
    return { type: 'updated', plant: storedPlant, before: storedPlant }
  const completePlant = ifMissing === 'create' && !storedPlant ? applyPatch(patch) : undefined
  if (completePlant) {
    // A plant that was deleted is created again, unless another one has taken its id.
    const ifExists = expectedName === undefined ? 'skip' : 'same'
    const create = { type: 'create', ifExists, key } as const
    const outcome = await sendCreate(sendRequest, { ...create, plant: completePlant })
    const isIdTaken = outcome.type === 'skipped'
    if (!isIdTaken) return outcome
  }
  const plant = await sendPatch(sendRequest, patch)
  if (plant) return { type: 'updated', plant }
  // A plant that existed a moment ago was deleted since. Then the problem is not a missing name.
  const knownPlant = completePlant ?? storedPlant
  return knownPlant
    ? createRejectedOutcome(createNotFoundProblem(patch.id))
    : createOutcomeForMissingPlant(change)
}

/** @returns the changed plant; undefined if no plant has the id */
function sendPatch(
  sendRequest: Send,
  { id, ...fields }: PlantPatch,
): Promise<StoredPlant | undefined> {
  const request = { ...buildPlantRequest('PATCH', id), body: toWireJson(fields) }
  return catchNotFound(sendRequest(request))
}

export function fetchPlant(sendRequest: Send, id: bigint): Promise<StoredPlant | undefined> {
  return catchNotFound(sendRequest(buildPlantRequest('GET', id)))
}

/** Returns undefined if no plant has the id of the request. */
async function catchNotFound<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action
  } catch (error) {
    if (error instanceof PlantsError && error.kind === 'notFound') return undefined
    throw error
  }
}

/**
 * Sends several changes at once, but the changes of one id one after the other. A failure of one
 * plant is the outcome of its change. After a failure of the service, no further change is sent,
 * but the changes in flight still get their outcomes.
 */
export async function sendChanges(
  client: ServiceClient,
  changes: readonly Change[],
  { signal }: WriteOptions,
): Promise<Outcome[]> {
  const { runtime, concurrency = maxConcurrency } = client.service
  const failureController = new AbortController()
  const signals = [runtime.getStopSignal(), failureController.signal]
  const stopSignal = AbortSignal.any(signal ? [...signals, signal] : signals)
  setMaxListeners(0, stopSignal) // each pause of a change adds a listener
  const sendRequest: Send = (request) =>
    client.send(request, { signal: stopSignal, finishesInFlight: true })
  const outcomes: Outcome[] = []
  const lastSendById = new Map<bigint, Promise<void>>()

  const sendAndRecord = async (index: number, change: Change) => {
    if (stopSignal.aborted) return
    const outcome = await tryToSend(sendRequest, change, stopSignal)
    if (!outcome) return
    outcomes[index] = explainConflict(outcome)
    // Any failure but the rejection of one plant is a failure of the service.
    if (outcome.type === 'unknown' || outcome.type === 'notSent')
      failureController.abort(outcome.problem)
  }

  const remainingChanges = changes.entries()
  const sendRemainingChanges = async () => {
    for (const [index, change] of remainingChanges) {
      const id = getTargetId(change)
      const sendPromise = Promise.resolve(lastSendById.get(id)).then(() =>
        sendAndRecord(index, change),
      )
      lastSendById.set(id, sendPromise)
      await sendPromise
    }
  }

  try {
    await Promise.all(Array.from({ length: concurrency }, sendRemainingChanges))
  } finally {
    failureController.abort()
  }
  return changes.map(
    (_, index) => outcomes[index] ?? { type: 'notSent', problem: stopSignal.reason },
  )
}

/** Returns undefined if the signal has ended the change before it was sent. */
async function tryToSend(
  sendRequest: Send,
  change: Change,
  stopSignal: AbortSignal,
): Promise<Outcome | undefined> {
  try {
    return await sendChange(sendRequest, change)
  } catch (error) {
    if (error === stopSignal.reason) return undefined
    if (!(error instanceof PlantsError)) throw error
    return { type: toOutcomeType(error), problem: error }
  }
}

/** Adds to a conflict that the stored plant may come from an earlier try of the same change. */
function explainConflict(outcome: Outcome): Outcome {
  if (outcome.type !== 'rejected' || !outcome.problem.mayBeOwnPlant) return outcome
  const message = `${outcome.problem.message}. It may be the plant of this record, changed since it was stored`
  return createRejectedOutcome({ ...outcome.problem, message, mayBeOwnPlant: false })
}

export function toOutcomeType(error: PlantsError): 'unknown' | 'rejected' | 'notSent' {
  if (error.isOutcomeUnknown) return 'unknown'
  return isPlantFailure(error) ? 'rejected' : 'notSent'
}
