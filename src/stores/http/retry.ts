import { backoff, type Clock } from '../../platform/clock.js'
import type { Access } from '../common/access.js'
import { defaultRetry, type OpenOptions } from '../common/store.js'
import type { Failure } from './classify.js'

/** How long to retry: until the timeout, and for a separate time while connections are refused. */
export class RetryPolicy {
  readonly #options: OpenOptions
  #start: number
  #refusedSince: number | undefined

  constructor(options: OpenOptions) {
    this.#options = options
    this.#start = options.clock.now()
  }

  /** Milliseconds until the timeout. */
  get left(): number {
    return this.#start + this.#options.timeout - this.#options.clock.now()
  }

  /** Restarts the timeout, after something was settled. */
  reset(): void {
    this.#start = this.#options.clock.now()
    this.#refusedSince = undefined
  }

  /** The time on the clock after which there is no retry. Refused connections do not use up the timeout. */
  limit({ reason }: Failure): number {
    const { clock, timeout, retry = Math.min(defaultRetry, timeout) } = this.#options
    if (reason !== 'refused') return this.#start + timeout - Math.min(1000, timeout / 10) // leaves time for the last try
    this.#refusedSince ??= clock.now()
    this.#start = clock.now()
    return this.#refusedSince + retry
  }

  /** Milliseconds until the next try; undefined if there is none. */
  pauseAfter(failure: Failure, tries: number): number | undefined {
    if (failure.kind !== 'retry' && failure.kind !== 'unknown') return undefined
    const { clock } = this.#options
    const room = this.limit(failure) - clock.now()
    const { retryAfter = 0 } = failure
    if (room <= 0 || retryAfter > room) return undefined
    return Math.min(retryAfter + backoff(tries, { base: 100, max: 5000, random: clock.random }), room)
  }

  /** The message that explains a retry: its reason, and how long retries continue. */
  explain(failure: Failure, { message } = failure.error): string {
    const left = failure.reason === 'refused' ? this.limit(failure) - this.#options.clock.now() : this.left
    return `${message}. Trying again for up to ${Math.max(1, Math.round(left / 1000))} s`
  }
}

/** Waits for a promise, and reports the wait every second. */
export async function reportWait<T>({ onWait }: Access, clock: Clock, work: Promise<T>): Promise<T> {
  if (!onWait) return work
  const start = clock.now()
  const timer = setInterval(() => void onWait(clock.now() - start), 1000)
  try {
    return await work
  } finally {
    clearInterval(timer)
    await onWait(undefined)
  }
}
