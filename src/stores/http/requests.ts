import { PlantsError } from '../../errors.js'
import { retry } from '../../platform/retry.js'
import { chooseRetryBudgetMs, describeRetry, findRetryPauseMs } from '../retry.js'
import { interpretResponse } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'

/** A service that is started again takes some seconds. */
const backoff = { firstMs: 100, longestMs: 2000 }

interface SendOptions {
  /** Ends the retries, and unless `finishesSent` also a request in flight. */
  signal?: AbortSignal
  finishesSent?: boolean
  /** Of the timeout. */
  startMs?: number
}

/** What the tries of one request share. */
interface Call {
  signal: AbortSignal
  /** End a request in flight. */
  inFlightSignals: AbortSignal[]
  startMs: number
  /** The failure of a try that may have been processed. */
  unknownOutcome: PlantsError | undefined
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
  const response = await client.send(request, findTimeLeft(client, call), call.inFlightSignals)
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
  const retryBudgetMs = findRetryBudget(client)
  const elapsedMs = measureElapsed(client, call)
  const state = { tries, elapsedMs, retryBudgetMs, retryAfterMs: error.retryAfterMs }
  const pauseMs = findRetryPauseMs(backoff, state, options.runtime)
  if (pauseMs === undefined) return undefined
  if (unknownOutcome && !(await mayRepeat(client, request, { signal, startMs }))) return undefined
  return pauseMs
}

/** Says once that requests are repeated, because that may take long. */
async function warnOnce(client: HttpClient, call: Call, error: unknown): Promise<void> {
  const reason = call.unknownOutcome ?? error
  if (client.hasWarned || !(reason instanceof PlantsError)) return
  client.hasWarned = true
  const leftMs = findRetryBudget(client) - measureElapsed(client, call)
  await client.access.notify(describeRetry(reason, leftMs))
}

function findRetryBudget({ options, connectedAtMs }: HttpClient): number {
  return chooseRetryBudgetMs(options, connectedAtMs !== undefined)
}

/** Milliseconds. Until connected, --retry counts; then --timeout. */
function measureElapsed({ options, connectedAtMs }: HttpClient, { startMs }: Call): number {
  return options.runtime.now() - Math.max(startMs, connectedAtMs ?? startMs)
}

/** The milliseconds for the next try. */
function findTimeLeft(client: HttpClient, call: Call): number {
  const { timeoutMs } = client.options
  return client.connectedAtMs === undefined ? timeoutMs : timeoutMs - measureElapsed(client, call)
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
