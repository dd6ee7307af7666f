import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createClock, createCountingClock } from '../../../helpers/sandbox/clock.js'
import { runPlants } from '../../../helpers/sandbox/run.js'
import {
  buildJsonResponse,
  buildResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../../../helpers/scripted-server/scripted-server.js'
import { token } from '../../../helpers/scripted-server/service.js'
import { createAt, created } from './steps.js'

const fern = '{"name":"Fern"}'
const plant = buildJsonResponse(200, fern)
const as = (type: string, body: string | Buffer = fern) =>
  buildResponse(200, body, { 'Content-Type': type })
const create = 'POST /plants'
const jsonHead = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

function describedBy(parameters: unknown[], rest: object = {}): Buffer {
  return buildJsonResponse(200, { paths: { '/plants': { post: { parameters } } }, ...rest })
}

const keyless = describedBy([])

/** Creates a plant at a service without idempotency keys. */
async function createdBy(answer: ScriptedResponse, now?: () => number) {
  const service = await ScriptedServer.listen({ posts: [answer], openapi: keyless })
  return createAt(service, [], {}, now)
}

const failed = (code: number, error: object, requests = [create]) => ({
  ...{ code, out: '', requests },
  said: [expect.objectContaining(error)],
})
const telling = (text: string) => expect.stringContaining(text)
/** Whether it is stored is unknown, and the hint says how to repeat it. */
const unknown = { hint: telling('--idempotency-key KEY') }

test.each<[string, ScriptedResponse, shown: string, status?: number]>([
  ['HTML', as('text/html; charset=utf-8', '<h1>Hi</h1>'), '200 with text/html, not application'],
  ['a Plant as text', as('text/plain'), `application/json: ${fern}`],
  ['a Plant without a type', buildResponse(200, fern), 'no Content-Type'],
  [
    'another API',
    buildJsonResponse(200, { hello: 'you' }),
    'URL answered 200 with no Plant (the name is missing): {"hello":"you"}',
  ],
  [
    'a list of Plants',
    buildJsonResponse(200, `[${fern}]`),
    'no Plant (it must be an object, but was an array): [',
  ],
  ['cut JSON', buildJsonResponse(200, '{"name":'), '200 with no Plant: {"name":'],
  [
    'JSON that is not UTF-8',
    as('application/json', Buffer.from('{"name":"F\xe4rn"}', 'latin1')),
    'URL answered 200 with a body that is not UTF-8: {"name":"F\ufffdrn"}',
  ],
  [
    'a compressed body, which no request asked for',
    buildResponse(200, gzipSync(fern), {
      'Content-Type': 'application/json',
      'Content-Encoding': 'gzip',
    }),
    'URL answered 200 with a body that is compressed (gzip), which the request did not allow',
  ],
  [
    'a number as the tag',
    buildJsonResponse(200, { name: 'Fern', tag: 1 }),
    '(the tag must be a string, but was a number)',
  ],
  ['a prototype', buildJsonResponse(200, `{"__proto__":${fern}}`), '__proto__'],
  ['201', buildJsonResponse(201, fern), `201: ${fern}`, 201],
  ['204', 'HTTP/1.1 204 No Content\r\n\r\n', '204 with nothing', 204],
  [
    'a redirect with a password and a query, which are not shown',
    buildResponse(303, '', { Location: 'https://u:s3cret-1@example.com/v2?state=s3cret-2' }),
    'redirects to https://example.com/v2',
    303,
  ],
])('takes only 200 with a Plant for success, not %s', async (_, answer, shown, status = 200) => {
  const error = { error: 502, message: telling(shown), status, ...unknown }
  expect(await createdBy(answer)).toEqual(failed(5, error))
})

describe('a response that is cut short', () => {
  const head = `${jsonHead}Content-Length: 25\r\n\r\n`
  const cut = (text: string) => (socket: Socket) => void socket.end(text)

  test.each<[string, ScriptedResponse, string]>([
    ['before its Content-Length', cut(head + fern), '15 of 25 bytes'],
    [
      'within its chunks',
      cut(`${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`),
      '15 bytes, without its end',
    ],
  ])('is named, with what was received: %s', async (_, answer, received) => {
    const message = `The response of URL (200) was cut short: the connection was closed after ${received}`
    const { code, said } = await createdBy(answer, createCountingClock(600_000))
    expect({ code, last: said.at(-1) }).toEqual({
      code: 5,
      last: expect.objectContaining({ error: 504, message, ...unknown }),
    })
  })

  test('is repeated where the key prevents a second plant', async () => {
    const service = await ScriptedServer.listen({
      posts: [cut(head + fern), plant],
      openapi: keyed,
    })
    expect(await createAt(service)).toMatchObject({ code: 0, out: created.out })
  })
})

test.each([301, 302, 307, 308])('does not follow a redirect: %i', async (status) => {
  const error = { error: 503, message: telling('URL/v2'), status }
  expect(await createdBy(buildResponse(status, '', { Location: '/v2' }))).toEqual(failed(4, error))
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
  const answer = buildJsonResponse(status, { error, message }, { 'Request-Id': 'abc-1' })
  // What concerns the token names the service.
  const shown = code === 3 ? `URL answered ${status}: ${message}` : message
  const said = { error, message: shown, status, requestId: 'abc-1' }
  expect(await createdBy(answer)).toEqual(failed(code, said))
})

test.each([
  ['2147483648,"message":"No"', 'the error must be a 32-bit integer, but was a number'],
  ['"409","message":"No"', 'the error must be a 32-bit integer, but was "409"'],
  ['409,"message":{}', 'the message must be a string, but was an object'],
  ['409', 'the message is missing'],
])('an Error with the error %s is none: %s', async (rest, why) => {
  const shown = `URL answered 400 with no Error (${why}): {"error":${rest}}`
  const error = { error: 400, message: shown, status: 400 }
  expect(await createdBy(buildJsonResponse(400, `{"error":${rest}}`))).toEqual(failed(1, error))
})

const length = `${jsonHead}Content-Length: 15\r\n`

/** Then the service is asked whether it keeps keys. It does not, and nothing is sent again. */
test.each<[string, ScriptedResponse, object]>([
  [
    '500 with an Error',
    buildJsonResponse(500, { error: 409, message: 'No' }),
    { error: 502, status: 500 },
  ],
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
  ['101', 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n', { error: 504 }],
  ['a banner of SSH', 'SSH-2.0-OpenSSH_9.9\r\n', { error: 504 }],
  ['two lengths', `${length}Content-Length: 3\r\n\r\n${fern}`, { error: 504 }],
])('the outcome is unknown after %s', async (_, answer, said) => {
  const requests = [create, 'GET /openapi.json']
  expect(await createdBy(answer)).toEqual(failed(5, { ...said, ...unknown }, requests))
})

test('a body without an end is cut off early', async () => {
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
  let taken: Promise<number> | undefined
  const answer: ScriptedResponse = (socket) => {
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
  const time = createClock()
  const answer: ScriptedResponse = async (socket) => {
    for (const [at, part] of parts.slice(0, -1).entries()) {
      await new Promise((resolve) => socket.write(part, resolve))
      if (at === 3) time.timeOut()
    }
  }
  const error = { error: 504, message: telling('timed out'), ...unknown }
  expect(await createdBy(answer, time.now)).toEqual(failed(5, error))
})

const hinted = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'

test.each<[string, ScriptedResponse, out?: string]>([
  ['with a charset', as('Application/JSON ; charset=utf-8')],
  ['of exactly 16 MiB', buildJsonResponse(200, fern + ' '.repeat(16_777_201))],
  ['until the end of the connection', (socket) => void socket.end(`${jsonHead}\r\n${fern}`)],
  ['after 102, 103 and 100', `HTTP/1.1 102 Processing\r\n\r\n${hinted}${plant}`],
  [
    'that is another',
    buildJsonResponse(200, '{"tag":"","name":"Moss"}'),
    '{"name":"Moss","tag":""}',
  ],
])('accepts a Plant %s', async (_, answer, out = fern) => {
  expect(await createdBy(answer)).toEqual({ ...created, out: `${out}\n` })
})

test('the text of a service is shown in one line of at most 200 characters', async () => {
  const message = `No ferns\n\t ${'x'.repeat(189)}${'\u{1f331}'.repeat(1000)}`
  const shown = `No ferns ${'x'.repeat(189)}\u{1f331}…`
  const { said } = await createdBy(buildJsonResponse(400, { error: 400, message }))
  expect(said).toMatchObject([{ message: shown }])
})

const tooLarge = buildJsonResponse(413, { error: 413, message: 'Too large' })

test.each<[string, (socket: Socket) => void]>([
  ['stops reading', (socket) => void socket.pause().write(tooLarge)],
  ['closes its side', (socket) => void socket.end(tooLarge)],
])('an answer counts before the whole plant was sent: the service %s', async (_, then) => {
  const onConnect = (socket: Socket) => void socket.once('data', () => then(socket))
  const service = await ScriptedServer.listen({ onConnect })
  const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
  const argv = ['create', '--output', 'json', '--timeout', '1h', '--store', service.url]
  const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
  expect([code, JSON.parse(err)]).toMatchObject([1, { error: 413, message: 'Too large' }])
})

const reset: ScriptedResponse = (socket) => void socket.resetAndDestroy()
const notNow = buildJsonResponse(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const header = { name: 'Idempotency-Key', in: 'header' }

const keyed = describedBy([header])
const description = 'GET /openapi.json'
const warned = { warning: expect.stringMatching(/ again for up to 3600 s$/) }
const lost = { error: 504, message: telling('the connection was closed'), ...unknown }

/** Creates a plant with these answers; all requests must have the same body, and the same key. */
async function retriedBy(
  posts: ScriptedResponse[],
  openapi?: ScriptedResponse,
  onRequest: (line: string, count: number) => unknown = () => {},
  now?: () => number,
): Promise<typeof created> {
  const service = await ScriptedServer.listen({ posts, ...(openapi && { openapi }) })
  service.on('request', ({ line }) => onRequest(line, service.requests.length))
  const outcome = await createAt(service, [], {}, now)
  expect(new Set(service.posts.map(({ body }) => body)).size).toBe(1)
  return outcome
}

describe('a service that has stored nothing', () => {
  const nothing = { error: 503, retryable: true, status: 503 }

  test.each<[string, ScriptedResponse]>([
    ['429', buildJsonResponse(429, { error: 429, message: 'Slowly' })],
    ['503 with a Retry-After that is no number', buildResponse(503, '', { 'Retry-After': 'soon' })],
  ])('is asked again with the same key: %s', async (_, answer) => {
    const expected = { ...created, said: [warned], requests: [create, create] }
    expect(await retriedBy([answer, plant], keyed)).toEqual(expected)
  })

  test('is not asked again when its Retry-After is beyond the timeout', async () => {
    const hours = 2 * 3_600_000
    const date = new Date(Date.now() + hours)
    const asks = {
      3601: { 'Retry-After': '3601' },
      7200: { 'Retry-After': date.toUTCString(), Date: new Date(+date - hours).toUTCString() },
    }
    for (const [seconds, headers] of Object.entries(asks)) {
      const message = telling(`Retry-After: ${seconds} s`)
      const outcome = await retriedBy([buildResponse(503, '', headers), plant])
      expect(outcome).toMatchObject({
        code: 4,
        said: [{ ...nothing, message }],
        requests: [create],
      })
    }
  })

  test('is asked until the timeout', async () => {
    const time = createClock()
    const endAtThird = (_: string, count: number) => count === 3 && time.pass()
    const said = [warned, { ...nothing, message: 'Not now' }]
    const expected = { code: 4, out: '', said, requests: [create, create, create] }
    expect(await retriedBy([notNow], keyed, endAtThird, time.now)).toMatchObject(expected)
  })
})

describe('a plant without an answer is sent again, when the service keeps keys', () => {
  const reference = { $ref: '#/components/parameters/Key' }
  const components = { components: { parameters: { Key: header } } }

  test.each<[string, ScriptedResponse]>([
    ['in lower case', describedBy([{ ...header, name: 'idempotency-key' }])],
    ['by reference', describedBy([reference], components)],
  ])('listed %s', async (_, openapi) => {
    const requests = [create, description, create]
    const outcome = await retriedBy([reset, plant], openapi)
    expect(outcome).toEqual({ ...created, said: [warned], requests })
  })

  test('and was not stored if the answer to the same key is a conflict', async () => {
    const error = { error: 409, message: 'A plant with id 1 already exists' }
    const outcome = await retriedBy([reset, buildJsonResponse(400, error)], keyed)
    expect(outcome).toMatchObject({ code: 1, said: [warned, error] })
  })

  test('and its outcome stays unknown if the second answer is 401', async () => {
    const second = buildJsonResponse(400, { error: 401, message: 'This token is not accepted' })
    const requests = [create, description, create]
    const expected = { code: 5, out: '', said: [warned, lost], requests }
    expect(await retriedBy([reset, second], keyed)).toEqual(expected)
  })

  test('and the description is fetched once', async () => {
    const service = await ScriptedServer.listen({
      posts: [reset, reset, reset, plant],
      openapi: keyed,
    })
    expect((await createAt(service, ['--store', `${service.url}/v1/`])).code).toBe(0)
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      authorization: `Bearer ${token}`,
    }
    const gets = service.requests.filter(({ line }) => line.startsWith('GET'))
    expect(gets).toMatchObject([{ line: 'GET /v1/openapi.json', headers, body: '' }])
  })
})

describe('a plant without an answer is not sent again', () => {
  test.each<[string, ScriptedResponse]>([
    [
      'of another operation',
      buildJsonResponse(200, { paths: { '/plants': { get: { parameters: [header] } } } }),
    ],
    [
      'of another path',
      buildJsonResponse(200, { paths: { '/plant': { post: { parameters: [header] } } } }),
    ],
    ['in the query', describedBy([{ ...header, in: 'query' }])],
    ['by a reference to a prototype', describedBy([{ $ref: '#/constructor/prototype' }])],
    ['in no description, but 404', buildResponse(404)],
    ['in broken JSON', buildJsonResponse(200, '{"paths":')],
    ['after more than 16 MiB', buildJsonResponse(200, ' '.repeat(16_777_217))],
  ])('when its key is listed %s', async (_, openapi) => {
    const expected = { code: 5, out: '', said: [lost], requests: [create, description] }
    expect(await retriedBy([reset, plant], openapi)).toEqual(expected)
  })

  test('though an earlier answer said that nothing was stored', async () => {
    const requests = [create, create, description]
    const expected = { code: 5, out: '', said: [warned, lost], requests }
    expect(await retriedBy([notNow, reset], keyless)).toEqual(expected)
  })

  test.each<[string, ScriptedResponse]>([
    ['a reset', reset],
    ['silence', () => undefined],
  ])('while the service cannot describe itself: %s', async (_, openapi) => {
    const time = createClock()
    const end = (line: string) => line === description && time.timeOut()
    const expected = { code: 5, out: '', said: [lost], requests: [create, description] }
    expect(await retriedBy([reset, plant], openapi, end, time.now)).toEqual(expected)
  })
})
