/*
 * Repeats an action after an error that may go away. The callers of `retry` decide which errors
 * these are, and how long the action is repeated. For stores, `stores/retry.ts` decides that.
 */
import { type Runtime, wait } from './runtime.js'

/** The pauses between tries double from the first one to the longest one. */
export interface Backoff {
  firstMs: number
  longestMs: number
}

/**
 * Chooses a pause with a random part, so that callers that failed together do not try again
 * together.
 *
 * @param tries how many tries there were, at least 1
 */
export function chooseBackoffMs(
  { firstMs, longestMs }: Backoff,
  tries: number,
  { random }: Pick<Runtime, 'random'>,
): number {
  const pauseMs = Math.min(firstMs * 2 ** (tries - 1), longestMs)
  return pauseMs * (0.5 + random() / 2)
}

interface RetryOptions {
  /**
   * Returns the pause before the next try. The loop ends if it returns undefined or throws.
   *
   * @param tries how many tries there were, at least 1
   */
  findPauseMs(error: unknown, tries: number): number | undefined | Promise<number | undefined>
  /** This is called before each pause. */
  onRetry?(error: unknown): void | Promise<void>
  /**
   * Returns the signals that end a pause. It is not called before the first pause, because it may
   * be `getStopSignal`, which changes what a signal does to the process.
   */
  getSignals(): AbortSignal[]
}

/** @throws the error of the last try, or the reason of a signal */
export async function retry<T>(
  action: () => T | Promise<T>,
  { findPauseMs, onRetry, getSignals }: RetryOptions,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await action()
    } catch (error) {
      const pauseMs = await findPauseMs(error, tries)
      if (pauseMs === undefined) throw error
      await onRetry?.(error)
      await wait(pauseMs, getSignals())
    }
  }
}
