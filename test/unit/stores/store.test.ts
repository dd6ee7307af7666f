import { expect, test } from 'vitest'
import { nextPause, patienceOf } from '../../../src/stores/store.js'

test('a store is tried for two seconds before its first answer, and then until the timeout', () => {
  const patience = (timeout: number, retry?: number) =>
    [false, true].map((hasAnswered) => patienceOf({ timeout, retry }, hasAnswered))
  expect(patience(30_000)).toEqual([2000, 30_000])
  expect(patience(500)).toEqual([500, 500])
  expect(patience(30_000, 60_000)).toEqual([60_000, 30_000])
  expect(patience(30_000, 0)).toEqual([0, 30_000])
})

test('pauses grow to a maximum, with jitter, and the last one leaves time for a try', () => {
  const policy = { base: 100, max: 500 }
  const pause = (trial: object, random = 1) =>
    nextPause(policy, { tries: 1, elapsed: 0, patience: 5000, ...trial }, { random: () => random })
  expect([1, 2, 3, 4, 99].map((tries) => pause({ tries }))).toEqual([100, 200, 400, 500, 500])
  expect(pause({}, 0)).toBe(50)
  expect(pause({ retryAfter: 3000 })).toBe(3100)
  expect([4500, 4501].map((retryAfter) => pause({ retryAfter }))).toEqual([4500, undefined])
  expect([4400, 4450, 4500].map((elapsed) => pause({ elapsed }))).toEqual([100, 50, undefined])
  expect([58_950, 59_000].map((elapsed) => pause({ elapsed, patience: 60_000 }))).toEqual([
    50,
    undefined,
  ])
  expect(pause({ patience: 0 })).toBeUndefined()
})
