import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { assertDefined } from '../../src/errors.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  RawConnection,
  type RawRequest,
} from '../helpers/scripted-server/raw-http.js'
import {
  launchService,
  type RunningService,
  serve,
  testToken,
} from '../helpers/scripted-server/service.js'

// What a service makes of unusual bytes, and of bytes that are not HTTP/1.1.

const service = serveForAll('1h')
const impatientService = serveForAll('500ms')

const plant = '{"id":1,"name":"Fern"}'
const startOfHead = `POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${testToken}\r\nContent-Type: application/json\r\n`
const lengthHeader = `Content-Length: ${plant.length}`
const closingHeaders = { headers: { Connection: 'close' } }
const unknownPath = { target: '/nope' }

function formatRequest(request: RawRequest): string {
  return buildRequest(testToken, request).toString('latin1')
}

/** Builds the head of a create with these header lines. */
function buildHead(...lines: string[]): string {
  return `${startOfHead}${lines.map((line) => `${line}\r\n`).join('')}\r\n`
}

const chunkedPlant = `16\r\n${plant}\r\n0\r\n\r\n`

function buildChunkedCreate(chunks: string): string {
  return buildHead('Transfer-Encoding: chunked') + chunks
}

let lastId = 1000

/** Builds a create with an id that no plant has yet. */
function buildNewCreate(request: RawRequest = {}): string {
  lastId += 1
  return formatRequest({ body: `{"id":${lastId},"name":"Fern ${lastId}"}`, ...request })
}

/** Reads the statuses that a connection gets until the service closes it. Each has JSON. */
async function readStatuses(connection: RawConnection): Promise<number[]> {
  const answers = await connection.readResponses()
  return answers.map(({ status, headers, body }) => {
    expect([headers['content-type'], typeof JSON.parse(body)]).toEqual([
      'application/json',
      'object',
    ])
    return status
  })
}

async function sendBytes(bytes: string): Promise<number[]> {
  return readStatuses((await connectTo(service().endpoint)).send(bytes))
}

async function expectNextIsServed(): Promise<void> {
  const request = { headers: { 'Idempotency-Key': 'still-there' }, body: '{"id":0,"name":"Fern"}' }
  expect((await exchangeOnce(service(), request)).status).toBe(200)
}

/** Stores a plant with the id of the last create, which must not exist. */
async function expectNotStored(): Promise<void> {
  const created = await exchangeOnce(service(), { body: `{"id":${lastId},"name":"Moss"}` })
  expect(created.status).toBe(200)
}

test.each([
  {
    defect: 'two lengths',
    bytes: buildHead(lengthHeader, 'Content-Length: 3') + plant,
    status: 400,
  },
  {
    defect: 'a length and chunks',
    bytes: buildHead(lengthHeader, 'Transfer-Encoding: chunked') + chunkedPlant,
    status: 400,
  },
  {
    defect: 'chunks after gzip',
    bytes: buildHead('Transfer-Encoding: gzip, chunked') + chunkedPlant,
    status: 400,
  },
  {
    defect: 'a space after the name of a header',
    bytes: buildHead('Transfer-Encoding : chunked', lengthHeader) + chunkedPlant,
    status: 400,
  },
  {
    defect: 'chunks in HTTP/1.0',
    bytes: buildChunkedCreate(chunkedPlant).replace('HTTP/1.1', 'HTTP/1.0'),
    status: 400,
  },
  {
    defect: 'a chunk size of 17 digits',
    bytes: buildChunkedCreate(chunkedPlant.replace('16', 'f'.repeat(17))),
    status: 400,
  },
  {
    defect: 'chunk extensions that do not end',
    bytes: buildChunkedCreate(`16;${'x'.repeat(20_000)}`),
    status: 400,
  },
  {
    defect: 'a header that continues on the next line',
    bytes: buildHead('X: a\r\n b'),
    status: 400,
  },
  { defect: 'a megabyte of garbage', bytes: `${'x'.repeat(1_000_000)}\r\n`, status: 400 },
  {
    defect: 'no Host',
    bytes: formatRequest({ headers: { Host: undefined }, body: plant.padEnd(1_000_000) }),
    status: 400,
  },
  {
    defect: 'two equal Hosts',
    bytes: formatRequest({ headers: { Host: ['x', 'x'] }, body: plant }),
    status: 400,
  },
  {
    defect: 'trailers that do not end',
    bytes: buildChunkedCreate(chunkedPlant.replace(/\r\n$/, 'x: y\r\n'.repeat(20_000))),
    status: 431,
  },
  {
    defect: 'headers that are too large',
    bytes: buildHead(...Array<string>(4000).fill('X: abcdef'), lengthHeader) + plant,
    status: 431,
  },
])(
  'a service rejects a request with $defect, and serves the next one',
  async ({ bytes, status }) => {
    // A service may close the connection instead of a response.
    expect([[], [status]]).toContainEqual(await sendBytes(bytes))
    await expectNextIsServed()
  },
)

test.each([
  'Transfer-Encoding: gzip, chunked',
  'Host: y\r\nTransfer-Encoding: chunked',
  'Idempotency-Key: x\r\nIdempotency-Key: y\r\nTransfer-Encoding: chunked',
])('a service sees the invalid header lines %j after a thousand others', async (lines) => {
  const thousandLines = Array<string>(1000).fill('a:')
  const statuses = await sendBytes(
    buildHead(...thousandLines, 'Connection: close', lines) + chunkedPlant,
  )
  // The executable rejects so many lines.
  expect([[400], [431]]).toContainEqual(statuses)
})

test('a service ignores any Expect but 100-continue (RFC 9110, 10.1.1)', async () => {
  const headers = { Connection: 'close', Expect: 'x' }
  expect(await sendBytes(buildNewCreate({ headers }))).toEqual([200])
})

test('a service rejects a request whose client closes the connection in the middle', async () => {
  for (const bytes of [
    buildHead('Content-Length: 99') + plant,
    buildChunkedCreate(`99\r\n${plant}`),
    startOfHead,
  ]) {
    const connection = (await connectTo(service().endpoint)).send(bytes)
    connection.socket.end()
    expect([[], [400]]).toContainEqual(await readStatuses(connection))
  }
  await expectNextIsServed()
})

test('a service responds 408, or closes, when a request stops or continues byte by byte', async () => {
  const unfinished: { bytes: string; continues?: true }[] = [
    { bytes: 'POST /pl' },
    { bytes: startOfHead },
    { bytes: buildHead('Content-Length: 99') + plant },
    { bytes: buildChunkedCreate(chunkedPlant.replace('16', '99')) },
    { bytes: 'POST /plants HTTP/1.1\r\nX: ', continues: true },
    { bytes: buildHead('Content-Length: 9999'), continues: true },
  ]
  const statuses = unfinished.map(async ({ bytes, continues }) => {
    const connection = (await connectTo(impatientService().endpoint)).send(bytes)
    const { socket } = connection
    const received = readStatuses(connection)
    if (continues) await expect.poll(() => socket.readableEnded || !socket.write(' ')).toBe(true)
    return (await received)[0] ?? 408
  })
  expect(await Promise.all(statuses)).toEqual(unfinished.map(() => 408))
})

test('a service closes connections beyond --connection-limit, and serves again afterwards', async () => {
  const service = await serve(['--connection-limit', '20'])
  const connections = Array.from({ length: 200 }, () => new RawConnection(service.endpoint))
  // A connection within the limit receives a 408 before it is closed.
  const isClosed = ({ socket }: RawConnection) =>
    socket.bytesRead === 0 && (socket.readableEnded || socket.destroyed)
  await expect.poll(() => connections.filter(isClosed).length).toBe(180)
  for (const { socket } of connections) socket.destroy()
  const status = async () =>
    (await exchangeOnce(service, { body: plant }).catch(() => undefined))?.status
  await expect.poll(status).toBe(200)
})

test('a response says how long an idle connection stays open, and the example proxy closes earlier', async () => {
  const keepsAlive = { connection: 'keep-alive', 'keep-alive': 'timeout=65' }
  for (const request of [{ body: plant }, unknownPath])
    expect((await exchangeOnce(service(), request)).headers).toMatchObject(keepsAlive)
  const [, seconds] = /^\s*keepalive (\d+)s$/m.exec(readFileSync('deploy/Caddyfile', 'utf8')) ?? []
  expect(Number(seconds)).toBeLessThan(65)
})

test('a service responds to Expect: 100-continue before the body', async () => {
  const connection = await connectTo(service().endpoint)
  connection.send(
    buildNewCreate({ headers: { Expect: '100-Continue', 'Content-Length': '22' }, body: '' }),
  )
  expect(await connection.readResponse()).toEqual({
    status: 100,
    headers: {},
    body: '',
    text: '100',
  })
  connection.send(`{"id":${lastId},"name":"F"}`.padEnd(22))
  expect((await connection.readResponse())?.text).toBe('200 {"name":"F"}')
  expect((await connection.send(formatRequest(unknownPath)).readResponse())?.status).toBe(404)
})

test.each([
  { request: 'asked for it', headers: { Connection: 'close' } },
  {
    request: 'has an Upgrade, which is ignored',
    headers: { Connection: 'Upgrade', Upgrade: 'h2c' },
  },
])(
  'a service stores nothing after a response that closes, because its request $request (RFC 9112, 9.6)',
  async ({ headers }) => {
    expect(await sendBytes(buildNewCreate({ headers }) + buildNewCreate())).toEqual([200])
    await expectNotStored()
  },
)

test('a create that is rejected before its body is cut off gets one response', async () => {
  const connection = await connectTo(service().endpoint)
  const headers = {
    Authorization: 'Bearer wrong',
    'Transfer-Encoding': 'chunked',
    'Content-Length': undefined,
  }
  expect((await connection.send(formatRequest({ headers })).readResponse())?.text).toMatch(
    /^400 \(401\) /,
  )
  expect(await connection.send('no chunk\r\n').readResponses()).toEqual([])
})

test.each<{ sentence: string; status: number; request: RawRequest }>([
  {
    sentence: 'a GET succeeded',
    status: 200,
    request: { method: 'GET', target: '/openapi.json' },
  },
  {
    sentence: 'a token was rejected',
    status: 400,
    request: { headers: { Authorization: 'Bearer wrong' } },
  },
])('a service does not run a create inside a body after $sentence', async ({ status, request }) => {
  const innerCreate = buildNewCreate()
  const connection = await connectTo(service().endpoint)
  const headers = { ...request.headers, 'Content-Length': `${innerCreate.length}` }
  connection.send(formatRequest({ ...request, headers }))
  expect(await connection.readResponse()).toMatchObject({ status })
  connection.send(innerCreate + formatRequest({ ...unknownPath, ...closingHeaders }))
  expect(await readStatuses(connection)).toEqual([404])
  await expectNotStored()
})

/** Starts a service for all tests of this file. */
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
