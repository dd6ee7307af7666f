import { once } from 'node:events'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { Admission } from '../../../src/server/admission.js'
import type { HttpError } from '../../../src/server/http-error.js'
import { respond } from '../../../src/server/respond.js'
import { createClock } from '../../helpers/sandbox/clock.js'

/** Requests that ask for a slot of their token, with what became of each. */
function createAdmission() {
  const { timeOut } = createClock({ isStill: true })
  const admission = new Admission(30_000)
  const acquire = (token: string, cost: 'expensive' | 'list' | 'small', bodyBytes = 0) => {
    const message = new IncomingMessage(new Socket())
    message.headers['content-length'] = `${bodyBytes}`
    const response = new ServerResponse(message)
    const operation = bodyBytes > 0 ? { cost, hasBody: true as const } : { cost }
    let release = () => {}
    const request = {
      state: 'waits',
      leave: () => void response.emit('close'),
      end: () => release(),
    }
    admission.admit({ token, operation, query: {}, response }).then(
      (acquired) => {
        release = acquired
        request.state = 'runs'
      },
      ({ response: { status } }: HttpError) => Object.assign(request, { state: `${status}` }),
    )
    return request
  }
  const states = async (...all: { state: string }[]) => {
    // Each list begins in an iteration of its own.
    for (let count = 0; count < 20; count += 1) await new Promise(setImmediate)
    return all.map(({ state }) => state)
  }
  return { admission, acquire, states, timeOut }
}

test('expensive requests of a token run one after the other, and nothing else waits for them', async () => {
  const { acquire, states } = createAdmission()
  const [first, second] = [acquire('a', 'expensive'), acquire('a', 'expensive')]
  const others = [acquire('a', 'small'), acquire('a', 'list'), acquire('b', 'expensive')]
  expect(await states(first, second, ...others)).toEqual(['runs', 'waits', 'runs', 'runs', 'runs'])
  first.leave() // The store goes on searching.
  expect(await states(second)).toEqual(['waits'])
  first.end()
  expect(await states(second)).toEqual(['runs'])
})

test('sixteen lists of a token run at once, and 128 further ones wait', async () => {
  const { acquire, states } = createAdmission()
  const running = Array.from({ length: 16 }, () => acquire('a', 'list'))
  const waiting = Array.from({ length: 128 }, () => acquire('a', 'list'))
  const rejected = [acquire('a', 'list'), acquire('a', 'expensive')]
  expect(await states(...rejected)).toEqual(['503', 'runs'])
  expect(await states(acquire('a', 'expensive'), acquire('a', 'small'))).toEqual(['503', 'runs'])
  expect(new Set(await states(...running))).toEqual(new Set(['runs']))
  expect(new Set(await states(...waiting))).toEqual(new Set(['waits']))
  running[0]?.end()
  expect(await states(...waiting.slice(0, 2))).toEqual(['runs', 'waits'])
})

test('a request waits for its slot as long as the timeout', async () => {
  const { acquire, states, timeOut } = createAdmission()
  const [running, waiting] = [acquire('a', 'expensive'), acquire('a', 'expensive')]
  await states()
  timeOut(29_999)
  expect(await states(running, waiting)).toEqual(['runs', 'waits'])
  timeOut(1)
  expect(await states(waiting)).toEqual(['503'])
})

test('waiting clients that leave give their places to others', async () => {
  const { acquire, states } = createAdmission()
  const running = acquire('a', 'expensive')
  const left = Array.from({ length: 128 }, () => acquire('a', 'expensive'))
  await states()
  for (const { leave } of left) leave()
  expect(new Set(await states(...left))).toEqual(new Set(['503']))
  const next = acquire('a', 'expensive')
  running.end()
  expect(await states(next)).toEqual(['runs'])
})

test('one large body of each token is parsed in an iteration of the event loop', async () => {
  const { admission } = createAdmission()
  const parsed: string[] = []
  for (const token of ['a', 'a', 'b', 'a'])
    void admission.waitToParse(token, 65_536).then(() => parsed.push(token))
  const iterations: string[][] = []
  while (parsed.length > 0 || iterations.length < 4) {
    await new Promise(setImmediate)
    iterations.push(parsed.splice(0))
  }
  expect(iterations.filter(({ length }) => length > 0)).toEqual([['a', 'b'], ['a'], ['a']])
})

test('large bodies wait beyond 64 MiB, but for the first body of each token', async () => {
  const { acquire, states, timeOut } = createAdmission()
  const acquireBody = (token: string) => acquire(token, 'small', 1_048_576)
  const running = Array.from({ length: 65 }, () => acquireBody('a'))
  const [waiting, leaving] = [acquireBody('a'), acquireBody('a')]
  const ofOtherToken = [acquireBody('b'), acquireBody('b')]
  const others = [acquire('a', 'expensive'), acquire('a', 'list')]
  expect(new Set(await states(...running, ...others))).toEqual(new Set(['runs']))
  expect(await states(waiting, leaving, ...ofOtherToken)).toEqual([
    'waits',
    'waits',
    'runs',
    'waits',
  ])
  timeOut(3_600_000)
  leaving.leave()
  expect(await states(waiting, leaving)).toEqual(['waits', '503'])
  running[64]?.end()
  running[63]?.end()
  expect(await states(waiting, ...ofOtherToken)).toEqual(['runs', 'runs', 'runs'])
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
