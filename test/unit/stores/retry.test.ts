import { expect, test } from 'vitest'
import { chooseRetryBudgetMs, findRetryPauseMs } from '../../../src/stores/retry.js'

test('a store is tried for two seconds before its first response, and for the timeout after it', () => {
  const budgets = (timeoutMs: number, retryMs?: number) =>
    [false, true].map((hasAnswered) => chooseRetryBudgetMs({ timeoutMs, retryMs }, hasAnswered))
  expect(budgets(30_000)).toEqual([2000, 30_000])
  expect(budgets(500)).toEqual([500, 500])
  expect(budgets(30_000, 60_000)).toEqual([60_000, 30_000])
  expect(budgets(30_000, 0)).toEqual([0, 30_000])
})

test('pauses grow to a maximum, with jitter, and the last one leaves time for a try', () => {
  const backoff = { firstMs: 100, longestMs: 500 }
  const pause = (trial: object, random = 1) =>
    findRetryPauseMs(
      backoff,
      { tries: 1, elapsedMs: 0, retryBudgetMs: 5000, ...trial },
      { random: () => random },
    )
  expect([1, 2, 3, 4, 99].map((tries) => pause({ tries }))).toEqual([100, 200, 400, 500, 500])
  expect(pause({}, 0)).toBe(50)
  expect(pause({ retryAfterMs: 3000 })).toBe(3100)
  expect([4500, 4501].map((retryAfterMs) => pause({ retryAfterMs }))).toEqual([4500, undefined])
  expect([4400, 4450, 4500].map((elapsedMs) => pause({ elapsedMs }))).toEqual([100, 50, undefined])
  expect([58_950, 59_000].map((elapsedMs) => pause({ elapsedMs, retryBudgetMs: 60_000 }))).toEqual([
    50,
    undefined,
  ])
  expect(pause({ retryBudgetMs: 0 })).toBeUndefined()
})
