import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import { createAt, created, keyless, type Outcome, token } from '../../../helpers/http-store.js'
import { settableTime } from '../../../helpers/time.js'

const plant = json(200, { name: 'Fern' })
const reset: Answer = (socket) => void socket.resetAndDestroy()
const notNow = json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const header = { name: 'Idempotency-Key', in: 'header' }

function describedBy(parameters: unknown[], rest: Record<string, unknown> = {}): Buffer {
  return json(200, { paths: { '/plants': { post: { parameters } } }, ...rest })
}

const keyed = describedBy([header])
const post = 'POST /plants'
const description = 'GET /openapi.json'
const warned = { warning: expect.stringMatching(/ again for up to 3600 s$/) }
const unknown = {
  error: 504,
  message: expect.stringContaining('the connection was closed'),
  hint: expect.stringContaining('--idempotency-key KEY'),
}

/** Creates a plant at a service with these answers; all requests must have the same body, and the same key. */
async function createdBy(
  posts: Answer[],
  openapi?: Answer,
  onRequest: (line: string, count: number) => unknown = () => {},
  now?: () => number,
): Promise<Outcome> {
  const service = await Hostile.listen({ posts, ...(openapi && { openapi }) })
  service.on('request', ({ line }) => onRequest(line, service.requests.length))
  const outcome = await createAt(service, [], {}, now)
  expect(new Set(service.posts.map(({ body }) => body)).size).toBe(1)
  return outcome
}

describe('a service that has stored nothing', () => {
  const nothing = { error: 503, retryable: true, status: 503 }

  test.each<[string, Answer]>([
    ['429', json(429, { error: 429, message: 'Slowly' })],
    ['503 with a Retry-After that is no number', http(503, '', { 'Retry-After': 'soon' })],
  ])('is asked again with the same key: %s', async (_, answer) => {
    const expected = { ...created, said: [warned], requests: [post, post] }
    expect(await createdBy([answer, plant], keyed)).toEqual(expected)
  })

  test('is not asked again when its Retry-After is beyond the timeout', async () => {
    const hours = 2 * 3_600_000
    const date = new Date(Date.now() + hours)
    const asks = {
      3601: { 'Retry-After': '3601' },
      7200: { 'Retry-After': date.toUTCString(), Date: new Date(+date - hours).toUTCString() },
    }
    for (const [seconds, headers] of Object.entries(asks)) {
      const message = expect.stringContaining(`Retry-After: ${seconds} s`)
      const outcome = await createdBy([http(503, '', headers), plant])
      expect(outcome).toMatchObject({ code: 4, said: [{ ...nothing, message }], requests: [post] })
    }
  })

  test('is asked until the timeout', async () => {
    const time = settableTime()
    const endAtThird = (_: string, count: number) => count === 3 && time.pass()
    const said = [warned, { ...nothing, message: 'Not now' }]
    const expected = { code: 4, out: '', said, requests: [post, post, post] }
    expect(await createdBy([notNow], keyed, endAtThird, time.now)).toMatchObject(expected)
  })
})

describe('a plant without an answer is sent again, when the service keeps keys', () => {
  const reference = { $ref: '#/components/parameters/Key' }
  const components = { components: { parameters: { Key: header } } }

  test.each<[string, Answer]>([
    ['in lower case', describedBy([{ ...header, name: 'idempotency-key' }])],
    ['by reference', describedBy([reference], components)],
  ])('listed %s', async (_, openapi) => {
    const requests = [post, description, post]
    const outcome = await createdBy([reset, plant], openapi)
    expect(outcome).toEqual({ ...created, said: [warned], requests })
  })

  test('and was not stored if the answer to the same key is a conflict', async () => {
    const error = { error: 409, message: 'A plant with id 1 already exists' }
    const outcome = await createdBy([reset, json(400, error)], keyed)
    expect(outcome).toMatchObject({ code: 1, said: [warned, error] })
  })

  test('and its outcome stays unknown if the second answer is 401', async () => {
    const second = json(400, { error: 401, message: 'This token is not accepted' })
    const requests = [post, description, post]
    const expected = { code: 5, out: '', said: [warned, unknown], requests }
    expect(await createdBy([reset, second], keyed)).toEqual(expected)
  })

  test('and the description is fetched once', async () => {
    const service = await Hostile.listen({ posts: [reset, reset, reset, plant], openapi: keyed })
    expect((await createAt(service, ['--store', `${service.url}/v1/`])).code).toBe(0)
    const headers = { accept: 'application/json', authorization: `Bearer ${token}` }
    const gets = service.requests.filter(({ line }) => line.startsWith('GET'))
    expect(gets).toMatchObject([{ line: 'GET /v1/openapi.json', headers, body: '' }])
  })
})

describe('a plant without an answer is not sent again', () => {
  test.each<[string, Answer]>([
    [
      'of another operation',
      json(200, { paths: { '/plants': { get: { parameters: [header] } } } }),
    ],
    ['of another path', json(200, { paths: { '/plant': { post: { parameters: [header] } } } })],
    ['in the query', describedBy([{ ...header, in: 'query' }])],
    ['by a reference to a prototype', describedBy([{ $ref: '#/constructor/prototype' }])],
    ['in no description, but 404', http(404)],
    ['in broken JSON', json(200, '{"paths":')],
    ['after more than 16 MiB', json(200, ' '.repeat(16_777_217))],
  ])('when its key is listed %s', async (_, openapi) => {
    const expected = { code: 5, out: '', said: [unknown], requests: [post, description] }
    expect(await createdBy([reset, plant], openapi)).toEqual(expected)
  })

  test('though an earlier answer said that nothing was stored', async () => {
    const requests = [post, post, description]
    const expected = { code: 5, out: '', said: [warned, unknown], requests }
    expect(await createdBy([notNow, reset], keyless)).toEqual(expected)
  })

  test.each<[string, Answer]>([
    ['a reset', reset],
    ['silence', () => undefined],
  ])('while the service cannot describe itself: %s', async (_, openapi) => {
    const time = settableTime()
    const end = (line: string) => line === description && time.timeOut()
    const expected = { code: 5, out: '', said: [unknown], requests: [post, description] }
    expect(await createdBy([reset, plant], openapi, end, time.now)).toEqual(expected)
  })
})
