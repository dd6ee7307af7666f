import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { adminServer, Metrics } from '../../../src/server/admin.js'
import type { PlantStore } from '../../../src/stores/common/store.js'
import { connectTo, exchange, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { placeOf, serveStore, testToken } from '../../helpers/service.js'

const fern = '{"id":1,"name":"Fern"}'
const quick: PlantStore = { create: async ({ name }) => ({ name }), close: async () => undefined }

test.each<[string, RawRequest, status: number, body: string]>([
  ['an odd Expect', { headers: { Expect: 'z' } }, 200, '{"live":true}'],
  ['an Upgrade', { headers: { Connection: 'Upgrade', Upgrade: 'h2c' } }, 200, '{"live":true}'],
  ['two Hosts', { headers: { Host: ['a', 'b'] } }, 400, '{"error":400,"message":"The header Host must be given once"}'],
  ['large headers', { headers: { X: 'x'.repeat(20_000) } }, 431, '{"error":431,"message":"The headers are too large"}'],
])('the admin port answers %s by the contract', async (_, request, status, body) => {
  const { place } = await adminOf()
  const answer = await exchange({ place, token: testToken }, { method: 'GET', target: '/live', ...request })
  expect([answer.status, answer.body]).toEqual([status, body])
})

test('the admin port takes 64 connections, and the others are closed', async () => {
  const { place } = await adminOf()
  let closed = 0
  for (let count = 0; count < 70; count += 1) {
    const socket = connect(place).on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    socket.once('close', () => {
      closed += 1
    })
    socket.resume()
    await once(socket, 'connect')
  }
  await expect.poll(() => closed, { timeout: 10_000, interval: 20 }).toBe(6)
})

test('the admin port answers at once while strangers keep idle connections to it, whose oldest is closed', async () => {
  const { place } = await adminOf()
  const idle = await connectTo(place)
  for (let count = 1; count < 64; count += 1) await connectTo(place)
  const answer = await exchange({ place, token: testToken }, { method: 'GET', target: '/ready' })
  expect([answer.status, answer.body]).toEqual([200, '{"ready":true}'])
  expect(await idle.answer()).toBeUndefined()
})

test.each<[string, string | undefined, number]>([
  ['127.0.0.1', 'LOCALHOST:9090', 200],
  ['127.0.0.1', '127.8.9.10', 200],
  ['127.0.0.1', '[::1]:9090', 200],
  ['127.0.0.1', 'evil.example', 421],
  ['127.0.0.1', 'evil.example:9090', 421],
  ['127.0.0.1', 'localhost.evil.example', 421],
  ['127.0.0.1', '127.0.0.1.evil.example', 421],
  ['127.0.0.1', '192.0.2.1', 421],
  ['127.0.0.1', 'user@127.0.0.1', 421],
  ['localhost', 'evil.example', 421],
  ['0.0.0.0', 'node1:9090', 200], // monitoring of another machine
])('the admin port on %s answers Host %s with %i, against DNS rebinding', async (host, named, status) => {
  const { place } = await adminOf(host)
  for (const target of ['/metrics', '/live', '/nope']) {
    const answer = await exchange({ place, token: testToken }, { method: 'GET', target, headers: { Host: named } })
    expect(answer.status).toBe(status === 421 || target !== '/nope' ? status : 404)
    if (status === 421)
      expect(JSON.parse(answer.body)).toEqual({ error: 421, message: 'The admin port is not at this Host' })
  }
})

test('metrics that fail are answered with 500, reported, and end nothing', async () => {
  const errors: unknown[] = []
  const metrics = new Metrics(() => {
    throw new Error('This gauge is broken')
  })
  const error = (found: unknown) => void errors.push(found)
  const now = () => performance.now()
  const http = adminServer({ metrics, host: '127.0.0.1', isReady: async () => true, error, now })
  onTestFinished(() => http.abort())
  await new Promise<void>((resolve) => http.server.listen(0, '127.0.0.1', resolve))
  const address = http.server.address()
  const place = { host: '127.0.0.1', port: typeof address === 'object' && address !== null ? address.port : 0 }
  const ask = async (target: string) => (await exchange({ place, token: testToken }, { method: 'GET', target })).status
  expect([await ask('/metrics'), await ask('/live'), await ask('/metrics')]).toEqual([500, 200, 500])
  expect(errors).toEqual([new Error('This gauge is broken'), new Error('This gauge is broken')])
})

test.each([
  [
    'throws',
    () => {
      throw new Error('The log is broken')
    },
  ],
  ['rejects', () => Promise.reject(new Error('The log is broken'))],
])('a log that %s fails no request, and ends nothing', async (_, take) => {
  const output = { isTerminal: false, columns: 80, rows: 24, write: take, log: take, stream: unused }
  const { address } = await serveStore(quick, { log: { output, level: 'info', delay: 0 } })
  const caller = { place: placeOf(address), token: testToken }
  for (const [body, status] of [[fern, 200] as const, ['{', 400] as const, [fern, 200] as const]) {
    expect((await exchange(caller, { body })).status).toBe(status)
  }
})

test('a store that throws at once fails its request alone', async () => {
  const store: PlantStore = {
    ...quick,
    create: ({ id }) => {
      if (id === 1n) throw new Error('This store is broken')
      return Promise.resolve({ name: 'Moss' })
    },
  }
  const { address } = await serveStore(store)
  const caller = { place: placeOf(address), token: testToken }
  expect((await exchange(caller, { body: fern })).status).toBe(500)
  expect((await exchange(caller, { body: '{"id":2,"name":"Moss"}' })).status).toBe(200)
})

test('a refusal that fails is logged, closes its connection, and ends nothing', async () => {
  let isBroken = false
  const now = () => {
    if (!isBroken) return performance.now()
    isBroken = false
    throw new Error('The clock is broken')
  }
  const store: PlantStore = {
    ...quick,
    create: async ({ id, name }) => {
      if (id !== 1n) return { name }
      isBroken = true
      throw new Error('This store is broken')
    },
  }
  const { address, log } = await serveStore(store, { now })
  const connection = await connectTo(placeOf(address))
  connection.send(requestBytes(testToken, { body: fern })).socket.resume()
  await expect.poll(log, { timeout: 10_000, interval: 20 }).toContain('The clock is broken')
  await connection.end().closed
  expect(
    (await exchange({ place: placeOf(address), token: testToken }, { body: '{"id":2,"name":"Moss"}' })).status,
  ).toBe(200)
})

test('who leaves while the answer is made ends nothing', async () => {
  let answer = () => {}
  const waiting = new Promise<void>((resolve) => {
    answer = resolve
  })
  let creates = 0
  const store: PlantStore = {
    ...quick,
    create: async ({ name }) => {
      creates += 1
      if (creates === 1) await waiting
      return { name }
    },
  }
  const { address } = await serveStore(store)
  const connection = await connectTo(placeOf(address))
  connection.send(
    `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nContent-Type: application/json\r\n`,
  )
  connection.send(`Content-Length: ${fern.length}\r\n\r\n${fern}`)
  await expect.poll(() => creates).toBe(1)
  connection.socket.resetAndDestroy()
  await connection.closed
  answer()
  expect((await exchange({ place: placeOf(address), token: testToken }, { body: fern })).status).toBe(200)
})

function unused(): never {
  throw new Error('No test needs this')
}

async function adminOf(host = '127.0.0.1') {
  const service = await serveStore(quick, { admin: { host, port: 0 } })
  const line =
    service
      .log()
      .split('\n')
      .find((text) => text.includes('"listening"')) ?? '{}'
  return { place: placeOf(JSON.parse(line).admin) }
}
