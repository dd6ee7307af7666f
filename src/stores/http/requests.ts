import { PlantsError } from '../../platform/errors.js'
import { nextPause, patienceOf, retrying, tryingAgain } from '../common/retry-policy.js'
import type { Description, HttpClient, HttpRequest } from './http-client.js'
import { operationOf, requestToDescribe } from './plant-request.js'
import { expectedValue, RequestError, unsupportedError } from './request-error.js'

const policy = { base: 100, max: 2000 }

/** for a request that is never settled, while others are */
export const triesOfOne = 5

interface RequestsOptions {
  /** ends the retries, and unless `isUpload` also the requests in flight */
  signal?: AbortSignal | undefined
  /** whether many plants are sent concurrently: the timeout begins again whenever a request is settled */
  isUpload?: boolean
}

/** The requests of a call or an import. Durations are milliseconds. */
export class Requests {
  readonly client: HttpClient
  readonly signal: AbortSignal
  readonly #isUpload: boolean
  /** when the timeout began; undefined in an upload in which nothing has failed since a request was settled */
  #start: number | undefined
  #lastSettled: number

  constructor(client: HttpClient, { signal, isUpload = false }: RequestsOptions = {}) {
    const { clock } = client.options
    this.client = client
    this.signal = signal ?? clock.signal
    this.#isUpload = isUpload
    this.#lastSettled = clock.now()
    this.#start = isUpload ? undefined : clock.now()
  }

  /**
   * Repeats a request while it may succeed.
   *
   * @throws {RequestError} `unknown` if one of the tries may have been processed, and no later one has settled that;
   * otherwise the last failure, or the reason of the signal
   */
  async send<T>(request: HttpRequest<T>): Promise<T> {
    const { options } = this.client
    const start = this.#now
    let lost: RequestError | undefined
    const pauseAfter = async (error: unknown, tries: number) => {
      if (!(error instanceof RequestError && error.isTransient)) return undefined
      if (error.consequence === 'unknown') lost = error
      this.signal.throwIfAborted()
      const isOld = this.#isUpload && tries >= triesOfOne && this.#now - start >= options.timeout
      const patience = patienceOf(options, this.client.connectedAt !== undefined)
      const trial = { tries, elapsed: this.#elapsed, patience, retryAfter: error.retryAfter }
      const pause = nextPause(policy, trial, options.clock)
      if (pause === undefined || isOld || (lost && !(await this.#mayRepeat(request)))) return undefined
      await this.client.warnOnce('retry', tryingAgain(lost ?? error, patience - this.#elapsed))
      return pause
    }
    try {
      return await retrying(() => this.#attempt(request), pauseAfter, [this.signal])
    } catch (error) {
      // If the plant may have been stored, only a conflict with its own key says that it was not.
      if (lost && !(error instanceof RequestError && error.type === 'conflict')) throw lost
      throw (await this.#explained(request, error)) ?? error
    }
  }

  async #attempt<T>(request: HttpRequest<T>): Promise<T> {
    const { client } = this
    const { token } = client.access
    const send = async () => {
      this.signal.throwIfAborted()
      const left = client.connectedAt === undefined ? client.options.timeout : client.options.timeout - this.#elapsed
      const response = await client.send(request, left, this.#isUpload ? undefined : this.signal)
      if ('cause' in response && !response.isSent) this.signal.throwIfAborted()
      return expectedValue(client, request, response)
    }
    try {
      const value = await send().catch(async (error: unknown) => {
        // A 401 changes nothing.
        const isRejected = error instanceof RequestError && error.error === 401 && !request.isPublic
        if (!isRejected || !(await client.renewToken(token))) throw error
        return send()
      })
      this.#noteSettled()
      return value
    } catch (error) {
      if (!(error instanceof RequestError && error.isTransient)) this.#noteSettled()
      else this.#start ??= this.#now
      throw error
    }
  }

  #noteSettled(): void {
    this.#lastSettled = this.#now
    if (this.#isUpload) this.#start = undefined
  }

  /** A create that may have been processed is repeated only where its key prevents a second plant. */
  async #mayRepeat({ method }: HttpRequest<unknown>): Promise<boolean> {
    return method !== 'POST' || (await this.describe())?.supportsKeys === true
  }

  /** What answers 404 or 405 may not have the operation at all. */
  async #explained(request: HttpRequest<unknown>, error: unknown): Promise<RequestError | undefined> {
    const status = error instanceof RequestError ? error.status : undefined
    if (request.method === 'POST' || request.isPublic || (status !== 404 && status !== 405)) return undefined
    const operations = (await this.describe())?.operations
    const operation = operationOf(request)
    return operations && !operations.has(operation) ? unsupportedError(operation) : undefined
  }

  /** Asks the service once, also when that fails: without a description, nothing is repeated or explained. */
  async describe(): Promise<Description | undefined> {
    this.client.description ??= this.send(requestToDescribe).catch((error: unknown) => {
      if (error instanceof PlantsError || this.signal.aborted) return undefined
      throw error
    })
    return this.client.description
  }

  /** Reports for how long nothing has been settled, from a second on. */
  async report<T>(work: Promise<T>): Promise<T> {
    const { onWait } = this.client.access
    if (!onWait) return work
    const timer = setInterval(() => {
      const waited = this.#now - this.#lastSettled
      void onWait(waited >= 1000 ? waited : undefined)
    }, 250)
    try {
      return await work
    } finally {
      clearInterval(timer)
      await onWait(undefined)
    }
  }

  /** Since the timeout began, but not before the service was reached. */
  get #elapsed(): number {
    const { connectedAt = -Infinity } = this.client
    return this.#start === undefined ? 0 : this.#now - Math.max(this.#start, connectedAt)
  }

  get #now(): number {
    return this.client.options.clock.now()
  }
}

/** Throws the last failure, or the reason of a signal. */
export function ask<T>(client: HttpClient, request: HttpRequest<T>): Promise<T> {
  const requests = new Requests(client)
  return requests.report(requests.send(request))
}
