import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json, jsonHead } from '../../../helpers/hostile.js'
import { createAt, created, howToRepeat, keyless, token } from '../../../helpers/remote.js'
import { runPlants } from '../../../helpers/run.js'

const fern = '{"name":"Fern"}'
const plant = json(200, fern)
const as = (type: string, body: string | Buffer = fern) => http(200, body, { 'Content-Type': type })
const html = (status: number) => http(status, '<h1>Oops</h1>', { 'Content-Type': 'text/html; charset=utf-8' })
const refusal = { error: 409, message: 'No ferns today' }
const create = 'POST /plants'
const noPlant = 'answered 200 with no Plant: '
const bomb = gzipSync('F'.repeat(20_000_000)).toString('latin1')

/** Creates a plant at a service without idempotency keys. */
const createdBy = async (answer: Answer, flags: string[] = []) =>
  createAt(await Hostile.listen({ posts: [answer], openapi: keyless }), flags)

const failed = (error: object, code = 5, requests = [create]) => ({ code, out: '', said: [error], requests })
const unusable = (message: string, status: number) =>
  failed({ error: 502, message: `URL ${message}`, hint: howToRepeat.unasked, status })

test.each<[string, Answer, string, status?: number]>([
  ['HTML', html(200), `${noPlant}<h1>Oops</h1>`],
  ['no media type', http(200, fern), noPlant + fern],
  ['invalid JSON', json(200, fern.slice(0, -1)), noPlant + fern.slice(0, -1)],
  [
    'what is not UTF-8',
    as('application/json', Buffer.from('{"name":"\xff"}', 'latin1')),
    `${noPlant}{"name":"\ufffd"}`,
  ],
  ['no name', json(200, { tag: 'shade' }), `${noPlant}{"tag":"shade"}`],
  ['a number as the tag', json(200, { name: 'Fern', tag: 1 }), `${noPlant}{"name":"Fern","tag":1}`],
  ['null', json(200, 'null'), `${noPlant}null`],
  ['a prototype', json(200, `{"__proto__":${fern}}`), `${noPlant}{"__proto__":${fern}}`],
  ['a gzip bomb', json(200, bomb, { 'Content-Encoding': 'gzip' }), 'answered 200 with a compressed body'],
  ['201', json(201, fern), `answered 201: ${fern}`, 201],
  ['202', json(202, refusal), 'answered 202: No ferns today', 202],
  ['204', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), 'answered 204 with nothing', 204],
  ['303', http(303, '', { Location: '/v2' }), 'answered 303, and redirects to /v2', 303],
  ['399', http(399), 'answered 399 with nothing', 399],
])('takes only 200 with a Plant for success, not %s', async (_, answer, message, status = 200) => {
  expect(await createdBy(answer)).toEqual(unusable(message, status))
})

const redirect =
  'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store'

test.each([301, 302, 307, 308])('does not follow a redirect: %i', async (status) => {
  const message = `URL answered ${status}, and redirects to /v2`
  const error = { error: 503, message, hint: redirect, status }
  expect(await createdBy(http(status, '', { Location: '/v2' }))).toEqual(failed(error, 4))
})

const wrongToken = 'The token is from PLANTS_TOKEN: set another one there'
const wrongAddress = 'Is the address right? It is the base URL: the part before /plants'
const otherId = 'Choose another id. To repeat a create safely, use the same --idempotency-key for the same plant'
const shorter = 'Shorten the name or tag'
const source = 'This message is from URL'

test.each([
  [401, 401, 3, wrongToken],
  [403, 403, 3, wrongToken],
  [404, 404, 1, wrongAddress],
  [405, 405, 1, wrongAddress],
  [418, 418, 1, source],
  [400, 401, 3, wrongToken],
  [400, 409, 1, otherId],
  [400, 413, 1, shorter],
  [400, 404, 1, source],
  [400, 415, 1, source],
  [415, 415, 1, source],
  [400, -2147483648, 1, source],
  [400, 2147483647, 1, source],
])('the status %i with the error %i rejects the plant', async (status, error, code, hint) => {
  const answer = json(status, { ...refusal, error }, { 'X-Request-Id': 'abc-1' })
  const rest = { message: refusal.message, hint, status, requestId: 'abc-1' }
  expect(await createdBy(answer)).toEqual(failed({ error, ...rest }, code))
})

test('a conflict under a key that was given is the end of it', async () => {
  const taken = json(400, refusal, { 'Request-Id': 'r-1' })
  const error = { ...refusal, hint: otherId, status: 400, requestId: 'r-1' }
  expect(await createdBy(taken, ['--idempotency-key', 'import-9'])).toEqual(failed(error, 1))
})

const unread = '"message":"No ferns today"'

test.each([`2147483648,${unread}`, `1.5,${unread}`, `"409",${unread}`, '409', '409,"message":{}'])(
  'an Error with the error %s is none',
  async (rest) => {
    const error = { error: 400, message: `URL answered 400: {"error":${rest}}`, hint: source, status: 400 }
    expect(await createdBy(json(400, `{"error":${rest}}`))).toEqual(failed(error, 1))
  },
)

const half = `${jsonHead}Content-Length: 15\r\n\r\n${fern.slice(0, -1)}`
const inChunks = `${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`
const noHttp = { error: 502, message: 'URL did not answer with HTTP/1.1' }
const switched = { message: 'URL received the request, but did not answer: it switched protocols' }
const closed = 'received the request, but did not answer: the connection was closed'

/** Then the service is asked whether it keeps keys. It does not, and nothing is sent again. */
test.each<[string, Answer, object]>([
  ['500 with an Error', json(500, refusal), { error: 502, message: 'URL answered 500: No ferns today', status: 500 }],
  ['HTML', html(502), { error: 502, message: 'URL answered 502: <h1>Oops</h1>', status: 502 }],
  ['a reset', (socket) => void socket.resetAndDestroy(), {}],
  ['a closed connection', (socket) => void socket.end(), {}],
  ['half of a body', (socket) => void socket.end(half), {}],
  ['chunks of a whole Plant without their end', (socket) => void socket.end(inChunks), {}],
  ['100 Continue, then the end', (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'), {}],
  ['a banner of SSH', 'SSH-2.0-OpenSSH_9.9\r\n', noHttp],
  ['headers of 1 MiB', json(200, fern, { 'X-Long': 'x'.repeat(1_048_576) }), noHttp],
  ['two lengths', `${jsonHead}Content-Length: 15\r\nContent-Length: 3\r\n\r\n${fern}`, noHttp],
  ['another protocol', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: plants\r\n\r\n', switched],
])('the outcome is unknown after %s', async (_, answer, said) => {
  const error = { error: 504, message: `URL ${closed}`, hint: howToRepeat.unlisted, ...said }
  expect(await createdBy(answer)).toEqual(failed(error, 5, [create, 'GET /openapi.json']))
})

test('a body without an end is cut off early', async () => {
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
  let taken: Promise<number> | undefined
  const answer: Answer = (socket) => {
    socket.write(`${jsonHead}Transfer-Encoding: chunked\r\n\r\n`)
    const more = () => void (socket.writable && socket.write(chunk) && setImmediate(more))
    socket.on('drain', more)
    taken = new Promise((resolve) => socket.once('close', () => resolve(socket.bytesWritten)))
    more()
  }
  expect(await createdBy(answer)).toEqual(unusable('answered 200 with more than 1 MiB', 200))
  expect(await taken).toBeLessThan(32 * 1_048_576) // the system's buffers have a part in it
})

/** Sends one after the other, so slowly that nobody waits for the last. */
function trickle(parts: (string | Buffer)[], interval: number): Answer {
  return (socket) => {
    const timer = setInterval(() => socket.write(parts.shift() ?? ''), interval)
    socket.once('close', () => clearInterval(timer))
  }
}

const bytes = Array.from(plant, (byte) => Buffer.from([byte]))

test.each<[string, Answer]>([
  ['none at all', () => undefined],
  ['a byte now and then', trickle(bytes, 100)],
  ['endless 103 Early Hints', trickle(Array(50).fill('HTTP/1.1 103 Early Hints\r\n\r\n'), 20)],
])('an answer that does not come in time is not waited for: %s', async (_, answer) => {
  const message = 'URL received the request, but did not answer: it timed out'
  const error = { error: 504, message, hint: howToRepeat.unasked }
  expect(await createdBy(answer, ['--timeout', '1s'])).toEqual(failed(error))
})

test('an answer is waited for longer than a timer of Node can be', async () => {
  const answer: Answer = (socket) => void setImmediate(() => socket.write(plant))
  expect(await createdBy(answer, ['--timeout', '90d'])).toEqual(created)
})

const hinted = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'

test.each<[string, Answer]>([
  ['with other fields', json(200, { id: 1, name: 'Fern', more: [null] })],
  ['with a charset', as('Application/JSON ; charset=utf-8')],
  ['of exactly 1 MiB', json(200, fern + ' '.repeat(1_048_561))],
  ['until the end of the connection', (socket) => void socket.end(`${jsonHead}\r\n${fern}`)],
  ['after 102, 103 and 100', `HTTP/1.1 102 Processing\r\n\r\n${hinted}${plant}`],
  ['before garbage', `${plant}garbage`],
])('accepts a Plant %s', async (_, answer) => {
  expect(await createdBy(answer)).toEqual(created)
})

test.each([
  ['{"name":"Moss"}', '{"name":"Moss"}'],
  ['{"tag":"","name":"Fern"}', '{"name":"Fern","tag":""}'],
])('prints another Plant with a warning: %s', async (answer, out) => {
  const warning = `The store returned a plant that differs from the one that was sent: ${out} instead of ${fern}`
  expect(await createdBy(json(200, answer))).toEqual({ ...created, out: `${out}\n`, said: [{ warning }] })
})

describe('the text of a service', () => {
  const wild = '\u001b[2J\u001b]0;title\u0007\u202e\u009b31m\r\nplants: Planted Fern'

  test.each<[string, Answer]>([
    ['a message', json(400, { error: 400, message: wild })],
    ['a header', http(302, '', { Location: 'http://example.com/\u009b31m\u202e' })],
    ['a plant', json(200, { name: wild, tag: wild })],
  ])('cannot drive the terminal: %s', async (_, answer) => {
    const { url } = await Hostile.listen({ posts: [answer] })
    const argv = ['create', '--id', '1', '--name', 'Fern', '--output', 'text', '--store', url]
    const { out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, terminals: ['stdout', 'stderr'] })
    // SGR sequences are our own colours
    expect(`${out}${err}`.replaceAll(/\u001b\[\d+m/g, '')).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/,
    )
  })

  test.each<[string, (words: string) => Answer, string, number]>([
    ['an Error', (message) => json(400, { error: 400, message }), '', 1],
    [
      'a problem',
      (detail) => http(418, detail, { 'Content-Type': 'application/problem+json' }),
      'URL answered 418: ',
      1,
    ],
    ['a Location', (path) => http(302, '', { Location: encodeURI(path) }), 'URL answered 302, and redirects to ', 4],
  ])('is shown in one line of at most 200 characters: %s', async (_, answer, before, code) => {
    const short = 'No ferns\n\t today'
    const result = await createdBy(answer(short))
    expect([result.code, result.said]).toMatchObject([code, [{ message: expect.stringContaining('No') }]])
    const [error] = (await createdBy(answer(`${'x'.repeat(198)}${'\u{1f331}'.repeat(1000)}`))).said as [
      { message: string },
    ]
    const words = Array.from(error.message.slice(before.length))
    expect([error.message.startsWith(before), words.length, words.at(-1)]).toEqual([true, 200, '…'])
    expect(error.message.isWellFormed()).toBe(true)
  })

  test.each([404, 500])('is followed by the status %i for people', async (status) => {
    const answer = json(status, { error: 409, message: `No ferns at :1${status}2` })
    const { said } = await createdBy(answer, ['--output', 'text'])
    expect(said[0]).toMatch(new RegExp(` \\(status ${status}\\)$`))
  })
})

const tooLarge = json(413, { error: 413, message: 'Too large' })

test.each<[string, (socket: Socket) => void]>([
  ['stops reading', (socket) => void socket.pause().write(tooLarge)],
  ['closes its side', (socket) => void socket.end(tooLarge)],
])('an answer counts before the whole plant was sent: the service %s', async (_, then) => {
  const remote = await Hostile.listen({ onConnect: (socket) => socket.once('data', () => then(socket)) })
  const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
  const argv = ['create', '--output', 'json', '--timeout', '5s', '--store', remote.url]
  const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
  expect({ code, error: JSON.parse(err) }).toMatchObject({ code: 1, error: { error: 413, message: 'Too large' } })
})

test('a connection that is reset before any request is told of', async () => {
  const remote = await Hostile.listen({ onConnect: (socket) => void socket.resetAndDestroy() })
  const { code, said } = await createAt(remote, ['--timeout', '1s'])
  const error = { 4: 503, 5: 504 }[code] ?? 'none'
  expect(said.at(-1)).toMatchObject({ error, message: expect.stringContaining('the connection was closed') })
})
