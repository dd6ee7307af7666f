import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type HttpError, respond } from '../../../src/server/answer.js'
import { Memory } from '../../../src/server/memory.js'
import { settableTime } from '../../helpers/time.js'

/** 100 bytes for each token, and who has asked for what, with what became of it. */
function shared() {
  const { timeOut } = settableTime({ isStill: true })
  const memory = new Memory(100, 30_000)
  const take = (token: string, bytes: number) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    const asked = { state: 'waits', release: () => void response.emit('close') }
    memory.take(token, bytes, response).then(
      () => Object.assign(asked, { state: 'has it' }),
      ({ status }: HttpError) => Object.assign(asked, { state: `${status}` }),
    )
    return asked
  }
  const states = async (...all: { state: string }[]) => {
    await new Promise(setImmediate)
    return all.map(({ state }) => state)
  }
  return { take, states, timeOut }
}

test('one request of a token may have more than that, and is alone then', async () => {
  const { take, states } = shared()
  const [large, small] = [take('a', 1000), take('a', 1)]
  expect(await states(large, small)).toEqual(['has it', 'waits'])
  large.release()
  expect(await states(small)).toEqual(['has it'])
})

test('a request waits as long as the timeout', async () => {
  const { take, states, timeOut } = shared()
  const [held, waiting] = [take('a', 100), take('a', 1)]
  await states()
  timeOut(29_999)
  expect(await states(held, waiting)).toEqual(['has it', 'waits'])
  timeOut(1)
  expect(await states(waiting)).toEqual(['503'])
})

test('a client that leaves does not wait, and lets in those who waited behind it', async () => {
  const { take, states } = shared()
  const [held, left, next] = [take('a', 60), take('a', 100), take('a', 40)]
  await states(held)
  left.release()
  expect(await states(held, left, next)).toEqual(['has it', '503', 'has it'])
})

test('when all leave at once, none of those who waited is let in', async () => {
  const { take, states } = shared()
  const all = [take('a', 60), take('a', 60), take('a', 60)]
  await states()
  for (const { release } of all) release()
  expect(await states(...all)).toEqual(['has it', '503', '503'])
})

test('a large response over TLS is written in pieces: Node keeps a buffer for the largest', async () => {
  const sizes: number[] = []
  const socket = new Socket()
  socket._write = (chunk: Buffer, _, done) => done(void sizes.push(chunk.length))
  Object.assign(socket, { _writev: null, encrypted: true })
  const response = new ServerResponse(new IncomingMessage(socket))
  response.assignSocket(socket)
  socket.on('drain', () => response.emit('drain')) // as a server does
  respond(response, { status: 200, body: 'ä'.repeat(100_000) })
  await once(response, 'finish')
  expect(Math.max(...sizes)).toBe(65_536)
})
