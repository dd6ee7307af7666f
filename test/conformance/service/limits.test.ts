import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { respond } from '../../../src/server/answer.js'
import { digestOf, tokensOfStore } from '../../../src/server/authenticator.js'
import type { AccessLogEntry } from '../../../src/server/log.js'
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

describe('a request that is sent before the response to the one before', () => {
  test.each([
    ['alone', 1],
    ['as one of 1,500', 1500],
  ])('%s, gets none, and the connection is closed after that response', async (_, more) => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(create)
    await expect.poll(() => creates.waiting).toBe(1)
    connection.send(Buffer.concat(Array.from({ length: more }, () => create)))
    expect((await exchange(service, description)).status).toBe(200)
    creates.open()
    expect(await connection.answers()).toMatchObject([
      { status: 200, headers: { connection: 'close' } },
    ])
    expect(creates.waiting).toBe(1)
  })

  test('is done where only the end of that response has not come', async () => {
    const { server, place } = await serverOf(async (response) => {
      response.writeHead(200, { 'Content-Length': 1 })
      response.cork() // so that it ends before it is sent
      response.end('x')
      const isLast = response.req.url === '/2'
      setImmediate(() => setImmediate(() => isLast || response.uncork()))
    }, 30_000)
    const connection = await connectTo(place)
    const next = once(server, 'request')
    connection.send(get.replace('/', '/1'))
    await next
    connection.send(get.replace('/', '/2'))
    for (const text of ['200 x', '200 x']) expect((await connection.answer())?.text).toBe(text)
  })

  test('is not taken for the outcome of a create, even if it is no HTTP', async () => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(create)
    await expect.poll(() => creates.waiting).toBe(1)
    connection.send('no HTTP\r\n\r\n')
    expect((await exchange(service, description)).status).toBe(200)
    creates.open()
    expect((await connection.answers()).map(({ text }) => text)).toEqual(['200 {"name":"Fern"}'])
  })
})

test('more than 100 requests behind one that waits for its token close the connection', async () => {
  const { service, lookups } = await slowLookups()
  const connection = await connectTo(service.place)
  connection.send(create)
  await expect.poll(() => lookups.waiting).toBe(1)
  connection.send('GET / HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n'.repeat(200))
  expect(await connection.answers()).toEqual([])
})

test('a delete whose body is no HTTP is rejected, and not done', async () => {
  const { service, creates } = await slowService()
  const connection = await connectTo(service.place)
  const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  connection.send(requestBytes(testToken, { method: 'DELETE', target: '/plants/1', headers }))
  expect((await exchange(service, description)).status).toBe(200)
  const [answer] = await connection.send('no chunk\r\n').answers()
  expect([answer?.text, creates.waiting]).toEqual([
    '400 The request is not valid HTTP/1.1 (RFC 9112)',
    0,
  ])
})

describe('while it drains, a server', () => {
  test('lets those in who come all the time, but not for long', async () => {
    const { http, place } = await serverOf(async (response) => {
      respond(response, { status: 200, body: 'x' })
    }, 30_000)
    const drained = http.drain(3_600_000)
    let connected = 0
    for (let isOpen = true; isOpen; ) {
      const socket = connect(place).on('error', () => undefined)
      onTestFinished(() => void socket.destroy())
      isOpen = await once(socket, 'connect').then(
        () => true,
        () => false,
      )
      connected += 1
      await takeTime(20)
    }
    await drained
    expect(connected).toBeLessThan(connectionLimit)
  })
})

test.runIf(hasOpenssl)(
  'a connection whose TLS handshake is late is closed (needs openssl)',
  async () => {
    const entries: AccessLogEntry[] = []
    const tls = certificate({ names: ['IP:127.0.0.1'] })
    const { server, place } = await serverOf(() => Promise.reject(), 30_000, tls, entries)
    const accepted = once(server, 'connection')
    const connection = await connectTo(place)
    const [socket] = await accepted
    const late = Object.assign(new Error('late'), { code: 'ERR_TLS_HANDSHAKE_TIMEOUT' })
    server.emit('clientError', late, socket)
    expect(await connection.answers()).toEqual([])
    expect(entries).toMatchObject([{ outcome: 'handshake', code: late.code }])
  },
)

describe('a body', () => {
  test('is not read beyond some 64 KiB while a token is looked up', async () => {
    const { service, lookups } = await slowLookups()
    const [connection, { bytesRead }] = await Promise.all([connectTo(service.place), nextServed()])
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
    expect((await connection.answer())?.text).toBe(
      '400 (413) The body is larger than 1048576 bytes',
    )
  })
})

describe('a client that closes its side', () => {
  test('gets no response', async () => {
    const { service, creates } = await slowService()
    const connection = await connectTo(service.place)
    connection.send(create)
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
    respond(response, { status: 200, body: 'x'.repeat(size) })

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

  test('in responses of lists that are not read is at most 4 of them: then nothing is done', async () => {
    const [request, fitting] = [{ method: 'GET' }, 4]
    let asked = 0
    const plant = { id: 1n, name }
    const read = async function* () {
      asked += 1
      yield [plant]
    }
    const service = await serveStore({ ...quick, read }, { timeoutMs: 1 })
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
  })

  test.each([
    ['plants', '/plants/1', 16],
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
    const service = await serveStore(
      { ...quick, get, read },
      { limits: { ...limits, bodyLimitBytes: 1000 } },
    )
    const answers = Array.from({ length: 90 }, () => exchange(service, { method: 'GET', target }))
    await expect.poll(() => reads.waiting).toBe(atOnce)
    reads.open()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(most).toBe(atOnce)
  })
})

test('a change takes no more of it than its body and a plant, whatever the limit of bodies is', async () => {
  const get: Store['get'] = async () => new Map([[1n, { id: 1n, name: 'Fern' }]])
  const bodyLimitBytes = 32 * 1_048_576
  const service = await serveStore(
    { ...quick, get },
    { timeoutMs: 1, limits: { ...limits, bodyLimitBytes } },
  )
  const target = '/plants/1'
  const unfinished = { method: 'PATCH', target, headers: { 'Content-Length': '20' }, body: '{' }
  ;(await connectTo(service.place)).send(requestBytes(testToken, unfinished))
  expect((await exchange(service, description)).status).toBe(200)
  expect((await exchange(service, { method: 'GET', target })).status).toBe(200)
})

describe('one token does not keep out another', () => {
  const openTokenSource = async () => (name: string) => ({ ...testCaller, name })
  const ofAnother = <T extends object>(service: T) => ({ ...service, token: 'another' })

  test('with searches, of which those that wait are done later', async () => {
    const searches = gate()
    const read: Store['read'] = async function* ({ search } = {}) {
      if (search) await searches.wait()
      yield [{ id: 1n, name: 'Fern' }]
    }
    const service = await serveStore({ ...quick, read }, { openTokenSource })
    const search: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const answers = upTo(60).map(() => exchange(service, search))
    await expect.poll(() => searches.waiting).toBe(4)
    const list = { method: 'GET' }
    expect((await exchange(ofAnother(service), list)).text).toBe('200 [{"id":1,"name":"Fern"}]')
    const other = exchange(ofAnother(service), search)
    await expect.poll(() => searches.waiting).toBe(5)
    searches.open()
    const statuses = (await Promise.all([...answers, other])).map(({ status }) => status)
    expect(statuses).toEqual(Array<number>(61).fill(200))
  })

  test('with bodies that do not end', async () => {
    const service = await serveStore(quick, { openTokenSource })
    const size = limits.bodyLimitBytes
    const slow = requestBytes(testToken, {
      headers: { 'Content-Length': `${size}` },
      body: ' '.repeat(size - 1),
    })
    const connections = await Promise.all(
      Array.from({ length: 80 }, () => connectTo(service.place)),
    )
    for (const connection of connections) connection.send(slow)
    const sent = () => connections.filter(({ socket }) => socket.writableLength === 0).length
    await expect.poll(sent).toBeGreaterThanOrEqual(16)
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    expect((await exchange(ofAnother(service), { body: fern.padEnd(size) })).status).toBe(200)
  })

  test('with tokens that are looked up, of which 32 are at once', async () => {
    const lookups = gate()
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
    let passed = 0
    const service = await serveStore(quick, {
      openTokenSource: async () => tokensOfStore({ ...noTokens, find }, () => passed, Date.now),
    })
    const ask = (at: number) => exchange({ ...service, token: `made-up-${at}` }, { body: fern })
    const wrong = upTo(32).map(ask)
    await expect.poll(() => lookups.waiting).toBe(32)
    const last = ask(32)
    const first = exchange(service, { body: fern })
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    passed = 600
    const again = ask(32)
    for (let turn = 0; turn < 5; turn += 1) await exchange(service, description)
    expect(lookups.waiting).toBe(32)
    lookups.open()
    expect((await first).status).toBe(200)
    for (const { text } of await Promise.all([...wrong, last, again]))
      expect(text).toMatch(/^400 \(401\)/)
  })
})

describe('a body in chunks', () => {
  const chunked = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  const inChunks = (text: string, size: number) => {
    const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    return `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('')}0\r\n\r\n`
  }

  const used = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }

  test('behind a request that waits takes no more memory either', async () => {
    const { service, lookups } = await slowLookups()
    const probe = await connectTo(service.place)
    const connections = await Promise.all(upTo(30).map(() => connectTo(service.place)))
    for (const connection of connections) connection.send(create)
    await expect.poll(() => lookups.waiting).toBe(30)
    const before = used()
    const next = `${requestBytes(testToken, { headers: chunked })}${'1\r\n \r\n'.repeat(10_000)}`
    for (const connection of connections) connection.send(next)
    const unsent = () => connections.filter(({ socket }) => socket.writableLength > 0).length
    await expect.poll(unsent).toBe(0)
    for (let turn = 0; turn < 50; turn += 1) await probe.send(get).answer()
    expect(used() - before).toBeLessThan(20_000_000)
  })

  test('takes no more memory than its bytes, however small they are', async () => {
    const { place } = await serveStore(quick)
    const [connection, probe] = [await connectTo(place), await connectTo(place)]
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
    const service = await serveStore(quick, { limits: { ...limits, bodyLimitBytes: 1000 } })
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
    limits: { ...limits, bodyLimitBytes: 200_000 },
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

const connectionLimit = 500

async function serverOf(
  handler: Handler,
  requestTimeoutMs: number,
  tls?: Tls,
  entries: AccessLogEntry[] = [],
) {
  const record = (entry: AccessLogEntry) => void entries.push(entry)
  const log = { record, error: () => undefined }
  const limits = { requestTimeoutMs, connectionLimit }
  const http = new HttpServer(handler, { limits, tls, log })
  onTestFinished(() => http.abort())
  await once(http.server.listen(0, '127.0.0.1'), 'listening')
  const { port } = http.server.address() as AddressInfo // as it listens at one
  return { http, server: http.server, place: { host: '127.0.0.1', port } }
}
