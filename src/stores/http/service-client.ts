import { PlantsError } from '../../errors.js'
import { isObject, parseJson } from '../../plant/json.js'
import { retry } from '../../platform/retry.js'
import { chooseRetryBudgetMs, describeRetry, findRetryPauseMs } from '../retry.js'
import { explainNoResponse, explainResponse, type Failure } from './explain.js'
import { HttpClient, type HttpRequest, type HttpResponse, type NoResponse } from './http-client.js'
import type { Service } from './transport.js'

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
interface Call<T = unknown> {
  request: HttpRequest<T>
  signal: AbortSignal
  /** These signals end a request in flight. */
  inFlightSignals: AbortSignal[]
  startMs: number
  /** The failure of a try that the service may have processed. */
  unknownOutcome: PlantsError | undefined
}

/**
 * Gets values from a service. It repeats a request while it may succeed, renews the token, and
 * finds out whether the service has idempotency keys.
 */
export class ServiceClient {
  readonly #httpClient: HttpClient
  #token: string
  /**
   * Resolves to whether the service lists idempotency keys, or to undefined if it did not answer;
   * undefined until the service was asked.
   */
  #supportsKeys: Promise<boolean | undefined> | undefined
  /** True if the user was warned that requests are repeated. The warning is printed only once. */
  #hasWarned = false

  constructor(readonly service: Service) {
    this.#httpClient = new HttpClient(service)
    this.#token = service.access.token
  }

  /**
   * Sends a request, and repeats it while it may succeed.
   *
   * @throws {PlantsError} the failure of a try that the service may have processed, unless a later
   *   try has shown the outcome; otherwise the last failure, or the reason of the signal
   */
  async send<T>(request: HttpRequest<T>, options: SendOptions = {}): Promise<T> {
    const { runtime } = this.service
    const { signal = runtime.getStopSignal(), startMs = runtime.now() } = options
    const inFlightSignals = options.finishesInFlight ? [] : [signal]
    const call: Call<T> = { request, signal, inFlightSignals, startMs, unknownOutcome: undefined }
    try {
      return await retry(() => this.#sendOnce(call), {
        findPauseMs: (error, tries) => this.#findPauseMs(call, error, tries),
        onRetry: (error) => this.#warnOnce(call, error),
        getSignals: () => [signal],
      })
    } catch (error) {
      const { unknownOutcome } = call
      if (!unknownOutcome) throw error
      if (isCreateConflict(request, error)) throw Object.assign(error, { mayBeOwnPlant: true })
      if ((await this.#supportsKeys) !== false) throw unknownOutcome
      throw Object.assign(unknownOutcome, { isKeyIgnored: true })
    }
  }

  close(): Promise<void> {
    return this.#httpClient.close()
  }

  async #sendOnce<T>(call: Call<T>): Promise<T> {
    const { request, signal, inFlightSignals } = call
    signal.throwIfAborted()
    const token = this.#token
    const timeoutMs = this.#findTimeoutMs(call)
    const response = await this.#httpClient.send({ ...request, token }, timeoutMs, inFlightSignals)
    const result = interpretResponse(this.service, request, response)
    if ('value' in result) return result.value
    const { error, isOutcomeUnknown } = result
    // A token may have expired, and a 401 changes nothing.
    if (error.kind === 'unauthorized' && (await this.#renewToken(token)))
      return this.#sendOnce(call)
    if (isOutcomeUnknown) call.unknownOutcome = error
    throw error
  }

  /** Returns the time that the next try may take. */
  #findTimeoutMs(call: Call): number {
    const { timeoutMs } = this.service
    if (this.#httpClient.connectedAtMs === undefined) return timeoutMs
    return timeoutMs - this.#measureTime(call).elapsedMs
  }

  /** Looks the token up again, and returns true if the new token differs from the rejected one. */
  async #renewToken(rejectedToken: string): Promise<boolean> {
    const token = await this.service.access.renew?.()
    if (token === undefined || token === rejectedToken) return false
    this.#token = token
    return true
  }

  /** Returns undefined if there is no time for another try, or if the request is not repeated. */
  async #findPauseMs(call: Call, error: unknown, tries: number): Promise<number | undefined> {
    const { signal, unknownOutcome } = call
    if (!(error instanceof PlantsError)) return undefined
    if (error !== unknownOutcome && !error.isRetryable) return undefined
    signal.throwIfAborted()
    const state = { ...this.#measureTime(call), tries, retryAfterMs: error.retryAfterMs }
    const pauseMs = findRetryPauseMs(backoff, state, this.service.runtime)
    if (pauseMs === undefined) return undefined
    if (unknownOutcome && !(await this.#mayRepeat(call))) return undefined
    return pauseMs
  }

  /** Warns once that requests are repeated, because that may take long. */
  async #warnOnce(call: Call, error: unknown): Promise<void> {
    const reason = call.unknownOutcome ?? error
    if (this.#hasWarned || !(reason instanceof PlantsError)) return
    this.#hasWarned = true
    const { elapsedMs, retryBudgetMs } = this.#measureTime(call)
    await this.service.access.notify(describeRetry(reason, retryBudgetMs - elapsedMs))
  }

  /**
   * Before the first connection, the time begins with the request. After the first connection, the
   * time of connecting is not counted.
   */
  #measureTime({ startMs }: Call): { elapsedMs: number; retryBudgetMs: number } {
    const { connectedAtMs } = this.#httpClient
    const elapsedMs = this.service.runtime.now() - Math.max(startMs, connectedAtMs ?? startMs)
    const hasConnected = connectedAtMs !== undefined
    return { elapsedMs, retryBudgetMs: chooseRetryBudgetMs(this.service, hasConnected) }
  }

  /**
   * Returns true if a request that the service may have processed may be repeated. A create may be
   * repeated only if the service supports idempotency keys, which prevent a second plant. The
   * service is asked for this only once, even if the question fails.
   */
  async #mayRepeat({ request, signal, startMs }: Call): Promise<boolean> {
    if (request.method !== 'POST') return true
    this.#supportsKeys ??= this.#requestKeySupport({ signal, startMs })
    return (await this.#supportsKeys) === true
  }

  async #requestKeySupport(options: SendOptions): Promise<boolean | undefined> {
    try {
      return await this.send(descriptionRequest, options)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      const isAnswered = error.status !== undefined && !error.isRetryable
      return isAnswered ? false : undefined
    }
  }
}

/** Returns the value of a response, or why there is none. Only a 200 has a value. */
export function interpretResponse<T>(
  service: Service,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): { value: T } | Failure {
  if ('cause' in response) return explainNoResponse(service, request, response)
  const value = response.status === 200 ? request.expectedValue.read(response) : undefined
  return value === undefined ? explainResponse(service, request, response) : { value }
}

/**
 * Returns true if a create has found that its id exists. A repetition of a create has the same key.
 * So the id belongs to another plant, or to the plant of this create, if somebody has changed the
 * plant since.
 */
function isCreateConflict({ method }: HttpRequest, error: unknown): error is PlantsError {
  return method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
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
