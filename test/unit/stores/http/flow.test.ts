import { describe, expect, test } from 'vitest'
import { SendLimits } from '../../../../src/stores/http/send-limits.js'

/** The limits that there were while so many requests were settled. */
function settle(limit: SendLimits, count: number): number[] {
  const limits = [limit.concurrency]
  for (let settled = 0; settled < count; settled += 1) {
    limit.succeeded()
    if (limits.at(-1) !== limit.concurrency) limits.push(limit.concurrency)
  }
  return limits
}

describe('the number of requests in flight', () => {
  test('is what was asked for, from the start, however many are settled', () => {
    expect(settle(new SendLimits(64), 10_000)).toEqual([64])
    expect(settle(new SendLimits(1), 10_000)).toEqual([1])
  })

  test('is halved each time that it was too much, down to 1', () => {
    const limit = new SendLimits(100)
    const limits = Array.from({ length: 8 }, () => {
      limit.halve()
      return limit.concurrency
    })
    expect(limits).toEqual([50, 25, 12, 6, 3, 1, 1, 1])
  })

  test('grows again by one when as many as it were settled, and not beyond what it was', () => {
    const limit = new SendLimits(8)
    limit.halve()
    expect(settle(limit, 4)).toEqual([4, 5])
    expect(settle(limit, 4)).toEqual([5])
    expect(settle(limit, 1)).toEqual([5, 6])
    expect(settle(limit, 10_000)).toEqual([6, 7, 8])
  })

  test('recovers from an outage in the time that some thousand requests take', () => {
    const limit = new SendLimits(64)
    for (let count = 0; count < 10; count += 1) limit.halve()
    expect(settle(limit, 2016).at(-1)).toBe(64)
  })

  test('stays near what a service can take', () => {
    const limit = new SendLimits(256)
    let overloads = 0
    for (let settled = 0; settled < 100_000; settled += 1) {
      limit.succeeded()
      if (limit.concurrency <= 40) continue
      limit.halve()
      overloads += 1
    }
    expect(limit.concurrency).toBeGreaterThanOrEqual(20)
    expect(overloads).toBeLessThan(200)
  })
})
