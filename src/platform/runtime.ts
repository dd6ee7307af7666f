import { once } from 'node:events'

/** Time, randomness and cancellation. */
export interface Runtime {
  /**
   * Handles the signals of the system from the first call on: before it, they end the process at once. Returns the one
   * that aborts when the program must stop: on SIGINT and SIGTERM, with a `PlantsError` as the reason, and for what a
   * pager shows, with EPIPE when that has ended.
   */
  handleSignals(): AbortSignal
  /** Milliseconds, monotonic. */
  now(): number
  /** In [0, 1). */
  random(): number
}

/** Throws the reason of the first signal that aborts. */
export async function wait(milliseconds: number, signals: AbortSignal[]): Promise<void> {
  for (const signal of signals) signal.throwIfAborted()
  await within(milliseconds, signals, (signal) => once(signal, 'abort'))
  for (const signal of signals) signal.throwIfAborted()
}

/** Lets the event loop deliver signals, which are pending while SQLite works. */
export async function checkSignal(signal: AbortSignal): Promise<void> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
}

/** The first pause and the longest one, in milliseconds: they grow exponentially, with jitter. */
export interface RetryPolicy {
  base: number
  max: number
}

/** In milliseconds. @param tries so far */
export function backoff(
  { base, max }: RetryPolicy,
  tries: number,
  { random }: Pick<Runtime, 'random'>,
): number {
  return Math.min(base * 2 ** (tries - 1), max) * (0.5 + random() / 2)
}

/**
 * Repeats an action until it succeeds, or `pauseAfter` returns undefined for its error. Throws the reason of a signal.
 *
 * @param signals asked for before a pause: a program whose signal was read does not end by the signals of the system
 */
export async function retrying<T>(
  action: () => T | Promise<T>,
  pauseAfter: (error: unknown, tries: number) => number | undefined | Promise<number | undefined>,
  signals: () => AbortSignal[],
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await action()
    } catch (error) {
      const pause = await pauseAfter(error, tries)
      if (pause === undefined) throw error
      await wait(pause, signals())
    }
  }
}

/**
 * The signal of the action aborts with the reason of the first of `signals` that does, or on timeout with a
 * `TimeoutError`.
 */
export async function within<T>(
  milliseconds: number,
  signals: AbortSignal[],
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort(signals.find((signal) => signal.aborted)?.reason)
  // What is left of a timeout may be negative, of which Node warns.
  const timer = setTimeout(() => controller.abort(timeIsOver()), Math.max(0, milliseconds))
  for (const signal of signals) signal.addEventListener('abort', stop, { once: true })
  if (signals.some((signal) => signal.aborted)) stop()
  try {
    return await action(controller.signal)
  } finally {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', stop)
  }
}

export function timeIsOver(): DOMException {
  return new DOMException('The time is over', 'TimeoutError')
}

export function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}

/** The longest delay of a timer in milliseconds, 24.8 days: a longer one fires at once. */
export const maxTimer = 2 ** 31 - 1
