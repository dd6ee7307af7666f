import { once } from 'node:events'

/** The part of `Io` that stores and loops need: time, randomness and cancellation. */
export interface Runtime {
  /**
   * Returns a signal that aborts with a `PlantsError` when the system sends a signal such as
   * SIGINT, and with EPIPE when a pager ends. Until the first call, a signal of the system ends the
   * process.
   */
  getStopSignal(): AbortSignal
  /** Returns the milliseconds since a fixed moment. They never go back. */
  now(): number
  /** Returns a number from 0 to 1, without 1. */
  random(): number
}

/**
 * Waits until the time is over.
 *
 * @throws the reason of the first signal that aborts
 */
export async function wait(milliseconds: number, signals: AbortSignal[]): Promise<void> {
  for (const signal of signals) signal.throwIfAborted()
  await runWithin(milliseconds, signals, (signal) => once(signal, 'abort'))
  for (const signal of signals) signal.throwIfAborted()
}

/** Lets the event loop deliver signals, which are pending while SQLite works in this thread. */
export async function checkSignal(signal: AbortSignal): Promise<void> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
}

/**
 * Runs an action with a signal. The signal aborts with a `TimeoutError` when the time is over, or
 * earlier with the reason of the first of `signals` that aborts. `AbortSignal.any` is not used,
 * because each call leaks 2 kB in Node.js 20.
 */
export async function runWithin<T>(
  milliseconds: number,
  signals: AbortSignal[],
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort(signals.find((signal) => signal.aborted)?.reason)
  const abortWithTimeout = () =>
    controller.abort(new DOMException('The time is over', 'TimeoutError'))
  // The rest of a timeout may be negative, and Node.js would warn of that.
  const timer = setTimeout(abortWithTimeout, Math.max(0, milliseconds))
  for (const signal of signals) signal.addEventListener('abort', stop, { once: true })
  if (signals.some((signal) => signal.aborted)) stop()
  try {
    return await action(controller.signal)
  } finally {
    clearTimeout(timer)
    for (const signal of signals) signal.removeEventListener('abort', stop)
  }
}

export function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}
