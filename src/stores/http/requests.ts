import { PlantsError } from '../../platform/errors.js'
import { retrying } from '../../platform/runtime.js'
import { endsWithPlants, wrongAddressHint } from '../common/address.js'
import { nextPause, patienceOf, tryingAgain } from '../common/retry-policy.js'
import { isLost, policy, resultOf } from './failures.js'
import type { HttpClient, HttpRequest } from './http-client.js'
import { requestToDescribe, supportsKeys, unsupportedError } from './plant-request.js'

/** The requests of a call or an import. Durations are milliseconds. */
export class Requests {
  readonly client: HttpClient
  readonly signal: AbortSignal
  readonly #finishesSent: boolean
  #lastSettled: number

  /** @param signal ends the retries, and unless `finishesSent` also the requests in flight */
  constructor(
    client: HttpClient,
    signal = client.options.runtime.handleSignals(),
    finishesSent = false,
  ) {
    this.client = client
    this.signal = signal
    this.#finishesSent = finishesSent
    this.#lastSettled = this.#now
  }

  /**
   * Repeats a request while it may succeed.
   *
   * @param start of the timeout
   * @throws {PlantsError} that of a try which may have been processed, if no later one has settled that; otherwise the
   * last one, or the reason of the signal
   */
  async send<T>(request: HttpRequest<T>, start = this.#now): Promise<T> {
    const { client, signal } = this
    const { options } = client
    const elapsed = () => this.#now - Math.max(start, client.connectedAt ?? start)
    const left = () => options.timeout - (client.connectedAt === undefined ? 0 : elapsed())
    let lost: PlantsError | undefined
    const pauseAfter = async (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) return undefined
      if (isLost(error)) lost = error
      else if (!error.isRetryable) return undefined
      signal.throwIfAborted()
      const patience = patienceOf(options, client.connectedAt !== undefined)
      const { retryAfterMs: retryAfter } = error
      const pause = nextPause(
        policy,
        { tries, elapsed: elapsed(), patience, retryAfter },
        options.runtime,
      )
      if (pause === undefined || (lost && !(await this.#mayRepeat(request, start))))
        return undefined
      await client.warnOnce('retry', tryingAgain(lost ?? error, patience - elapsed()))
      return pause
    }
    try {
      return await retrying(
        () => this.#attempt(request, left),
        pauseAfter,
        () => [signal],
      )
    } catch (error) {
      // Only a conflict of a create, which has its own key, says that what may have been done was not.
      const isConflict =
        request.method === 'POST' && error instanceof PlantsError && error.kind === 'conflict'
      if (lost && !isConflict) throw lost
      throw (await this.#explained(request, error, start)) ?? error
    } finally {
      this.#lastSettled = this.#now
    }
  }

  /** A request whose token has expired is sent again with a newer one: a 401 changes nothing. */
  async #attempt<T>(request: HttpRequest<T>, left: () => number): Promise<T> {
    const { client, signal } = this
    const { token } = client.access
    signal.throwIfAborted()
    const response = await client.send(request, left(), this.#finishesSent ? undefined : signal)
    if ('cause' in response && !response.isSent) signal.throwIfAborted()
    const result = resultOf(client, request, response)
    if (!(result instanceof PlantsError)) return result
    const isUnauthorized = result.status === 401 || result.error === 401
    if (!isUnauthorized || request.isPublic || !(await client.renewToken(token))) throw result
    return this.#attempt(request, left)
  }

  /** A create that may have been processed is repeated only where its key prevents a second plant. */
  async #mayRepeat({ method }: HttpRequest<unknown>, start: number): Promise<boolean> {
    return method !== 'POST' || supportsKeys(await this.#describe(start))
  }

  /**
   * A service that answers 404 or 405 may not have the operation at all, or not be at this address. Below /plants, what
   * it answers with 400 is about another operation.
   */
  async #explained(
    request: HttpRequest<unknown>,
    error: unknown,
    start: number,
  ): Promise<PlantsError | undefined> {
    if (!(error instanceof PlantsError) || request.method === 'POST' || request.isPublic)
      return undefined
    const isMissing = error.status === 404 || error.status === 405
    const isOther =
      error.status === 400 && error.kind === 'rejected' && endsWithPlants(this.client.address)
    if (!isMissing && !isOther) return undefined
    const document = await this.#describe(start)
    const { address } = this.client
    if (isOther) {
      const message = `${address.name} answered 400: ${error.message}`
      return document
        ? undefined
        : new PlantsError(error.kind, message, { ...error, hint: wrongAddressHint })
    }
    if (!document && request.isOfOnePlant && !this.signal.aborted) {
      // The error of such an address has the hint.
      const hint = endsWithPlants(address) ? '' : `. ${wrongAddressHint}`
      await this.client.warnOnce('address', `${address.name} has no openapi.json${hint}`)
    }
    return document && unsupportedError(document, request)
  }

  /** Asks the service once, even if that fails: without a description, nothing is repeated or explained. */
  #describe(start: number): Promise<object | undefined> {
    this.client.description ??= this.send(requestToDescribe, start).catch((error: unknown) => {
      if (this.signal.aborted)
        this.client.description = undefined // others may still ask
      else if (!(error instanceof PlantsError)) throw error
      return undefined
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

  get #now(): number {
    return this.client.options.runtime.now()
  }
}

/** Throws the last failure, or the reason of a signal. */
export function ask<T>(client: HttpClient, request: HttpRequest<T>): Promise<T> {
  const requests = new Requests(client)
  return requests.report(requests.send(request))
}
