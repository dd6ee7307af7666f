/**
 * Decides how long a call of a store is repeated, which is called its retry budget.
 *
 * A store that has answered before will probably answer again, so the budget is the timeout. A
 * store that has never answered may not be running at all. So its budget is two seconds, unless the
 * user sets it with `--retry`.
 */
import type { PlantsError } from '../errors.js'
import { type Backoff, chooseBackoffMs } from '../platform/retry.js'
import type { Runtime } from '../platform/runtime.js'

/** The retry budget of a store that has never answered. */
const defaultRetryMs = 2000

interface BudgetOptions {
  /** A call with its retries takes no longer than this. */
  timeoutMs: number
  /** This is the budget of a store that has not answered yet, in milliseconds. */
  retry?: number | undefined
}

export function chooseRetryBudgetMs(
  { timeoutMs, retry = Math.min(defaultRetryMs, timeoutMs) }: BudgetOptions,
  hasAnswered: boolean,
): number {
  return hasAnswered ? timeoutMs : retry
}

interface RetryState {
  /** The number of tries that have failed, at least 1. */
  tries: number
  /** This is the time since the call began or, if that is later, since the store was connected. */
  elapsedMs: number
  retryBudgetMs: number
  /** The store asks for a pause of this length, as with the header Retry-After. */
  retryAfterMs?: number | undefined
}

/**
 * How long before the end of the budget the last try begins, or a tenth of the budget if that is
 * less. The try would fail without an answer if it began later.
 */
const longestReserveMs = 1000

/** @returns the pause before the next try, or undefined if there is no time for another try */
export function findRetryPauseMs(
  backoff: Backoff,
  { tries, elapsedMs, retryBudgetMs, retryAfterMs = 0 }: RetryState,
  runtime: Pick<Runtime, 'random'>,
): number | undefined {
  const reserveMs = Math.min(longestReserveMs, retryBudgetMs / 10)
  const leftMs = retryBudgetMs - elapsedMs - reserveMs
  if (leftMs <= 0 || retryAfterMs > leftMs) return undefined
  return Math.min(retryAfterMs + chooseBackoffMs(backoff, tries, runtime), leftMs)
}

/** @param leftMs until the store is given up */
export function describeRetry({ message }: PlantsError, leftMs: number): string {
  return `${message}. Trying again for up to ${Math.max(1, Math.round(leftMs / 1000))} s`
}
