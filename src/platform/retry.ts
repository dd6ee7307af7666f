/**
 * The one loop that repeats what may succeed later. Its callers decide which errors those are, and
 * how long it goes on: stores share `stores/retry.ts` for that.
 */
import { type Runtime, wait } from './runtime.js'

/** The pauses between tries double from the first one to the longest one, in milliseconds. */
export interface Backoff {
  firstMs: number
  longestMs: number
}

/**
 * A pause has a random part, so that those who failed together do not come again together.
 *
 * @param tries so far, from 1 on
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
   * Returns the pause before the next try; undefined, or an error that it throws, ends the loop.
   *
   * @param tries so far, from 1 on
   */
  findPauseMs(error: unknown, tries: number): number | undefined | Promise<number | undefined>
  /** Called before a pause. */
  onRetry?(error: unknown): void | Promise<void>
  /**
   * What ends a pause. It is called for the first one, and no sooner: it may be `handleSignals`,
   * which changes what a signal does to the process.
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
