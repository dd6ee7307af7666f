import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { hashToken } from '../../../src/server/authenticate.js'
import { respond } from '../../../src/server/respond.js'
import { HttpServer, type ReceivedRequest } from '../../../src/server/server.js'
import { TokenCache } from '../../../src/server/token-cache.js'
import type { Store } from '../../../src/stores/store.js'
import { rights, type TokenStore } from '../../../src/stores/tokens.js'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { collectGarbage } from '../../helpers/sandbox/store.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  type RawConnection,
  type RawRequest,
} from '../../helpers/scripted-server/raw-http.js'
import {
  buildCreatedOutcome,
  createGate,
  limits,
  quickStore,
  serveStore,
  testCaller,
  testToken,
} from '../../helpers/scripted-server/service.js'

const fern = '{"id":1,"name":"Fern"}'
const create = buildRequest(testToken, { body: fern })
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const list: RawRequest = { method: 'GET' }
const description: RawRequest = {
  method: 'GET',
  target: '/openapi.json',
  headers: { Authorization: undefined },
}

test('a request has at most 100 header lines, which is checked before anything else', async () => {
  const service = await serveStore(quickStore)
  const linesBesides = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, 'a']))
  const usual = { Authorization: undefined, 'Content-Length': undefined, 'Content-Type': undefined }
  for (const [count, status] of [
    [99, 404],
    [100, 431],
    [500, 431],
  ] as const) {
    const connection = await connectTo(service.endpoint)
    const headers = { ...usual, ...linesBesides(count) } // besides Host
    connection.send(buildRequest(testToken, { method: 'GET', target: '/no', headers }))
    const answer = await connection.readAnswer()
    expect(answer?.status).toBe(status)
    if (status !== 431) continue
    const limits = 'larger than 16 KiB, or have more than 100 lines'
    expect(answer?.text).toBe(`431 The request headers are ${limits}`)
    expect(answer?.headers['connection']).toBe('close')
    expect(await connection.readAnswer()).toBeUndefined()
  }
})

describe('when there are as many connections as --connection-limit, a new one', () => {
  const limited = () => serveStore(quickStore, { limits: { ...limits, connectionLimit: 3 } })
  const authorized = async (service: Awaited<ReturnType<typeof limited>>) => {
    const connection = (await connectTo(service.endpoint)).send(create)
    expect((await connection.readAnswer())?.status).toBe(200)
    return connection
  }
  const stranger = async (service: Awaited<ReturnType<typeof limited>>) => {
    const connection = (await connectTo(service.endpoint)).send(buildRequest('wrong'))
    expect((await connection.readAnswer())?.text).toMatch(/^400 \(401\)/)
    return connection
  }

  test('closes the one that has been open longest without an accepted token', async () => {
    const service = await limited()
    const [kept, first, second] = [
      await authorized(service),
      await stranger(service),
      await stranger(service),
    ]
    const another = await authorized(service)
    expect(await first.readAnswer()).toBeUndefined()
    for (const connection of [kept, another])
      expect((await connection.send(create).readAnswer())?.status).toBe(200)
    expect((await second.send(buildRequest('wrong')).readAnswer())?.status).toBe(400)
    expect(service.log()).toContain('The limit of 3 connections was reached: 1 connection closed')
  })

  test.runIf(hasOpenssl)(
    'over TLS closes no connection with an accepted token (needs openssl)',
    async () => {
      const { path, keyPath, cert, key } = createCertificate({ names: ['IP:127.0.0.1'] })
      const service = await serveStore(quickStore, {
        limits: { ...limits, connectionLimit: 2 },
        tls: { paths: [path, keyPath], read: () => ({ cert, key }) },
      })
      const open = async (token: string) => {
        const socket = connectSecurely({ ...(service.endpoint as object), ca: cert })
        onTestFinished(() => void socket.destroy())
        await once(socket, 'secureConnect')
        socket.write(buildRequest(token, { body: fern }))
        const [answer] = await once(socket, 'data')
        return { socket, status: String(answer).slice(9, 12) }
      }
      const authorized = await open(testToken)
      const stranger = await open('wrong')
      const closed = once(stranger.socket, 'close')
      expect([authorized.status, stranger.status]).toEqual(['200', '400'])
      expect((await open(testToken)).status).toBe('200')
      await closed
      authorized.socket.write(create)
      const [answer] = await once(authorized.socket, 'data')
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
    },
  )

  test('is closed itself if all others have one', async () => {
    const service = await limited()
    const kept = [await authorized(service), await authorized(service), await authorized(service)]
    for (let count = 1; count <= 5; count += 1) {
      const connection = await connectTo(service.endpoint)
      const busy = { status: 503, headers: { connection: 'close' } }
      expect(await connection.readAnswer()).toMatchObject(busy)
      expect(await connection.readAnswer()).toBeUndefined()
    }
    for (const connection of kept)
      expect((await connection.send(create).readAnswer())?.status).toBe(200)
    expect(service.log().match(/The limit of 3 connections/g)).toHaveLength(1) // in a minute
    await service.drain(0)
    const closed = service.log().match(/The limit of 3 connections was reached: .*(?=")/g)
    const sentence = 'The limit of 3 connections was reached'
    expect(closed).toEqual([
      `${sentence}: 1 connection closed`,
      `${sentence}: 4 connections closed`,
    ])
  })
})

test('a connection whose body was rejected goes on after a flood on another one', async () => {
  const service = await serveStore(quickStore)
  const connection = await connectTo(service.endpoint)
  connection.send(buildRequest('wrong', { headers: { 'Content-Length': '20' }, body: 'x' }))
  expect((await connection.readAnswer())?.text).toMatch(/^400 \(401\)/)
  ;(await connectTo(service.endpoint)).send(get.repeat(2000))
  await takeTurns(service)
  connection.send('x'.repeat(19)).send(create)
  expect((await connection.readAnswer())?.status).toBe(200)
})

test('clients that flood again and again do not keep out one that was there before', async () => {
  const service = await serveStore(quickStore)
  const before = await connectTo(service.endpoint)
  let isOver = false
  const flood = async () => {
    while (!isOver) {
      const connection = await connectTo(service.endpoint)
      connection.send(get.repeat(2000))
      await connection.readAnswers().catch(() => undefined)
    }
  }
  const floods = Array.from({ length: 3 }, flood)
  expect((await before.send(get).readAnswer())?.status).toBe(404)
  isOver = true
  await Promise.all(floods)
})

test('after a flood on one connection, neither a new client nor an idle one waits for 400 others', async () => {
  const service = await serveStore(quickStore)
  const idle = await Promise.all(
    Array.from({ length: 400 }, async () => (await connectTo(service.endpoint)).send(get)),
  )
  await Promise.all(idle.map((connection) => connection.readAnswer()))
  for (const connection of idle.slice(0, 5)) {
    ;(await connectTo(service.endpoint)).send(get.repeat(2000))
    const iterations = countIterations()
    expect((await exchangeOnce(service, { body: fern })).status).toBe(200)
    expect((await connection.send(get).readAnswer())?.status).toBe(404)
    expect(iterations()).toBeLessThan(100)
  }
})

/** Counts the iterations of the event loop until it is asked. */
function countIterations(): () => number {
  let count = 0
  let isOver = false
  const step = () => {
    count += 1
    if (!isOver) setImmediate(step)
  }
  setImmediate(step)
  return () => {
    isOver = true
    return count
  }
}

/** Several of the event loop: what can happen meanwhile, has happened. */
async function takeTurns(service: Parameters<typeof exchangeOnce>[0]): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1)
    expect((await exchangeOnce(service, description)).status).toBe(200)
}

test.each<[string, string | Buffer]>([
  ['another request', create],
  ['1,500 others', Buffer.concat(Array<Buffer>(1500).fill(create))],
  ['what is no HTTP', 'no HTTP\r\n\r\n'],
])('%s before the response to a request gets none, and closes the connection', async (_, more) => {
  const creates = createGate()
  const write: Store['write'] = (changes) =>
    creates.wait().then(() => changes.map(buildCreatedOutcome))
  const service = await serveStore({ ...quickStore, write })
  const connection = (await connectTo(service.endpoint)).send(create)
  await expect.poll(() => creates.waiting).toBe(1)
  connection.send(more)
  await takeTurns(service)
  creates.open()
  expect(await connection.readAnswers()).toMatchObject([
    { text: '200 {"name":"Fern"}', headers: { connection: 'close' } },
  ])
  expect(creates.waiting).toBe(1)
})

test('a delete whose body is no HTTP is rejected, and not done', async () => {
  const writes = createGate()
  const service = await serveStore({ ...quickStore, write: () => writes.wait().then(() => []) })
  const connection = await connectTo(service.endpoint)
  const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  connection.send(buildRequest(testToken, { method: 'DELETE', target: '/plants/1', headers }))
  await takeTurns(service)
  const [answer] = await connection.send('no chunk\r\n').readAnswers()
  expect([answer?.status, writes.waiting]).toEqual([400, 0])
})

test('a change takes no more memory than its body and a plant, whatever the limit is', async () => {
  const get: Store['get'] = async () => new Map([[1n, { id: 1n, name: 'Fern' }]])
  const options = { timeoutMs: 1, limits: { ...limits, bodyLimitBytes: 32 * 1_048_576 } }
  const service = await serveStore({ ...quickStore, get }, options)
  const target = '/plants/1'
  const unfinished = { method: 'PATCH', target, headers: { 'Content-Length': '20' }, body: '{' }
  ;(await connectTo(service.endpoint)).send(buildRequest(testToken, unfinished))
  await takeTurns(service)
  expect((await exchangeOnce(service, { method: 'GET', target })).status).toBe(200)
})

const inChunks = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }

test.each<[string, (body: string) => Buffer]>([
  ['with a length', (body) => buildRequest(testToken, { body })],
  [
    'in chunks of 64 KiB',
    (body) => {
      const chunks = body.match(/.{1,65536}/g) ?? []
      const text = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')
      return buildRequest(testToken, { headers: inChunks, body: `${text}0\r\n\r\n` })
    },
  ],
])(
  'a body %s is read up to some 64 KiB while its token is looked up, and then on',
  async (_, build) => {
    const lookups = createGate()
    const size = 32 * 1_048_576 // more than the system keeps
    const service = await serveStore(quickStore, {
      openTokenSource: async () => () => lookups.wait().then(() => testCaller),
      limits: { ...limits, bodyLimitBytes: size },
    })
    const [connection, { bytesRead }] = await Promise.all([
      connectTo(service.endpoint),
      nextServed(),
    ])
    connection.send(build(fern.padEnd(size)))
    let last = -1
    const isStill = () => {
      const isSame = bytesRead() === last
      last = bytesRead()
      return isSame
    }
    await expect.poll(isStill, { interval: 100 }).toBe(true)
    expect(last).toBeLessThan(200_000)
    lookups.open()
    expect((await connection.readAnswer())?.text).toBe('200 {"name":"Fern"}')
  },
)

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

test.each(['nothing', 'a byte now and then'])(
  'a client that does not read its response in time, and sends %s, loses its connection',
  async (what) => {
    const large = async ({ response }: ReceivedRequest) =>
      respond(response, { status: 200, body: 'x'.repeat(32 * 1_048_576) })
    const http = new HttpServer(large, {
      limits: { requestTimeoutMs: 300, connectionLimit: 500 },
      tls: undefined,
      log: { record: () => undefined, warn: () => undefined, error: () => undefined },
    })
    onTestFinished(() => http.server.closeAllConnections())
    const { server } = http
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(get)
    await once(server, 'request')
    const count = () => {
      if (what !== 'nothing' && socket.writable) socket.write(' ')
      return promisify(server.getConnections).call(server)
    }
    await expect.poll(count).toBe(0)
  },
)

test('a list has 100 plants, unless it asks for another number', async () => {
  const read = async function* () {
    yield Array.from({ length: 200 }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))
  }
  const { body, headers } = await exchangeOnce(await serveStore({ ...quickStore, read }), list)
  expect(JSON.parse(body)).toHaveLength(100)
  expect(headers['link']).toBe('<plants?limit=100&after=99>; rel="next"')
})

test('one token has at most 4 lists whose responses are not read: then nothing is done', async () => {
  let asked = 0
  const read = async function* () {
    asked += 1
    yield [{ id: 1n, name: 'F'.repeat(8 * 1_048_576) }]
  }
  const service = await serveStore({ ...quickStore, read }, { timeoutMs: 1 })
  const unread: RawConnection[] = []
  for (let count = 1; count <= 4; count += 1) {
    const connection = await connectTo(service.endpoint)
    connection.socket.pause()
    unread.push(connection.send(buildRequest(testToken, list)))
    await expect.poll(() => service.log().match(/"status":200/g)?.length).toBe(count)
  }
  const busy = { status: 503, headers: { 'retry-after': '1' } }
  expect(await exchangeOnce(service, list)).toMatchObject(busy)
  expect(asked).toBe(4)
  await takeTurns(service)
  for (const { socket } of unread) socket.resetAndDestroy()
  await expect.poll(async () => (await exchangeOnce(service, list)).status).toBe(200)
})

test('one token has at most 4 counts in progress, and they end when their clients leave', async () => {
  const signals: (AbortSignal | undefined)[] = []
  const count: Store['count'] = async ({ signal } = {}) => {
    signals.push(signal)
    if (signals.length > 4) return 7n
    if (signal && !signal.aborted) await once(signal, 'abort')
    throw signal?.reason
  }
  const service = await serveStore({ ...quickStore, count }, { timeoutMs: 1 })
  const request: RawRequest = { method: 'GET', target: '/plants/count' }
  const connections = await Promise.all(
    Array.from({ length: 4 }, async () =>
      (await connectTo(service.endpoint)).send(buildRequest(testToken, request)),
    ),
  )
  await expect.poll(() => signals.length).toBe(4)
  expect((await exchangeOnce(service, request)).status).toBe(503)
  expect(signals.some((signal) => signal?.aborted !== false)).toBe(false)
  for (const { socket } of connections) socket.resetAndDestroy()
  await expect.poll(() => signals.every((signal) => signal?.aborted)).toBe(true)
  await expect.poll(async () => (await exchangeOnce(service, request)).text).toBe('200 {"count":7}')
  const aborted = service.log().match(/"outcome":"aborted",.*"path":"\/plants\/count"/g)
  expect(aborted).toHaveLength(4)
})

describe('one token does not keep out another', () => {
  const openTokenSource = async () => (name: string) => ({ ...testCaller, name })
  const ofAnother = <T extends object>(service: T) => ({ ...service, token: 'another' })

  test('with searches, which are done one at a time', async () => {
    const searches = createGate()
    const read: Store['read'] = async function* ({ search } = {}) {
      if (search) await searches.wait()
      yield [{ id: 1n, name: 'Fern' }]
    }
    const service = await serveStore({ ...quickStore, read }, { openTokenSource })
    const search: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const answers = Array.from({ length: 60 }, () => exchangeOnce(service, search))
    await expect.poll(() => searches.waiting).toBe(1)
    for (const other of [service, ofAnother(service)])
      expect((await exchangeOnce(other, list)).status).toBe(200)
    answers.push(exchangeOnce(ofAnother(service), search))
    await expect.poll(() => searches.waiting).toBe(2)
    searches.open()
    expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true)
  })

  test('with counts of what a search finds, which are searches', async () => {
    const searches = createGate()
    const count: Store['count'] = async ({ search } = {}) => {
      if (search !== undefined) await searches.wait()
      return 1n
    }
    const read: Store['read'] = async function* () {}
    const service = await serveStore({ ...quickStore, count, read }, { openTokenSource })
    const search: RawRequest = { method: 'GET', target: '/plants/count?search=x' }
    const listSearch: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const plain: RawRequest = { method: 'GET', target: '/plants/count?tag=x' }
    const answers = [search, search, listSearch].map((request) => exchangeOnce(service, request))
    await expect.poll(() => searches.waiting).toBe(1)
    for (const other of [service, ofAnother(service)])
      expect((await exchangeOnce(other, plain)).text).toBe('200 {"count":1}')
    answers.push(exchangeOnce(ofAnother(service), search))
    await expect.poll(() => searches.waiting).toBe(2)
    searches.open()
    const statuses = (await Promise.all(answers)).map(({ text }) => text)
    expect(statuses).toEqual(['200 {"count":1}', '200 {"count":1}', '200 []', '200 {"count":1}'])
  })

  test('with bodies that do not end', async () => {
    const service = await serveStore(quickStore, { openTokenSource })
    const size = limits.bodyLimitBytes
    const headers = { 'Content-Length': `${size}` }
    const slow = buildRequest(testToken, { headers, body: ' '.repeat(size - 1) })
    const connecting = Array.from({ length: 80 }, () => connectTo(service.endpoint))
    const connections = await Promise.all(connecting)
    for (const connection of connections) connection.send(slow)
    const sent = () => connections.filter(({ socket }) => socket.writableLength === 0).length
    await expect.poll(sent).toBeGreaterThanOrEqual(16)
    await takeTurns(service)
    expect((await exchangeOnce(ofAnother(service), { body: fern.padEnd(size) })).status).toBe(200)
  })

  test('with tokens that are looked up, of which 32 are at once', async () => {
    const lookups = createGate()
    const token = {
      ...{ id: 1n, note: undefined, rights, createdAt: new Date(0) },
      ...{ expiresAt: undefined, revokedAt: undefined },
    }
    const valid = hashToken(testToken)
    const find: TokenStore['find'] = async (digest) =>
      valid.equals(digest) ? token : lookups.wait()
    const clock = { now: () => performance.now(), time: Date.now }
    const cache = new TokenCache({ find } as TokenStore, clock)
    const service = await serveStore(quickStore, {
      openTokenSource: async () => (token) => cache.findCaller(token),
    })
    const ask = (at: number) => exchangeOnce({ ...service, token: `made-up-${at}` }, { body: fern })
    const wrong = Array.from({ length: 32 }, (_, at) => ask(at))
    await expect.poll(() => lookups.waiting).toBe(32)
    wrong.push(ask(32))
    const first = exchangeOnce(service, { body: fern })
    await takeTurns(service)
    expect(lookups.waiting).toBe(32)
    lookups.open()
    expect((await first).status).toBe(200)
    for (const { text } of await Promise.all(wrong)) expect(text).toMatch(/^400 \(401\)/)
  })
})

test('a body in chunks of a byte takes no more memory than its bytes', async () => {
  const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
  const chunkOf = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  const service = await serveStore(quickStore)
  const connection = await connectTo(service.endpoint)
  const used = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = used()
  connection.send(buildRequest(testToken, { headers })).send(chunkOf(' ').repeat(200_000))
  await expect.poll(() => connection.socket.writableLength).toBe(0)
  await takeTurns(service)
  expect(used() - before).toBeLessThan(20_000_000)
  connection.send(chunkOf(fern) + chunkOf(''))
  expect((await connection.readAnswer())?.status).toBe(200)
})
