import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { createAt, howToRepeat, type Outcome } from '../../../helpers/remote.js'

const plant = { name: 'Fern' }
const html = (status: number) => http(status, '<h1>Oops</h1>', { 'Content-Type': 'text/html; charset=utf-8' })
const refusal = { error: 409, message: 'No ferns today' }
/** A description of a service that has no idempotency keys. */
const openapi = json(200, { openapi: '3.1.0', paths: { '/plants': { post: {} } } })

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
  [
    'a Plant as text',
    http(200, JSON.stringify(plant), { 'Content-Type': 'text/plain' }),
    5,
    unusable('200 with text/plain', 200),
  ],
  ['a Plant without a media type', http(200, JSON.stringify(plant)), 5, unusable('200 with no JSON', 200)],
  [
    'a Plant of another JSON',
    http(200, '{"name":"Fern"}', { 'Content-Type': 'application/jsonx' }),
    5,
    unusable('200 with application/jsonx', 200),
  ],
  ['nothing', json(200, ''), 5, unusable('200 with nothing', 200)],
  ['broken JSON', json(200, '{"name":"Fern"'), 5, unusable('200 with invalid JSON', 200)],
  ['two Plants', json(200, '{"name":"Fern"}\n{"name":"Fern"}'), 5, unusable('200 with invalid JSON', 200)],
  ['a Plant without a name', json(200, { tag: 'shade' }), 5, unusable('200 with JSON that is no Plant', 200)],
  ['a Plant whose name is a number', json(200, { name: 1 }), 5, unusable('200 with JSON that is no Plant', 200)],
  [
    'a Plant whose tag is null',
    json(200, { name: 'Fern', tag: null }),
    5,
    unusable('200 with JSON that is no Plant', 200),
  ],
  ['a Plant in an array', json(200, [plant]), 5, unusable('200 with JSON that is no Plant', 200)],
  ['null', json(200, 'null'), 5, unusable('200 with JSON that is no Plant', 200)],
  [
    'a prototype with a name',
    json(200, '{"__proto__":{"name":"Fern"}}'),
    5,
    unusable('200 with JSON that is no Plant', 200),
  ],
  ['an Error', json(200, refusal), 5, unusable('200 with JSON that is no Plant', 200)],
  ['arrays in arrays', json(200, '['.repeat(500_000)), 5, unusable('200 with invalid JSON', 200)],
  [
    'what is not UTF-8',
    http(200, Buffer.from('{"name":"\xff"}', 'latin1'), { 'Content-Type': 'application/json' }),
    5,
    unusable('200 with invalid JSON', 200),
  ],
  [
    'more than 1 MiB',
    json(200, `{"name":"Fern"}${' '.repeat(1_048_562)}`),
    5,
    unusable('200 with more than 1 MiB', 200),
  ],
  [
    'a bomb of gzip',
    json(200, gzipSync(`{"name":"${'F'.repeat(20_000_000)}"}`).toString('latin1'), { 'Content-Encoding': 'gzip' }),
    5,
    unusable('200 with a compressed body', 200),
  ],
]

const redirects: Row[] = [301, 302, 303, 307, 308, 300, 304, 399].map((status) => {
  const hint =
    'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store'
  const isMoved = ![300, 303, 304, 399].includes(status)
  const said = isMoved ? { error: 503, message: `URL answered ${status}`, hint, status } : unusable(`${status}`, status)
  return [`${status}`, http(status), isMoved ? 4 : 5, said]
})

const wrongToken = 'The token is from PLANTS_TOKEN: set another one there'
const wrongAddress = 'Is the address right? It is the base URL: the part before /plants'
const otherId = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const said = 'This message is from URL'

/** The statuses that refuse the plant. */
const refusals: Row[] = (
  [
    [400, 1, said],
    [401, 3, wrongToken],
    [403, 3, wrongToken],
    [404, 1, wrongAddress],
    [405, 1, wrongAddress],
    [409, 1, otherId],
    [413, 1, 'Shorten the name or tag'],
    [418, 1, said],
    [422, 1, said],
  ] as const
).flatMap(([status, code, hint]): Row[] => [
  [
    `${status} with an Error`,
    json(status, { ...refusal, error: status }),
    code,
    { error: status, message: refusal.message, hint, status },
  ],
  [
    `${status} with HTML`,
    html(status),
    code,
    { error: status, message: `URL answered ${status} with text/html; charset=utf-8`, hint, status },
  ],
  [
    `${status} with nothing`,
    http(status),
    code,
    { error: status, message: `URL answered ${status} with nothing`, hint, status },
  ],
])

/** The one status of the specification, and the values of `error` that the contract knows. */
const errors: Row[] = [
  ...(
    [
      [401, 3, wrongToken],
      [409, 1, otherId],
      [413, 1, 'Shorten the name or tag'],
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
  ['201 with a Plant', json(201, plant), 5, unusable('201 with JSON that is no Error', 201)],
  ['201 with HTML', html(201), 5, unusable('201 with text/html; charset=utf-8', 201)],
  ['202 with an Error', json(202, refusal), 5, { ...unusable('', 202), message: 'URL failed: No ferns today' }],
  ['204', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), 5, unusable('204 with nothing', 204)],
]

/** Statuses that promise that nothing was stored: asked to wait for longer than there is time, it does not. */
const comeAgain: Row[] = [429, 503].flatMap((status): Row[] => {
  const rest = { hint: 'Nothing was stored. Try again later', retryable: true, status }
  const later = { 'Retry-After': 60 }
  return [
    [`${status} with an Error`, json(status, refusal, later), 4, { error: 503, message: refusal.message, ...rest }],
    [
      `${status} with nothing`,
      http(status, '', later),
      4,
      { error: 503, message: `URL answered ${status} with nothing`, ...rest },
    ],
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
  expect(await createAt(remote)).toEqual<Outcome>({ code, out: '', said: [error], requests: ['POST /plants'] })
})

/**
 * Answers that leave it open, so that the service is asked whether it keeps keys. It does not, and nothing is sent
 * again.
 */
const open: Row[] = [500, 501, 502, 504, 599].flatMap((status): Row[] => {
  const rest = { error: 502, hint: howToRepeat.unlisted, status }
  const message = `URL answered ${status} with`
  return [
    [`${status} with an Error`, json(status, refusal), 5, { ...rest, message: 'URL failed: No ferns today' }],
    [`${status} with HTML`, html(status), 5, { ...rest, message: `${message} text/html; charset=utf-8` }],
    [`${status} with nothing`, http(status), 5, { ...rest, message: `${message} nothing` }],
  ]
})

const ended = (message: string) => ({
  error: 504,
  message: `URL received the request, but did not answer: ${message}`,
  hint: howToRepeat.unlisted,
})
const half = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

const broken: Row[] = [
  ['a reset', (socket) => void socket.resetAndDestroy(), 5, ended('the connection was reset')],
  ['a closed connection', (socket) => void socket.end(), 5, ended('the connection was closed')],
  ['half of the headers', (socket) => void socket.end(half), 5, ended('the connection was closed')],
  [
    'half of a body',
    (socket) => void socket.end(`${half}Content-Length: 15\r\n\r\n{"name":"Fern"`),
    5,
    ended('the connection was closed'),
  ],
  [
    'half of a body in chunks, which is a Plant as it stands',
    (socket) => void socket.end(`${half}Transfer-Encoding: chunked\r\n\r\nf\r\n{"name":"Fern"}\r\n`),
    5,
    ended('the connection was closed'),
  ],
  [
    '100 Continue, and then the end',
    (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
    5,
    ended('the connection was closed'),
  ],
]

test.each([open, broken].flat())('an answer that settles nothing: %s', async (_, answer, code, error) => {
  const remote = await Hostile.listen({ posts: [answer], openapi })
  const requests = ['POST /plants', 'GET /openapi.json']
  expect(await createAt(remote)).toEqual<Outcome>({ code, out: '', said: [error], requests })
})

/**
 * What answers, but not in HTTP: whatever it says, it is an answer that cannot be used (502), and not a silence (504).
 */
test.each<[string, Answer]>([
  ['garbage', 'SSH-2.0-OpenSSH_9.9\r\n'],
  [
    'headers of 1 MiB',
    http(200, '{"name":"Fern"}', { 'Content-Type': 'application/json', 'X-Long': 'x'.repeat(1_048_576) }),
  ],
  ['two lengths', `${half}Content-Length: 15\r\nContent-Length: 3\r\n\r\n{"name":"Fern"}`],
  ['a length that is none', `${half}Content-Length: -1\r\n\r\n{"name":"Fern"}`],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: plants\r\n\r\n'],
])('an answer that is no HTTP: %s', async (_, answer) => {
  const remote = await Hostile.listen({ posts: [answer], openapi })
  const { said, ...rest } = await createAt(remote)
  expect(rest).toEqual({ code: 5, out: '', requests: ['POST /plants', 'GET /openapi.json'] })
  expect(said).toEqual([{ error: 502, message: expect.stringMatching(/^URL /), hint: howToRepeat.unlisted }])
})

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
