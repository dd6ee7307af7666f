import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { type Answer, Hostile, http, json, jsonHead } from '../../../helpers/hostile.js'
import { createAt, howToRepeat, keyless } from '../../../helpers/remote.js'

const fern = '{"name":"Fern"}'
const as = (type: string, body: string | Buffer = fern) => http(200, body, { 'Content-Type': type })
const html = (status: number) => http(status, '<h1>Oops</h1>', { 'Content-Type': 'text/html; charset=utf-8' })
const refusal = { error: 409, message: 'No ferns today' }
const create = 'POST /plants'

/** Creates a plant at a service without idempotency keys. */
const createdBy = async (answer: Answer) => createAt(await Hostile.listen({ posts: [answer], openapi: keyless }))

const failed = (error: object, code = 5, requests = [create]) => ({ code, out: '', said: [error], requests })
const unusable = (message: string, status: number) =>
  failed({ error: 502, message: `URL ${message}`, hint: howToRepeat.unasked, status })

test.each<[string, Answer, string]>([
  ['HTML', html(200), 'text/html; charset=utf-8'],
  ['no media type', http(200, fern), 'no JSON'],
  ['another media type', as('application/jsonx'), 'application/jsonx'],
  ['an empty body', json(200, ''), 'nothing'],
  ['invalid JSON', json(200, fern.slice(0, -1)), 'invalid JSON'],
  ['two Plants', json(200, `${fern}\n${fern}`), 'invalid JSON'],
  ['deeply nested arrays', json(200, '['.repeat(500_000)), 'invalid JSON'],
  ['what is not UTF-8', as('application/json', Buffer.from('{"name":"\xff"}', 'latin1')), 'invalid JSON'],
  ['no name', json(200, { tag: 'shade' }), 'JSON that is no Plant'],
  ['a number as the name', json(200, { name: 1 }), 'JSON that is no Plant'],
  ['null as the tag', json(200, { name: 'Fern', tag: null }), 'JSON that is no Plant'],
  ['an array', json(200, [{ name: 'Fern' }]), 'JSON that is no Plant'],
  ['null', json(200, 'null'), 'JSON that is no Plant'],
  ['a prototype', json(200, `{"__proto__":${fern}}`), 'JSON that is no Plant'],
  ['an Error', json(200, refusal), 'JSON that is no Plant'],
  ['more than 1 MiB', json(200, fern + ' '.repeat(1_048_562)), 'more than 1 MiB'],
  [
    'a gzip bomb',
    json(200, gzipSync('F'.repeat(20_000_000)).toString('latin1'), { 'Content-Encoding': 'gzip' }),
    'a compressed body',
  ],
])('rejects 200 with %s', async (_, answer, what) => {
  expect(await createdBy(answer)).toEqual(unusable(`answered 200 with ${what}`, 200))
})

test.each<[string, Answer, number, string]>([
  ['201 with a Plant', json(201, fern), 201, 'answered 201 with JSON that is no Error'],
  ['202 with an Error', json(202, refusal), 202, 'failed: No ferns today'],
  ['204', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), 204, 'answered 204 with nothing'],
  ...[300, 303, 304, 399].map((status): [string, Answer, number, string] => [
    `${status}`,
    http(status),
    status,
    `answered ${status}`,
  ]),
])('takes no status but 200 for success: %s', async (_, answer, status, message) => {
  expect(await createdBy(answer)).toEqual(unusable(message, status))
})

test.each([301, 302, 307, 308])('does not follow a redirect: %i', async (status) => {
  const hint =
    'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store'
  expect(await createdBy(http(status))).toEqual(
    failed({ error: 503, message: `URL answered ${status}`, hint, status }, 4),
  )
})

const wrongToken = 'The token is from PLANTS_TOKEN: set another one there'
const wrongAddress = 'Is the address right? It is the base URL: the part before /plants'
const otherId = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const shorter = 'Shorten the name or tag'
const source = 'This message is from URL'

test.each([
  [400, 1, source],
  [401, 3, wrongToken],
  [403, 3, wrongToken],
  [404, 1, wrongAddress],
  [405, 1, wrongAddress],
  [409, 1, otherId],
  [413, 1, shorter],
  [418, 1, source],
])('the status %i rejects the plant', async (status, code, hint) => {
  const rest = { error: status, hint, status }
  expect(await createdBy(json(status, { ...refusal, error: status }))).toEqual(
    failed({ ...rest, message: refusal.message }, code),
  )
  expect(await createdBy(html(status))).toEqual(
    failed({ ...rest, message: `URL answered ${status} with text/html; charset=utf-8` }, code),
  )
})

test.each([
  [401, 3, wrongToken],
  [409, 1, otherId],
  [413, 1, shorter],
  [422, 1, source],
  [-2147483648, 1, source],
  [2147483647, 1, source],
])('the error %i in an Error with the status 400 rejects the plant', async (error, code, hint) => {
  const answer = json(400, { ...refusal, error }, { 'X-Request-Id': 'abc-1' })
  expect(await createdBy(answer)).toEqual(
    failed({ error, message: refusal.message, hint, status: 400, requestId: 'abc-1' }, code),
  )
})

test.each(['2147483648', '-2147483649', '1.5', '"409"', 'null', '1e400', '409', '409,"message":{}'])(
  'an Error with the error %s is none',
  async (error) => {
    const rest = error.startsWith('409') ? '' : ',"message":"No ferns today"'
    const message = 'URL answered 400 with JSON that is no Error'
    expect(await createdBy(json(400, `{"error":${error}${rest}}`))).toEqual(
      failed({ error: 400, message, hint: source, status: 400 }, 1),
    )
  },
)

test.each([429, 503])('with %i nothing was stored, and no retry is made after the timeout', async (status) => {
  for (const [body, message] of [
    [JSON.stringify(refusal), refusal.message],
    ['', `URL answered ${status} with nothing`],
    [' '.repeat(2_000_000), `URL answered ${status} with more than 1 MiB`],
  ] as const)
    expect(await createdBy(json(status, body, { 'Retry-After': 60 }))).toEqual(
      failed({ error: 503, message, hint: 'Nothing was stored. Try again later', retryable: true, status }, 4),
    )
})

const half = `${jsonHead}Content-Length: 15\r\n\r\n${fern.slice(0, -1)}`
const inChunks = `${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`
const closed = 'received the request, but did not answer: the connection was closed'

/** Then the service is asked whether it keeps keys. It does not, and nothing is sent again. */
test.each<[string, Answer, object]>([
  ...[500, 501, 599].map((status): [string, Answer, object] => [
    `${status} with an Error`,
    json(status, refusal),
    { error: 502, message: 'URL failed: No ferns today', status },
  ]),
  ['HTML', html(502), { error: 502, message: 'URL answered 502 with text/html; charset=utf-8', status: 502 }],
  ['no body', http(504), { error: 502, message: 'URL answered 504 with nothing', status: 504 }],
  ['a reset', (socket) => void socket.resetAndDestroy(), { message: `URL ${closed.replace('closed', 'reset')}` }],
  ['a closed connection', (socket) => void socket.end(), {}],
  ['half of the headers', (socket) => void socket.end(jsonHead), {}],
  ['half of a body', (socket) => void socket.end(half), {}],
  ['chunks of a whole Plant without their end', (socket) => void socket.end(inChunks), {}],
  ['100 Continue, then the end', (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'), {}],
])('the outcome is unknown after %s', async (_, answer, said) => {
  const error = { error: 504, message: `URL ${closed}`, hint: howToRepeat.unlisted, ...said }
  expect(await createdBy(answer)).toEqual(failed(error, 5, [create, 'GET /openapi.json']))
})

/** An answer that cannot be used (502), not silence (504). */
test.each<[string, Answer]>([
  ['a banner of SSH', 'SSH-2.0-OpenSSH_9.9\r\n'],
  ['headers of 1 MiB', http(200, fern, { 'Content-Type': 'application/json', 'X-Long': 'x'.repeat(1_048_576) })],
  ['two lengths', `${jsonHead}Content-Length: 15\r\nContent-Length: 3\r\n\r\n${fern}`],
  ['a negative length', `${jsonHead}Content-Length: -1\r\n\r\n${fern}`],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: plants\r\n\r\n'],
])('an answer that is not HTTP leaves the outcome unknown: %s', async (_, answer) => {
  const error = { error: 502, message: expect.stringMatching(/^URL /), hint: howToRepeat.unlisted }
  expect(await createdBy(answer)).toEqual(failed(error, 5, [create, 'GET /openapi.json']))
})

test.each<[string, Record<string, string>]>([
  ['of 10 GB', { 'Content-Length': '10000000000' }],
  ['without an end', { 'Transfer-Encoding': 'chunked' }],
])('a body %s is cut off early', async (_, headers) => {
  const chunk = 'Transfer-Encoding' in headers ? `10000\r\n${' '.repeat(65_536)}\r\n` : ' '.repeat(65_536)
  let taken: Promise<number> | undefined
  const answer: Answer = (socket) => {
    socket.write(http(200, '', { 'Content-Type': 'application/json', ...headers }))
    const more = () => void (socket.writable && socket.write(chunk) && setImmediate(more))
    socket.on('drain', more)
    taken = new Promise((resolve) => socket.once('close', () => resolve(socket.bytesWritten)))
    more()
  }
  expect(await createdBy(answer)).toEqual(unusable('answered 200 with more than 1 MiB', 200))
  expect(await taken).toBeLessThan(32 * 1_048_576) // the system's buffers have a part in it
})
