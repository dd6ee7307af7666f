import { onTestFinished, vi } from 'vitest'

export type TestClock = ReturnType<typeof createClock>

const hour = 3_600_000

/**
 * The time of a program in this process: its clock stands still, and its timers run as usual, unless
 * they are still as well. A test lets time pass when what it has waited for is there.
 */
export function createClock({ isStill = false } = {}) {
  let time = 0
  /** Sets the clock forward: no further try begins. */
  const pass = (milliseconds = hour) => {
    time += milliseconds
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: !isStill })
  onTestFinished(() => void vi.useRealTimers())
  return {
    now: () => time,
    pass,
    /** Sets the timers forward as well: what waits is given up. */
    timeOut: (milliseconds = hour) => {
      pass(milliseconds)
      vi.advanceTimersByTime(milliseconds)
    },
  }
}

/** A clock that goes on by so many milliseconds whenever it is read. */
export function createCountingClock(step: number): () => number {
  let time = 0
  return () => {
    time += step
    return time
  }
}
