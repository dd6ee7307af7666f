import { onTestFinished, vi } from 'vitest'

export interface Time {
  now(): number
  /** Sets the runtime forward: no further try begins. */
  pass(milliseconds?: number): void
  /** Sets the timers forward as well: what waits is given up. */
  timeOut(milliseconds?: number): void
}

const hour = 3_600_000

/**
 * The time of a program in this process: its runtime stands still, and its timers run as usual, unless they are still as
 * well. A test lets time pass when what it has waited for is there, so a timeout ends at the same event everywhere.
 */
export function settableTime({ isStill = false } = {}): Time {
  let time = 0
  const pass = (milliseconds = hour) => {
    time += milliseconds
  }
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: !isStill })
  onTestFinished(() => void vi.useRealTimers())
  return {
    now: () => time,
    pass,
    timeOut: (milliseconds = hour) => {
      pass(milliseconds)
      vi.advanceTimersByTime(milliseconds)
    },
  }
}

/** A runtime that goes on by so many milliseconds whenever it is read, for what ends without an event. */
export function countingClock(step: number): () => number {
  let time = 0
  return () => {
    time += step
    return time
  }
}
