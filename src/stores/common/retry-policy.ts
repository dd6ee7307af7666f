import { backoff, type Clock, wait } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'

/** The first pause and the longest one, in milliseconds: they grow exponentially, with jitter. */
interface RetryPolicy {
  base: number
  max: number
}

interface RetryState {
  tries: number
  /** Milliseconds since the call began, or since the store began to fail. */
  elapsed: number
  /** See `patienceOf`. */
  patience: number
  /** Milliseconds that the store asks for. */
  retryAfter?: number | undefined
}

/** In milliseconds: a store that never answered may not be running at all, and is retried only briefly. */
export function patienceOf(
  { timeout, retry = Math.min(firstPatience, timeout) }: { timeout: number; retry?: number | undefined },
  hasAnswered: boolean,
): number {
  return hasAnswered ? timeout : retry
}

const firstPatience = 2000

/** Milliseconds before the next try, the last one being shortly before the end; undefined after that. */
export function nextPause(
  policy: RetryPolicy,
  { tries, elapsed, patience, retryAfter = 0 }: RetryState,
  { random }: Pick<Clock, 'random'>,
): number | undefined {
  const reservedForLastTry = Math.min(1000, patience / 10)
  const left = patience - elapsed - reservedForLastTry
  if (left <= 0 || retryAfter > left) return undefined
  return Math.min(retryAfter + backoff(tries - 1, { ...policy, random }), left)
}

/** Repeats an action until it succeeds, or `pauseAfter` returns undefined for its error. Throws the reason of a signal. */
export async function retrying<T>(
  action: () => Promise<T>,
  pauseAfter: (error: unknown, tries: number) => number | undefined | Promise<number | undefined>,
  signals: AbortSignal[],
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await action()
    } catch (error) {
      const pause = await pauseAfter(error, tries)
      if (pause === undefined) throw error
      await wait(pause, signals)
    }
  }
}

/** The message for a person who waits. @param left milliseconds until the store is given up */
export function tryingAgain({ message }: PlantsError, left: number): string {
  return `${message}. Trying again for up to ${Math.max(1, Math.round(left / 1000))} s`
}
