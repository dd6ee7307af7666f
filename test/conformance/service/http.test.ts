import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { pages } from '../../helpers/documents.js'
import {
  connectTo,
  exchange,
  RawConnection,
  type RawRequest,
  requestBytes,
} from '../../helpers/raw-http.js'
import { serve, serveForAll, testToken } from '../../helpers/service.js'

// What a service makes of odd bytes, and of those that are not HTTP/1.1.

const service = serveForAll(['--request-timeout', '1h'])
/** One that does not wait long. */
const hasty = serveForAll(['--request-timeout', '500ms'])

const broken = '400 The request is not valid HTTP/1.1 (RFC 9112)'
const late = '408 The request did not arrive in time'
const tooLarge = '431 The headers have more than 16 KiB'
const nowhere = '404 There is nothing at this path. The API is described at /openapi.json'

const plant = '{"id":1,"name":"Fern"}'
const start = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nContent-Type: application/json\r\n`
const length = `Content-Length: ${plant.length}`
const chunked = 'Transfer-Encoding: chunked'
const close = { headers: { Connection: 'close' } }

const requestOf = (request: RawRequest) => requestBytes(testToken, request).toString('latin1')
const head = (...lines: string[]) => `${start}${lines.map((line) => `${line}\r\n`).join('')}\r\n`
const whole = `16\r\n${plant}\r\n0\r\n\r\n`
const inChunks = (rest: string) => head(chunked) + rest

let id = 1000

function next(request: RawRequest = {}): string {
  id += 1
  return requestOf({ body: `{"id":${id},"name":"Fern ${id}"}`, ...request })
}

/** The response to the last create, or to one before it. */
const created = (before = 0) => `200 {"name":"Fern ${id - before}"}`

/** What a connection gets, until the service closes it. */
async function textsOn(connection: RawConnection): Promise<string[]> {
  const answers = await connection.answers()
  for (const { headers } of answers)
    expect(headers).toMatchObject({ 'content-type': 'application/json' })
  return answers.map(({ text }) => text)
}

async function textsFor(
  bytes: string,
  { isHalfClosed = false, of = service } = {},
): Promise<string[]> {
  const connection = (await connectTo(of().place)).send(bytes)
  return textsOn(isHalfClosed ? connection.end() : connection)
}

async function isServed(): Promise<void> {
  const request = { headers: { 'Idempotency-Key': 'still-there' }, body: '{"id":0,"name":"Fern"}' }
  expect((await exchange(service(), request)).text).toBe('200 {"name":"Fern"}')
}

/** Stores a plant with the id of the last create, which must not exist. */
async function isNotStored(): Promise<void> {
  expect((await exchange(service(), { body: `{"id":${id},"name":"Moss"}` })).text).toBe(
    '200 {"name":"Moss"}',
  )
}

const malformed = {
  'two lengths': head(length, 'Content-Length: 3') + plant,
  'a length and chunks': `${head('Content-Length: 5', chunked)}0\r\n\r\n`,
  'a length with a plus': head('Content-Length: +22') + plant,
  'chunks after gzip': head('Transfer-Encoding: gzip, chunked') + whole,
  'a space after Transfer-Encoding': `${head('Transfer-Encoding : chunked', 'Content-Length: 5')}0\r\n\r\n`,
  'chunks in HTTP/1.0': inChunks(whole).replace('HTTP/1.1', 'HTTP/1.0'),
  'a chunk size of 17 digits': inChunks(whole.replace('16', 'f'.repeat(17))),
  'a line feed alone after a chunk size': inChunks(whole.replace('\r', '')),
  'a header that goes on in the next line': head('X: a\r\n b'),
  'U+0000 in a header': head('X: a\0b'),
  'a megabyte of garbage': `${'x'.repeat(1_000_000)}\r\n`,
}

const cutShort = {
  'a body': head('Content-Length: 99') + plant,
  chunks: inChunks(`99\r\n${plant}`),
  headers: `${start}X: `,
}

const rejected: [title: string, bytes: string, text: string][] = [
  ['chunk extensions without end', inChunks(`16;${'x'.repeat(20_000)}`), broken],
  ['trailers without end', inChunks(whole.replace(/\r\n$/, 'x: y\r\n'.repeat(20_000))), tooLarge],
  [
    'headers larger than the limit',
    head(...Array<string>(4000).fill('X: abcdef'), length) + plant,
    tooLarge,
  ],
  [
    'a path larger than the limit',
    `POST /${'a'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    tooLarge,
  ],
  ['no Host', requestOf({ headers: { Host: undefined }, body: plant.padEnd(1_000_000) }), broken],
  ['two equal Hosts', requestOf({ headers: { Host: ['x', 'x'] }, body: plant }), broken],
  [
    'two Hosts in HTTP/1.0',
    requestOf({ headers: { Host: ['x', 'y'] } }).replace('HTTP/1.1', 'HTTP/1.0'),
    broken,
  ],
  [
    'two Hosts of another method',
    requestOf({ method: 'GET', headers: { Host: ['x', 'y'] } }),
    broken,
  ],
]

describe('what is no request is rejected, and the next one is served:', () => {
  test.each([
    ...Object.entries(malformed).map(([title, bytes]) => [title, bytes, broken, false] as const),
    ...Object.entries(cutShort).map(
      ([title, bytes]) => [`${title}, cut short`, bytes, broken, true] as const,
    ),
    ...rejected.map((row) => [...row, false] as const),
  ])('%s', async (_, bytes, expected, isHalfClosed) => {
    expect([[], [expected]]).toContainEqual(await textsFor(bytes, { isHalfClosed }))
    await isServed()
  })

  test('what does not go on gets 408, or is closed', async () => {
    const unfinished = {
      'a chunk shorter than its size': inChunks(whole.replace('16', '99')),
      'half of a request line': 'POST /pl',
      'half of the headers': start,
      'half of the body': head('Content-Length: 99') + plant,
    }
    const results = Object.entries(unfinished).map(async ([title, bytes]) => [
      title,
      (await textsFor(bytes, { of: hasty }))[0] ?? late,
    ])
    expect(await Promise.all(results)).toEqual(
      Object.keys(unfinished).map((title) => [title, late]),
    )
    await isServed()
  })

  test.each([
    ['headers', 'POST /plants HTTP/1.1\r\nX: '],
    ['a body', head('Content-Length: 9999')],
  ])('a byte now and then is too slow for %s', async (_, bytes) => {
    const connection = await connectTo(hasty().place)
    const texts = textsOn(connection.send(bytes))
    await expect
      .poll(() => connection.socket.readableEnded || !connection.socket.write(' '))
      .toBe(true)
    expect([[], [late]]).toContainEqual(await texts)
    await isServed()
  })
})

test('1000 connections at once, of which --connection-limit lets 50 in, do no harm', async () => {
  const service = await serve(['--connection-limit', '50'])
  const connections = Array.from({ length: 1000 }, () => new RawConnection(service.place))
  // One that was let in gets a 408 before it is closed.
  const isClosed = ({ socket }: RawConnection) =>
    socket.bytesRead === 0 && (socket.readableEnded || socket.destroyed)
  await expect.poll(() => connections.filter(isClosed).length).toBe(950)
  for (const { socket } of connections) socket.destroy()
  const status = async () =>
    (await exchange(service, { body: plant }).catch(() => undefined))?.status
  await expect.poll(status).toBe(200)
})

test('a client reads for how long it may keep an idle connection, which a proxy must close before', async () => {
  for (const request of [
    { body: plant },
    { target: '/nope' },
    { method: 'GET', target: '/openapi.json' },
  ])
    expect((await exchange(service(), request)).headers).toMatchObject({
      connection: 'keep-alive',
      'keep-alive': 'timeout=65',
    })
  expect(pages.get('docs/serve.md')).toContain('Idle connections are closed after 65 s')
  const [, seconds] = /^\s*keepalive (\d+)s$/m.exec(readFileSync('deploy/Caddyfile', 'utf8')) ?? []
  expect(Number(seconds)).toBeLessThan(65)
})

test('bodies that break off leave no trace', async () => {
  const service = await serve(['--body-limit', '1KiB'])
  const half = requestBytes(testToken, {
    headers: { 'Content-Length': '1000' },
    body: ' '.repeat(900),
  })
  for (let count = 0; count < 100; count += 1) {
    const connection = await connectTo(service.place)
    await connection.send(half).end().answers()
    connection.socket.destroy()
  }
  expect(await exchange(service, { body: plant.padEnd(1000) })).toMatchObject({ status: 200 })
})

test('HTTP/1.0 without a Host is answered', async () => {
  const request = next({ headers: { Host: undefined } }).replace('HTTP/1.1', 'HTTP/1.0')
  expect(await textsFor(request)).toEqual([created()])
})

test.each([
  ['a coding before chunks', 'Transfer-Encoding: gzip, chunked', broken],
  ['another Host', 'Host: y\r\nTransfer-Encoding: chunked', broken],
  [
    'two keys',
    'Idempotency-Key: x\r\nIdempotency-Key: y\r\nTransfer-Encoding: chunked',
    '400 Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated',
  ],
])('%s behind a thousand header lines is seen', async (_, lines, text) => {
  const request = head(...Array<string>(1000).fill('a:'), 'Connection: close', lines) + whole
  expect(await textsFor(request)).toEqual([text])
})

test('what a client expects, but for 100-continue, is ignored (RFC 9110, 10.1.1)', async () => {
  expect(await textsFor(next({ headers: { ...close.headers, Expect: 'x' } }))).toEqual([created()])
})

describe('Expect: 100-continue', () => {
  const expecting = { Expect: '100-Continue', 'Content-Length': '22' }
  const body = () => {
    id += 1
    return `{"id":${id},"name":"F"}`
  }

  test('is answered before the body', async () => {
    const connection = await connectTo(service().place)
    connection.send(requestBytes(testToken, { headers: expecting }))
    expect(await connection.answer()).toEqual({ status: 100, headers: {}, body: '', text: '100' })
    expect((await connection.send(body()).answer())?.text).toBe('200 {"name":"F"}')
    expect((await connection.send(requestOf({ target: '/nope' })).answer())?.text).toBe(nowhere)
  })
})

describe('nothing is stored behind a response that closes the connection (RFC 9112, 9.6):', () => {
  test.each<[string, Record<string, string>]>([
    ['one that asked for it', { Connection: 'close' }],
    ['one with an Upgrade, which is ignored', { Connection: 'Upgrade', Upgrade: 'h2c' }],
  ])('%s', async (_, headers) => {
    expect(await textsFor(next({ headers }) + next())).toEqual([created(1)])
    await isNotStored()
  })

  test('a megabyte of other requests, which the log leaves out', async () => {
    expect(await textsFor(next(close) + next().repeat(5000))).toEqual([created(1)])
    const { headers } = await exchange(service(), { method: 'GET', target: '/nope' })
    await expect
      .poll(() => service().log.map(({ requestId }) => requestId))
      .toContain(headers['request-id'])
    expect(service().log.filter(({ code }) => code === 'HPE_CLOSED_CONNECTION')).toEqual([])
    await isNotStored()
  })
})

describe('each request gets one response, its own:', () => {
  test('a create that was rejected before its body broke', async () => {
    const connection = await connectTo(service().place)
    const headers = {
      Authorization: 'Bearer wrong',
      'Transfer-Encoding': 'chunked',
      'Content-Length': undefined,
    }
    expect((await connection.send(requestOf({ headers })).answer())?.body).toContain('401')
    expect(await connection.send('no chunk\r\n').answers()).toEqual([])
  })

  test.each<[status: number, RawRequest]>([
    [200, { method: 'GET', target: '/openapi.json' }],
    [400, { headers: { Authorization: 'Bearer wrong' } }],
  ])('%i, and then comes a body that looks like a create: %j', async (status, request) => {
    const inside = next()
    const connection = await connectTo(service().place)
    connection.send(
      requestOf({
        ...request,
        headers: { ...request.headers, 'Content-Length': `${inside.length}` },
      }),
    )
    expect(await connection.answer()).toMatchObject({ status })
    connection.send(inside + requestOf({ target: '/nope', ...close }))
    expect(await textsOn(connection)).toEqual([nowhere])
    await isNotStored()
  })
})
