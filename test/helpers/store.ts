import { onTestFinished } from 'vitest'
import type { OpenOptions } from '../../src/stores/store.js'

/** What a store needs to wait, with a time-out that a test can outlast. */
export function openOptions(options: Partial<OpenOptions> = {}): OpenOptions {
  const clock = { signal: new AbortController().signal, now: () => performance.now(), random: Math.random }
  return { timeout: 10_000, clock, ...options }
}

/** Closes a store when the test is over. */
export function closedAfterTest<Store extends { close(): Promise<void> }>(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}
