import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectSecurely } from 'node:tls'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Caller, tokensOfStore } from '../../../src/server/authenticator.js'
import { type Handler, HttpServer, respond, type Tls } from '../../../src/server/server.js'
import type { PlantStore, Token } from '../../../src/stores/common/store.js'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { connectTo, exchange, type RawConnection, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { limits, placeOf, serveStore, testCaller, testToken } from '../../helpers/service.js'

const patience = { timeout: 10_000, interval: 20 }
const fern = '{"id":1,"name":"Fern"}'
const chunked = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
const quick: PlantStore = { create: async ({ name }) => ({ name }), close: async () => undefined }

/** A store whose creates wait until they are let go. */
function slowStore() {
  let letGo = () => {}
  const free = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let creates = 0
  const store: PlantStore = {
    create: async ({ name }) => {
      creates += 1
      await free
      return { name }
    },
    close: async () => undefined,
  }
  return { store, letGo, count: () => creates }
}

describe('requests that wait on one connection', () => {
  test('are processed one after the other', async () => {
    const { store, letGo, count } = slowStore()
    const { address } = await serveStore(store)
    const connection = await connectTo(placeOf(address))
    connection.send(Buffer.concat(Array.from({ length: 32 }, () => requestBytes(testToken, { body: fern }))))
    await expect.poll(count, patience).toBe(1)
    expect(
      (await exchange({ place: placeOf(address), token: '' }, { method: 'GET', target: '/openapi.json' })).status,
    ).toBe(200)
    expect(count()).toBe(1)
    letGo()
    for (let at = 0; at < 32; at += 1) expect((await connection.answer())?.status).toBe(200)
    expect(count()).toBe(32)
  })

  test.each([
    ['of which one more than 32 is unanswered', {}],
    ['behind one whose answer closes it', { headers: { Connection: 'Upgrade', Upgrade: 'h2c' } }],
  ])('%s, close it, and nothing more is processed', async (_, first) => {
    const { store, letGo, count } = slowStore()
    const { address, log } = await serveStore(store)
    const connection = await connectTo(placeOf(address))
    connection.send(requestBytes(testToken, { body: fern, ...first }))
    await expect.poll(count, patience).toBe(1)
    connection.send(Buffer.concat(Array.from({ length: 1500 }, () => requestBytes(testToken, { body: fern }))))
    expect(await connection.answers()).toEqual([])
    letGo()
    expect((await exchange({ place: placeOf(address), token: testToken }, { body: fern })).status).toBe(200)
    expect(count()).toBe(2)
    expect(log().split('"outcome":"aborted"').length - 1).toBe(32)
  })

  test('may be many more in all, when they come after the answers', async () => {
    const { address } = await serveStore(quick)
    const connection = await connectTo(placeOf(address))
    for (let round = 0; round < 10; round += 1) {
      connection.send('GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(30))
      for (let count = 0; count < 30; count += 1) expect((await connection.answer())?.status).toBe(404)
    }
  })

  test('may end in a CONNECT, which is answered last, or in a reset, which ends nobody else', async () => {
    const { store, letGo, count } = slowStore()
    const { address } = await serveStore(store)
    const [one, two] = [await connectTo(placeOf(address)), await connectTo(placeOf(address))]
    for (const connection of [one, two]) connection.send(requestBytes(testToken, { body: fern }))
    await expect.poll(count, patience).toBe(2)
    one.send('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n')
    two.socket.resetAndDestroy()
    await two.closed
    letGo()
    expect((await one.answers()).map(({ status }) => status)).toEqual([200, 404])
    expect((await exchange({ place: placeOf(address), token: testToken }, { body: fern })).status).toBe(200)
  })
})

describe('an answer that its reader does not take', () => {
  const size = 32 * 1_048_576
  const answer: Handler = async (_, response) => respond(response, { status: 200, body: Buffer.alloc(size) })
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

  test.each<[string, (socket: Socket) => void]>([
    ['and who is silent', () => undefined],
    ['and who has closed the other side', (socket) => socket.end()],
    ['and who sends a byte now and then', (socket) => void socket.write(' ')],
  ])('%s, ends the connection after the time-out', async (_, act) => {
    const { server, port } = await serverOf(answer, 300)
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(request)
    await once(server, 'request')
    const count = async () => {
      if (socket.writable) act(socket)
      return connectionsOf(server)
    }
    await expect.poll(count, patience).toBe(0)
  })

  test.runIf(hasOpenssl)('ends the connection after the time-out over TLS too (needs openssl)', async () => {
    const { cert, key } = keyPair()
    const { server, port } = await serverOf(answer, 300, { cert, key })
    const socket = connectSecurely({ port, host: '127.0.0.1', ca: cert })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(request)
    await once(server, 'request')
    await expect.poll(() => connectionsOf(server), patience).toBe(0)
  })

  test('at once, but goes on to take, is waited for', async () => {
    const piece = Buffer.alloc(65_536)
    const inPieces: Handler = async (_, response) => {
      response.writeHead(200, { 'Content-Length': size })
      for (let sent = 0; sent < size; sent += piece.length) if (!response.write(piece)) await once(response, 'drain')
      response.end()
    }
    const { port } = await serverOf(inPieces, 400)
    const socket = connect({ port, host: '127.0.0.1' })
    onTestFinished(() => void socket.destroy())
    socket.write(request)
    let received = 0
    const start = performance.now()
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      received += chunk.length
      if (received >= size) break
      // In a time that the reader takes for all, the time-out passes more than once.
      await once(
        AbortSignal.timeout(Math.max(1, Math.ceil((1000 * received) / size - (performance.now() - start)))),
        'abort',
      )
    }
    expect(received).toBeGreaterThanOrEqual(size)
    expect(performance.now() - start).toBeGreaterThan(800)
  })
})

describe('answers that are not read count together, up to 64 MiB', () => {
  const name = 'F'.repeat(8 * 1_048_576)

  test.each<[string, RawRequest, number]>([
    ['creates', { body: fern }, 8],
    ['reads', { method: 'GET', target: '/plants/1' }, 7],
    ['lists', { method: 'GET', target: '/plants' }, 7],
    ['updates', { method: 'PUT', target: '/plants/1', body: fern }, 8],
    ['deletes', { method: 'DELETE', target: '/plants/1' }, 8],
  ])('of %s: above it nothing is done, and the answer is 503', async (_, request, fitting) => {
    let asked = 0
    const plant = async () => {
      asked += 1
      return { id: 1n, name }
    }
    const list = async function* () {
      yield [await plant()]
    }
    const { address, log } = await serveStore({
      ...quick,
      create: plant,
      get: plant,
      list,
      replace: plant,
      delete: plant,
    })
    const place = placeOf(address)
    const unread: RawConnection[] = []
    for (let count = 0; count < fitting; count += 1) {
      const connection = await connectTo(place)
      connection.socket.pause()
      unread.push(connection.send(requestBytes(testToken, request)))
      await expect.poll(() => log().match(/"status":200/g)?.length, patience).toBe(count + 1)
    }
    const answer = await exchange({ place, token: testToken }, request)
    expect([answer.status, answer.headers['retry-after'], JSON.parse(answer.body).error]).toEqual([503, '1', 503])
    expect(asked).toBe(8) // the size of what is read is known when it is read
    expect((await exchange({ place, token: '' }, { method: 'GET', target: '/openapi.json' })).status).toBe(200)
    for (const { socket } of unread) socket.resetAndDestroy()
    await expect.poll(async () => (await exchange({ place, token: testToken }, request)).status, patience).toBe(200)
  })

  test('of many plants that are asked for at once: 16 are read at a time', async () => {
    const { store, letGo } = slowStore()
    let reading = 0
    let most = 0
    const get = async (id: bigint) => {
      reading += 1
      most = Math.max(most, reading)
      await store.create({ id, name: '' })
      reading -= 1
      return { id, name: 'Fern' }
    }
    const { address } = await serveStore({ ...store, get })
    const place = placeOf(address)
    const request: RawRequest = { method: 'GET', target: '/plants/1' }
    const answers = Array.from({ length: 90 }, () => exchange({ place, token: testToken }, request))
    await expect.poll(() => reading, patience).toBe(16)
    letGo()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(most).toBe(16)
  })
})

describe('a body in pieces', () => {
  test.each([
    ['chunks of a byte', { headers: chunked, body: inChunks(fern.padEnd(2000), 1) }],
    ['chunks of 7 bytes with extensions', { headers: chunked, body: inChunks(fern.padEnd(2000), 7, ';a=b') }],
    ['chunks and a trailer', { headers: chunked, body: inChunks(fern, 5).replace(/\r\n$/, 'X: y\r\n\r\n') }],
    ['chunks as large as half of the limit', { headers: chunked, body: inChunks(fern.padEnd(1_048_576), 524_288) }],
  ])('is put together: %s', async (_, request) => {
    const { address } = await serveStore(quick)
    const { status, body } = await exchange({ place: placeOf(address), token: testToken }, request)
    expect([status, body]).toEqual([200, '{"name":"Fern"}'])
  })

  test('takes no more memory than its bytes, however small they are', async () => {
    const { address } = await serveStore(quick)
    const connection = await connectTo(placeOf(address))
    const count = 200_000
    const before = retained()
    connection.send(requestBytes(testToken, { headers: chunked })).send('1\r\n \r\n'.repeat(count))
    const probe = await connectTo(placeOf(address))
    await expect.poll(() => connection.socket.writableLength, patience).toBe(0)
    for (let turn = 0; turn < 20; turn += 1) await probe.send(requestBytes(testToken, { target: '/nope' })).answer()
    expect(retained() - before).toBeLessThan(20_000_000)
    connection.send(`${inChunks(fern, 5)}`)
    expect((await connection.answer())?.status).toBe(200)
  })

  test.each([
    ['the token', 'wrong', {}, 401],
    ['the type', testToken, { 'Content-Type': 'text/plain' }, 415],
  ])('that is refused for %s while it comes takes no memory from the others', async (_, token, headers, error) => {
    const openTokenSource = async () => async (given: string) => (given === testToken ? testCaller : undefined)
    const { address } = await serveStore(quick, { openTokenSource, limits: { ...limits, bodyLimit: 1000 } })
    const place = placeOf(address)
    const slow = requestBytes(token, { headers: { ...headers, 'Content-Length': '1000' }, body: ' '.repeat(990) })
    for (let count = 0; count < 64; count += 1) {
      const answer = await (await connectTo(place)).send(slow).answer()
      expect(JSON.parse(answer?.body ?? '{}').error).toBe(error)
    }
    expect((await exchange({ place, token: testToken }, { body: fern.padEnd(1000) })).status).toBe(200)
  })
})

describe('a token', () => {
  test('that is revoked while the body comes is refused', async () => {
    let isRevoked = false
    let passed = 0
    const openTokenSource = async () => (token: string) => (token === testToken && !isRevoked ? testCaller : undefined)
    const service = await serveStore(quick, { openTokenSource, now: () => performance.now() + passed })
    const connection = await connectTo(placeOf(service.address))
    const bytes = requestBytes(testToken, { headers: { Expect: '100-continue', 'Content-Length': `${fern.length}` } })
    expect((await connection.send(bytes).answer())?.status).toBe(100)
    isRevoked = true
    passed = 1000
    const answer = await connection.send(fern).answer()
    expect(answer).toMatchObject({ status: 400, body: '{"error":401,"message":"This token is not accepted"}' })
  })

  test('that is looked for meanwhile: the body may come', async () => {
    const asked: ((caller: Caller | undefined) => void)[] = []
    const openTokenSource = async () => () => new Promise<Caller | undefined>((resolve) => void asked.push(resolve))
    const { address } = await serveStore(quick, { openTokenSource })
    const connection = await connectTo(placeOf(address))
    connection.send(requestBytes(testToken, { headers: chunked, body: inChunks(fern, 1) }))
    await expect.poll(() => asked.length, patience).toBe(1)
    asked[0]?.(testCaller)
    expect((await connection.answer())?.status).toBe(200)
  })

  test('that nobody knows is one of 32 that are looked for at once; those after are answered 503, and known ones are not', async () => {
    const find = lookUp()
    const openTokenSource = async () =>
      tokensOfStore(find.tokens, { now: () => performance.now(), time: Date.now, warn: expect.fail })
    const { address } = await serveStore(quick, { openTokenSource })
    const place = placeOf(address)
    const answers = Array.from({ length: 40 }, (_, at) => exchange({ place, token: `made-up-${at}` }, { body: fern }))
    const early = await Promise.all(answers.slice(32))
    expect(early.map(({ status, headers }) => [status, headers['retry-after']])).toEqual(early.map(() => [503, '1']))
    expect(find.asked()).toBe(32)
    find.answer()
    const late = await Promise.all(answers.slice(0, 32))
    expect(late.map(({ body }) => JSON.parse(body).error)).toEqual(late.map(() => 401))
  })
})

test.each([
  ['GET', '/nowhere/s3cret'],
  ['GET', `/plants/${testToken}`],
  ['GET', `/${testToken.replaceAll('_', '%5f')}`],
  ['PUT', 'ftp://user:s3cret@host/plants'],
  ['GET', '/plants?token=s3cret'],
  ['GET', '/%s3cret'],
])('the log shows no path that is not one of the service: %s %s', async (method, target) => {
  const { address, log } = await serveStore(quick)
  await exchange({ place: placeOf(address), token: testToken }, { method, target })
  expect(log()).not.toMatch(/s3cret|TOKEN-that/i)
  const line =
    log()
      .split('\n')
      .find((text) => text.includes('outcome')) ?? '{}'
  expect(JSON.parse(line)).toMatchObject({ method, from: '127.0.0.1' })
})

test('a connection that is kept alive and brings nothing more is closed', async () => {
  const { server, port } = await serverOf(async (_, response) => respond(response, { status: 200, body: '{}' }), 10_000)
  server.keepAliveTimeout = 300
  const connection = await connectTo({ host: '127.0.0.1', port })
  expect(await connection.send('GET / HTTP/1.1\r\nHost: x\r\n\r\n').answers()).toMatchObject([{ status: 200 }])
})

/** A server of ours, with a handler. */
async function serverOf(handler: Handler, requestTimeout: number, tls?: Tls) {
  const limits = { requestTimeout, connectionLimit: 10 }
  const log = { record: () => undefined, error: () => undefined }
  const http = new HttpServer(handler, { limits, tls, log, now: () => performance.now() })
  onTestFinished(() => http.abort())
  await new Promise<void>((resolve) => http.server.listen(0, '127.0.0.1', resolve))
  const address = http.server.address()
  return { server: http.server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

function connectionsOf(server: HttpServer['server']): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )
}

function keyPair(): Tls {
  const { cert, key } = certificate({ names: ['IP:127.0.0.1'] })
  return { cert, key }
}

function inChunks(text: string, size: number, extension = ''): string {
  const parts = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
  return `${parts.map((part) => `${part.length.toString(16)}${extension}\r\n${part}\r\n`).join('')}0\r\n\r\n`
}

/** Bytes that are in use. */
function retained(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** A store of no tokens, which answers when it is told to. */
function lookUp() {
  let asked = 0
  let answer = () => {}
  const free = new Promise<undefined>((resolve) => {
    answer = () => resolve(undefined)
  })
  const find = (): Promise<Token | undefined> => {
    asked += 1
    return free
  }
  const unused = () => Promise.reject(new Error('No test needs this'))
  return {
    tokens: { find, add: unused, list: () => Readable.from([]), revoke: unused, markUsed: unused },
    answer,
    asked: () => asked,
  }
}
