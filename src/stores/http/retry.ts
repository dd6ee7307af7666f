import { backoff, isTimeout, wait } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import { classify, type Failure, type RequestResult } from './classify.js'
import type { HttpClient, HttpRequest } from './http-client.js'

interface RequestsOptions {
  /** ends the retries, and unless `isUpload` also the requests in flight */
  signal?: AbortSignal | undefined
  /**
   * whether many plants are sent concurrently: the timeout begins again whenever a request is settled, and a failure or
   * two are not worth a warning
   */
  isUpload?: boolean
}

interface SendOptions {
  /** after a try that may have been processed; false ends the retries */
  mayRepeat?(lost: PlantsError): Promise<boolean>
  /** why this request is sent: what to warn of instead of its failures */
  because?: PlantsError
}

/** `lost` is the error of an earlier try, which may have been processed, too. */
export type Result<T> = (RequestResult<T> | Aborted) & { lost: PlantsError | undefined }

interface Aborted {
  outcome: 'aborted'
}

/**
 * The requests of a call or an upload, retried with backoff until the timeout. While the service fails, they follow
 * each other: a single one shows whether it has recovered. Durations are milliseconds.
 */
export class Requests {
  readonly client: HttpClient
  readonly signal: AbortSignal
  readonly #isUpload: boolean
  /** when the timeout began; undefined in an upload in which nothing has failed since a request was settled */
  #start: number | undefined
  #refusedSince: number | undefined
  #lastSettled: number
  /** in a row; requests that were in flight together count as one */
  #failures = 0
  #lastFailure = -Infinity
  #pauseEnd = -Infinity
  #probe: Promise<unknown> | undefined

  constructor(client: HttpClient, { signal, isUpload = false }: RequestsOptions = {}) {
    const { clock } = client.options
    this.client = client
    this.signal = signal ?? clock.signal
    this.#isUpload = isUpload
    this.#lastSettled = clock.now()
    this.#start = isUpload ? undefined : clock.now()
  }

  async send<T>(
    request: HttpRequest<T>,
    { mayRepeat = async () => true, because }: SendOptions = {},
  ): Promise<Result<T>> {
    const start = this.#now
    let lost: PlantsError | undefined
    let last: Failure | undefined
    for (let tries = 1; ; tries += 1) {
      const result = await this.#sendInTurn(request)
      if (!isTransient(result)) return { ...result, lost }
      last = moreTelling(last, result)
      if (last.outcome === 'unknown') lost = last.error
      const repeats = this.#mayRetry(last, tries, start) && (!lost || (await mayRepeat(lost)))
      if (this.signal.aborted) return { outcome: 'aborted', lost }
      if (!repeats) return { ...last, lost }
      await this.#warn(last, because ?? lost)
      if (last.outcome === 'unknown') await this.pause(tries)
    }
  }

  #mayRetry(failure: Failure, tries: number, start: number): boolean {
    if (this.signal.aborted || this.isOver(failure)) return false
    // The plant itself causes the failure if others were settled while this one was retried.
    const isOld = tries >= triesOfOne && this.#now - start >= this.client.options.timeout
    return failure.outcome !== 'unknown' || !isOld || this.#lastSettled <= start
  }

  /** Whether there is no time to retry a failure. */
  isOver(failure: Failure): boolean {
    const room = this.#roomFor(failure)
    return room <= 0 || (failure.retryAfter ?? 0) > room
  }

  /** Does not throw when the signal aborts. */
  pause(tries: number): Promise<void> {
    return this.#wait(this.#backoff(tries))
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

  async #sendInTurn<T>(request: HttpRequest<T>): Promise<RequestResult<T> | Aborted> {
    while (this.#probe !== undefined) await this.#probe.catch(() => undefined) // its own caller gets the error
    if (this.#failures === 0) return this.#sendAfterPause(request)
    const sent = this.#sendAfterPause(request).finally(() => {
      this.#probe = undefined
    })
    this.#probe = sent
    return sent
  }

  async #sendAfterPause<T>(request: HttpRequest<T>): Promise<RequestResult<T> | Aborted> {
    while (this.#pauseEnd > this.#now && !this.signal.aborted) await this.#wait(this.#pauseEnd - this.#now)
    if (this.signal.aborted) return { outcome: 'aborted' }
    const sentAt = this.#now
    const { client } = this
    const signal = this.#isUpload ? undefined : this.signal
    let result = classify(client, request, await client.send(request, this.#left, signal))
    // A 401 changes nothing.
    const renewed = result.outcome === 'fatal' ? await client.withNewerToken(request, result.error) : undefined
    if (renewed) result = classify(client, renewed, await client.send(renewed, this.#left, signal))
    if (isTransient(result)) this.#noteFailure(result, sentAt)
    else this.#noteSettled()
    return result
  }

  #noteSettled(): void {
    this.#lastSettled = this.#now
    this.#failures = 0
    this.#refusedSince = undefined
    if (this.#isUpload) this.#start = undefined
  }

  #noteFailure(failure: Failure, sentAt: number): void {
    const now = this.#now
    if (failure.isRefused) this.#refusedSince ??= now
    // Refused connections have a limit of their own, and do not use up the timeout.
    if (failure.isRefused || this.#start === undefined) this.#start = now
    if (sentAt >= this.#lastFailure) {
      this.#failures += 1
      this.#lastFailure = now
    }
    if (failure.outcome === 'unknown' && this.#failures === 1) return // connections break now and then
    const pause = (failure.retryAfter ?? 0) + this.#backoff(this.#failures)
    this.#pauseEnd = Math.max(this.#pauseEnd, now + Math.min(pause, this.#roomFor(failure)))
  }

  /** The time until a failure is not retried any more. */
  #roomFor({ isRefused }: Failure): number {
    const { timeout, retry = Math.min(defaultRetry, timeout) } = this.client.options
    if (isRefused) return (this.#refusedSince ?? this.#now) + retry - this.#now
    return this.#left - Math.min(1000, timeout / 10) // leaves time for the last try
  }

  get #left(): number {
    return (this.#start ?? this.#now) + this.client.options.timeout - this.#now
  }

  async #warn(failure: Failure, because = failure.error): Promise<void> {
    if (this.#isUpload && this.#failures < 3) return
    const left = failure.isRefused ? this.#roomFor(failure) : this.#left
    const seconds = Math.max(1, Math.round(left / 1000))
    await this.client.warnOnce('retry', `${because.message}. Trying again for up to ${seconds} s`)
  }

  #backoff(tries: number): number {
    return backoff(tries - 1, { base: 100, max: 2000, random: this.client.options.clock.random })
  }

  async #wait(milliseconds: number): Promise<void> {
    await wait(milliseconds, [this.signal]).catch(() => undefined) // the caller asks the signal
  }

  get #now(): number {
    return this.client.options.clock.now()
  }
}

/** The last try may have had too little time, so that the error of the one before says more. */
function moreTelling(before: Failure | undefined, last: Failure): Failure {
  const isLess = isTimeout(last.error.cause) && (last.outcome === 'retry' || before?.outcome === 'unknown')
  return before && isLess ? before : last
}

function isTransient(result: RequestResult<unknown> | Aborted): result is Failure {
  return result.outcome === 'retry' || result.outcome === 'unknown'
}

/** milliseconds */
const defaultRetry = 2000

/** for a request that is never settled, while others are */
export const triesOfOne = 5

/** For a request that changes nothing. Throws the last failure, or the reason of a signal. */
export async function ask<T>(client: HttpClient, request: HttpRequest<T>, signal?: AbortSignal): Promise<T> {
  const { clock } = client.options
  const requests = new Requests(client, { signal: signal && AbortSignal.any([clock.signal, signal]) })
  const result = await requests.report(requests.send(request))
  if (result.outcome === 'done') return result.value
  throw result.outcome === 'aborted' ? requests.signal.reason : result.error
}
