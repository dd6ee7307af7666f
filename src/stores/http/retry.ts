import { backoff, isTimeout, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { defaultRetry } from '../common/store.js'
import { classify } from './classify.js'
import type { HttpClient, HttpRequest } from './client.js'
import type { Failure } from './failure.js'

/** How long to retry: until the timeout, and for a separate time while connections are refused. */
export class RetryPolicy {
  /** ends the retries, with its reason */
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

  /** Milliseconds until the timeout. */
  get left(): number {
    const { timeout, clock } = this.#client.options
    return this.#start + timeout - clock.now()
  }

  /** Restarts the timeout, after something was settled. */
  reset(): void {
    this.#start = this.#client.options.clock.now()
    this.#refusedSince = undefined
  }

  /** The time on the clock after which there is no retry. Refused connections do not use up the timeout. */
  limit({ reason }: Failure): number {
    const { clock, timeout, retry = Math.min(defaultRetry, timeout) } = this.#client.options
    if (reason !== 'refused') return this.#start + timeout - Math.min(1000, timeout / 10) // leaves time for the last try
    this.#refusedSince ??= clock.now()
    this.#start = clock.now()
    return this.#refusedSince + retry
  }

  /** Milliseconds until the next try; undefined if there is none. Throws the reason of a signal. */
  pauseAfter(failure: Failure, tries: number): number | undefined {
    if (failure.kind !== 'retry' && failure.kind !== 'unknown') return undefined
    this.signal.throwIfAborted()
    const { clock } = this.#client.options
    const room = this.limit(failure) - clock.now()
    const { retryAfter = 0 } = failure
    if (room <= 0 || retryAfter > room) return undefined
    return Math.min(retryAfter + this.backoff(tries), room)
  }

  /** Milliseconds to wait after so many failures in a row, not counting the first. */
  backoff(failures: number): number {
    return backoff(failures, { base: 100, max: 2000, random: this.#client.options.clock.random })
  }

  /** The message that explains a retry: its reason, and how long retries continue. */
  explain(failure: Failure): string {
    const left = failure.reason === 'refused' ? this.limit(failure) - this.#client.options.clock.now() : this.left
    const { message } = this.unknown ?? failure.error
    return `${message}. Trying again for up to ${Math.max(1, Math.round(left / 1000))} s`
  }

  /** Explains the first retry. */
  async warn(failure: Failure): Promise<void> {
    if (this.hasWarned || this.signal.aborted) return
    this.hasWarned = true
    await this.#client.access.notify(this.explain(failure))
  }
}

interface ExchangeOptions {
  policy?: RetryPolicy
  /** Is called before each retry, to warn of it; false ends the retries. */
  onRetry?(failure: Failure, tries: number): Promise<unknown>
}

/**
 * Sends a request, and retries it with backoff until it is settled or the timeout is over.
 *
 * @throws {PlantsError} the last failure; the reason of a signal
 */
export async function exchange<T>(client: HttpClient, request: HttpRequest<T>, options: ExchangeOptions = {}): Promise<T> {
  const { policy = new RetryPolicy(client), onRetry = (failure) => policy.warn(failure) } = options
  let last: Failure | undefined
  for (let tries = 0; ; tries += 1) {
    policy.signal.throwIfAborted()
    const result = classify(client, request, await client.send(request, policy.left, policy.signal))
    if (result.kind === 'done') return result.value
    // The last try may have had too little time, so that the error of the one before says more.
    const isLess = isTimeout(result.error.cause) && (result.kind === 'retry' || result.kind === last?.kind)
    if (!last || !isLess) last = result
    if (last.kind === 'unknown' && request.method !== 'GET') policy.unknown = last.error
    const pause = policy.pauseAfter(last, tries)
    if (pause === undefined || (await onRetry(last, tries)) === false) throw errorOf(last, request)
    await wait(pause, [policy.signal])
  }
}

/** The outcome of a GET, which changes nothing, is known even without a response. */
function errorOf({ kind, error }: Failure, { method }: HttpRequest<unknown>): PlantsError {
  if (kind !== 'unknown' || method !== 'GET') return error
  const { message, status, requestId, cause } = error
  return new PlantsError('unavailable', message, { hint: 'Nothing was stored. Try again later', retryable: true, status, requestId, cause })
}

/** The same as `exchange`, and reports the wait. */
export function ask<T>(client: HttpClient, request: HttpRequest<T>, options?: ExchangeOptions): Promise<T> {
  const { clock } = client.options
  const start = clock.now()
  return reportWait(client, exchange(client, request, options), () => clock.now() - start)
}

/** Waits for a promise, and reports for how long the service has been waited for, from a second on. */
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
