import { hangLimitsMs } from './hang.mjs'

// A test may stop the timers of its program, but not those of its own limits.
const { setTimeout, clearTimeout } = globalThis

/**
 * Waits for one event of a program, and fails if it does not come. The time limit of the test would
 * also end the wait, but its error would not say which event is missing, nor show the output.
 *
 * @param describeMissing describes the missing event, with the whole output of the program
 */
export async function waitFor<T>(
  event: Promise<T>,
  describeMissing: () => string,
  limitMs = hangLimitsMs.event,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`Not within ${limitMs / 1000} s: ${describeMissing()}`))
    timer = setTimeout(fail, limitMs)
  })
  try {
    return await Promise.race([event, limit])
  } finally {
    clearTimeout(timer)
  }
}
