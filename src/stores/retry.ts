/**
 * How long a call of a store is repeated.
 *
 * A call has a retry budget. A store that has answered before will probably answer again, so the
 * budget is the timeout. One that never answered may not be running at all, so that its budget is
 * short unless the caller sets it.
 */
import type { PlantsError } from '../errors.js'
import { type Backoff, chooseBackoffMs } from '../platform/retry.js'
import type { Runtime } from '../platform/runtime.js'

/** The retry budget of a store that has never answered. */
const defaultRetryMs = 2000

interface BudgetOptions {
  /** Limits a call with its retries. */
  timeoutMs: number
  /** Replaces the budget of a store that has not answered yet, in milliseconds. */
  retry?: number | undefined
}

export function chooseRetryBudgetMs(
  { timeoutMs, retry = Math.min(defaultRetryMs, timeoutMs) }: BudgetOptions,
  hasAnswered: boolean,
): number {
  return hasAnswered ? timeoutMs : retry
}

interface RetryState {
  /** So far, from 1 on. */
  tries: number
  /** Since the call began, or since the store was connected. */
  elapsedMs: number
  retryBudgetMs: number
  /** The pause that the store asks for. */
  retryAfterMs?: number | undefined
}

/** The last try begins this long before the budget is used up, or a tenth of it if that is less. */
const longestReserveMs = 1000

/** Returns the pause before the next try; undefined if there is no time for one. */
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
