import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { toJson } from '../../plant/exact-json.js'
import { equalFields, equalPlants, type NewPlant, patchedPlant, plantOf } from '../../plant/plant.js'
import { PlantsError, reasonOf } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import {
  type Change,
  existingOutcome,
  idOf,
  missingOutcome,
  notFound,
  type Outcome,
  type Problem,
  problem,
  rejected,
} from '../common/change.js'
import { defaultConcurrency, type WriteOptions } from '../common/store.js'
import type { HttpClient } from './http-client.js'
import { requestToCreate, requestToDelete, requestToRead, requestToUpdate } from './plant-request.js'
import { Requests, type Result, triesOfOne } from './retry.js'

export interface Sender {
  requests: Requests
  /** whether a create that may have been processed can be repeated with its key */
  mayRepeat(lost: PlantsError): Promise<boolean>
}

/** A request that did not settle the change. */
export type Unsettled = Exclude<Result<unknown>, { outcome: 'done' }>

export function sendChange(sender: Sender, change: Change): Promise<Outcome | Unsettled> {
  if (change.type === 'create') return sendCreate(sender, change)
  return change.type === 'update' ? sendUpdate(sender, change) : sendDelete(sender, change)
}

type Create = Extract<Change, { type: 'create' }>

async function sendCreate({ requests, mayRepeat }: Sender, change: Create): Promise<Outcome | Unsettled> {
  const { plant, key = randomUUID(), ifExists } = change
  for (let tries = 1; ; tries += 1) {
    const result = await requests.send(requestToCreate(requests.client.access, plant, key), { mayRepeat })
    if (result.outcome === 'done') return { type: 'created', plant: { id: plant.id, ...result.value } }
    // A service with idempotency keys would have recognized this create, so a conflict is with another plant.
    if (!isConflict(result)) return result
    if (ifExists === 'skip') return { type: 'skipped' }
    if (ifExists !== 'same') return result
    const read = await requests.send(requestToRead(requests.client, plant.id))
    if (read.outcome !== 'done') return read
    if (read.value !== 404) return existingOutcome(change, read.value)
    if (tries === triesOfOne) return result
  }
}

function isConflict(result: Unsettled): boolean {
  return result.outcome === 'rejected' && result.error.type === 'conflict'
}

type Update = Extract<Change, { type: 'update' }>

/** A complete record of an import is created, or changes the plant that has its id. */
async function sendUpdate(sender: Sender, change: Update): Promise<Outcome | Unsettled> {
  const { requests } = sender
  const { patch, ifMissing } = change
  const whole = ifMissing === 'create' ? patchedPlant(patch) : undefined
  for (let tries = 1; tries <= triesOfOne; tries += 1) {
    const created = whole && (await sendCreate(sender, { type: 'create', plant: whole }))
    if (created && !('outcome' in created && isConflict(created))) return created
    const updated = await requests.send(requestToUpdate(requests.client, patch))
    if (updated.outcome !== 'done') return updated
    if (updated.value !== 404) {
      const wanted = patchedPlant(patch, updated.value)
      if (wanted) warnOfDifference(requests.client, wanted, updated.value)
      return { type: 'updated', plant: updated.value }
    }
    if (!whole) return missingOutcome(change)
  }
  const message = `Plant ${patch.id} was not updated: it was created and deleted during each of ${triesOfOne} tries`
  return rejected(problem('conflict', message, 'Try again'))
}

type Delete = Extract<Change, { type: 'delete' }>

async function sendDelete({ requests }: Sender, { id, only }: Delete): Promise<Outcome | Unsettled> {
  const before = only && (await requests.send(requestToRead(requests.client, id)))
  if (before && before.outcome !== 'done') return before
  if (before && (before.value === 404 || !equalPlants(before.value, only))) return rejected(notFound(id))
  const result = await requests.send(requestToDelete(requests.client, id))
  if (result.outcome !== 'done') return result
  const { value, lost } = result
  if (value !== 404) return { type: 'deleted', plant: value }
  // An earlier try whose answer was lost may have deleted it.
  return lost ? { outcome: 'unknown', error: lost, lost } : rejected(notFound(id))
}

function warnOfDifference(client: HttpClient, sent: NewPlant, stored: NewPlant): void {
  if (equalFields(stored, sent)) return
  const text = `${toJson({ ...plantOf(stored) })} instead of ${toJson({ ...plantOf(sent) })} for plant ${sent.id}`
  const message = `The store returns plants that differ from those that were sent, such as ${text}`
  void client.warnOnce('other', message)
}

interface SendOptions extends Pick<WriteOptions, 'maxRejected' | 'signal'> {
  /** whether the service supports idempotency keys */
  isKeyed: boolean
}

/**
 * Sends several at once, but those of one id in their order. What fails for one plant is its outcome; a failure of the
 * service ends all.
 */
export async function sendChanges(
  client: HttpClient,
  changes: readonly Change[],
  { isKeyed, maxRejected = Infinity, signal }: SendOptions,
): Promise<Outcome[]> {
  const end = new AbortController()
  setMaxListeners(0, end.signal) // each pause of a change adds a listener
  const requests = new Requests(client, { signal: end.signal, isUpload: true })
  const sender = { requests, mayRepeat: async () => isKeyed }
  const outcomes = new Array<Outcome | undefined>(changes.length).fill(undefined)
  const latest = new Map<bigint, Promise<void>>()
  let failure: Problem | undefined
  let rejections = 0
  // Even if all that are in flight are rejected, no change is sent after the last one that may be.
  let workers = Math.min(client.options.concurrency ?? defaultConcurrency, maxRejected)

  async function settle(index: number): Promise<void> {
    const change = must(changes[index])
    const result = await sendChange(sender, change)
    if (!('outcome' in result)) {
      if (result.type === 'created' && change.type === 'create') warnOfDifference(client, change.plant, result.plant)
      outcomes[index] = result
      return
    }
    if (result.outcome === 'aborted') {
      if (result.lost) outcomes[index] = { type: 'unknown', error: withoutStack(result.lost) }
      return
    }
    const { type, error } = unsettledOutcome(result)
    outcomes[index] = { type, error: withoutStack(error) }
    if (result.outcome === 'rejected' || (result.outcome === 'unknown' && !requests.isOver(result))) return
    failure ??= result.error // why the others are not sent
    end.abort()
  }

  let next = 0
  async function work(): Promise<void> {
    while (next < changes.length && !end.signal.aborted) {
      const index = next++
      const id = idOf(must(changes[index]))
      const done = Promise.resolve(latest.get(id)).then(() => (end.signal.aborted ? undefined : settle(index)))
      latest.set(id, done)
      await done
      if (latest.get(id) === done) latest.delete(id)
      if (outcomes[index]?.type === 'rejected') rejections += 1
      if (maxRejected - rejections >= workers) continue
      workers -= 1
      return
    }
  }

  const abort = () => end.abort()
  const signals = [client.options.clock.signal, ...(signal ? [signal] : [])]
  for (const each of signals) each.addEventListener('abort', abort)
  if (signals.some(({ aborted }) => aborted)) abort()
  try {
    await requests.report(Promise.all(Array.from({ length: workers }, work)))
  } finally {
    abort()
    for (const each of signals) each.removeEventListener('abort', abort)
  }
  const aborted = signals.find((each) => each.aborted)
  const reason = failure ?? (aborted ? problemOf(aborted.reason) : tooMany)
  return outcomes.map((outcome) => outcome ?? { type: 'unsent', error: reason })
}

/** The outcome of a change after the last try, `lost` being one before it whose answer was lost. */
export function unsettledOutcome({ outcome, error: last, lost }: Exclude<Unsettled, { outcome: 'aborted' }>) {
  // If the plant may have been stored, only a response to its own key settles that.
  const error = lost && last.type !== 'conflict' ? lost : last
  const type: Extract<Outcome, { error: Problem }>['type'] = error.isOutcomeUnknown
    ? 'unknown'
    : outcome === 'rejected'
      ? 'rejected'
      : 'unsent'
  return { type, error }
}

/** to save memory */
function withoutStack({ type, error, message, hint }: PlantsError): Problem {
  return { type, error, message, hint }
}

function problemOf(reason: unknown): Problem {
  return reason instanceof PlantsError ? reason : problem('unavailable', reasonOf(reason))
}

const tooMany = problem('unavailable', 'Not sent: too many were rejected before')
