import { expect, test } from 'vitest'
import { Semaphore } from '../../../src/server/plants.js'

test('a semaphore lets so many in, in their order, and none that has given up', async () => {
  const semaphore = new Semaphore(2)
  const inside: number[] = []
  const leave = new Map<number, () => void>()
  const stop = new AbortController()
  const enter = (number: number, signal?: AbortSignal) =>
    semaphore.run(async () => {
      inside.push(number)
      await new Promise<void>((resolve) => leave.set(number, resolve))
    }, signal)
  const left = async (number: number, caller: Promise<void> | undefined) => {
    leave.get(number)?.()
    await caller
  }
  const callers = [enter(1), enter(2), enter(3), enter(4, stop.signal), enter(5)]
  const gaveUp = expect(callers[3]).rejects.toThrow('enough')
  expect(inside).toEqual([1, 2])
  stop.abort(new Error('enough'))
  await gaveUp
  await left(1, callers[0])
  expect(inside).toEqual([1, 2, 3])
  await left(2, callers[1])
  expect(inside).toEqual([1, 2, 3, 5])
  await expect(enter(6, stop.signal)).rejects.toThrow('enough')
  await left(3, callers[2])
  await left(5, callers[4])
  const last = [enter(7), enter(8)]
  expect(inside).toEqual([1, 2, 3, 5, 7, 8])
  await left(7, last[0])
  await left(8, last[1])
})
