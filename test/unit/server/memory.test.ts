import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Memory } from '../../../src/server/memory.js'
import { settableTime } from '../../helpers/time.js'

/** 100 bytes for each token, and who has asked for what, with what became of it. */
function shared() {
  const { timeOut } = settableTime({ isStill: true })
  const memory = new Memory(100, 30_000)
  const take = (token: string, bytes: number) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    const asked = { state: 'waits', release: () => void response.emit('close') }
    Promise.resolve(memory.take(token, bytes, response)).then(
      () => Object.assign(asked, { state: 'has it' }),
      ({ message }: Error) => Object.assign(asked, { state: message }),
    )
    return asked
  }
  const states = async (...all: { state: string }[]) => {
    await new Promise(setImmediate)
    return all.map(({ state }) => state)
  }
  return { take, states, timeOut }
}

const busy = 'The service is busy, and nothing was stored'

test('a token has its own, and waits for it, whatever others have', async () => {
  const { take, states } = shared()
  const [first, second, third] = [take('a', 60), take('a', 40), take('a', 1)]
  const other = take('b', 100)
  expect(await states(first, second, third, other)).toEqual(['has it', 'has it', 'waits', 'has it'])
  second.release()
  expect(await states(third)).toEqual(['has it'])
})

test('one request of a token may have more than that, and is alone then', async () => {
  const { take, states } = shared()
  const [large, small] = [take('a', 1000), take('a', 1)]
  expect(await states(large, small)).toEqual(['has it', 'waits'])
  large.release()
  expect(await states(small)).toEqual(['has it'])
})

test('those of a token take turns: a small one does not overtake a large one', async () => {
  const { take, states } = shared()
  const [one, two] = [take('a', 50), take('a', 50)]
  const [large, small] = [take('a', 60), take('a', 1)]
  one.release()
  expect(await states(large, small)).toEqual(['waits', 'waits'])
  two.release()
  expect(await states(large, small)).toEqual(['has it', 'has it'])
})

test('a request waits as long as the timeout', async () => {
  const { take, states, timeOut } = shared()
  const [held, waiting] = [take('a', 100), take('a', 1)]
  await states()
  timeOut(29_999)
  expect(await states(held, waiting)).toEqual(['has it', 'waits'])
  timeOut(1)
  expect(await states(waiting)).toEqual([busy])
})

test('a client that leaves does not wait', async () => {
  const { take, states } = shared()
  const [held, left, next] = [take('a', 60), take('a', 100), take('a', 40)]
  await states(held)
  left.release()
  held.release()
  expect(await states(left, next)).toEqual([busy, 'has it'])
})

test('a client that leaves lets in those who waited behind it', async () => {
  const { take, states } = shared()
  const [held, left, next] = [take('a', 60), take('a', 100), take('a', 40)]
  await states(held)
  left.release()
  expect(await states(held, left, next)).toEqual(['has it', busy, 'has it'])
})
