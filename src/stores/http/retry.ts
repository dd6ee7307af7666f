import { backoff, isTimeout, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { defaultRetry } from '../common/store.js'
import { classify } from './classify.js'
import type { HttpClient, HttpRequest } from './client.js'
import type { Failure, RequestResult } from './failure.js'

/**
 * The retries of a request, or of the requests of an upload. Durations are milliseconds, and times those of the clock.
 */
export class Retries {
  readonly signal: AbortSignal
  hasWarned = false
  /** the last error after which the service may have processed a request that changes something */
  unknown: PlantsError | undefined
  readonly #client: HttpClient
  #start: number
  #refusedSince: number | undefined

  /** @param signal ends the retries, like the clock's signal */
  constructor(client: HttpClient, signal?: AbortSignal) {
    const { clock } = client.options
    this.signal = signal ? AbortSignal.any([clock.signal, signal]) : clock.signal
    this.#client = client
    this.#start = clock.now()
  }

  /** until the timeout */
  get left(): number {
    return this.#start + this.#client.options.timeout - this.#now
  }

  /** Restarts the timeout, after something was settled. */
  reset(): void {
    this.#start = this.#now
    this.#refusedSince = undefined
  }

  /** Refused connections have a limit of their own, and do not use up the timeout. */
  note({ reason }: Failure): void {
    if (reason !== 'refused') return
    this.#start = this.#now
    this.#refusedSince ??= this.#now
  }

  /** The time after which a failure is not retried. */
  limit({ reason }: Failure): number {
    const { timeout, retry = Math.min(defaultRetry, timeout) } = this.#client.options
    if (reason === 'refused') return (this.#refusedSince ?? this.#start) + retry
    return this.#start + timeout - Math.min(1000, timeout / 10) // leaves time for the last try
  }

  /** Until the next try; undefined if there is none. Throws the reason of a signal. */
  pauseAfter(failure: Failure, tries: number): number | undefined {
    if (failure.outcome !== 'retry' && failure.outcome !== 'unknown') return undefined
    this.signal.throwIfAborted()
    const room = this.limit(failure) - this.#now
    const { retryAfter = 0 } = failure
    if (room <= 0 || retryAfter > room) return undefined
    return Math.min(retryAfter + this.backoff(tries), room)
  }

  /** @param failures in a row, not counting the first */
  backoff(failures: number): number {
    return backoff(failures, { base: 100, max: 2000, random: this.#client.options.clock.random })
  }

  explain(failure: Failure): string {
    const left = failure.reason === 'refused' ? this.limit(failure) - this.#now : this.left
    const { message } = this.unknown ?? failure.error
    return `${message}. Trying again for up to ${Math.max(1, Math.round(left / 1000))} s`
  }

  /** Explains the first retry. */
  async warn(failure: Failure): Promise<void> {
    if (this.hasWarned || this.signal.aborted) return
    this.hasWarned = true
    await this.#client.access.notify(this.explain(failure))
  }

  get #now(): number {
    return this.#client.options.clock.now()
  }
}

interface ExchangeOptions {
  retries?: Retries
  /** Is called before each retry, to warn of it; false ends the retries. */
  onRetry?(failure: Failure, tries: number): Promise<unknown>
}

/**
 * Sends a request, and retries it with backoff until it is settled or the timeout is over.
 *
 * @throws {PlantsError} the last failure; the reason of a signal
 */
export async function exchange<T>(client: HttpClient, request: HttpRequest<T>, options: ExchangeOptions = {}): Promise<T> {
  const { retries = new Retries(client), onRetry = (failure) => retries.warn(failure) } = options
  let last: Failure | undefined
  for (let tries = 0; ; tries += 1) {
    retries.signal.throwIfAborted()
    const result = await send(client, request, retries)
    if (result.outcome === 'done') return result.value
    // The last try may have had too little time, so that the error of the one before says more.
    const isLess = isTimeout(result.error.cause) && (result.outcome === 'retry' || result.outcome === last?.outcome)
    if (!last || !isLess) last = result
    if (last.outcome === 'unknown' && request.method !== 'GET') retries.unknown = last.error
    retries.note(last)
    const pause = retries.pauseAfter(last, tries)
    if (pause === undefined || (await onRetry(last, tries)) === false) throw errorOf(last, request)
    await wait(pause, [retries.signal])
  }
}

/** Sends a request, and after a 401, which changes nothing, once more with a newer token. */
async function send<T>(client: HttpClient, request: HttpRequest<T>, retries: Retries): Promise<RequestResult<T>> {
  const result = classify(client, request, await client.send(request, retries.left, retries.signal))
  const renewed = result.outcome === 'done' ? undefined : await client.withNewerToken(request, result.error)
  return renewed ? classify(client, renewed, await client.send(renewed, retries.left, retries.signal)) : result
}

/** The outcome of a GET, which changes nothing, is known even without a response. */
function errorOf({ outcome, error }: Failure, { method }: HttpRequest<unknown>): PlantsError {
  if (outcome !== 'unknown' || method !== 'GET') return error
  const { message, status, requestId, cause } = error
  return new PlantsError('unavailable', message, { hint: 'Nothing was stored. Try again later', retryable: true, status, requestId, cause })
}

/** and reports the wait */
export function ask<T>(client: HttpClient, request: HttpRequest<T>, options?: ExchangeOptions): Promise<T> {
  const { clock } = client.options
  const start = clock.now()
  return reportWait(client, exchange(client, request, options), () => clock.now() - start)
}

/** Reports for how long the service has been waited for, from a second on. */
export async function reportWait<T>({ access }: HttpClient, work: Promise<T>, waited: () => number): Promise<T> {
  const { onWait } = access
  if (!onWait) return work
  const timer = setInterval(() => {
    const milliseconds = waited()
    void onWait(milliseconds >= 1000 ? milliseconds : undefined)
  }, 250)
  try {
    return await work
  } finally {
    clearInterval(timer)
    await onWait(undefined)
  }
}
