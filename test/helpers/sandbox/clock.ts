import { onTestFinished, vi } from 'vitest'

export type TestClock = ReturnType<typeof createClock>

const hour = 3_600_000

/**
 * Creates the clock of a program in this process. It stands still until the test sets it forward.
 * Timers run as usual, unless `isStill` stops them, too.
 */
export function createClock({ isStill = false } = {}) {
  let time = 0
  /** Sets the clock forward, so that no further try begins. */
  const pass = (milliseconds = hour) => {
    time += milliseconds
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: !isStill })
  onTestFinished(() => void vi.useRealTimers())
  return {
    now: () => time,
    pass,
    /** Sets the clock and the timers forward, so that every wait ends. */
    timeOut: (milliseconds = hour) => {
      pass(milliseconds)
      vi.advanceTimersByTime(milliseconds)
    },
  }
}

/** Creates a clock that advances by `step` milliseconds whenever it is read. */
export function createCountingClock(step: number): () => number {
  let time = 0
  return () => {
    time += step
    return time
  }
}
