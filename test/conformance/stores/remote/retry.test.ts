import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { type Answer, closedPort, Hostile, http, json } from '../../../helpers/hostile.js'
import { createAt, howToRepeat } from '../../../helpers/remote.js'

const plant = json(200, { name: 'Fern' })
const fern = '{"name":"Fern"}\n'
const reset: Answer = (socket) => void socket.resetAndDestroy()
const comeAgain = json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 })
const header = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string' } }

/** A description of a service, with parameters of its operation or of its path. */
function describedBy(operation: unknown[], path: unknown[] = [], rest: Record<string, unknown> = {}): Buffer {
  return json(200, {
    openapi: '3.1.0',
    paths: { '/plants': { parameters: path, post: { parameters: operation } } },
    ...rest,
  })
}

const keyed = describedBy([header])
const keyless = describedBy([])
const trying = (message: string) => ({ warning: `${message}. Trying again for up to 5 s` })
const post = 'POST /plants'
const description = 'GET /openapi.json'

describe('what was not sent is sent when somebody is there', () => {
  test('but not for longer than the time-out', async () => {
    const remote = await Hostile.listen({})
    const url = `http://127.0.0.1:${closedPort}`
    const result = await createAt(remote, ['--timeout', '1s', '--store', url])
    const message = `Could not reach ${url}: the connection was refused`
    expect(result).toEqual({
      code: 4,
      out: '',
      said: [
        { warning: `${message}. Trying again for up to 1 s` },
        { error: 503, message, hint: 'Is it running? Try: plants serve --port 9', retryable: true },
      ],
      requests: [],
    })
  })
})

describe('a service that says that nothing was stored', () => {
  test.each<[string, Answer, string]>([
    ['503 with Retry-After: 0', http(503, '', { 'Retry-After': 0 }), 'URL answered 503 with nothing'],
    ['503 without Retry-After', comeAgain, 'Not now'],
    ['429 without Retry-After', json(429, { error: 429, message: 'Slowly' }), 'Slowly'],
    [
      '503 with a Retry-After that is no number',
      http(503, '', { 'Retry-After': 'soon' }),
      'URL answered 503 with nothing',
    ],
  ])('is asked again with the same key: %s', async (_, answer, message) => {
    const remote = await Hostile.listen({ posts: [answer, plant], openapi: keyed })
    expect(await createAt(remote)).toEqual({ code: 0, out: fern, said: [trying(message)], requests: [post, post] })
    expect(new Set(remote.keys).size).toBe(1)
    expect(new Set(remote.posts.map(({ body }) => body)).size).toBe(1)
  })

  test('is asked again when as many seconds have passed as it wants', async () => {
    const remote = await Hostile.listen({ posts: [http(503, '', { 'Retry-After': 1 }), plant] })
    const before = performance.now()
    expect(await createAt(remote)).toEqual({
      code: 0,
      out: fern,
      said: [trying('URL answered 503 with nothing')],
      requests: [post, post],
    })
    expect(performance.now() - before).toBeGreaterThanOrEqual(999)
  })

  test.each(['6', '99999999999999999999'])(
    'is not waited for when it wants more than there is: %s s',
    async (seconds) => {
      const remote = await Hostile.listen({ posts: [http(503, '', { 'Retry-After': seconds }), plant] })
      const message = 'URL answered 503 with nothing'
      const error = { error: 503, message, hint: 'Nothing was stored. Try again later', retryable: true, status: 503 }
      expect(await createAt(remote)).toEqual({ code: 4, out: '', said: [error], requests: [post] })
    },
  )

  test('is asked until the time is over', async () => {
    const remote = await Hostile.listen({ posts: [comeAgain] })
    const { code, out, said, requests } = await createAt(remote, ['--timeout', '1s'])
    const error = {
      error: 503,
      message: 'Not now',
      hint: 'Nothing was stored. Try again later',
      retryable: true,
      status: 503,
    }
    expect({ code, out, said }).toEqual({
      code: 4,
      out: '',
      said: [{ warning: 'Not now. Trying again for up to 1 s' }, error],
    })
    expect(requests.length).toBeGreaterThan(2)
    expect(new Set(remote.keys).size).toBe(1)
  })

  test('and then does not answer, leaves it open', async () => {
    const remote = await Hostile.listen({ posts: [comeAgain, reset], openapi: keyless })
    const message = 'URL received the request, but did not answer: the connection was reset'
    expect(await createAt(remote)).toEqual({
      code: 5,
      out: '',
      said: [trying('Not now'), { error: 504, message, hint: howToRepeat.unlisted }],
      requests: [post, post, description],
    })
  })
})

const lost = 'URL received the request, but did not answer: the connection was reset'

describe('what was sent and not answered is sent again under its key, when the service keeps keys', () => {
  const reference = (name: string) => ({ $ref: `#/components/parameters/${name}` })
  const components = { components: { parameters: { Key: header } } }

  test.each<[string, Answer]>([
    ['as a parameter', keyed],
    ['in lower case', describedBy([{ ...header, name: 'idempotency-key' }])],
    ['in upper case', describedBy([{ ...header, name: 'IDEMPOTENCY-KEY' }])],
    ['behind others', describedBy([null, 1, 'x', { name: 'limit', in: 'query' }, header])],
    ['of the path', describedBy([], [header])],
    ['by reference', describedBy([reference('Key')], [], components)],
    ['of the path, by reference', describedBy([], [reference('Key')], components)],
  ])('listed %s', async (_, openapi) => {
    const remote = await Hostile.listen({ posts: [reset, plant], openapi })
    expect(await createAt(remote)).toEqual({
      code: 0,
      out: fern,
      said: [trying(lost)],
      requests: [post, description, post],
    })
    expect(new Set(remote.keys).size).toBe(1)
    expect(remote.posts[1]).toEqual(remote.posts[0])
  })

  test.each<[string, Answer]>([
    ['500', json(500, { error: 500, message: 'Oops' })],
    ['502 of a proxy', http(502, '<h1>Bad Gateway</h1>', { 'Content-Type': 'text/html' })],
    ['504', http(504)],
    [
      'half a body',
      (socket) =>
        void socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"name"'),
    ],
  ])('after %s', async (_, answer) => {
    const remote = await Hostile.listen({ posts: [answer, plant], openapi: keyed })
    const { code, out, requests } = await createAt(remote, ['--idempotency-key', 'order-66'])
    expect({ code, out, requests, keys: remote.keys }).toEqual({
      code: 0,
      out: fern,
      requests: [post, description, post],
      keys: ['order-66', 'order-66'],
    })
  })

  test('a plant that an answer to the same key refuses was not stored', async () => {
    const taken = json(400, { error: 409, message: 'A plant with id 1 already exists' })
    const remote = await Hostile.listen({ posts: [reset, taken], openapi: keyed })
    const { code, said } = await createAt(remote)
    expect({ code, said }).toMatchObject({
      code: 1,
      said: [trying(lost), { error: 409, message: 'A plant with id 1 already exists' }],
    })
  })

  test.each<[string, Answer]>([
    ['401', json(400, { error: 401, message: 'This token is not accepted' })],
    ['503 with a long Retry-After', json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 60 })],
    ['a redirect', http(307, '', { Location: 'https://example.com' })],
    ['404', http(404)],
  ])('it stays open when the second answer is %s, which says nothing of the first', async (_, second) => {
    const remote = await Hostile.listen({ posts: [reset, second], openapi: keyed })
    expect(await createAt(remote)).toEqual({
      code: 5,
      out: '',
      said: [trying(lost), { error: 504, message: lost, hint: howToRepeat.listed }],
      requests: [post, description, post],
    })
  })

  test('until the time is over', async () => {
    const remote = await Hostile.listen({ posts: [reset], openapi: keyed })
    const { code, said } = await createAt(remote, ['--timeout', '1s'])
    expect({ code, said: said.slice(1) }).toEqual({
      code: 5,
      said: [{ error: 504, message: lost, hint: howToRepeat.listed }],
    })
    expect(remote.posts.length).toBeGreaterThan(1)
    expect(new Set(remote.keys).size).toBe(1)
  })

  test('the description is fetched once, without the token', async () => {
    const remote = await Hostile.listen({ posts: [reset, reset, reset, plant], openapi: keyed })
    expect((await createAt(remote, ['--store', `${remote.url}/v1/`])).code).toBe(0)
    const [asked, ...others] = remote.requests.filter(({ line }) => line.startsWith('GET'))
    expect(others).toEqual([])
    expect(asked).toEqual({
      line: 'GET /v1/openapi.json',
      headers: {
        accept: 'application/json',
        host: `127.0.0.1:${remote.port}`,
        connection: 'keep-alive',
        'user-agent': expect.any(String),
      },
      body: '',
    })
  })
})

describe('what was sent and not answered is not sent again', () => {
  test.each<[string, Answer]>([
    ['no parameters', keyless],
    ['no such path', json(200, { openapi: '3.1.0', paths: { '/plant': { post: { parameters: [header] } } } })],
    ['another operation with it', json(200, { paths: { '/plants': { get: { parameters: [header] } } } })],
    ['it in the query', describedBy([{ ...header, in: 'query' }])],
    ['another header', describedBy([{ ...header, name: 'X-Idempotency-Key' }])],
    ['a reference to nothing', describedBy([{ $ref: '#/components/parameters/Key' }])],
    ['a reference to elsewhere', describedBy([{ $ref: 'https://example.com/#/components/parameters/Key' }])],
    ['a reference to a prototype', describedBy([{ $ref: '#/constructor/prototype' }])],
  ])('to a service that says that it keeps no keys: %s', async (_, openapi) => {
    const remote = await Hostile.listen({ posts: [reset, plant], openapi })
    expect(await createAt(remote)).toEqual({
      code: 5,
      out: '',
      said: [{ error: 504, message: lost, hint: howToRepeat.unlisted }],
      requests: [post, description],
    })
  })

  test.each<[string, Answer]>([
    ['404', http(404)],
    ['401', json(401, { error: 401, message: 'No' })],
    ['a redirect', http(302, '', { Location: '/v2/openapi.json' })],
    ['HTML', http(200, '<h1>Docs</h1>', { 'Content-Type': 'text/html' })],
    ['broken JSON', json(200, '{"paths":')],
    ['null', json(200, 'null')],
    ['more than 1 MiB', json(200, ' '.repeat(1_048_577))],
  ])('to a service that does not describe itself: %s', async (_, openapi) => {
    const remote = await Hostile.listen({ posts: [reset, plant], openapi })
    expect(await createAt(remote)).toEqual({
      code: 5,
      out: '',
      said: [{ error: 504, message: lost, hint: howToRepeat.unlisted }],
      requests: [post, description],
    })
  })

  test.each<[string, Answer]>([
    ['500', http(500)],
    ['429', http(429)],
    ['503', http(503)],
    ['a reset', reset],
    ['half a description', (socket) => void socket.end(keyed.subarray(0, -9))],
    ['silence', () => undefined],
  ])(
    'as long as the service cannot tell whether it keeps keys, which nobody claims to know then: %s',
    async (_, openapi) => {
      const remote = await Hostile.listen({ posts: [reset, plant], openapi })
      const { code, out, said } = await createAt(remote, ['--timeout', '1s'])
      // A description that never comes leaves no time for another try, and so nothing to warn of.
      const warning = { warning: `${lost}. Trying again for up to 1 s` }
      const error = { error: 504, message: lost, hint: howToRepeat.unasked }
      expect({ code, out, said }).toEqual({ code: 5, out: '', said: said.length === 1 ? [error] : [warning, error] })
      expect(remote.posts).toHaveLength(1)
    },
  )

  test('before a service that is just starting can tell that it keeps keys', async () => {
    let asked = 0
    const openapi = (socket: Socket) =>
      void (asked++ === 0 ? socket.resetAndDestroy() : socket.write(asked === 2 ? http(503) : keyed))
    const remote = await Hostile.listen({ posts: [reset, plant], openapi })
    expect(await createAt(remote)).toEqual({
      code: 0,
      out: fern,
      said: [trying(lost)],
      requests: [post, description, description, description, post],
    })
    expect(new Set(remote.keys).size).toBe(1)
  })
})
