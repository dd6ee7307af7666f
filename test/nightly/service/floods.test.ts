import { expect, test } from 'vitest'
import type { Store } from '../../../src/stores/store.js'
import { createClock } from '../../helpers/sandbox/clock.js'
import { buildRequest, connectTo, exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import {
  buildCreatedOutcome,
  createGate,
  quickStore,
  serveStore,
  testToken,
} from '../../helpers/scripted-server/service.js'

import { countIterations, createBytes, fern, getBytes, runIterations } from '../../service/steps.js'

/** Sends one of the 20 bytes of a body with a wrong token, while the clock stands still. */
async function rejectIncompleteBody() {
  const clock = createClock({ isStill: true })
  const service = await serveStore(quickStore)
  const connection = await connectTo(service.endpoint)
  connection.send(buildRequest('wrong', { headers: { 'Content-Length': '20' }, body: 'x' }))
  expect((await connection.readResponse())?.text).toMatch(/^400 \(401\)/)
  return { clock, service, connection }
}

// What a client can do by sending many requests, or by not waiting for a response.

test('a service reads the rest of a rejected body after a flood on another connection', async () => {
  // The service closes a connection whose body takes longer than a second to arrive.
  const { clock, service, connection } = await rejectIncompleteBody()
  ;(await connectTo(service.endpoint)).send(getBytes.repeat(2000))
  await runIterations(service)
  connection.send('x'.repeat(19)).send(createBytes)
  expect((await connection.readResponse())?.status).toBe(200)
  clock.timeOut(1000)
  expect((await connection.send(createBytes).readResponse())?.status).toBe(200)
})

test('a service closes a connection a second after it has rejected a body that does not arrive', async () => {
  const { clock, service, connection } = await rejectIncompleteBody()
  await runIterations(service)
  clock.timeOut(1000)
  expect(await connection.readResponse()).toBeUndefined()
})

test('a service responds to an earlier client while others flood it again and again', async () => {
  const service = await serveStore(quickStore)
  const before = await connectTo(service.endpoint)
  let isOver = false
  const flood = async () => {
    while (!isOver) {
      const connection = await connectTo(service.endpoint)
      connection.send(getBytes.repeat(2000))
      await connection.readResponses().catch(() => undefined)
    }
  }
  const floods = Array.from({ length: 3 }, flood)
  expect((await before.send(getBytes).readResponse())?.status).toBe(404)
  isOver = true
  await Promise.all(floods)
})

test('a flood on one of 400 connections delays neither a new client nor an idle one', async () => {
  const service = await serveStore(quickStore)
  const idle = await Promise.all(
    Array.from({ length: 400 }, async () => (await connectTo(service.endpoint)).send(getBytes)),
  )
  await Promise.all(idle.map((connection) => connection.readResponse()))
  for (const connection of idle.slice(0, 5)) {
    ;(await connectTo(service.endpoint)).send(getBytes.repeat(2000))
    const iterations = countIterations()
    expect((await exchangeOnce(service, { body: fern })).status).toBe(200)
    expect((await connection.send(getBytes).readResponse())?.status).toBe(404)
    expect(iterations()).toBeLessThan(100)
  }
})

test.each([
  { more: 'a second request', bytes: createBytes },
  { more: '1,500 more requests', bytes: Buffer.concat(Array<Buffer>(1500).fill(createBytes)) },
  { more: 'bytes that are not HTTP', bytes: 'no HTTP\r\n\r\n' },
])('a service closes a connection on which $more came before its response', async ({ bytes }) => {
  const creates = createGate()
  const write: Store['write'] = (changes) =>
    creates.wait().then(() => changes.map(buildCreatedOutcome))
  const service = await serveStore({ ...quickStore, write })
  const connection = (await connectTo(service.endpoint)).send(createBytes)
  await expect.poll(() => creates.waiting).toBe(1)
  connection.send(bytes)
  await runIterations(service)
  creates.open()
  expect(await connection.readResponses()).toMatchObject([
    { text: '200 {"name":"Fern"}', headers: { connection: 'close' } },
  ])
  expect(creates.waiting).toBe(1)
})

test('a service rejects a delete whose body is not HTTP, and deletes nothing', async () => {
  const writes = createGate()
  const service = await serveStore({ ...quickStore, write: () => writes.wait().then(() => []) })
  const connection = await connectTo(service.endpoint)
  const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  connection.send(buildRequest(testToken, { method: 'DELETE', target: '/plants/1', headers }))
  await runIterations(service)
  const [answer] = await connection.send('no chunk\r\n').readResponses()
  expect([answer?.status, writes.waiting]).toEqual([400, 0])
})
