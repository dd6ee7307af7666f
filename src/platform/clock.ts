/** What it takes to wait; `Io` is one. */
export interface Clock {
  /** aborts when the program is to stop */
  readonly signal: AbortSignal
  /** milliseconds, never going back */
  now(): number
  /** from 0 up to 1 */
  random(): number
}

/** Waits. Throws the reason of the signal that aborts first. */
export function wait(milliseconds: number, signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      for (const signal of signals) signal.removeEventListener('abort', end)
      const aborted = signals.find((signal) => signal.aborted)
      if (aborted) reject(aborted.reason)
      else resolve()
    }
    const timer = setTimeout(end, Math.min(milliseconds, maxTimer))
    for (const signal of signals) signal.addEventListener('abort', end)
    if (signals.some((signal) => signal.aborted)) end()
  })
}

/** Milliseconds to wait after so many failed attempts: twice as long after each, up to `max`, and never the same for two callers. */
export function backoff(attempt: number, { base, max, random }: { base: number; max: number; random(): number }): number {
  return Math.min(base * 2 ** attempt, max) * (0.5 + random() / 2)
}

/** Runs an action with a signal that aborts with the reason of the first of these that does, or when the time is over, with a `TimeoutError`. */
export async function within<T>(milliseconds: number, signals: AbortSignal[], action: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort(signals.find((signal) => signal.aborted)?.reason)
  const timer = setTimeout(() => controller.abort(timeIsOver()), Math.min(milliseconds, maxTimer))
  for (const signal of signals) signal.addEventListener('abort', stop, { once: true })
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

export function secondsOf(milliseconds: number): string {
  return `${Math.max(1, Math.round(milliseconds / 1000))} s`
}

/** What a timer can take, 24.8 days; beyond, it would fire at once. */
export const maxTimer = 2 ** 31 - 1
