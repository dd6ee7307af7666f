import { PlantsError } from '../../errors.js'
import { isObject, parseJson } from '../../plant/json.js'
import { retry } from '../../platform/retry.js'
import { chooseRetryBudgetMs, describeRetry, findRetryPauseMs } from '../retry.js'
import { explainNoResponse, explainResponse, type Failure } from './explain.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'

/** A service that is started again takes some seconds. */
const backoff = { firstMs: 100, longestMs: 2000 }

interface SendOptions {
  /** This signal ends the retries and, unless `finishesInFlight`, also a request in flight. */
  signal?: AbortSignal
  finishesInFlight?: boolean
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
 * @throws {PlantsError} the failure of a try that the service may have processed, unless a later
 *   try has shown the outcome; otherwise the last failure, or the reason of the signal
 */
export async function send<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  options: SendOptions = {},
): Promise<T> {
  const { runtime } = client.options
  const { signal = runtime.getStopSignal(), startMs = runtime.now() } = options
  const inFlightSignals = options.finishesInFlight ? [] : [signal]
  const call: Call = { signal, inFlightSignals, startMs, unknownOutcome: undefined }
  try {
    return await sendUntilSettled(client, request, call)
  } catch (error) {
    const { unknownOutcome } = call
    if (!unknownOutcome) throw error
    if (isCreateConflict(request, error)) throw addToError(error, { mayBeOwnPlant: true })
    if ((await client.supportsKeys) !== false) throw unknownOutcome
    throw addToError(unknownOutcome, { isKeyIgnored: true })
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
  const response = await client.send(request, findRemainingMs(client, call), call.inFlightSignals)
  const result = interpretResponse(client, request, response)
  if ('value' in result) return result.value
  const { error, isOutcomeUnknown } = result
  // A token may have expired, and a 401 changes nothing.
  if (error.kind === 'unauthorized' && (await client.renewToken(token)))
    return sendOnce(client, request, call)
  if (isOutcomeUnknown) call.unknownOutcome = error
  throw error
}

/** Returns the value of a response, or why there is none. Only a 200 has a value. */
export function interpretResponse<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): { value: T } | Failure {
  if ('cause' in response) return explainNoResponse(client, request, response)
  const value = response.status === 200 ? request.expectedValue.read(response) : undefined
  return value === undefined ? explainResponse(client, request, response) : { value }
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
  const remainingMs = findRetryBudgetMs(client) - measureElapsedMs(client, call)
  await client.access.notify(describeRetry(reason, remainingMs))
}

function findRetryBudgetMs({ options, connectedAtMs }: HttpClient): number {
  return chooseRetryBudgetMs(options, connectedAtMs !== undefined)
}

/**
 * Measures the time that counts for the retry budget. Before the first connection, the time begins
 * with the request. After the first connection, the time of connecting is not counted.
 */
function measureElapsedMs({ options, connectedAtMs }: HttpClient, { startMs }: Call): number {
  return options.runtime.now() - Math.max(startMs, connectedAtMs ?? startMs)
}

/** Returns the time that the next try may take. */
function findRemainingMs(client: HttpClient, call: Call): number {
  const { timeoutMs } = client.options
  return client.connectedAtMs === undefined ? timeoutMs : timeoutMs - measureElapsedMs(client, call)
}

/**
 * Returns true if a create has found that its id exists. A repetition of a create has the same key.
 * So the id belongs to another plant, or to the plant of this create, if somebody has changed the
 * plant since.
 */
function isCreateConflict({ method }: HttpRequest, error: unknown): error is PlantsError {
  return method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
}

function addToError(
  error: PlantsError,
  details: Pick<PlantsError, 'mayBeOwnPlant' | 'isKeyIgnored'>,
): PlantsError {
  const { kind, message, cause } = error
  return new PlantsError(kind, message, { ...error, cause, ...details })
}

/**
 * Returns true if a request that the service may have processed may be repeated. A create may be
 * repeated only if the service supports idempotency keys, which prevent a second plant. The service
 * is asked for this only once, even if the question fails.
 */
async function mayRepeat(
  client: HttpClient,
  { method }: HttpRequest,
  options: SendOptions,
): Promise<boolean> {
  if (method !== 'POST') return true
  client.supportsKeys ??= requestKeySupport(client, options)
  return (await client.supportsKeys) === true
}

async function requestKeySupport(
  client: HttpClient,
  options: SendOptions,
): Promise<boolean | undefined> {
  try {
    return await send(client, descriptionRequest, options)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    const isAnswered = error.status !== undefined && !error.isRetryable
    return isAnswered ? false : undefined
  }
}

/** Asks for the OpenAPI description, which has the header of a key if creates support keys. */
const descriptionRequest: HttpRequest<boolean> = {
  method: 'GET',
  path: '/openapi.json',
  expectedValue: {
    noun: 'OpenAPI description',
    read({ body, exceededBytes }) {
      if (exceededBytes !== undefined) return undefined
      const result = parseJson(body.toString())
      return 'value' in result ? listsIdempotencyKey(result.value) : undefined
    },
  },
}

function listsIdempotencyKey(description: unknown): boolean {
  const path = ['paths', '/plants', 'post', 'parameters']
  const descend = (value: unknown, key: string) => (isObject(value) ? value[key] : undefined)
  const parameters = path.reduce(descend, description)
  const isKey = (value: unknown) =>
    isObject(value) && /^idempotency-key$/i.test(String(value['name'])) && value['in'] === 'header'
  return Array.isArray(parameters) && parameters.some(isKey)
}
