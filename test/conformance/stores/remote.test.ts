import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { openStore, parseAddress } from '../../../src/stores/registry.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import type { PlantStore } from '../../../src/stores/store.js'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { createAt, howToRepeat, type Outcome, ownService, socketPath, token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { closedAfterTest, fileAddress, openOptions, place } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { describePlantStore } from './contract.js'

describePlantStore('the remote store over TCP', () => openSubject('tcp', ''))
describePlantStore('the remote store over TCP, below a path', () => openSubject('tcp', '/v1'))
describePlantStore('the remote store over a Unix socket', () => openSubject('unix', ''))

async function openSubject(kind: 'tcp' | 'unix', basePath: string) {
  const path = join(temporaryFolder(), 'plants.db')
  const address = await ownService(kind === 'tcp' ? { host: '127.0.0.1', port: 0 } : { path: socketPath() }, path, basePath)
  const look = async (id: bigint) => {
    const file = await SqliteStore.open(fileAddress(path), openOptions())
    try {
      return await file.get(id)
    } finally {
      await file.close()
    }
  }
  return { store: closedAfterTest(await openRemote(address)), look }
}

async function openRemote(address: string): Promise<PlantStore> {
  const access = async () => ({
    token,
    userAgent: 'test',
    ca: undefined,
    proxy: undefined,
    observer: undefined,
    tokenHint: '',
    notify: async () => {},
  })
  return openStore(await parseAddress(address, 'test', place()), openOptions({ access }))
}

const plant = { name: 'Fern' }
const html = (status: number) => http(status, '<h1>Oops</h1>', { 'Content-Type': 'text/html; charset=utf-8' })
const refusal = { error: 409, message: 'No ferns today' }
/** A description of a service that has no idempotency keys. */
const openapi = json(200, { openapi: '3.1.0', paths: { '/plants': { post: {} } } })

/** All that the specification asks for, and nothing that it does not know. */
test('the request is the one of the specification, to the byte', async () => {
  const remote = await Hostile.listen({ posts: [json(200, plant)] })
  const argv = ['create', '--store', `${remote.url}/v1/`]
  const env = { PLANTS_TOKEN: token }
  const stdin = '{"tag":"sha\\u0064e","id":9223372036854775807,"name":"Caf\u00e9 \\"x\\" \\ud83c\\udf31"}'
  await runPlants(argv, { env, stdin })
  const key = remote.keys[0] ?? ''
  expect(key).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  const body = '{"id":9223372036854775807,"name":"Caf\u00e9 \\"x\\" \u{1f331}","tag":"shade"}'
  const [line, ...fields] = remote.bytes
    .toString()
    .replace(/\r\n\r\n.*/s, '')
    .split('\r\n')
  expect(line).toBe('POST /v1/plants HTTP/1.1')
  expect(fields.map((field) => field.replace(/^[^:]*/, (name) => name.toLowerCase())).toSorted()).toEqual([
    'accept: application/json',
    `authorization: Bearer ${token}`,
    'connection: keep-alive',
    `content-length: ${Buffer.byteLength(body)}`,
    'content-type: application/json',
    `host: 127.0.0.1:${remote.port}`,
    `idempotency-key: ${key}`,
    `user-agent: plants/${version}`,
  ])
  expect(remote.posts.map((post) => post.body)).toEqual([body])
})

test.each(['-9223372036854775808', '9007199254740993', '1e3', '0'])('the id %s is sent exact', async (id) => {
  const remote = await Hostile.listen({ posts: [json(200, plant)] })
  expect((await createAt(remote, [`--id=${id}`])).code).toBe(0)
  expect(remote.posts.map(({ body }) => body)).toEqual([`{"id":${id === '1e3' ? '1000' : id},"name":"Fern"}`])
})

test('the key that is given is the one that is sent', async () => {
  const remote = await Hostile.listen({ posts: [json(200, plant)] })
  expect((await createAt(remote, ['--idempotency-key', 'order!~66'])).code).toBe(0)
  expect(remote.keys).toEqual(['order!~66'])
})

/** What the answers are, and how the run ends: for one that is refused, what is said of it on stderr. */
type Row = [title: string, answer: Answer, code: number, said: Record<string, unknown>]

const unusable = (message: string, status: number) => ({
  error: 502,
  message: `URL answered ${message}`,
  hint: howToRepeat.unasked,
  status,
})

const notPlants: Row[] = [
  ['HTML', html(200), 5, unusable('200 with text/html; charset=utf-8', 200)],
  ['a Plant as text', http(200, JSON.stringify(plant), { 'Content-Type': 'text/plain' }), 5, unusable('200 with text/plain', 200)],
  ['a Plant without a media type', http(200, JSON.stringify(plant)), 5, unusable('200 with no JSON', 200)],
  [
    'a Plant of another JSON',
    http(200, '{"name":"Fern"}', { 'Content-Type': 'application/jsonx' }),
    5,
    unusable('200 with application/jsonx', 200),
  ],
  ['nothing', json(200, ''), 5, unusable('200 with nothing', 200)],
  ['broken JSON', json(200, '{"name":"Fern"'), 5, unusable('200 with broken JSON', 200)],
  ['two Plants', json(200, '{"name":"Fern"}\n{"name":"Fern"}'), 5, unusable('200 with broken JSON', 200)],
  ['a Plant without a name', json(200, { tag: 'shade' }), 5, unusable('200 with JSON that is no Plant', 200)],
  ['a Plant whose name is a number', json(200, { name: 1 }), 5, unusable('200 with JSON that is no Plant', 200)],
  ['a Plant whose tag is null', json(200, { name: 'Fern', tag: null }), 5, unusable('200 with JSON that is no Plant', 200)],
  ['a Plant in an array', json(200, [plant]), 5, unusable('200 with JSON that is no Plant', 200)],
  ['null', json(200, 'null'), 5, unusable('200 with JSON that is no Plant', 200)],
  ['a prototype with a name', json(200, '{"__proto__":{"name":"Fern"}}'), 5, unusable('200 with JSON that is no Plant', 200)],
  ['an Error', json(200, refusal), 5, unusable('200 with JSON that is no Plant', 200)],
  ['arrays in arrays', json(200, '['.repeat(500_000)), 5, unusable('200 with broken JSON', 200)],
  [
    'what is not UTF-8',
    http(200, Buffer.from('{"name":"\xff"}', 'latin1'), { 'Content-Type': 'application/json' }),
    5,
    unusable('200 with broken JSON', 200),
  ],
  ['more than 1 MiB', json(200, `{"name":"Fern"}${' '.repeat(1_048_562)}`), 5, unusable('200 with more than 1 MiB', 200)],
  [
    'a bomb of gzip',
    json(200, gzipSync(`{"name":"${'F'.repeat(20_000_000)}"}`).toString('latin1'), { 'Content-Encoding': 'gzip' }),
    5,
    unusable('200 with a packed body', 200),
  ],
]

const redirects: Row[] = [301, 302, 303, 307, 308, 300, 304, 399].map((status) => {
  const hint = 'Redirects are not followed, because the token is for this address alone. If the new one is right, give it with --store'
  const isMoved = ![300, 303, 304, 399].includes(status)
  const said = isMoved ? { error: 503, message: `URL answered ${status}`, hint, status } : unusable(`${status}`, status)
  return [`${status}`, http(status), isMoved ? 4 : 5, said]
})

const wrongToken = 'It came from PLANTS_TOKEN: give another one there'
const wrongAddress = 'Is the address right? It is the base url: what stands before /plants'
const otherId = 'Choose another id; to repeat an earlier create safely, give both the same --idempotency-key'
const said = 'This is what URL says of it'

/** The statuses that refuse the plant. */
const refusals: Row[] = (
  [
    [400, 1, said],
    [401, 3, wrongToken],
    [403, 3, wrongToken],
    [404, 1, wrongAddress],
    [405, 1, wrongAddress],
    [409, 1, otherId],
    [413, 1, 'Shorten the name or the tag'],
    [418, 1, said],
    [422, 1, said],
  ] as const
).flatMap(([status, code, hint]): Row[] => [
  [`${status} with an Error`, json(status, { ...refusal, error: status }), code, { error: status, message: refusal.message, hint, status }],
  [
    `${status} with HTML`,
    html(status),
    code,
    { error: status, message: `URL answered ${status} with text/html; charset=utf-8`, hint, status },
  ],
  [`${status} with nothing`, http(status), code, { error: status, message: `URL answered ${status} with nothing`, hint, status }],
])

/** The one status of the specification, and the values of `error` that the contract knows. */
const errors: Row[] = [
  ...(
    [
      [401, 3, wrongToken],
      [409, 1, otherId],
      [413, 1, 'Shorten the name or the tag'],
      [422, 1, said],
      [0, 1, said],
      [-2147483648, 1, said],
      [2147483647, 1, said],
    ] as const
  ).map(
    ([error, code, hint]): Row => [
      `400 with the error ${error}`,
      json(400, { ...refusal, error }),
      code,
      { error, message: refusal.message, hint, status: 400 },
    ],
  ),
  ...['2147483648', '-2147483649', '1.5', '"409"', 'null', '1e400', 'true', '[409]'].map(
    (error): Row => [
      `400 with the error ${error}, which is no int32`,
      json(400, `{"error":${error},"message":"No ferns today"}`),
      1,
      { error: 400, message: 'URL answered 400 with JSON that is no Error', hint: said, status: 400 },
    ],
  ),
  [
    '400 with an Error without a message',
    json(400, { error: 409 }),
    1,
    { error: 400, message: 'URL answered 400 with JSON that is no Error', hint: said, status: 400 },
  ],
  [
    '400 with an Error whose message is no text',
    json(400, { error: 409, message: {} }),
    1,
    { error: 400, message: 'URL answered 400 with JSON that is no Error', hint: said, status: 400 },
  ],
  [
    '400 with an Error as text',
    http(400, JSON.stringify(refusal), { 'Content-Type': 'text/plain' }),
    1,
    { error: 400, message: 'URL answered 400 with text/plain', hint: said, status: 400 },
  ],
  [
    '400 with an Error that knows its request',
    json(400, refusal, { 'X-Request-Id': 'abc-1' }),
    1,
    { error: 409, message: refusal.message, hint: otherId, status: 400, requestId: 'abc-1' },
  ],
]

/** Statuses of success that the specification does not know: nothing says what has become of the plant. */
const otherSuccesses: Row[] = [
  ['201 with a Plant', json(201, plant), 5, unusable('201 with JSON that is no Error, which the specification does not know', 201)],
  ['201 with HTML', html(201), 5, unusable('201 with text/html; charset=utf-8, which the specification does not know', 201)],
  ['202 with an Error', json(202, refusal), 5, { ...unusable('', 202), message: 'URL failed: No ferns today' }],
  ['204', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), 5, unusable('204 with nothing, which the specification does not know', 204)],
]

/** Statuses that promise that nothing was stored: asked to wait for longer than there is time, it does not. */
const comeAgain: Row[] = [429, 503].flatMap((status): Row[] => {
  const rest = { hint: 'Nothing was stored. Try again later', retryable: true, status }
  const later = { 'Retry-After': 60 }
  return [
    [`${status} with an Error`, json(status, refusal, later), 4, { error: 503, message: refusal.message, ...rest }],
    [`${status} with nothing`, http(status, '', later), 4, { error: 503, message: `URL answered ${status} with nothing`, ...rest }],
    [
      `${status} with more than 1 MiB`,
      http(status, ' '.repeat(2_000_000), later),
      4,
      { error: 503, message: `URL answered ${status} with more than 1 MiB`, ...rest },
    ],
  ]
})

const rows = [notPlants, redirects, refusals, errors, otherSuccesses, comeAgain].flat()

test.each(rows)('an answer that is no success: %s', async (_, answer, code, error) => {
  const remote = await Hostile.listen({ posts: [answer], openapi })
  const requests = ['POST /plants']
  expect(await createAt(remote)).toEqual<Outcome>({ code, out: '', said: [error], requests })
})

/** Answers that leave it open, so that the service is asked whether it keeps keys. It does not, and nothing is sent again. */
const open: Row[] = [500, 501, 502, 504, 599].flatMap((status): Row[] => {
  const rest = { error: 502, hint: howToRepeat.unlisted, status }
  const message = `URL answered ${status} with`
  return [
    [`${status} with an Error`, json(status, refusal), 5, { ...rest, message: 'URL failed: No ferns today' }],
    [
      `${status} with HTML`,
      html(status),
      5,
      { ...rest, message: `${message} text/html; charset=utf-8, which the specification does not know` },
    ],
    [`${status} with nothing`, http(status), 5, { ...rest, message: `${message} nothing, which the specification does not know` }],
  ]
})

const ended = (message: string) => ({
  error: 504,
  message: `URL got the plant, but did not answer: ${message}`,
  hint: howToRepeat.unlisted,
})
const half = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

const broken: Row[] = [
  ['a reset', (socket) => void socket.resetAndDestroy(), 5, ended('the connection was reset')],
  ['a closed connection', (socket) => void socket.end(), 5, ended('the connection was closed')],
  ['half of the headers', (socket) => void socket.end(half), 5, ended('the connection was closed')],
  ['half of a body', (socket) => void socket.end(`${half}Content-Length: 15\r\n\r\n{"name":"Fern"`), 5, ended('the connection was closed')],
  [
    'half of a body in chunks, which is a Plant as it stands',
    (socket) => void socket.end(`${half}Transfer-Encoding: chunked\r\n\r\nf\r\n{"name":"Fern"}\r\n`),
    5,
    ended('the connection was closed'),
  ],
  ['100 Continue, and then the end', (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'), 5, ended('the connection was closed')],
]

test.each([open, broken].flat())('an answer that settles nothing: %s', async (_, answer, code, error) => {
  const remote = await Hostile.listen({ posts: [answer], openapi })
  const requests = ['POST /plants', 'GET /openapi.json']
  expect(await createAt(remote)).toEqual<Outcome>({ code, out: '', said: [error], requests })
})

/** What answers, but not in HTTP: whatever it says, it is an answer that cannot be used (502), and not a silence (504). */
test.each<[string, Answer]>([
  ['garbage', 'SSH-2.0-OpenSSH_9.9\r\n'],
  ['headers of 1 MiB', http(200, '{"name":"Fern"}', { 'Content-Type': 'application/json', 'X-Long': 'x'.repeat(1_048_576) })],
  ['two lengths', `${half}Content-Length: 15\r\nContent-Length: 3\r\n\r\n{"name":"Fern"}`],
  ['a length that is none', `${half}Content-Length: -1\r\n\r\n{"name":"Fern"}`],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: plants\r\n\r\n'],
])('an answer that is no HTTP: %s', async (_, answer) => {
  const remote = await Hostile.listen({ posts: [answer], openapi })
  const { said, ...rest } = await createAt(remote)
  expect(rest).toEqual({ code: 5, out: '', requests: ['POST /plants', 'GET /openapi.json'] })
  expect(said).toEqual([{ error: 502, message: expect.stringMatching(/^URL /), hint: howToRepeat.unlisted }])
})

describe('an answer that does not come in time', () => {
  const late = { error: 504, message: 'URL got the plant, but did not answer: the time is over', hint: howToRepeat.unasked }

  test.each<[string, Answer]>([
    ['none at all', () => undefined],
    ['headers, and no body', `${half}Content-Length: 15\r\n\r\n`],
    ['a byte now and then', drip],
    ['100 Continue for ever', (socket) => void repeat(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n')],
  ])('is not waited for: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer], openapi })
    expect(await createAt(remote, ['--timeout', '1s'])).toEqual({ code: 5, out: '', said: [late], requests: ['POST /plants'] })
  })

  test('is waited for when the time-out is longer than a timer of Node can be', async () => {
    const remote = await Hostile.listen({ posts: [(socket) => void setImmediate(() => socket.write(json(200, plant)))] })
    expect(await createAt(remote, ['--timeout', '90d'])).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      said: [],
      requests: ['POST /plants'],
    })
  })
})

/** Sends a Plant so slowly that nobody waits for it. */
function drip(socket: Socket): void {
  const bytes = [...json(200, plant)]
  const timer = setInterval(() => socket.write(Buffer.from(bytes.splice(0, 1))), 100)
  socket.once('close', () => clearInterval(timer))
}

function repeat(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), 20)
  socket.once('close', () => clearInterval(timer))
}

test.each<[string, Record<string, string>]>([
  ['of 10 GB', { 'Content-Length': '10000000000' }],
  ['without an end', { 'Transfer-Encoding': 'chunked' }],
])('a body %s is cut off early', async (_, headers) => {
  const chunk = 'Transfer-Encoding' in headers ? `10000\r\n${' '.repeat(65_536)}\r\n` : ' '.repeat(65_536)
  let taken: Promise<number> | undefined
  const remote = await Hostile.listen({
    posts: [
      (socket) => {
        socket.write(http(200, '', { 'Content-Type': 'application/json', ...headers }))
        const more = () => void (socket.writable && socket.write(chunk) && setImmediate(more))
        socket.on('drain', more)
        taken = new Promise((resolve) => socket.once('close', () => resolve(socket.bytesWritten)))
        more()
      },
    ],
  })
  const said = [unusable('200 with more than 1 MiB', 200)]
  expect(await createAt(remote)).toEqual({ code: 5, out: '', said, requests: ['POST /plants'] })
  expect(await taken).toBeLessThan(32 * 1_048_576) // the system's buffers have a part in it
})

test.each([301, 302, 303, 307, 308])('a redirect with %s is not followed, and nobody else is asked', async (status) => {
  const other = await Hostile.listen({ posts: [json(200, plant)] })
  const remote = await Hostile.listen({ posts: [http(status, '', { Location: `${other.url}/plants` })], openapi })
  const { code, said, requests } = await createAt(remote)
  expect({ code, requests, connections: [remote.connections, other.connections] }).toEqual({
    code: status === 303 ? 5 : 4,
    requests: ['POST /plants'],
    connections: [1, 0],
  })
  expect(said).toMatchObject([{ status, message: `URL answered ${status}, and points to ${other.url}/plants` }])
})

describe('what a remote says', () => {
  const location = http(302, '', { Location: 'http://example.com/\u009b31m\u202e' })
  const wild = '\u001b[2J\u001b]0;title\u0007\u202e\u009b31m\r\nplants: Planted Fern'

  test('cannot drive the terminal, whether it is a message, a header or a plant', async () => {
    for (const answer of [json(400, { error: 400, message: wild }), location, json(200, { name: wild, tag: wild })]) {
      const remote = await Hostile.listen({ posts: [answer] })
      const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'text', '--store', remote.url]
      const { out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, terminals: ['stdout', 'stderr'] })
      // biome's rule knows nothing of what a terminal does: SGR sequences are our own colours
      expect(`${out}${err}`.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
  })

  test('is cut when it is long, but not within a character', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 400, message: `${'x'.repeat(999)}${'\u{1f331}'.repeat(250_000)}` })] })
    const [error] = (await createAt(remote)).said as [{ message: string }]
    expect(error.message.length).toBeLessThan(2000)
    expect(error.message.isWellFormed()).toBe(true)
  })

  test.each<[string, Answer]>([
    ['an Error', json(400, { error: 400, message: `Bad token: ${token}` })],
    ['a refused token', json(401, { error: 401, message: `Bearer ${token} is not accepted` })],
    ['an Error of 500', json(500, { error: 500, message: `Bearer ${token}` })],
    ['an Error of 503', json(503, { error: 503, message: `Bearer ${token}` }, { 'Retry-After': 60 })],
    ['a redirect', http(302, '', { Location: `https://example.com/login?token=${token}` })],
    ['a media type', http(200, '{"name":"Fern"}', { 'Content-Type': `text/${token}` })],
    ['the name of the request', json(400, refusal, { 'Request-Id': token })],
  ])('is told without the token that it repeats: %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(JSON.stringify(await createAt(remote))).not.toContain(token)
  })

  test('says with which status it came, also to people', async () => {
    for (const status of [404, 500, 502]) {
      const remote = await Hostile.listen({ posts: [json(status, refusal)], openapi })
      expect((await createAt(remote, ['--output', 'text'])).said.join('\n')).toContain(`${status}`)
    }
  })
})

describe('a Plant', () => {
  test.each<[string, unknown, string]>([
    ['another name', { name: 'Moss' }, '{"name":"Moss"}'],
    ['another tag', { name: 'Fern', tag: 'sun' }, '{"name":"Fern","tag":"sun"}'],
    ['an empty tag', { tag: '', name: 'Fern' }, '{"name":"Fern","tag":""}'],
  ])('with %s is printed, with a warning', async (_, answer, out) => {
    const remote = await Hostile.listen({ posts: [json(200, answer)] })
    const warning = `The store answered with another plant than it was given: ${out} instead of {"name":"Fern"}`
    expect(await createAt(remote)).toEqual({ code: 0, out: `${out}\n`, said: [{ warning }], requests: ['POST /plants'] })
  })

  test.each<[string, Answer]>([
    ['with what else it has', json(200, { id: 1, name: 'Fern', more: [null] })],
    ['with a charset', http(200, '{"name":"Fern"}', { 'Content-Type': 'Application/JSON ; charset=utf-8' })],
    ['with spaces around it', json(200, ' \r\n{"name":"Fern"}\t')],
    ['of exactly 1 MiB', json(200, `{"name":"Fern"}${' '.repeat(1_048_561)}`)],
    ['in chunks', `${half}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\ne;x=y\r\n"name":"Fern"}\r\n0\r\nTrailer: 1\r\n\r\n`],
    ['up to the end of the connection', (socket) => void socket.end(`${half}\r\n{"name":"Fern"}`)],
    ['of HTTP/1.0', (socket) => void socket.end('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"name":"Fern"}')],
    ['in many pieces', (socket) => void pieces(socket)],
    ['after 100 Continue', `HTTP/1.1 100 Continue\r\n\r\n${json(200, plant)}`],
    ['after 102 and 103', `HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n${json(200, plant)}`],
    ['after 103 and 100', `HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${json(200, plant)}`],
    ['after 100 without a reason', `HTTP/1.1 100\r\n\r\n${json(200, plant)}`],
    ['before another answer', `${json(200, plant)}${json(200, { name: 'Moss' })}`],
    ['before garbage', `${json(200, plant)}garbage`],
  ])('%s is an answer', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer] })
    expect(await createAt(remote)).toEqual({ code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] })
  })

  function pieces(socket: Socket): void {
    socket.setNoDelay(true)
    const bytes = [...json(200, plant)]
    const more = () => void (bytes.length > 0 && socket.write(Buffer.from(bytes.splice(0, 7)), () => setImmediate(more)))
    more()
  }
})

describe('an answer that comes before the whole plant was sent', () => {
  const tooLarge = json(413, { error: 413, message: 'Too large' })
  const hint = 'Shorten the name or the tag'

  test.each<[string, (socket: Socket) => void]>([
    ['goes on reading', (socket) => void socket.write(tooLarge)],
    ['reads no more', (socket) => void socket.pause().write(tooLarge)],
    ['says no more', (socket) => void socket.end(tooLarge)],
  ])('is one, when the service %s', async (_, then) => {
    const remote = await Hostile.listen({ onConnect: (socket) => socket.once('data', () => then(socket)) })
    const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
    const argv = ['create', '--output', 'json', '--timeout', '5s', '--store', remote.url]
    const { code, out, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
    expect({ code, out, error: JSON.parse(err) }).toEqual({
      code: 1,
      out: '',
      error: { error: 413, message: 'Too large', hint, status: 413 },
    })
  })
})

describe('a connection that ends before anything is answered', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['is closed', (socket) => void socket.destroy()],
    ['is closed on one side', (socket) => void socket.end()],
  ])('may have brought the plant when it %s', async (_, onConnect) => {
    const remote = await Hostile.listen({ onConnect })
    const { code, out, said } = await createAt(remote, ['--timeout', '1s'])
    expect({ code, out }).toEqual({ code: 5, out: '' })
    const message = 'URL got the plant, but did not answer: the connection was closed'
    expect(said).toMatchObject([{ warning: `${message}. Trying again for up to 1 s` }, { error: 504, message }])
  })

  test('is said to be reset, whether the plant was on its way or not', async () => {
    const remote = await Hostile.listen({ onConnect: (socket) => void socket.resetAndDestroy() })
    const { code, out, said } = await createAt(remote, ['--timeout', '1s'])
    expect({ code, out }).toEqual({ code: expect.toSatisfy((exit) => exit === 4 || exit === 5), out: '' })
    expect(said.at(-1)).toMatchObject({ error: code === 4 ? 503 : 504, message: expect.stringContaining('the connection was reset') })
  })
})

test('get, list and delete are not in the specification, and ask nothing of a remote store', async () => {
  const remote = await Hostile.listen({ posts: [json(200, plant)] })
  for (const argv of [['get', '1'], ['list'], ['delete', '1', '--yes'], ['tokens', 'list'], ['serve']]) {
    const { code, out, err } = await runPlants([...argv, '--store', remote.url, '--output', 'json'], { env: { PLANTS_TOKEN: token } })
    expect({ argv, code, out, error: JSON.parse(err) }).toEqual({
      argv,
      code: 2,
      out: '',
      error: {
        error: 400,
        message: `${remote.url} is a remote store, where plants can be created, and nothing else done`,
        hint: 'Do this where its file is, or choose another store with --store',
      },
    })
  }
  expect(remote.connections).toBe(0)
})

test('nothing is sent without a token, or when the plant is none', async () => {
  const remote = await Hostile.listen({ posts: [json(200, plant)] })
  const none = { PLANTS_TOKEN: '', PLANTS_CONFIG_DIR: temporaryFolder() }
  const hint = `Set PLANTS_TOKEN, or save one with: plants auth login --store URL`
  expect(await createAt(remote, [], none)).toEqual({
    code: 3,
    out: '',
    said: [{ error: 401, message: 'There is no token for URL', hint }],
    requests: [],
  })
  expect((await createAt(remote, ['--id', '1.5'])).code).toBe(2)
  expect((await createAt(remote, ['--idempotency-key', 'a b'])).code).toBe(2)
  expect(remote.connections).toBe(0)
})

test('the token that our own service does not accept ends with 3', async () => {
  const store = await ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
  const argv = ['create', '--id', '1', '--name', 'Fern', '--store', store]
  const { code, out, err } = await runPlants([...argv, '--output', 'json'], { env: { PLANTS_TOKEN: 'another-token' } })
  expect({ code, out, error: JSON.parse(err) }).toEqual({
    code: 3,
    out: '',
    error: { error: 401, message: 'This token is not accepted', hint: wrongToken, status: 400, requestId: expect.any(String) },
  })
})
