import { backoff, type Clock, secondsOf } from '../../platform/clock.js'
import { defaultRetry, type OpenOptions } from '../store.js'
import type { Failure } from './classify.js'
import type { Access } from './types.js'

/** Until when something is tried again: for the time-out, and for a time of its own while connections are refused. */
export class RetryPolicy {
  readonly #options: OpenOptions
  #start: number
  #refusedSince: number | undefined

  constructor(options: OpenOptions) {
    this.#options = options
    this.#start = options.clock.now()
  }

  /** Milliseconds until the time-out. */
  get left(): number {
    return this.#start + this.#options.timeout - this.#options.clock.now()
  }

  /** Begins again: something was settled. */
  reset(): void {
    this.#start = this.#options.clock.now()
    this.#refusedSince = undefined
  }

  /** The time on the clock after which there is no other try. A refused connection takes nothing of the time-out. */
  limit({ reason }: Failure): number {
    const { clock, timeout, retry = Math.min(defaultRetry, timeout) } = this.#options
    if (reason !== 'refused') return this.#start + timeout - Math.min(1000, timeout / 10) // so that the last try has some time too
    this.#refusedSince ??= clock.now()
    this.#start = clock.now()
    return this.#refusedSince + retry
  }

  /** Milliseconds until the next try, or undefined when there is none. */
  pauseAfter(failure: Failure, tries: number): number | undefined {
    if (failure.kind !== 'retry' && failure.kind !== 'unknown') return undefined
    const { clock } = this.#options
    const room = this.limit(failure) - clock.now()
    const { retryAfter = 0 } = failure
    if (room <= 0 || retryAfter > room) return undefined
    return Math.min(retryAfter + backoff(tries, { base: 100, max: 5000, random: clock.random }), room)
  }

  /** Why there is another try, and for how long there will be more, for a person. */
  explain(failure: Failure, { message } = failure.error): string {
    const left = failure.reason === 'refused' ? this.limit(failure) - this.#options.clock.now() : this.left
    return `${message}. Trying again for up to ${secondsOf(left)}`
  }
}

/** Waits for some work, and says each second that it does. */
export async function reportWait<T>({ onWait }: Access, clock: Clock, work: Promise<T>): Promise<T> {
  if (!onWait) return work
  const start = clock.now()
  const timer = setInterval(() => onWait(clock.now() - start), 1000)
  try {
    return await work
  } finally {
    clearInterval(timer)
    onWait(undefined)
  }
}
