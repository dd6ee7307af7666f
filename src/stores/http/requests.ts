import { PlantsError } from '../../errors.js'
import { wait } from '../../platform/runtime.js'
import { nextPause, patienceOf, tryingAgain } from '../store.js'
import { interpretResponse } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'
import { requestToDescribe } from './plant-request.js'

/** Pauses between tries, in milliseconds. */
const policy = { base: 100, max: 2000 }

interface SendOptions {
  /** Ends the retries, and unless `finishesSent` also a request in flight. */
  signal?: AbortSignal
  finishesSent?: boolean
  /** Of the timeout. */
  start?: number
}

/** What the tries of one request share. */
interface Call {
  signal: AbortSignal
  /** End a request in flight. */
  inFlightSignals: AbortSignal[]
  startMs: number
  /** The failure of a try that may have been processed. */
  lost: PlantsError | undefined
}

/**
 * Repeats a request while it may succeed.
 *
 * @throws {PlantsError} that of a try which may have been processed, if no later one has settled
 * that; otherwise the last one, or the reason of the signal
 */
export async function send<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  options: SendOptions = {},
): Promise<T> {
  const { runtime } = client.options
  const { signal = runtime.handleSignals(), start = runtime.now(), finishesSent } = options
  const inFlightSignals = finishesSent ? [] : [signal]
  const call: Call = { signal, inFlightSignals, startMs: start, lost: undefined }
  try {
    return await sendUntilSettled(client, request, call)
  } catch (error) {
    if (!call.lost) throw error
    throw isConflictOfCreate(request, error) ? markPossiblyOwn(error) : call.lost
  }
}

async function sendUntilSettled<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  call: Call,
): Promise<T> {
  const { signal, inFlightSignals } = call
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted()
    const { token } = client.access
    const response = await client.send(request, findTimeLeft(client, call), inFlightSignals)
    const result = interpretResponse(client, request, response)
    if ('value' in result) return result.value
    const { error, isOpen } = result
    // A token may have expired, and a 401 changes nothing.
    if (error.kind === 'unauthorized' && (await client.renewToken(token))) continue
    if (isOpen) call.lost = error
    else if (!error.isRetryable) throw error
    signal.throwIfAborted()
    await pauseBeforeRetry(client, request, call, { tries, error })
  }
}

/** Throws the error of the try if there is no time for another one, or if it is not repeated. */
async function pauseBeforeRetry(
  client: HttpClient,
  request: HttpRequest,
  call: Call,
  { tries, error }: { tries: number; error: PlantsError },
): Promise<void> {
  const { signal, startMs, lost } = call
  const { options } = client
  const patience = patienceOf(options, client.connectedAt !== undefined)
  const elapsed = measureElapsed(client, call)
  const state = { tries, elapsed, patience, retryAfter: error.retryAfterMs }
  const pauseMs = nextPause(policy, state, options.runtime)
  if (pauseMs === undefined) throw error
  if (lost && !(await mayRepeat(client, request, { signal, start: startMs }))) throw error
  if (!client.hasWarned) {
    client.hasWarned = true
    const leftMs = patience - measureElapsed(client, call)
    await client.access.notify(tryingAgain(lost ?? error, leftMs))
  }
  await wait(pauseMs, [signal])
}

/** Milliseconds. Until connected, --retry counts; then --timeout. */
function measureElapsed({ options, connectedAt }: HttpClient, { startMs }: Call): number {
  return options.runtime.now() - Math.max(startMs, connectedAt ?? startMs)
}

/** The milliseconds for the next try. */
function findTimeLeft(client: HttpClient, call: Call): number {
  const { timeout } = client.options
  return client.connectedAt === undefined ? timeout : timeout - measureElapsed(client, call)
}

/**
 * A create has its own key: its conflict is with another plant, or with its own one if somebody has
 * changed that since.
 */
function isConflictOfCreate({ method }: HttpRequest, error: unknown): error is PlantsError {
  return method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
}

function markPossiblyOwn(error: PlantsError): PlantsError {
  const { kind, message, cause } = error
  return new PlantsError(kind, message, { ...error, cause, mayBeOwnPlant: true })
}

/**
 * A create that may have been processed is repeated only where its key prevents a second plant. The
 * service is asked once, even if that fails.
 */
async function mayRepeat(
  client: HttpClient,
  { method }: HttpRequest,
  options: SendOptions,
): Promise<boolean> {
  if (method !== 'POST') return true
  client.keepsKeys ??= send(client, requestToDescribe, options).catch((error: unknown) => {
    if (!(error instanceof PlantsError)) throw error
    return false
  })
  return client.keepsKeys
}
