import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type Answer, Hostile, http, json, jsonHead } from '../../../helpers/hostile.js'
import { createAt, created, keyless, token } from '../../../helpers/http-store.js'
import { runPlants } from '../../../helpers/run.js'
import { settableTime } from '../../../helpers/time.js'

const fern = '{"name":"Fern"}'
const plant = json(200, fern)
const as = (type: string, body: string | Buffer = fern) => http(200, body, { 'Content-Type': type })
const create = 'POST /plants'

/** Creates a plant at a service without idempotency keys. */
async function createdBy(answer: Answer, now?: () => number) {
  const service = await Hostile.listen({ posts: [answer], openapi: keyless })
  return createAt(service, [], {}, now)
}

const failed = (code: number, error: object, requests = [create]) => ({
  ...{ code, out: '', requests },
  said: [expect.objectContaining(error)],
})
const telling = (text: string) => expect.stringContaining(text)
/** Whether it is stored is unknown, and the hint says how to repeat it. */
const unknown = { hint: telling('--idempotency-key KEY') }

test.each<[string, Answer, shown: string, status?: number]>([
  ['HTML', as('text/html; charset=utf-8', '<h1>Hi</h1>'), '200 with text/html, not application'],
  ['a Plant as text', as('text/plain'), `application/json: ${fern}`],
  ['a Plant without a type', http(200, fern), 'no Content-Type'],
  ['another API', json(200, { hello: 'you' }), '{"hello":"you"}'],
  ['no UTF-8', as('application/json', Buffer.from('{"name":"\xff"}', 'latin1')), '"\ufffd"'],
  ['a number as the tag', json(200, { name: 'Fern', tag: 1 }), '"tag":1'],
  ['a prototype', json(200, `{"__proto__":${fern}}`), '__proto__'],
  ['201', json(201, fern), `201: ${fern}`, 201],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', '204 with nothing', 204],
  ['303', http(303, '', { Location: '/v2' }), 'redirects to URL/v2', 303],
  [
    'a redirect with a password and a query, which are not shown',
    http(303, '', { Location: 'https://u:s3cret-1@example.com/v2?state=s3cret-2' }),
    'redirects to https://example.com/v2',
    303,
  ],
])('takes only 200 with a Plant for success, not %s', async (_, answer, shown, status = 200) => {
  const error = { error: 502, message: telling(shown), status, ...unknown }
  expect(await createdBy(answer)).toEqual(failed(5, error))
})

test.each([301, 302, 307, 308])('does not follow a redirect: %i', async (status) => {
  const error = { error: 503, message: telling('URL/v2'), status }
  expect(await createdBy(http(status, '', { Location: '/v2' }))).toEqual(failed(4, error))
})

test.each([
  [401, 401, 3],
  [403, 403, 3],
  [409, 409, 1],
  [418, 418, 1],
  [400, 401, 3],
  [400, 409, 1],
  [400, 2147483647, 1],
])('the status %i with the error %i rejects the plant', async (status, error, code) => {
  const message = 'No ferns today'
  const answer = json(status, { error, message }, { 'Request-Id': 'abc-1' })
  const said = { error, message, status, requestId: 'abc-1' }
  expect(await createdBy(answer)).toEqual(failed(code, said))
})

test.each(['2147483648,"message":"No"', '"409","message":"No"', '409,"message":{}'])(
  'an Error with the error %s is none',
  async (rest) => {
    const error = { error: 400, message: telling(`400: {"error":${rest}}`), status: 400 }
    expect(await createdBy(json(400, `{"error":${rest}}`))).toEqual(failed(1, error))
  },
)

const length = `${jsonHead}Content-Length: 15\r\n`

/** Then the service is asked whether it keeps keys. It does not, and nothing is sent again. */
test.each<[string, Answer, object]>([
  ['500 with an Error', json(500, { error: 409, message: 'No' }), { error: 502, status: 500 }],
  ['a reset', (socket) => void socket.resetAndDestroy(), { error: 504 }],
  [
    'half of a body',
    (socket) => void socket.end(`${length}\r\n${fern.slice(0, -1)}`),
    { error: 504 },
  ],
  [
    'chunks of a whole Plant without their end',
    (socket) => void socket.end(`${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`),
    { error: 504 },
  ],
  ['a banner of SSH', 'SSH-2.0-OpenSSH_9.9\r\n', { error: 504 }],
  ['two lengths', `${length}Content-Length: 3\r\n\r\n${fern}`, { error: 504 }],
])('the outcome is unknown after %s', async (_, answer, said) => {
  const requests = [create, 'GET /openapi.json']
  expect(await createdBy(answer)).toEqual(failed(5, { ...said, ...unknown }, requests))
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
  expect(await createdBy(answer)).toEqual(failed(5, { error: 502, status: 200, ...unknown }))
  expect(await taken).toBeLessThan(64 * 1_048_576) // the system's buffers have a part in it
})

test.each<[string, (string | Buffer)[]]>([
  ['a byte now and then', Array.from(plant, (byte) => Buffer.from([byte]))],
  ['endless 103 Early Hints', Array(50).fill('HTTP/1.1 103 Early Hints\r\n\r\n')],
])('an answer that does not come in time is not waited for: %s', async (_, parts) => {
  const time = settableTime()
  const answer: Answer = async (socket) => {
    for (const [at, part] of parts.slice(0, -1).entries()) {
      await new Promise((resolve) => socket.write(part, resolve))
      if (at === 3) time.timeOut()
    }
  }
  const error = { error: 504, message: telling('timed out'), ...unknown }
  expect(await createdBy(answer, time.now)).toEqual(failed(5, error))
})

const hinted = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'

test.each<[string, Answer, out?: string]>([
  ['with a charset', as('Application/JSON ; charset=utf-8')],
  ['of exactly 16 MiB', json(200, fern + ' '.repeat(16_777_201))],
  ['until the end of the connection', (socket) => void socket.end(`${jsonHead}\r\n${fern}`)],
  ['after 102, 103 and 100', `HTTP/1.1 102 Processing\r\n\r\n${hinted}${plant}`],
  ['that is another', json(200, '{"tag":"","name":"Moss"}'), '{"name":"Moss","tag":""}'],
])('accepts a Plant %s', async (_, answer, out = fern) => {
  expect(await createdBy(answer)).toEqual({ ...created, out: `${out}\n` })
})

test('the text of a service is shown in one line of at most 200 characters', async () => {
  const message = `No ferns\n\t ${'x'.repeat(189)}${'\u{1f331}'.repeat(1000)}`
  const shown = `No ferns ${'x'.repeat(189)}\u{1f331}…`
  const { said } = await createdBy(json(400, { error: 400, message }))
  expect(said).toMatchObject([{ message: shown }])
})

const tooLarge = json(413, { error: 413, message: 'Too large' })

test.each<[string, (socket: Socket) => void]>([
  ['stops reading', (socket) => void socket.pause().write(tooLarge)],
  ['closes its side', (socket) => void socket.end(tooLarge)],
])('an answer counts before the whole plant was sent: the service %s', async (_, then) => {
  const onConnect = (socket: Socket) => void socket.once('data', () => then(socket))
  const service = await Hostile.listen({ onConnect })
  const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
  const argv = ['create', '--output', 'json', '--timeout', '1h', '--store', service.url]
  const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
  expect([code, JSON.parse(err)]).toMatchObject([1, { error: 413, message: 'Too large' }])
})
