import type { PlantsError } from '../../platform/errors.js'
import { backoff, type RetryPolicy, type Runtime } from '../../platform/runtime.js'

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
  {
    timeout,
    retry = Math.min(firstPatience, timeout),
  }: { timeout: number; retry?: number | undefined },
  hasAnswered: boolean,
): number {
  return hasAnswered ? timeout : retry
}

const firstPatience = 2000

/** Milliseconds before the next try, the last one being shortly before the end; undefined after that. */
export function nextPause(
  policy: RetryPolicy,
  { tries, elapsed, patience, retryAfter = 0 }: RetryState,
  runtime: Pick<Runtime, 'random'>,
): number | undefined {
  const reservedForLastTry = Math.min(1000, patience / 10)
  const left = patience - elapsed - reservedForLastTry
  if (left <= 0 || retryAfter > left) return undefined
  return Math.min(retryAfter + backoff(policy, tries, runtime), left)
}

/** The message for a person who waits. @param left milliseconds until the store is given up */
export function tryingAgain({ message }: PlantsError, left: number): string {
  return `${message}. Trying again for up to ${Math.max(1, Math.round(left / 1000))} s`
}
