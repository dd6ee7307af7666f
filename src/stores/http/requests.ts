import { PlantsError } from '../../errors.js'
import { retry } from '../../platform/retry.js'
import { chooseRetryBudgetMs, describeRetry, findRetryPauseMs } from '../retry.js'
import { interpretResponse } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'

/** A service that is started again takes some seconds. */
const backoff = { firstMs: 100, longestMs: 2000 }

interface SendOptions {
  /** This signal ends the retries and, unless `finishesSent`, also a request in flight. */
  signal?: AbortSignal
  finishesSent?: boolean
  /** The time from which the timeout counts. */
  startMs?: number
}

/** The state that all tries of one request share. */
interface Call {
  signal: AbortSignal
  /** These signals end a request in flight. */
  inFlightSignals: AbortSignal[]
  startMs: number
  /** The failure of a try that the service may have processed. */
  unknownOutcome: PlantsError | undefined
}

/**
 * Sends a request, and repeats it while it may succeed.
 *
 * @throws {PlantsError} the failure of a try that may have been processed, if no later try has
 *   settled that; otherwise the last failure, or the reason of the signal
 */
export async function send<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  options: SendOptions = {},
): Promise<T> {
  const { runtime } = client.options
  const { signal = runtime.handleSignals(), startMs = runtime.now(), finishesSent } = options
  const inFlightSignals = finishesSent ? [] : [signal]
  const call: Call = { signal, inFlightSignals, startMs, unknownOutcome: undefined }
  try {
    return await sendUntilSettled(client, request, call)
  } catch (error) {
    if (!call.unknownOutcome) throw error
    throw isConflictOfCreate(request, error) ? markPossiblyOwn(error) : call.unknownOutcome
  }
}

function sendUntilSettled<T>(client: HttpClient, request: HttpRequest<T>, call: Call): Promise<T> {
  return retry(() => sendOnce(client, request, call), {
    findPauseMs: (error, tries) => findPauseMs(client, request, call, { tries, error }),
    onRetry: (error) => warnOnce(client, call, error),
    getSignals: () => [call.signal],
  })
}

async function sendOnce<T>(client: HttpClient, request: HttpRequest<T>, call: Call): Promise<T> {
  call.signal.throwIfAborted()
  const { token } = client.access
  const response = await client.send(request, findTimeLeftMs(client, call), call.inFlightSignals)
  const result = await interpretResponse(client, request, response)
  if ('value' in result) return result.value
  const { error, isOutcomeUnknown } = result
  // A token may have expired, and a 401 changes nothing.
  if (error.kind === 'unauthorized' && (await client.renewToken(token)))
    return sendOnce(client, request, call)
  if (isOutcomeUnknown) call.unknownOutcome = error
  throw error
}

/** Returns undefined if there is no time for another try, or if the request is not repeated. */
async function findPauseMs(
  client: HttpClient,
  request: HttpRequest,
  call: Call,
  { tries, error }: { tries: number; error: unknown },
): Promise<number | undefined> {
  const { signal, startMs, unknownOutcome } = call
  if (!(error instanceof PlantsError)) return undefined
  if (error !== unknownOutcome && !error.isRetryable) return undefined
  signal.throwIfAborted()
  const { options } = client
  const retryBudgetMs = findRetryBudgetMs(client)
  const elapsedMs = measureElapsedMs(client, call)
  const state = { tries, elapsedMs, retryBudgetMs, retryAfterMs: error.retryAfterMs }
  const pauseMs = findRetryPauseMs(backoff, state, options.runtime)
  if (pauseMs === undefined) return undefined
  if (unknownOutcome && !(await mayRepeat(client, request, { signal, startMs }))) return undefined
  return pauseMs
}

/** Warns once per store that requests are repeated, because that may take long. */
async function warnOnce(client: HttpClient, call: Call, error: unknown): Promise<void> {
  const reason = call.unknownOutcome ?? error
  if (client.hasWarned || !(reason instanceof PlantsError)) return
  client.hasWarned = true
  const leftMs = findRetryBudgetMs(client) - measureElapsedMs(client, call)
  await client.access.notify(describeRetry(reason, leftMs))
}

function findRetryBudgetMs({ options, connectedAtMs }: HttpClient): number {
  return chooseRetryBudgetMs(options, connectedAtMs !== undefined)
}

/**
 * Measures the time that counts for the budget. Before the first connection, that is `retry`, and
 * the time begins with the request. After it, that is the timeout, and the time of connecting is
 * not counted.
 */
function measureElapsedMs({ options, connectedAtMs }: HttpClient, { startMs }: Call): number {
  return options.runtime.now() - Math.max(startMs, connectedAtMs ?? startMs)
}

/** Returns the time that the next try may take. */
function findTimeLeftMs(client: HttpClient, call: Call): number {
  const { timeoutMs } = client.options
  return client.connectedAtMs === undefined ? timeoutMs : timeoutMs - measureElapsedMs(client, call)
}

/**
 * Whether a create has found its id taken. A repetition of a create has the same key, so the id
 * belongs to another plant, or to its own plant if somebody has changed that since.
 */
function isConflictOfCreate({ method }: HttpRequest, error: unknown): error is PlantsError {
  return method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
}

function markPossiblyOwn(error: PlantsError): PlantsError {
  const { kind, message, cause } = error
  return new PlantsError(kind, message, { ...error, cause, mayBeOwnPlant: true })
}

/**
 * Whether a request that may have been processed may be repeated. A create may only if the service
 * supports idempotency keys, which prevent a second plant. It is asked only once, even if that
 * fails.
 */
async function mayRepeat(
  client: HttpClient,
  { method }: HttpRequest,
  options: SendOptions,
): Promise<boolean> {
  if (method !== 'POST') return true
  client.keepsKeys ??= askForKeys(client, options)
  return client.keepsKeys
}

async function askForKeys(client: HttpClient, options: SendOptions): Promise<boolean> {
  const { requestToDescribe } = await import('./description-request.js')
  try {
    return await send(client, requestToDescribe, options)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return false
  }
}
