import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { HttpError } from '../../../src/server/http-error.js'
import { Quotas, type RequestNeeds } from '../../../src/server/quotas.js'
import { respond } from '../../../src/server/respond.js'
import { createClock } from '../../helpers/sandbox/clock.js'

/** 100 bytes for each token, and requests that ask for some of them, with what became of each. */
function createQuotas() {
  const { timeOut } = createClock({ isStill: true })
  const quotas = new Quotas({ bytesPerToken: 100, timeoutMs: 30_000 })
  const acquire = (token: string, bytes: number, needs: Partial<RequestNeeds> = {}) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()))
    let endWork = () => {}
    const request = {
      state: 'waits',
      leave: () => void response.emit('close'),
      end: () => {
        endWork()
        response.emit('close')
      },
    }
    quotas.acquire(token, { bytes, receivedBytes: 0, isSearch: false, ...needs }, response).then(
      (end) => {
        endWork = end
        request.state = 'runs'
      },
      ({ status }: HttpError) => Object.assign(request, { state: `${status}` }),
    )
    return request
  }
  const states = async (...all: { state: string }[]) => {
    await new Promise(setImmediate)
    return all.map(({ state }) => state)
  }
  return { acquire, states, timeOut }
}

test('a single request of a token may need more than its quota, and runs alone', async () => {
  const { acquire, states } = createQuotas()
  const [large, small] = [acquire('a', 1000), acquire('a', 1)]
  expect(await states(large, small)).toEqual(['runs', 'waits'])
  large.end()
  expect(await states(small)).toEqual(['runs'])
})

test('searches of a token run one after the other, and nothing else waits for them', async () => {
  const { acquire, states } = createQuotas()
  const search = { isSearch: true }
  const [first, second] = [acquire('a', 10, search), acquire('a', 10, search)]
  const [create, ofAnother] = [acquire('a', 10), acquire('b', 10, search)]
  expect(await states(first, second, create, ofAnother)).toEqual(['runs', 'waits', 'runs', 'runs'])
  first.leave() // The store goes on searching.
  expect(await states(second)).toEqual(['waits'])
  first.end()
  expect(await states(second)).toEqual(['runs'])
})

test('128 requests of a token wait, and further ones are rejected', async () => {
  const { acquire, states } = createQuotas()
  const [running, ...waiting] = Array.from({ length: 129 }, () => acquire('a', 100))
  const [further, ofAnother] = [acquire('a', 100), acquire('b', 100)]
  expect(await states(further, ofAnother)).toEqual(['503', 'runs'])
  expect(new Set(await states(...waiting))).toEqual(new Set(['waits']))
  running?.end()
  expect(await states(...waiting.slice(0, 2))).toEqual(['runs', 'waits'])
  expect(await states(acquire('a', 100))).toEqual(['waits'])
})

test('a create runs although 128 searches of its token wait', async () => {
  const { acquire, states } = createQuotas()
  for (let count = 1; count <= 129; count += 1) acquire('a', 0, { isSearch: true })
  const [create, search] = [acquire('a', 10), acquire('a', 0, { isSearch: true })]
  expect(await states(create, search)).toEqual(['runs', '503'])
})

test('the bytes that a waiting request has received count for its quota', async () => {
  const { acquire, states } = createQuotas()
  const [running, waiting] = [acquire('a', 50), acquire('a', 100, { receivedBytes: 30 })]
  const other = acquire('b', 10, { receivedBytes: 10 })
  expect(await states(running, waiting, other)).toEqual(['runs', 'waits', 'runs'])
  waiting.end()
  expect(await states(waiting, acquire('a', 50))).toEqual(['503', 'runs'])
})

test('a request waits for its quota as long as the timeout', async () => {
  const { acquire, states, timeOut } = createQuotas()
  const [running, waiting] = [acquire('a', 100), acquire('a', 1)]
  await states()
  timeOut(29_999)
  expect(await states(running, waiting)).toEqual(['runs', 'waits'])
  timeOut(1)
  expect(await states(waiting)).toEqual(['503'])
})

test('a waiting client that leaves gets 503, and those behind it run', async () => {
  const { acquire, states } = createQuotas()
  const [running, left, next] = [acquire('a', 60), acquire('a', 100), acquire('a', 40)]
  await states(running)
  left.end()
  expect(await states(running, left, next)).toEqual(['runs', '503', 'runs'])
})

test('no waiting request runs when all clients leave at once', async () => {
  const { acquire, states } = createQuotas()
  const all = [acquire('a', 60), acquire('a', 60), acquire('a', 60)]
  await states()
  for (const { end } of all) end()
  expect(await states(...all)).toEqual(['runs', '503', '503'])
})

test('a large response over TLS is written in pieces, because Node keeps a buffer for the largest one', async () => {
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
