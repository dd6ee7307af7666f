import { describe, expect, test } from 'vitest'
import { createClock } from '../../helpers/sandbox/clock.js'
import {
  buildJsonResponse,
  buildResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'
import {
  createAt,
  created,
  createRequest,
  describeCreate,
  descriptionRequest,
  descriptionWithKeys,
  descriptionWithoutKeys,
  idempotencyKeyHeader,
  repeatHint,
  resetConnection,
} from './steps.js'

// When a create sends its request again: always after a response which says that nothing was stored,
// and otherwise only to a service whose description lists the header Idempotency-Key.

const plant = buildJsonResponse(200, '{"name":"Fern"}')
const notNow = buildJsonResponse(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const retryWarning = { warning: expect.stringMatching(/ again for up to 3600 s$/) }
const connectionClosed = {
  error: 504,
  kind: 'noResponse',
  message: expect.stringContaining('the connection was closed'),
  ...repeatHint,
}

interface Exchange {
  posts: ScriptedResponse[]
  openapi?: ScriptedResponse
  onRequest?: (line: string, count: number) => unknown
  now?: () => number
}

/** Creates plant 1. All requests must have the same body, and the same idempotency key. */
async function create({ posts, openapi, onRequest, now }: Exchange): Promise<typeof created> {
  const service = await ScriptedServer.listen({ posts, ...(openapi && { openapi }) })
  service.on('request', ({ line }) => onRequest?.(line, service.requests.length))
  const outcome = await createAt(service, [], {}, now)
  expect(new Set(service.posts.map(({ body }) => body)).size).toBe(1)
  return outcome
}

describe('a service that has stored nothing', () => {
  const unavailable = { error: 503, retryable: true, status: 503 }

  test.each([
    { kind: '429', response: buildJsonResponse(429, { error: 429, message: 'Slowly' }) },
    {
      kind: '503 with a Retry-After that is not a number',
      response: buildResponse(503, '', { 'Retry-After': 'soon' }),
    },
  ])('is asked again with the same key after $kind', async ({ response }) => {
    const outcome = await create({ posts: [response, plant], openapi: descriptionWithKeys })
    const requests = [createRequest, createRequest]
    expect(outcome).toEqual({ ...created, stderr: [retryWarning], requests })
  })

  test('is not asked again when its Retry-After is beyond the timeout', async () => {
    const message = expect.stringContaining('Retry-After: 3601 s')
    const busy = buildResponse(503, '', { 'Retry-After': '3601' })
    const outcome = await create({ posts: [busy, plant] })
    const stderr = [{ ...unavailable, message }]
    expect(outcome).toMatchObject({ code: 4, stderr, requests: [createRequest] })
  })

  test('is asked again until the timeout', async () => {
    const clock = createClock()
    const outcome = await create({
      posts: [notNow],
      openapi: descriptionWithKeys,
      onRequest: (_, count) => count === 3 && clock.pass(),
      now: clock.now,
    })
    const stderr = [retryWarning, { ...unavailable, message: 'URL answered 503: Not now' }]
    const requests = [createRequest, createRequest, createRequest]
    expect(outcome).toMatchObject({ code: 4, out: '', stderr, requests })
  })
})

describe('a service that lists idempotency keys, and did not respond to a create,', () => {
  test('receives the plant again, also when the key is listed in lower case', async () => {
    const openapi = describeCreate([{ ...idempotencyKeyHeader, name: 'idempotency-key' }])
    const requests = [createRequest, descriptionRequest, createRequest]
    const outcome = await create({ posts: [resetConnection, plant], openapi })
    expect(outcome).toEqual({ ...created, stderr: [retryWarning], requests })
  })

  test('has not stored the plant if its second response is a conflict', async () => {
    const error = { error: 409, message: 'A plant with id 1 already exists' }
    const posts = [resetConnection, buildJsonResponse(400, error)]
    const outcome = await create({ posts, openapi: descriptionWithKeys })
    expect(outcome).toMatchObject({ code: 1, stderr: [retryWarning, error] })
  })

  test('leaves the outcome unknown if its second response is 401', async () => {
    const unauthorized = { error: 401, message: 'This token is not accepted' }
    const posts = [resetConnection, buildJsonResponse(400, unauthorized)]
    const requests = [createRequest, descriptionRequest, createRequest]
    const outcome = await create({ posts, openapi: descriptionWithKeys })
    const stderr = [retryWarning, connectionClosed]
    expect(outcome).toEqual({ code: 5, out: '', stderr, requests })
  })

  test('is asked for its description once', async () => {
    const service = await ScriptedServer.listen({
      posts: [resetConnection, resetConnection, resetConnection, plant],
      openapi: descriptionWithKeys,
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

describe('a plant without a response is not sent again', () => {
  const operation = { parameters: [idempotencyKeyHeader] }

  test.each([
    {
      reason: 'its key is listed for another operation',
      openapi: buildJsonResponse(200, { paths: { '/plants': { get: operation } } }),
    },
    {
      reason: 'its key is listed for another path',
      openapi: buildJsonResponse(200, { paths: { '/plant': { post: operation } } }),
    },
    {
      reason: 'its key is listed as a query parameter',
      openapi: describeCreate([{ ...idempotencyKeyHeader, in: 'query' }]),
    },
    {
      reason: 'its key is listed by a reference',
      openapi: describeCreate([{ $ref: '#/components/parameters/Key' }], {
        components: { parameters: { Key: idempotencyKeyHeader } },
      }),
    },
    { reason: 'the service has no description', openapi: buildResponse(404) },
    {
      reason: 'the description is not valid JSON',
      openapi: buildJsonResponse(200, '{"paths":'),
    },
    {
      reason: 'the description is larger than 4 MiB',
      openapi: buildJsonResponse(200, ' '.repeat(4_194_305)),
    },
  ])('when $reason', async ({ openapi }) => {
    const requests = [createRequest, descriptionRequest]
    const outcome = await create({ posts: [resetConnection, plant], openapi })
    expect(outcome).toEqual({ code: 5, out: '', stderr: [connectionClosed], requests })
  })

  test('although an earlier response said that nothing was stored', async () => {
    const posts = [notNow, resetConnection]
    const outcome = await create({ posts, openapi: descriptionWithoutKeys })
    const stderr = [retryWarning, connectionClosed]
    const requests = [createRequest, createRequest, descriptionRequest]
    expect(outcome).toEqual({ code: 5, out: '', stderr, requests })
  })

  test.each<{ event: string; openapi: ScriptedResponse }>([
    { event: 'resets the connection', openapi: resetConnection },
    { event: 'never responds', openapi: () => undefined },
  ])('while the service, asked for its description, $event', async ({ openapi }) => {
    const clock = createClock()
    const outcome = await create({
      posts: [resetConnection, plant],
      openapi,
      onRequest: (line) => line === descriptionRequest && clock.timeOut(),
      now: clock.now,
    })
    const requests = [createRequest, descriptionRequest]
    expect(outcome).toEqual({ code: 5, out: '', stderr: [connectionClosed], requests })
  })
})
