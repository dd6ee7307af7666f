import { hang } from './hang.mjs'

/**
 * Waits for one event of a program, and fails when it does not come. The limit of the test would
 * end the wait, too, but without a word about what was missing and what was there instead.
 *
 * @param describeMissing says what did not happen, with all that the program has shown
 */
export async function waitFor<T>(
  event: Promise<T>,
  describeMissing: () => string,
  limitMs = hang.event,
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
