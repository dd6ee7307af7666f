import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type Answer, Hostile, http, json, jsonHead } from '../../../helpers/hostile.js'
import { createAt, created, howToRepeat, keyless, token } from '../../../helpers/http-store.js'
import { runPlants } from '../../../helpers/run.js'
import { settableTime } from '../../../helpers/time.js'

const fern = '{"name":"Fern"}'
const plant = json(200, fern)
const as = (type: string, body: string | Buffer = fern) => http(200, body, { 'Content-Type': type })
const html = http(200, '<h1>Oops</h1>', { 'Content-Type': 'text/html; charset=utf-8' })
const refusal = { error: 409, message: 'No ferns today' }
const create = 'POST /plants'
const noPlant = 'answered 200 with no Plant: '

/** Creates a plant at a service without idempotency keys. */
const createdBy = async (answer: Answer, now?: () => number) =>
  createAt(await Hostile.listen({ posts: [answer], openapi: keyless }), [], {}, now)

const failed = (error: object, code = 5, requests = [create]) => ({
  code,
  out: '',
  said: [error],
  requests,
})
const isStore = 'Is it a Plant Store? The address is the base URL, the part before /plants'
const unusable = (message: string, status: number) => {
  const hint = `${isStore}. ${howToRepeat}`
  return failed({ error: 502, message: `URL ${message}`, hint, status })
}

test.each<[string, Answer, string, status?: number]>([
  ['HTML', html, 'answered 200 with text/html, not application/json: <h1>Oops</h1>'],
  [
    'a Plant as text',
    as('text/plain'),
    `answered 200 with text/plain, not application/json: ${fern}`,
  ],
  [
    'a Plant without a type',
    http(200, fern),
    `answered 200 with no Content-Type, not application/json: ${fern}`,
  ],
  ['another API', json(200, { hello: 'you' }), `${noPlant}{"hello":"you"}`],
  [
    'what is not UTF-8',
    as('application/json', Buffer.from('{"name":"\xff"}', 'latin1')),
    `${noPlant}{"name":"\ufffd"}`,
  ],
  ['a number as the tag', json(200, { name: 'Fern', tag: 1 }), `${noPlant}{"name":"Fern","tag":1}`],
  ['a prototype', json(200, `{"__proto__":${fern}}`), `${noPlant}{"__proto__":${fern}}`],
  ['201', json(201, fern), `answered 201: ${fern}`, 201],
  ['204', Buffer.from('HTTP/1.1 204 No Content\r\n\r\n'), 'answered 204 with nothing', 204],
  ['303', http(303, '', { Location: '/v2' }), 'answered 303, and redirects to URL/v2', 303],
  [
    'a redirect with a password and a query',
    http(303, '', { Location: 'https://u:pw@example.com/v2?state=s3cret' }),
    'answered 303, and redirects to https://example.com/v2',
    303,
  ],
])('takes only 200 with a Plant for success, not %s', async (_, answer, message, status = 200) => {
  expect(await createdBy(answer)).toEqual(unusable(message, status))
})

const redirect = 'If the new address is right, use it with --store'

test.each([301, 307])('does not follow a redirect: %i', async (status) => {
  const message = `URL answered ${status}, and redirects to URL/v2`
  const error = { error: 503, message, hint: redirect, status }
  expect(await createdBy(http(status, '', { Location: '/v2' }))).toEqual(failed(error, 4))
})

const wrongToken = 'The token is from PLANTS_TOKEN: set another one there'
const notOffered =
  'This service does not offer this, or the address is wrong: it is the base URL, the part before /plants'
const otherId = 'Choose another id'
const source = 'This message is from URL'

test.each([
  [401, 401, 3, wrongToken],
  [404, 404, 1, notOffered],
  [418, 418, 1, source],
  [400, 401, 3, wrongToken],
  [400, 409, 1, otherId],
  [400, 413, 1, source],
  [400, 404, 1, source],
  [400, 2147483647, 1, source],
])('the status %i with the error %i rejects the plant', async (status, error, code, hint) => {
  const answer = json(status, { ...refusal, error }, { 'Request-Id': 'abc-1' })
  const rest = { message: refusal.message, hint, status, requestId: 'abc-1' }
  expect(await createdBy(answer)).toEqual(failed({ error, ...rest }, code))
})

const unread = '"message":"No ferns today"'

test.each([`2147483648,${unread}`, `"409",${unread}`, '409,"message":{}'])(
  'an Error with the error %s is none',
  async (rest) => {
    const error = {
      error: 400,
      message: `URL answered 400: {"error":${rest}}`,
      hint: source,
      status: 400,
    }
    expect(await createdBy(json(400, `{"error":${rest}}`))).toEqual(failed(error, 1))
  },
)

const half = `${jsonHead}Content-Length: 15\r\n\r\n${fern.slice(0, -1)}`
const inChunks = `${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`
// The rest is the parser's own sentence.
const noHttp = { message: expect.stringMatching(/^URL received the request, but did not answer: /) }
const closed = 'received the request, but did not answer: the connection was closed'

/** Then the service is asked whether it keeps keys. It does not, and nothing is sent again. */
test.each<[string, Answer, object]>([
  [
    '500 with an Error',
    json(500, refusal),
    { error: 502, message: 'URL answered 500: No ferns today', status: 500 },
  ],
  ['a reset', (socket) => void socket.resetAndDestroy(), {}],
  ['half of a body', (socket) => void socket.end(half), {}],
  ['chunks of a whole Plant without their end', (socket) => void socket.end(inChunks), {}],
  ['101', 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', {}],
  ['a banner of SSH', 'SSH-2.0-OpenSSH_9.9\r\n', noHttp],
  ['two lengths', `${jsonHead}Content-Length: 15\r\nContent-Length: 3\r\n\r\n${fern}`, noHttp],
])('the outcome is unknown after %s', async (_, answer, said) => {
  const error = { error: 504, message: `URL ${closed}`, hint: howToRepeat, ...said }
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
  expect(await createdBy(answer)).toEqual(unusable('answered 200 with more than 16 MiB', 200))
  expect(await taken).toBeLessThan(64 * 1_048_576) // the system's buffers have a part in it
})

/** Sends one after the other, but never the last. Says when it has sent some. */
function trickle(parts: (string | Buffer)[], sent: () => void): Answer {
  return async (socket) => {
    for (const [at, part] of parts.slice(0, -1).entries()) {
      await new Promise((resolve) => socket.write(part, resolve))
      if (at === 3) sent()
    }
  }
}

const bytes = Array.from(plant, (byte) => Buffer.from([byte]))

test.each<[string, (string | Buffer)[]]>([
  ['a byte now and then', bytes],
  ['endless 103 Early Hints', Array(50).fill('HTTP/1.1 103 Early Hints\r\n\r\n')],
])('an answer that does not come in time is not waited for: %s', async (_, parts) => {
  const time = settableTime()
  const message = 'URL received the request, but did not answer: it timed out'
  const error = { error: 504, message, hint: howToRepeat }
  expect(await createdBy(trickle(parts, time.timeOut), time.now)).toEqual(failed(error))
})

const hinted = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'

test.each<[string, Answer]>([
  ['with a charset', as('Application/JSON ; charset=utf-8')],
  ['of exactly 16 MiB', json(200, fern + ' '.repeat(16_777_201))],
  ['until the end of the connection', (socket) => void socket.end(`${jsonHead}\r\n${fern}`)],
  ['after 102, 103 and 100', `HTTP/1.1 102 Processing\r\n\r\n${hinted}${plant}`],
])('accepts a Plant %s', async (_, answer) => {
  expect(await createdBy(answer)).toEqual(created)
})

test('another Plant is printed as it is', async () => {
  const other = '{"name":"Fern","tag":""}'
  const answer = json(200, '{"tag":"","name":"Fern"}')
  expect(await createdBy(answer)).toEqual({ ...created, out: `${other}\n` })
})

test('the text of a service is shown in one line of at most 200 characters', async () => {
  const message = `No ferns\n\t ${'x'.repeat(189)}${'\u{1f331}'.repeat(1000)}`
  const { said } = await createdBy(json(400, { error: 400, message }))
  const { message: shown } = said[0] as { message: string }
  const words = Array.from(shown)
  expect([shown.startsWith('No'), words.length, words.at(-1)]).toEqual([true, 200, '…'])
  expect([shown.isWellFormed(), /\s\s|\n/.test(shown)]).toEqual([true, false])
})

const tooLarge = json(413, { error: 413, message: 'Too large' })

test.each<[string, (socket: Socket) => void]>([
  ['stops reading', (socket) => void socket.pause().write(tooLarge)],
  ['closes its side', (socket) => void socket.end(tooLarge)],
])('an answer counts before the whole plant was sent: the service %s', async (_, then) => {
  const service = await Hostile.listen({
    onConnect: (socket) => socket.once('data', () => then(socket)),
  })
  const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
  const argv = ['create', '--output', 'json', '--timeout', '1h', '--store', service.url]
  const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
  expect({ code, error: JSON.parse(err) }).toMatchObject({
    code: 1,
    error: { error: 413, message: 'Too large' },
  })
})
