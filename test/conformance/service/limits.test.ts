import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { respond } from '../../../src/server/answer.js'
import { digestOf, tokensOfStore } from '../../../src/server/authenticator.js'
import { HttpServer, type Tls } from '../../../src/server/server.js'
import type { Store } from '../../../src/stores/common/store.js'
import { rights, type TokenStore } from '../../../src/stores/common/token-store.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { takeTime } from '../../helpers/plant-service.js'
import {
  connectTo,
  exchange,
  type RawConnection,
  type RawRequest,
  requestBytes,
} from '../../helpers/raw-http.js'
import {
  created,
  gate,
  limits,
  noTokens,
  quick,
  serveStore,
  testCaller,
  testToken,
} from '../../helpers/service.js'
import { collectGarbage } from '../../helpers/store.js'

type Handler = (response: ServerResponse) => Promise<void>

const fern = '{"id":1,"name":"Fern"}'
const create = requestBytes(testToken, { body: fern })
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index)
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const description: RawRequest = {
  method: 'GET',
  target: '/openapi.json',
  headers: { Authorization: undefined },
}

async function slowService() {
  const creates = gate()
  const write: Store['write'] = (changes) => creates.wait().then(() => changes.map(created))
  return { service: await serveStore({ ...quick, write }), creates }
}

/** A service that looks up no token before it is let. */
async function slowLookups(options: Parameters<typeof serveStore>[1] = {}) {
  const lookups = gate()
  const openTokenSource = async () => () => lookups.wait().then(() => testCaller)
  return { service: await serveStore(quick, { openTokenSource, ...options }), lookups }
}

/** The service's side of the next connection: how much it has read. */
async function nextServed() {
  const served = await new Promise<Socket>((resolve) => {
    const listener = (message: unknown) => {
      unsubscribe('net.server.socket', listener)
      resolve((message as { socket: Socket }).socket) // as Node documents it
    }
    subscribe('net.server.socket', listener)
  })
  return { bytesRead: () => served.bytesRead }
}

describe('requests that wait on one connection', () => {
  test('are processed one after the other', async () => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(Buffer.concat(Array.from({ length: 16 }, () => create)))
    await expect.poll(() => creates.waiting).toBe(1)
    expect((await exchange(service, description)).status).toBe(200)
    expect(creates.waiting).toBe(1)
    creates.open()
    for (let at = 0; at < 16; at += 1) expect((await connection.answer())?.status).toBe(200)
    expect(creates.waiting).toBe(16)
  })

  const closedLine = (reason: string) => ({
    level: 'info',
    outcome: 'closed',
    from: '127.0.0.1',
    reason,
  })
  const outcomesIn = (log: string) =>
    log.split('\n').flatMap((line) => (line.includes('"outcome"') ? [JSON.parse(line)] : []))

  test.each([
    ['of which a 17th is unanswered', 1],
    ['of which 1,500 more are unanswered', 1500],
  ])('%s, close it after the response to the one that is with the store', async (_, more) => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(create)
    await expect.poll(() => creates.waiting).toBe(1)
    for (let count = 0; count < 15; count += 1) connection.send(create)
    expect((await exchange(service, description)).status).toBe(200)
    expect(service.log()).not.toContain('closed')
    connection.send(Buffer.concat(Array.from({ length: more }, () => create)))
    await expect.poll(() => service.log()).toContain('closed')
    creates.open()
    expect((await connection.answers()).map(({ status }) => status)).toEqual([200])
    expect(creates.waiting).toBe(1)
    expect(outcomesIn(service.log())).toMatchObject([
      { outcome: 'described' },
      closedLine('More than 16 unanswered requests'),
      { outcome: 'created' },
    ])
  })

  test('17 in one packet close it', async () => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(Buffer.concat(Array.from({ length: 17 }, () => create)))
    expect(await connection.answers()).toEqual([])
    expect(outcomesIn(service.log())).toMatchObject([
      closedLine('More than 16 unanswered requests'),
    ])
    expect(creates.waiting).toBe(0)
  })

  test.each([
    ['of their bodies', 0],
    ['of the bodies of those that wait', 1],
    ['of what comes after one that waits', 2],
  ])('are not read beyond some 64 KiB %s while a token is looked up', async (_, before) => {
    const { service, lookups } = await slowLookups()
    const [connection, { bytesRead }] = await Promise.all([connectTo(service.place), nextServed()])
    for (let count = 0; count < before; count += 1) connection.send(create)
    await expect.poll(() => lookups.waiting).toBe(Math.min(before, 1))
    const size = 32 * 1_048_576 // more than the system keeps
    connection
      .send(requestBytes(testToken, { headers: { 'Content-Length': `${size}` } }))
      .send(Buffer.alloc(size))
    let last = -1
    const isStill = () => {
      const isSame = bytesRead() === last
      last = bytesRead()
      return isSame
    }
    await expect.poll(isStill, { interval: 100 }).toBe(true)
    expect(last).toBeLessThan(200_000)
    lookups.open()
    for (let count = 0; count < before; count += 1)
      expect((await connection.answer())?.text).toBe('200 {"name":"Fern"}')
    expect((await connection.answer())?.text).toBe(
      '400 (413) The body is larger than 1048576 bytes',
    )
  })
})

describe('a client that closes its side', () => {
  test('gets no response, and what waits on its connection is not done', async () => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(Buffer.concat([create, create]))
    await expect.poll(() => creates.waiting).toBe(1)
    expect(await connection.end().answers()).toEqual([])
    creates.open()
    expect((await exchange(service, { body: fern })).status).toBe(200)
    expect(creates.waiting).toBe(2)
  })
})

describe('a client that does not read its response', () => {
  const size = 32 * 1_048_576
  const large: Handler = async (response) =>
    respond(response, { status: 200, body: Buffer.alloc(size) })

  const losesConnection = async (act: (socket: Socket) => void, tls?: Tls) => {
    const { server, place } = await serverOf(large, 300, tls)
    const socket = tls
      ? connectSecurely({ ...place, ca: tls.cert })
      : connect({ ...place, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(get)
    await once(server, 'request')
    const count = () => {
      if (socket.writable) act(socket)
      return promisify(server.getConnections).call(server)
    }
    await expect.poll(count).toBe(0)
  }

  test.each<[string, (socket: Socket) => void]>([
    ['is silent', () => undefined],
    ['sends a byte now and then', (socket) => void socket.write(' ')],
  ])('and %s, loses its connection after the time-out', (_, act) => losesConnection(act))

  test.runIf(hasOpenssl)(
    'loses its connection after the time-out over TLS too (needs openssl)',
    () => losesConnection(() => undefined, certificate({ names: ['IP:127.0.0.1'] })),
  )

  test('at once, but goes on to read, is waited for', async () => {
    // Where this process itself stands still for the time-out, the service rightly hangs up, and a longer one is tried.
    for (let timeout = 500; ; timeout *= 2) {
      const { received, duration, longestPause } = await readInPieces(timeout)
      if (longestPause >= timeout) continue
      expect([received >= size, duration > timeout]).toEqual([true, true])
      return
    }
  })

  /** Reads a large response for twice as long as the time-out. `longestPause` is the longest time without a write. */
  async function readInPieces(timeout: number) {
    const start = performance.now()
    let [received, written, longestPause] = [0, start, 0]
    const notePause = () => {
      longestPause = Math.max(longestPause, performance.now() - written)
      written = performance.now()
    }
    const piece = Buffer.alloc(65_536)
    const inPieces: Handler = async (response) => {
      response.writeHead(200, { 'Content-Length': size })
      for (let sent = 0; sent < size; sent += piece.length) {
        if (!response.write(piece)) await once(response, 'drain')
        notePause()
      }
      response.end()
    }
    const socket = connect((await serverOf(inPieces, timeout)).place)
    onTestFinished(() => void socket.destroy())
    socket.write(get)
    const read = async () => {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        received += chunk.length
        if (received >= size) return
        while (performance.now() - start < (2 * timeout * received) / size) await takeTime(1)
      }
    }
    await read().catch(() => undefined) // of a service that hangs up
    notePause()
    return { received, duration: performance.now() - start, longestPause }
  }
})

describe('what one token holds', () => {
  const name = 'F'.repeat(8 * 1_048_576)

  test.each<[string, RawRequest, number]>([
    ['creates', { body: fern }, 8],
    ['lists', { method: 'GET' }, 6],
  ])(
    'in responses of %s that are not read is at most 64 MiB: then nothing is done',
    async (_, request, fitting) => {
      let asked = 0
      const plant = { id: 1n, name }
      const read = async function* () {
        asked += 1
        yield [plant]
      }
      const write: Store['write'] = async () => {
        asked += 1
        return [{ type: 'created', plant }]
      }
      const service = await serveStore({ ...quick, read, write }, { timeout: 1 })
      const unread: RawConnection[] = []
      for (let count = 0; count < fitting; count += 1) {
        const connection = await connectTo(service.place)
        connection.socket.pause()
        unread.push(connection.send(requestBytes(testToken, request)))
        await expect.poll(() => service.log().match(/"status":200/g)?.length).toBe(count + 1)
      }
      const { text, headers } = await exchange(service, request)
      expect([text, headers['retry-after']]).toEqual([
        '503 The service is busy, and nothing was stored',
        '1',
      ])
      expect(asked).toBe(fitting)
      expect((await exchange(service, description)).status).toBe(200)
      for (const { socket } of unread) socket.resetAndDestroy()
      await expect.poll(async () => (await exchange(service, request)).status).toBe(200)
    },
  )

  test.each([
    ['plants', '/plants/1', 64],
    ['pages', '/plants?search=x', 4],
  ])('while it reads %s are as many at a time as fit: %s, %i', async (_, target, atOnce) => {
    const reads = gate()
    let [done, most] = [0, 0]
    const wait = async () => {
      const read = reads.wait()
      most = Math.max(most, reads.waiting - done)
      await read
      done += 1
    }
    const get = (ids: readonly bigint[]) =>
      wait().then(() => new Map(ids.map((id) => [id, { id, name: 'Fern' }])))
    const read = async function* () {
      await wait()
      yield []
    }
    const service = await serveStore({ ...quick, get, read })
    const answers = Array.from({ length: 90 }, () => exchange(service, { method: 'GET', target }))
    await expect.poll(() => reads.waiting).toBe(atOnce)
    reads.open()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(most).toBe(atOnce)
  })
})

describe('one token does not keep out another', () => {
  const openTokenSource = async () => (name: string) => ({ ...testCaller, name })
  const ofAnother = <T extends object>(service: T) => ({ ...service, token: 'another' })

  test('with searches, of which those that wait get 503 after 5 s', async () => {
    const searches = gate()
    let passed = 0
    const read: Store['read'] = async function* ({ search } = {}) {
      if (search) await searches.wait()
      yield [{ id: 1n, name: 'Fern' }]
    }
    const now = () => performance.now() + passed
    const service = await serveStore({ ...quick, read }, { openTokenSource, now })
    const search: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const answers = Array.from({ length: 60 }, () => exchange(service, search))
    await expect.poll(() => searches.waiting).toBe(4)
    const list = { method: 'GET' }
    expect((await exchange(ofAnother(service), list)).text).toBe('200 [{"id":1,"name":"Fern"}]')
    passed = 5000
    const other = exchange(ofAnother(service), search)
    await expect.poll(() => searches.waiting).toBe(5)
    const busy = await Promise.race(answers)
    expect([busy.status, busy.headers['retry-after']]).toEqual([503, '1'])
    searches.open()
    const statuses = (await Promise.all([...answers, other])).map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([
      ...Array<number>(5).fill(200),
      ...Array<number>(56).fill(503),
    ])
  })

  test('with bodies that do not end', async () => {
    const service = await serveStore(quick, { openTokenSource })
    const size = limits.bodyLimit
    const slow = requestBytes(testToken, {
      headers: { 'Content-Length': `${size}` },
      body: ' '.repeat(size - 1),
    })
    const connections = await Promise.all(
      Array.from({ length: 80 }, () => connectTo(service.place)),
    )
    for (const connection of connections) connection.send(slow)
    const sent = () => connections.filter(({ socket }) => socket.writableLength === 0).length
    await expect.poll(sent).toBeGreaterThanOrEqual(64)
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    expect((await exchange(ofAnother(service), { body: fern.padEnd(size) })).status).toBe(200)
  })

  test('with tokens that are looked up, of which 32 are at once', async () => {
    const lookups = gate()
    let passed = 0
    const token = {
      id: 1n,
      note: undefined,
      rights,
      createdAt: new Date(0),
      expiresAt: undefined,
      revokedAt: undefined,
    }
    const valid = digestOf(testToken)
    const find: TokenStore['find'] = async (digest) =>
      valid.equals(digest) ? token : lookups.wait()
    const now = () => performance.now() + passed
    const service = await serveStore(quick, {
      openTokenSource: async () => tokensOfStore({ ...noTokens, find }, now, Date.now, 30_000),
    })
    const ask = (at: number) => exchange({ ...service, token: `made-up-${at}` }, { body: fern })
    const [wrong, late] = [
      upTo(32).map(ask),
      await Promise.all(upTo(8).map(() => connectTo(service.place))),
    ]
    await expect.poll(() => lookups.waiting).toBe(32)
    for (const [at, connection] of late.entries())
      connection.send(requestBytes(`late-${at}`, { body: fern }))
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    passed = 5000
    for (const connection of late)
      expect(await connection.answer()).toMatchObject({
        status: 503,
        headers: { 'retry-after': '1' },
      })
    const first = exchange(service, { body: fern })
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    expect(lookups.waiting).toBe(32)
    lookups.open()
    expect((await first).status).toBe(200)
    for (const { text } of await Promise.all(wrong)) expect(text).toMatch(/^400 \(401\)/)
  })
})

describe('a body in chunks', () => {
  const chunked = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  const inChunks = (text: string, size: number) => {
    const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    return `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
  }

  test('takes no more memory than its bytes, however small they are', async () => {
    const { place } = await serveStore(quick)
    const [connection, probe] = [await connectTo(place), await connectTo(place)]
    const used = () => {
      collectGarbage()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      return heapUsed + arrayBuffers
    }
    const before = used()
    connection
      .send(requestBytes(testToken, { headers: chunked }))
      .send('1\r\n \r\n'.repeat(200_000))
    await expect.poll(() => connection.socket.writableLength).toBe(0)
    for (let turn = 0; turn < 20; turn += 1) await probe.send(get).answer()
    expect(used() - before).toBeLessThan(20_000_000)
    expect((await connection.send(inChunks(fern, 5)).answer())?.status).toBe(200)
  })
})

test.each([
  ['(401)', 'wrong', {}],
  ['(415)', testToken, { 'Content-Type': 'text/plain' }],
])(
  'a slow body that is rejected with %s takes no memory from the others',
  async (error, token, headers) => {
    const service = await serveStore(quick, { limits: { ...limits, bodyLimit: 1000 } })
    const slow = requestBytes(token, {
      headers: { ...headers, 'Content-Length': '1000' },
      body: ' '.repeat(990),
    })
    for (let count = 0; count < 64; count += 1)
      expect((await (await connectTo(service.place)).send(slow).answer())?.text).toContain(error)
    expect((await exchange(service, { body: fern.padEnd(1000) })).status).toBe(200)
  },
)

test('bodies whose tokens are looked up take no room from one another, and are read on when that is done', async () => {
  const lookups = gate()
  const openTokenSource = async () => (token: string) =>
    lookups.wait().then(() => (token === testToken ? testCaller : undefined))
  const service = await serveStore(quick, {
    openTokenSource,
    limits: { ...limits, bodyLimit: 200_000 },
  })
  const headers = { 'Content-Length': '150000' }
  const tokens = [...Array<string>(80).fill('wrong'), ...Array<string>(10).fill(testToken)]
  const connections = await Promise.all(tokens.map(() => connectTo(service.place)))
  for (const [at, token] of tokens.entries())
    connections[at]?.send(requestBytes(token, { headers, body: fern.padEnd(149_999) }))
  await expect.poll(() => lookups.waiting).toBe(90)
  for (let turn = 0; turn < 20; turn += 1)
    expect((await exchange(service, description)).status).toBe(200)
  lookups.open()
  for (const [at, token] of tokens.entries()) {
    const text = (await connections[at]?.send(' ').answer())?.text
    expect(text).toMatch(token === testToken ? '{"name":"Fern"}' : /^400 \(401\)/)
  }
})

test('a token that is revoked while the body comes is rejected', async () => {
  let isRevoked = false
  const openTokenSource = async () => (token: string) =>
    token === testToken && !isRevoked ? testCaller : undefined
  const now = () => performance.now() + (isRevoked ? 1000 : 0)
  const connection = await connectTo((await serveStore(quick, { openTokenSource, now })).place)
  const headers = { Expect: '100-continue', 'Content-Length': `${fern.length}` }
  expect((await connection.send(requestBytes(testToken, { headers })).answer())?.status).toBe(100)
  isRevoked = true
  expect((await connection.send(fern).answer())?.text).toBe('400 (401) This token is not accepted')
})

test('a connection whose token is revoked is rejected after a quarter of a second', async () => {
  const runtime = { passed: 0, isRevoked: false }
  const openTokenSource = async () => () => (runtime.isRevoked ? undefined : testCaller)
  const { place } = await serveStore(quick, { openTokenSource, now: () => runtime.passed })
  const connection = await connectTo(place)
  const textAt = async (milliseconds: number) => {
    runtime.passed = milliseconds
    return (await connection.send(create).answer())?.text
  }
  expect(await textAt(0)).toBe('200 {"name":"Fern"}')
  runtime.isRevoked = true
  expect(await textAt(249)).toBe('200 {"name":"Fern"}')
  expect(await textAt(250)).toBe('400 (401) This token is not accepted')
})

async function serverOf(handler: Handler, requestTimeout: number, tls?: Tls) {
  const log = { record: () => undefined, warn: () => undefined, error: () => undefined }
  const limits = { requestTimeout, connectionLimit: 10 }
  const http = new HttpServer(({ response }) => handler(response), { limits, tls, log })
  onTestFinished(() => http.abort())
  await once(http.server.listen(0, '127.0.0.1'), 'listening')
  const { port } = http.server.address() as AddressInfo // as it listens at one
  return { server: http.server, place: { host: '127.0.0.1', port } }
}
