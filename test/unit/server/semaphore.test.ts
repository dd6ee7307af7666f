import { expect, test } from 'vitest'
import { Semaphore } from '../../../src/server/plants.js'

test('a semaphore lets so many in, in their order, and none that has given up', async () => {
  const semaphore = new Semaphore(2)
  const inside: number[] = []
  const stop = new AbortController()
  const never = new AbortController().signal
  const enter = (number: number, signal = never) => semaphore.enter(signal).then(() => inside.push(number))
  const callers = [enter(1), enter(2), enter(3), enter(4, stop.signal), enter(5)]
  const gaveUp = expect(callers[3]).rejects.toThrow('enough')
  await Promise.all(callers.slice(0, 2))
  expect(inside).toEqual([1, 2])
  stop.abort(new Error('enough'))
  await gaveUp
  semaphore.leave()
  await callers[2]
  expect(inside).toEqual([1, 2, 3])
  semaphore.leave()
  await callers[4]
  expect(inside).toEqual([1, 2, 3, 5])
  await expect(enter(6, stop.signal)).rejects.toThrow('enough')
  semaphore.leave()
  semaphore.leave()
  await Promise.all([enter(7), enter(8)])
  expect(inside).toEqual([1, 2, 3, 5, 7, 8])
})
