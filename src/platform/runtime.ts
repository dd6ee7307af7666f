import { once } from 'node:events'

/** Time, randomness and cancellation. */
export interface Runtime {
  /**
   * Until the first call, the signals of the system end the process; from then on, they abort this
   * one, with a `PlantsError`. So does the end of a pager, with EPIPE.
   */
  handleSignals(): AbortSignal
  /** Milliseconds, monotonic. */
  now(): number
  /** In [0, 1). */
  random(): number
}

/** Throws the reason of a signal that aborts. */
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

/**
 * The signal of the action aborts with the reason of the first of `signals`, or with a
 * `TimeoutError`. `AbortSignal.any` would do it, but in Node 20 it leaks 2 kB a call.
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

function timeIsOver(): DOMException {
  return new DOMException('The time is over', 'TimeoutError')
}

export function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError'
}
