import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../../helpers/hostile.js'
import {
  createAt,
  created,
  howToRepeat,
  keyless,
  type Outcome,
  token,
} from '../../../helpers/http-store.js'
import { settableTime } from '../../../helpers/time.js'

const plant = json(200, { name: 'Fern' })
const reset: Answer = (socket) => void socket.resetAndDestroy()
const notNow = json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const header = { name: 'Idempotency-Key', in: 'header' }

function describedBy(
  operation: unknown[],
  path: unknown[] = [],
  rest: Record<string, unknown> = {},
): Buffer {
  const paths = { '/plants': { parameters: path, post: { parameters: operation } } }
  return json(200, { paths, ...rest })
}

/** `JSON.stringify` would overflow the stack. */
const describedIn = (operation: string) =>
  json(200, `{"paths":{"/plants":{"post":{"parameters":[${operation}]}}}}`)
const nested = '['.repeat(200_000) + ']'.repeat(200_000)

const keyed = describedBy([header])
const trying = (message: string, seconds = 3600) => ({
  warning: `${message}. Trying again for up to ${seconds} s`,
})
const post = 'POST /plants'
const description = 'GET /openapi.json'

/** Creates a plant at a service with these answers; all requests must have the same body. */
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
  const nothing = 'URL answered 503 with nothing'
  const later = {
    error: 503,
    hint: 'Nothing was stored. Try again later',
    retryable: true,
    status: 503,
  }

  test.each<[string, Answer, string]>([
    ['429', json(429, { error: 429, message: 'Slowly' }), 'Slowly'],
    ['503 with a Retry-After that is no number', http(503, '', { 'Retry-After': 'soon' }), nothing],
  ])('is asked again with the same key: %s', async (_, answer, message) => {
    const said = [trying(message)]
    expect(await createdBy([answer, plant], keyed)).toEqual({
      ...created,
      said,
      requests: [post, post],
    })
  })

  test('is not asked again when its Retry-After is beyond the timeout', async () => {
    const hours = 2 * 3_600_000
    const date = new Date(Date.now() + hours)
    const asks = {
      3601: { 'Retry-After': '3601' },
      7200: { 'Retry-After': date.toUTCString(), Date: new Date(+date - hours).toUTCString() },
    }
    for (const [seconds, headers] of Object.entries(asks)) {
      const message = `${nothing} (Retry-After: ${seconds} s)`
      const said = [{ ...later, message }]
      const outcome = await createdBy([http(503, '', headers), plant])
      expect(outcome).toEqual({ ...created, code: 4, out: '', said })
    }
  })

  test('is asked until the timeout', async () => {
    const time = settableTime()
    const endAtThird = (_: string, count: number) => count === 3 && time.pass()
    const said = [trying('Not now'), { ...later, message: 'Not now' }]
    const expected = { code: 4, out: '', said, requests: [post, post, post] }
    expect(await createdBy([notNow], keyed, endAtThird, time.now)).toEqual(expected)
  })
})

const lost = 'URL received the request, but did not answer: the connection was closed'
const unknown = (hint: string) => ({ error: 504, message: lost, hint })

describe('a plant without an answer is sent again, when the service keeps keys', () => {
  const reference = { $ref: '#/components/parameters/Key' }
  const components = { components: { parameters: { Key: header } } }

  test.each<[string, Answer]>([
    ['in lower case', describedBy([{ ...header, name: 'idempotency-key' }])],
    ['by reference', describedBy([reference], [], components)],
  ])('listed %s', async (_, openapi) => {
    const outcome = await createdBy([reset, plant], openapi)
    expect(outcome).toEqual({
      ...created,
      said: [trying(lost)],
      requests: [post, description, post],
    })
  })

  test('and was not stored if the answer to the same key is a conflict', async () => {
    const error = { error: 409, message: 'A plant with id 1 already exists' }
    const outcome = await createdBy([reset, json(400, error)], keyed)
    expect(outcome).toMatchObject({ code: 1, said: [trying(lost), error] })
  })

  test('and its outcome stays unknown if the second answer is 401', async () => {
    const second = json(400, { error: 401, message: 'This token is not accepted' })
    const said = [trying(lost), unknown(howToRepeat)]
    const requests = [post, description, post]
    expect(await createdBy([reset, second], keyed)).toEqual({ code: 5, out: '', said, requests })
  })

  test('and the description is fetched once', async () => {
    const service = await Hostile.listen({ posts: [reset, reset, reset, plant], openapi: keyed })
    expect((await createAt(service, ['--store', `${service.url}/v1/`])).code).toBe(0)
    const headers = {
      accept: 'application/json',
      authorization: `Bearer ${token}`,
      host: `127.0.0.1:${service.port}`,
      connection: 'keep-alive',
    }
    expect(service.requests.filter(({ line }) => line.startsWith('GET'))).toEqual([
      {
        line: 'GET /v1/openapi.json',
        headers: { ...headers, 'user-agent': expect.any(String) },
        body: '',
      },
    ])
  })
})

describe('a plant without an answer is not sent again', () => {
  test.each<[string, Answer]>([
    ['another operation', json(200, { paths: { '/plants': { get: { parameters: [header] } } } })],
    ['another path', json(200, { paths: { '/plant': { post: { parameters: [header] } } } })],
    ['a key in the query', describedBy([{ ...header, in: 'query' }])],
    ['a reference to a prototype', describedBy([{ $ref: '#/constructor/prototype' }])],
    ['a reference to itself', describedBy([{ $ref: '#/paths/~1plants/post/parameters/0' }])],
    ['a reference of 300,000 parts', describedBy([{ $ref: `#${'/a'.repeat(300_000)}` }])],
    ['a reference that is nested deeply', describedIn(`{"$ref":${nested}}`)],
    ['a reference that is no text', describedBy([{ $ref: { toString: 1 } }])],
    ['a name that is nested deeply', describedIn(`{"in":"header","name":${nested}}`)],
    ['a parameter that is nested deeply', describedIn(nested)],
  ])('when the description lists no key: %s', async (_, openapi) => {
    const said = [unknown(howToRepeat)]
    expect(await createdBy([reset, plant], openapi)).toEqual({
      code: 5,
      out: '',
      said,
      requests: [post, description],
    })
  })

  test.each<[string, Answer]>([
    ['404', http(404)],
    ['broken JSON', json(200, '{"paths":')],
    ['more than 16 MiB', json(200, ' '.repeat(16_777_217))],
  ])('when there is no description: %s', async (_, openapi) => {
    const said = [unknown(howToRepeat)]
    expect(await createdBy([reset, plant], openapi)).toEqual({
      code: 5,
      out: '',
      said,
      requests: [post, description],
    })
  })

  test('though an earlier answer said that nothing was stored', async () => {
    const said = [trying('Not now'), unknown(howToRepeat)]
    const requests = [post, post, description]
    expect(await createdBy([notNow, reset], keyless)).toEqual({ code: 5, out: '', said, requests })
  })

  test.each<[string, Answer]>([
    ['a reset', reset],
    ['silence', () => undefined],
  ])('while the service cannot describe itself: %s', async (_, openapi) => {
    const time = settableTime()
    const end = (line: string) => line === description && time.timeOut()
    const said = [unknown(howToRepeat)]
    const expected = { code: 5, out: '', said, requests: [post, description] }
    expect(await createdBy([reset, plant], openapi, end, time.now)).toEqual(expected)
  })
})
