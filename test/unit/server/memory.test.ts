import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type Hold, Shares } from '../../../src/server/memory.js'
import { settableTime } from '../../helpers/time.js'

/** 100 to share, and who has asked for what, with what became of it. */
function shared() {
  const { now, timeOut } = settableTime({ isStill: true })
  const shares = new Shares(100, 30_000, now)
  const ask = (holder: string, amount: number) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    const asked = { state: 'waits', response, hold: undefined as Hold | undefined }
    Promise.resolve(shares.ask(holder, amount, response)).then(
      (hold) => Object.assign(asked, { state: 'has it', hold }),
      ({ message }: Error) => Object.assign(asked, { state: message }),
    )
    return asked
  }
  const states = async (...all: { state: string }[]) => {
    await new Promise(setImmediate)
    return all.map(({ state }) => state)
  }
  return { ask, states, timeOut }
}

const busy = 'The service is busy, and nothing was stored'

test('one holder has at most half, and waits for its own; another gets what is left', async () => {
  const { ask, states } = shared()
  const [first, second, third] = [ask('a', 25), ask('a', 25), ask('a', 1)]
  const others = [ask('b', 20), ask('b', 5), ask('b', 1), ask('c', 25), ask('d', 1)]
  expect(await states(first, second, third)).toEqual(['has it', 'has it', 'waits'])
  expect(await states(...others)).toEqual(['has it', 'has it', 'waits', 'has it', 'waits'])
  first.hold?.release()
  expect(await states(third, ...others)).toEqual([
    'waits',
    'has it',
    'has it',
    'waits',
    'has it',
    'has it',
  ])
  others[0]?.hold?.release()
  expect(await states(third, ...others)).toEqual([
    'has it',
    'has it',
    'has it',
    'has it',
    'has it',
    'has it',
  ])
})

test('those of a holder take turns: a small one does not overtake a large one', async () => {
  const { ask, states } = shared()
  const held = ask('a', 50)
  const [large, small] = [ask('a', 30), ask('a', 1)]
  await states()
  held.hold?.resize(30)
  expect(await states(large, small)).toEqual(['waits', 'waits'])
  held.hold?.resize(10)
  expect(await states(large, small)).toEqual(['has it', 'has it'])
})

test('a request waits as long as the timeout if there is no other holder, and else 5 s', async () => {
  const { ask, states, timeOut } = shared()
  const [held, waiting] = [ask('a', 50), ask('a', 1)]
  await states()
  timeOut(29_000)
  expect(await states(waiting)).toEqual(['waits'])
  timeOut(1000)
  expect(await states(waiting)).toEqual([busy])
  const [again, other] = [ask('a', 1), ask('b', 1)]
  await states()
  timeOut(4000)
  expect(await states(again, other)).toEqual(['waits', 'has it'])
  timeOut(1000)
  expect(await states(again)).toEqual([busy])
  held.hold?.release()
  expect(await states(ask('a', 50))).toEqual(['has it'])
})

test('a client that leaves does not wait', async () => {
  const { ask, states } = shared()
  const [held, left, next] = [ask('a', 50), ask('a', 50), ask('a', 1)]
  await states()
  left.response.emit('close')
  held.hold?.resize(49)
  expect(await states(left, next)).toEqual([busy, 'has it'])
})
