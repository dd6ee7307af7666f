import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  RawConnection,
  type RawRequest,
} from '../../helpers/scripted-server/raw-http.js'
import {
  launchService,
  type RunningService,
  serve,
  testToken,
} from '../../helpers/scripted-server/service.js'

// What a service makes of odd bytes, and of those that are not HTTP/1.1.

const service = serveForAll('1h')
const hasty = serveForAll('500ms')

const plant = '{"id":1,"name":"Fern"}'
const start = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nContent-Type: application/json\r\n`
const length = `Content-Length: ${plant.length}`
const close = { headers: { Connection: 'close' } }
const nope = { target: '/nope' }

const requestOf = (request: RawRequest) => buildRequest(testToken, request).toString('latin1')
const head = (...lines: string[]) => `${start}${lines.map((line) => `${line}\r\n`).join('')}\r\n`
const whole = `16\r\n${plant}\r\n0\r\n\r\n`
const inChunks = (rest: string) => head('Transfer-Encoding: chunked') + rest

let id = 1000

/** A create, to whose id no plant was stored. */
function next(request: RawRequest = {}): string {
  id += 1
  return requestOf({ body: `{"id":${id},"name":"Fern ${id}"}`, ...request })
}

/** The statuses that a connection gets until the service closes it. Each has JSON. */
async function statusesOn(connection: RawConnection): Promise<number[]> {
  const answers = await connection.readAnswers()
  return answers.map(({ status, headers, body }) => {
    expect([headers['content-type'], typeof JSON.parse(body)]).toEqual([
      'application/json',
      'object',
    ])
    return status
  })
}

async function statusesFor(bytes: string): Promise<number[]> {
  return statusesOn((await connectTo(service().endpoint)).send(bytes))
}

async function isServed(): Promise<void> {
  const request = { headers: { 'Idempotency-Key': 'still-there' }, body: '{"id":0,"name":"Fern"}' }
  expect((await exchangeOnce(service(), request)).status).toBe(200)
}

/** Stores a plant with the id of the last create, which must not exist. */
async function isNotStored(): Promise<void> {
  const created = await exchangeOnce(service(), { body: `{"id":${id},"name":"Moss"}` })
  expect(created.status).toBe(200)
}

test.each<[status: number, title: string, bytes: string]>([
  [400, 'two lengths', head(length, 'Content-Length: 3') + plant],
  [400, 'a length and chunks', head(length, 'Transfer-Encoding: chunked') + whole],
  [400, 'chunks after gzip', head('Transfer-Encoding: gzip, chunked') + whole],
  [400, 'a space after a name', head('Transfer-Encoding : chunked', length) + whole],
  [400, 'chunks in HTTP/1.0', inChunks(whole).replace('HTTP/1.1', 'HTTP/1.0')],
  [400, 'a chunk size of 17 digits', inChunks(whole.replace('16', 'f'.repeat(17)))],
  [400, 'chunk extensions without end', inChunks(`16;${'x'.repeat(20_000)}`)],
  [400, 'a header that goes on in the next line', head('X: a\r\n b')],
  [400, 'a megabyte of garbage', `${'x'.repeat(1_000_000)}\r\n`],
  [400, 'no Host', requestOf({ headers: { Host: undefined }, body: plant.padEnd(1_000_000) })],
  [400, 'two equal Hosts', requestOf({ headers: { Host: ['x', 'x'] }, body: plant })],
  [431, 'trailers without end', inChunks(whole.replace(/\r\n$/, 'x: y\r\n'.repeat(20_000)))],
  [431, 'large headers', head(...Array<string>(4000).fill('X: abcdef'), length) + plant],
])('gets %i or is closed, and the next one is served: %s', async (status, _, bytes) => {
  expect([[], [status]]).toContainEqual(await statusesFor(bytes))
  await isServed()
})

test.each([
  'Transfer-Encoding: gzip, chunked',
  'Host: y\r\nTransfer-Encoding: chunked',
  'Idempotency-Key: x\r\nIdempotency-Key: y\r\nTransfer-Encoding: chunked',
])('%j behind a thousand header lines is seen', async (lines) => {
  const many = Array<string>(1000).fill('a:')
  const statuses = await statusesFor(head(...many, 'Connection: close', lines) + whole)
  expect([[400], [431]]).toContainEqual(statuses) // the executable refuses so many lines
})

test('what a client expects, but for 100-continue, is ignored (RFC 9110, 10.1.1)', async () => {
  const headers = { Connection: 'close', Expect: 'x' }
  expect(await statusesFor(next({ headers }))).toEqual([200])
})

test('a request in whose middle the client closes is rejected', async () => {
  for (const bytes of [head('Content-Length: 99') + plant, inChunks(`99\r\n${plant}`), start]) {
    const connection = (await connectTo(service().endpoint)).send(bytes)
    connection.socket.end()
    expect([[], [400]]).toContainEqual(await statusesOn(connection))
  }
  await isServed()
})

test('what does not go on, or by a byte now and then, gets 408 or is closed', async () => {
  const unfinished: [bytes: string, goesOn?: true][] = [
    ['POST /pl'],
    [start],
    [head('Content-Length: 99') + plant],
    [inChunks(whole.replace('16', '99'))],
    ['POST /plants HTTP/1.1\r\nX: ', true],
    [head('Content-Length: 9999'), true],
  ]
  const statuses = unfinished.map(async ([bytes, goesOn]) => {
    const connection = (await connectTo(hasty().endpoint)).send(bytes)
    const { socket } = connection
    const received = statusesOn(connection)
    if (goesOn) await expect.poll(() => socket.readableEnded || !socket.write(' ')).toBe(true)
    return (await received)[0] ?? 408
  })
  expect(await Promise.all(statuses)).toEqual(unfinished.map(() => 408))
})

test('more connections than --connection-limit are closed, and do no harm', async () => {
  const service = await serve(['--connection-limit', '20'])
  const connections = Array.from({ length: 200 }, () => new RawConnection(service.endpoint))
  // One that was let in gets a 408 before it is closed.
  const isClosed = ({ socket }: RawConnection) =>
    socket.bytesRead === 0 && (socket.readableEnded || socket.destroyed)
  await expect.poll(() => connections.filter(isClosed).length).toBe(180)
  for (const { socket } of connections) socket.destroy()
  const status = async () =>
    (await exchangeOnce(service, { body: plant }).catch(() => undefined))?.status
  await expect.poll(status).toBe(200)
})

test('a client reads how long an idle connection is kept, which the proxy closes before', async () => {
  const keepsAlive = { connection: 'keep-alive', 'keep-alive': 'timeout=65' }
  for (const request of [{ body: plant }, nope])
    expect((await exchangeOnce(service(), request)).headers).toMatchObject(keepsAlive)
  const [, seconds] = /^\s*keepalive (\d+)s$/m.exec(readFileSync('deploy/Caddyfile', 'utf8')) ?? []
  expect(Number(seconds)).toBeLessThan(65)
})

test('Expect: 100-continue is answered before the body', async () => {
  const connection = await connectTo(service().endpoint)
  connection.send(next({ headers: { Expect: '100-Continue', 'Content-Length': '22' }, body: '' }))
  expect(await connection.readAnswer()).toEqual({ status: 100, headers: {}, body: '', text: '100' })
  connection.send(`{"id":${id},"name":"F"}`.padEnd(22))
  expect((await connection.readAnswer())?.text).toBe('200 {"name":"F"}')
  expect((await connection.send(requestOf(nope)).readAnswer())?.status).toBe(404)
})

test.each<[string, Record<string, string>]>([
  ['one that asked for it', { Connection: 'close' }],
  ['one with an Upgrade, which is ignored', { Connection: 'Upgrade', Upgrade: 'h2c' }],
])('nothing is stored after a response that closes (RFC 9112, 9.6): %s', async (_, headers) => {
  expect(await statusesFor(next({ headers }) + next())).toEqual([200])
  await isNotStored()
})

test('a create that was rejected before its body broke gets one response', async () => {
  const connection = await connectTo(service().endpoint)
  const headers = {
    Authorization: 'Bearer wrong',
    'Transfer-Encoding': 'chunked',
    'Content-Length': undefined,
  }
  expect((await connection.send(requestOf({ headers })).readAnswer())?.text).toMatch(
    /^400 \(401\) /,
  )
  expect(await connection.send('no chunk\r\n').readAnswers()).toEqual([])
})

test.each<[status: number, RawRequest]>([
  [200, { method: 'GET', target: '/openapi.json' }],
  [400, { headers: { Authorization: 'Bearer wrong' } }],
])('a body that looks like a create is none after %i to %j', async (status, request) => {
  const inside = next()
  const connection = await connectTo(service().endpoint)
  const headers = { ...request.headers, 'Content-Length': `${inside.length}` }
  connection.send(requestOf({ ...request, headers }))
  expect(await connection.readAnswer()).toMatchObject({ status })
  connection.send(inside + requestOf({ ...nope, ...close }))
  expect(await statusesOn(connection)).toEqual([404])
  await isNotStored()
})

/** A service for all tests of this file. */
function serveForAll(requestTimeout: string): () => RunningService {
  let service: RunningService | undefined
  beforeAll(async () => {
    const folder = mkdtempSync(join(realpathSync(tmpdir()), 'plants-'))
    service = await launchService(['--request-timeout', requestTimeout], folder).ready
  })
  afterAll(async () => {
    await service?.stop('SIGKILL')
    rmSync(service?.folder ?? '', { recursive: true, force: true })
  })
  return () => assertDefined(service)
}
