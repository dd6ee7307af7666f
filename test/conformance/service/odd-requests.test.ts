import { describe, expect, test } from 'vitest'
import {
  broken,
  error,
  head,
  nowhere,
  type Outcome,
  outcomeOf,
  plant,
  requestOf,
  tooLarge,
  tooManyBytes,
} from '../../helpers/outcomes.js'
import { connectTo, exchange, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { serveForAll, testToken } from '../../helpers/service.js'

describe('what is odd and still a request is answered:', () => {
  const service = serveForAll()
  let id = 1000
  const next = (request: RawRequest = {}) => {
    id += 1
    return requestOf({ body: `{"id":${id},"name":"Fern ${id}"}`, ...request })
  }
  const answerOf = (number = id) => ({ status: 200, body: { name: `Fern ${number}` } })
  const close = { headers: { Connection: 'close' } }
  const all = async (bytes: string, isHalfClosed = false) => {
    const connection = await connectTo(service().place)
    connection.send(bytes)
    if (isHalfClosed) connection.end()
    return (await connection.answers()).map(outcomeOf)
  }

  test('chunks in capital letters', async () => {
    const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'CHUNKED', Connection: 'close' }
    id += 1
    const body = `{"id":${id},"name":"Fern ${id}"}`
    expect(await all(requestOf({ headers, body: `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` }))).toEqual([
      answerOf(),
    ])
  })

  test('10,000 bytes of headers', async () => {
    expect(await all(next({ headers: { X: 'a'.repeat(10_000), Connection: 'close' } }))).toEqual([answerOf()])
  })

  test('empty lines in front', async () => {
    expect(await all(`\r\n\r\n${next(close)}`)).toEqual([answerOf()])
  })

  test('HTTP/1.0, with and without a Host', async () => {
    expect(await all(next().replace('HTTP/1.1', 'HTTP/1.0'))).toEqual([answerOf()])
    expect(await all(next({ headers: { Host: undefined } }).replace('HTTP/1.1', 'HTTP/1.0'))).toEqual([answerOf()])
  })

  test('an odd Expect, which is ignored', async () => {
    expect(await all(next({ headers: { Expect: 'tea', Connection: 'close' } }))).toEqual([answerOf()])
  })

  test('an Upgrade, which is not taken up', async () => {
    const upgrade = { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' }
    expect(await all(next({ headers: upgrade }))).toEqual([answerOf()])
  })

  test('an Upgrade to an unknown path and a CONNECT, each after another request', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' }
    const connect = 'CONNECT plants.example:443 HTTP/1.1\r\nHost: plants.example\r\n\r\n'
    const noProxy = error(404, 404, 'There is nothing at this path: this service is not a proxy')
    expect(await all(next() + requestOf({ target: '/nope', headers: upgrade }))).toEqual([answerOf(), nowhere])
    expect(await all(connect)).toEqual([noProxy])
    expect(await all(next() + next({ target: '/nope' }) + connect + next())).toEqual([
      answerOf(id - 2),
      nowhere,
      noProxy,
    ])
    expect((await exchange(service(), { body: `{"id":${id},"name":"Moss"}` })).body).toBe('{"name":"Moss"}')
    await expect
      .poll(() => service().log.findLast(({ code }) => code === 'CONNECT'))
      .toMatchObject({ outcome: '404', method: 'CONNECT', from: '127.0.0.1' })
  })

  test('one byte at a time', async () => {
    const connection = await connectTo(service().place)
    connection.socket.setNoDelay()
    for (const byte of Buffer.from(next(close))) {
      await new Promise((resolve) => connection.socket.write(Uint8Array.of(byte), resolve))
    }
    expect((await connection.answers()).map(outcomeOf)).toEqual([answerOf()])
  })

  test('several at once on one connection, each in its turn', async () => {
    const bytes = [
      next(),
      next({ target: '/nope' }),
      next(),
      next({ method: 'PUT' }),
      next({ headers: { 'Content-Type': 'x' } }),
      next(close),
    ]
    const answers = await all(bytes.join(''))
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 405, 400, 200])
    expect([answers[0], answers[2], answers[5]]).toEqual([answerOf(id - 5), answerOf(id - 3), answerOf()])
  })

  test('32 at once on one connection, all stored in their order', async () => {
    const first = id + 1
    const bytes = Array.from({ length: 32 }, (_, at) => next(at === 31 ? close : {}))
    expect(await all(bytes.join(''))).toEqual(bytes.map((_, at) => answerOf(first + at)))
  })

  test('one whose sender has closed its side', async () => {
    expect(await all(next(), true)).toEqual([answerOf()])
    expect(await all(next() + next(), true)).toEqual([answerOf(id - 1), answerOf()])
  })

  test.each([
    ['garbage', 'garbage\r\n\r\n'],
    ['a body longer than its length', 'xxx'],
    ['headers without end', `GET / HTTP/1.1\r\nX: ${'a'.repeat(20_000)}`],
  ])('one that is followed by %s: its answer comes first', async (_, behind) => {
    const [first, second, ...more] = await all(next() + behind)
    expect(first).toEqual(answerOf())
    expect([undefined, broken, tooManyBytes]).toContainEqual(second)
    expect(more).toEqual([])
  })

  test('one that is followed by half of another, whose sender closes its side', async () => {
    const [first, second] = await all(next() + head('Content-Length: 99') + plant, true)
    expect(first).toEqual(answerOf())
    expect([undefined, broken]).toContainEqual(second)
  })
})

describe('Expect: 100-continue', () => {
  const service = serveForAll()
  const expecting = { Expect: '100-continue', 'Content-Length': `${plant.length}` }

  test('is answered before the body', async () => {
    const connection = await connectTo(service().place)
    connection.send(requestBytes(testToken, { headers: { ...expecting, Expect: '100-Continue' } }))
    expect(await connection.answer()).toEqual({ status: 100, headers: {}, body: '' })
    connection.send(plant)
    const answer = await connection.answer()
    expect(answer && outcomeOf(answer)).toEqual({ status: 200, body: { name: 'Fern' } })
    connection.send(requestBytes(testToken, { target: '/nope' }))
    expect((await connection.answer())?.status).toBe(404)
  })

  test.each<[string, RawRequest, Outcome]>([
    [
      'a token',
      { headers: { ...expecting, Authorization: 'Bearer wrong' } },
      error(400, 401, 'This token is not accepted'),
    ],
    ['a path', { target: '/nope', headers: expecting }, nowhere],
    ['a method', { method: 'PUT', headers: expecting }, error(405, 405, '/plants allows POST, GET, HEAD, but not PUT')],
    [
      'a media type',
      { headers: { ...expecting, 'Content-Type': 'x' } },
      error(400, 415, 'Content-Type must be application/json, but was "x"'),
    ],
    ['a length', { headers: { ...expecting, 'Content-Length': '9999999' } }, tooLarge],
    ['a Host', { headers: { ...expecting, Host: undefined } }, error(400, 400, 'The header Host is missing')],
    [
      'a body that no GET has',
      { method: 'GET', headers: expecting },
      error(403, 403, 'This token has no right to read plants'),
    ],
  ])(
    'is not answered when the request is rejected for %s, which closes the connection',
    async (_, request, expected) => {
      const connection = await connectTo(service().place)
      connection.send(requestBytes(testToken, request))
      expect((await connection.answers()).map(outcomeOf)).toEqual([expected])
    },
  )

  test('is not answered in HTTP/1.0, which does not know it (RFC 9110, 10.1.1)', async () => {
    const connection = await connectTo(service().place)
    const body = '{"id":2,"name":"Fern"}'
    connection.send(requestOf({ headers: expecting }).replace('HTTP/1.1', 'HTTP/1.0')).send(body)
    expect((await connection.answers()).map(({ status }) => status)).toEqual([200])
  })
})

describe('behind an answer that closes the connection, nothing is stored any more (RFC 9112, 9.6):', () => {
  const service = serveForAll()
  let id = 0
  const body = () => {
    id += 1
    return `{"id":${id},"name":"Fern"}`
  }

  test.each<[string, Record<string, string | string[]>]>([
    ['one that asked for it', { Connection: 'close' }],
    ['one with two Hosts', { Host: ['a', 'b'] }],
    ['one with an Upgrade, which is not taken up', { Connection: 'Upgrade', Upgrade: 'h2c' }],
  ])('%s', async (_, headers) => {
    const connection = await connectTo(service().place)
    connection.send(requestOf({ headers, body: body() }) + requestOf({ body: body() }))
    expect(await connection.answers()).toHaveLength(1)
    expect((await exchange(service(), { body: `{"id":${id},"name":"Moss"}` })).body).toBe('{"name":"Moss"}')
  })
})

describe('each request gets one answer, its own:', () => {
  const service = serveForAll()

  test('a create that was refused before its body broke', async () => {
    const connection = await connectTo(service().place)
    const headers = { Authorization: 'Bearer wrong', 'Transfer-Encoding': 'chunked', 'Content-Length': undefined }
    connection.send(requestOf({ headers, body: '' }))
    expect(await connection.answer()).toMatchObject({ status: 400, body: expect.stringContaining('401') })
    connection.send('no chunk\r\n')
    expect(await connection.answers()).toEqual([])
  })

  test.each<[string, number, RawRequest]>([
    ['a GET', 200, { method: 'GET', target: '/openapi.json' }],
    ['a path that is not there', 404, { target: '/nope' }],
    ['a wrong token', 400, { headers: { Authorization: 'Bearer wrong' } }],
    ['a wrong type', 400, { headers: { 'Content-Type': 'text/plain' } }],
  ])('a body that looks like a create, and comes after the answer to %s', async (_, status, request) => {
    const inside = requestOf({ body: '{"id":4,"name":"Fern"}' })
    const connection = await connectTo(service().place)
    connection.send(requestOf({ ...request, headers: { ...request.headers, 'Content-Length': `${inside.length}` } }))
    expect((await connection.answer())?.status).toBe(status)
    connection.send(inside + requestOf({ target: '/nope', headers: { Connection: 'close' } }))
    expect((await connection.answers()).map(outcomeOf)).toEqual([nowhere])
  })

  test('a create with a megabyte of other requests behind its "Connection: close"', async () => {
    const connection = await connectTo(service().place)
    const more = requestOf({ body: '{"id":3,"name":"Fern"}' }).repeat(5000)
    connection.send(requestOf({ headers: { Connection: 'close' }, body: '{"id":2,"name":"Fern"}' }) + more)
    expect(await connection.answers()).toHaveLength(1)
    const { headers } = await exchange(service(), { method: 'GET', target: '/nope' })
    await expect.poll(() => service().log.map(({ requestId }) => requestId)).toContain(headers['request-id'])
    expect(service().log.filter(({ code }) => code === 'HPE_CLOSED_CONNECTION')).toEqual([])
  })
})
