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
  /** A wait of a call, with its retries, takes no longer than this. */
  timeoutMs: number
  /** This is the budget of a store that has not answered yet, in milliseconds. */
  retryMs?: number | undefined
}

export function chooseRetryBudgetMs(
  { timeoutMs, retryMs = Math.min(defaultRetryMs, timeoutMs) }: BudgetOptions,
  hasAnswered: boolean,
): number {
  return hasAnswered ? timeoutMs : retryMs
}

interface RetryState {
  /** The number of tries that have failed, at least 1. */
  tries: number
  /** The time since the call began, or since the store was connected if that was later. */
  elapsedMs: number
  retryBudgetMs: number
  /** The store asks for a pause of this length, as with the header Retry-After. */
  retryAfterMs?: number | undefined
}

/**
 * The last try begins this long before the end of the budget, or a tenth of the budget before it if
 * that is less. A try that begins later would have no time for an answer.
 */
const longestReserveMs = 1000

/** @returns the pause before the next try, or undefined if there is no time for another try */
export function findRetryPauseMs(
  backoff: Backoff,
  { tries, elapsedMs, retryBudgetMs, retryAfterMs = 0 }: RetryState,
  runtime: Pick<Runtime, 'random'>,
): number | undefined {
  const reserveMs = Math.min(longestReserveMs, retryBudgetMs / 10)
  const remainingMs = retryBudgetMs - elapsedMs - reserveMs
  if (remainingMs <= 0 || retryAfterMs > remainingMs) return undefined
  return Math.min(retryAfterMs + chooseBackoffMs(backoff, tries, runtime), remainingMs)
}

/** @param remainingMs until the store is given up */
export function describeRetry({ message }: PlantsError, remainingMs: number): string {
  return `${message}. Trying again for up to ${Math.max(1, Math.round(remainingMs / 1000))} s`
}
