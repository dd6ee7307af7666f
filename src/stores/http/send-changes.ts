import { setMaxListeners } from 'node:events'
import { toJson, toWireJson } from '../../plant/exact-json.js'
import {
  equalFields,
  equalPlants,
  type NewPlant,
  patchedPlant,
  plantOf,
  type StoredPlant,
} from '../../plant/plant.js'
import { type ErrorKind, must, PlantsError } from '../../platform/errors.js'
import {
  type Change,
  existingOutcome,
  idOf,
  missingOutcome,
  notFound,
  type Outcome,
  otherNameOutcome,
  type Problem,
  problem,
  rejected,
} from '../common/change.js'
import type { WriteOptions } from '../common/store.js'
import { isLost, isOfPlant } from './failures.js'
import type { HttpClient } from './http-client.js'
import { defaultConcurrency } from './http-options.js'
import { requestForPlant, requestToCreate } from './plant-request.js'
import { Requests } from './requests.js'

/** @throws {PlantsError} for what no answer settles, or the reason of the signal */
export function sendChange(requests: Requests, change: Change): Promise<Outcome> {
  if (change.type === 'create') return sendCreate(requests, change)
  return change.type === 'update' ? sendUpdate(requests, change) : sendDelete(requests, change)
}

type Of<Type> = Extract<Change, { type: Type }>

async function sendCreate(requests: Requests, change: Of<'create'>): Promise<Outcome> {
  const { plant, key = crypto.randomUUID(), ifExists, isMatched } = change
  try {
    return {
      type: 'created',
      plant: { id: plant.id, ...(await requests.send(requestToCreate(plant, key))) },
    }
  } catch (error) {
    // A service with idempotency keys would have recognized this create, so a conflict is with another plant.
    if (!isOfType('conflict', error)) throw error
    if (ifExists === 'skip' && !isMatched) return { type: 'skipped' }
    const stored =
      ifExists === 'same' || isMatched ? await fetchPlant(requests, plant.id) : undefined
    if (stored) return existingOutcome(change, stored)
    throw error
  }
}

/** A complete record of an import is created, or changes the plant that has its id. */
async function sendUpdate(requests: Requests, change: Of<'update'>): Promise<Outcome> {
  const { patch, ifMissing, isMatched, key } = change
  const { id, ...fields } = patch
  const stored = isMatched && key === undefined ? await fetchPlant(requests, id) : undefined
  const other = otherNameOutcome(change, stored)
  if (other) return other
  if (stored && equalFields(stored, must(patchedPlant(patch, stored))))
    return { type: 'updated', plant: stored, before: stored }
  const whole = ifMissing === 'create' && !stored ? patchedPlant(patch) : undefined
  const created =
    whole &&
    (await sendCreate(requests, { type: 'create', plant: whole, ifExists: 'skip', isMatched, key }))
  if (created && created.type !== 'skipped') return created
  const plant = await unlessMissing(
    requests.send({ ...requestForPlant('PATCH', id), body: toWireJson(fields) }),
  )
  if (!plant && !whole && !stored) return missingOutcome(change)
  if (!plant)
    return rejected(
      problem('conflict', `Plant ${id} was deleted before it could be updated`, 'Try again'),
    )
  const wanted = patchedPlant(patch, plant)
  if (wanted) warnOfDifference(requests.client, wanted, plant)
  return { type: 'updated', plant }
}

async function sendDelete(requests: Requests, { id, only }: Of<'delete'>): Promise<Outcome> {
  const before = only && (await fetchPlant(requests, id))
  if (only && !(before && equalPlants(before, only))) return rejected(notFound(id))
  const plant = await unlessMissing(requests.send(requestForPlant('DELETE', id)))
  return plant ? { type: 'deleted', plant } : rejected(notFound(id))
}

export function fetchPlant(requests: Requests, id: bigint): Promise<StoredPlant | undefined> {
  return unlessMissing(requests.send(requestForPlant('GET', id)))
}

/** Undefined if no plant has the id. */
async function unlessMissing<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action
  } catch (error) {
    if (isOfType('notFound', error)) return undefined
    throw error
  }
}

function isOfType(kind: ErrorKind, error: unknown): error is PlantsError {
  return error instanceof PlantsError && error.kind === kind
}

function warnOfDifference(client: HttpClient, sent: NewPlant, stored: StoredPlant): void {
  if (equalFields(stored, sent)) return
  const text = `${toJson({ ...plantOf(stored) })} instead of ${toJson({ ...plantOf(sent) })} for plant ${sent.id}`
  const message = `The store returns plants that differ from those that were sent, such as ${text}`
  void client.warnOnce('other', message)
}

/**
 * Sends several at once, but those of one id in their order. What fails for one plant is its outcome; a failure of the
 * service ends all.
 */
export async function sendChanges(
  client: HttpClient,
  changes: readonly Change[],
  { maxRejected = Infinity, signal }: WriteOptions,
): Promise<Outcome[]> {
  const { runtime, concurrency = defaultConcurrency } = client.options
  const stop = signal ? AbortSignal.any([runtime.handleSignals(), signal]) : runtime.handleSignals()
  const end = new AbortController()
  const requests = new Requests(client, AbortSignal.any([stop, end.signal]), true)
  setMaxListeners(0, requests.signal) // each pause of a change adds a listener
  const outcomes = new Array<Outcome | undefined>(changes.length).fill(undefined)
  const latest = new Map<bigint, Promise<void>>()
  let failure: Problem | undefined
  let rejections = 0
  let unknownInARow = 0
  // Even if all that are in flight are rejected, no change is sent after the last one that may be.
  let workers = Math.min(concurrency, maxRejected)

  async function settle(index: number): Promise<void> {
    const change = must(changes[index])
    try {
      const outcome = await sendChange(requests, change)
      if (outcome.type === 'created' && change.type === 'create')
        warnOfDifference(client, change.plant, outcome.plant)
      outcomes[index] = outcome
      unknownInARow = 0
    } catch (error) {
      if (error === requests.signal.reason) return
      if (!(error instanceof PlantsError)) throw error
      outcomes[index] = { type: outcomeOf(error), error }
      unknownInARow = isLost(error) ? unknownInARow + 1 : 0
      if (
        isOfPlant(error) ||
        requests.signal.aborted ||
        (isLost(error) && unknownInARow < maxUnknown)
      )
        return
      failure = error // why the others are not sent
      end.abort()
    }
  }

  let next = 0
  async function work(): Promise<void> {
    while (next < changes.length && !requests.signal.aborted) {
      const index = next++
      const id = idOf(must(changes[index]))
      const done = Promise.resolve(latest.get(id)).then(() =>
        requests.signal.aborted ? undefined : settle(index),
      )
      latest.set(id, done)
      await done
      if (outcomes[index]?.type === 'rejected') rejections += 1
      if (maxRejected - rejections >= workers) continue
      workers -= 1
      return
    }
  }

  try {
    await requests.report(Promise.all(Array.from({ length: workers }, work)))
  } finally {
    end.abort()
  }
  const reason: Problem = failure ?? (stop.aborted ? stop.reason : tooMany)
  return outcomes.map((outcome) => outcome ?? { type: 'unsent', error: reason })
}

/** The type of outcome of a change that ended with this error. */
export function outcomeOf(error: PlantsError): 'unknown' | 'rejected' | 'unsent' {
  return error.isOutcomeUnknown ? 'unknown' : isOfPlant(error) ? 'rejected' : 'unsent'
}

/** A service that settles none of so many changes is given up. */
const maxUnknown = 3

const tooMany = problem('inaccessible', 'Not sent: too many were rejected before')
