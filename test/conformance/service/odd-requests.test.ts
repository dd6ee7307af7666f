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

const service = serveForAll()
let id = 1000

/** A create of a plant of its own. */
function next(request: RawRequest = {}): string {
  id += 1
  return requestOf({ body: `{"id":${id},"name":"Fern ${id}"}`, ...request })
}

/** The response to the last create, or to one before it. */
const created = (before = 0): Outcome => ({ status: 200, body: { name: `Fern ${id - before}` } })
const close = { headers: { Connection: 'close' } }

/** What bytes get, until the service closes the connection. */
async function outcomesOf(bytes: string | Buffer, isHalfClosed = false): Promise<Outcome[]> {
  const connection = (await connectTo(service().place)).send(bytes)
  if (isHalfClosed) connection.end()
  return (await connection.answers()).map(outcomeOf)
}

/** Stores a plant with the id of the last create, which must not exist. */
async function isNotStored(): Promise<void> {
  expect(await exchange(service(), { body: `{"id":${id},"name":"Moss"}` })).toMatchObject({ body: '{"name":"Moss"}' })
}

describe('an odd request is answered:', () => {
  test.each<[string, () => string]>([
    ['10,000 bytes of headers', () => next({ headers: { X: 'a'.repeat(10_000), Connection: 'close' } })],
    ['empty lines in front', () => `\r\n\r\n${next(close)}`],
    ['HTTP/1.0', () => next().replace('HTTP/1.1', 'HTTP/1.0')],
    ['HTTP/1.0 without a Host', () => next({ headers: { Host: undefined } }).replace('HTTP/1.1', 'HTTP/1.0')],
    ['an unknown Expect, which is ignored', () => next({ headers: { Expect: 'tea', Connection: 'close' } })],
    [
      'an Upgrade, which is ignored',
      () => next({ headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' } }),
    ],
    [
      'chunks in capital letters',
      () => {
        const bytes = next({
          headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'CHUNKED', Connection: 'close' },
        })
        return bytes.replace(/\{.*/, (body) => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      },
    ],
  ])('%s', async (_, bytes) => {
    expect(await outcomesOf(bytes())).toEqual([created()])
  })

  test('an Upgrade to an unknown path and a CONNECT, each after another request', async () => {
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket' }
    const connect = 'CONNECT plants.example:443 HTTP/1.1\r\nHost: plants.example\r\n\r\n'
    const noProxy = error(404, 404, 'There is nothing at this path: this service is not a proxy')
    expect(await outcomesOf(next() + requestOf({ target: '/nope', headers: upgrade }))).toEqual([created(), nowhere])
    expect(await outcomesOf(connect)).toEqual([noProxy])
    const bytes = next() + next({ target: '/nope' }) + connect + next()
    expect(await outcomesOf(bytes)).toEqual([created(2), nowhere, noProxy])
    await isNotStored()
    await expect
      .poll(() => service().log.findLast(({ code }) => code === 'CONNECT'))
      .toMatchObject({ outcome: '404', method: 'CONNECT', from: '127.0.0.1' })
  })

  test('one byte at a time', async () => {
    const connection = await connectTo(service().place)
    connection.socket.setNoDelay()
    for (const byte of Buffer.from(next(close)))
      await new Promise((resolve) => connection.socket.write(Uint8Array.of(byte), resolve))
    expect((await connection.answers()).map(outcomeOf)).toEqual([created()])
  })

  test('one or two whose sender has closed its side', async () => {
    expect(await outcomesOf(next(), true)).toEqual([created()])
    expect(await outcomesOf(next() + next(), true)).toEqual([created(1), created()])
  })

  test.each([
    ['garbage', 'garbage\r\n\r\n', false],
    ['a body longer than its length', 'xxx', false],
    ['headers without end', `GET / HTTP/1.1\r\nX: ${'a'.repeat(20_000)}`, false],
    ['half of another, whose sender closes its side', head('Content-Length: 99') + plant, true],
  ])('one that is followed by %s: its response comes first', async (_, behind, isHalfClosed) => {
    const [first, second, ...more] = await outcomesOf(next() + behind, isHalfClosed)
    expect(first).toEqual(created())
    expect([undefined, broken, tooManyBytes]).toContainEqual(second)
    expect(more).toEqual([])
  })
})

describe('Expect: 100-continue', () => {
  const expecting = { Expect: '100-Continue', 'Content-Length': '22' }
  const body = () => {
    id += 1
    return `{"id":${id},"name":"F"}`
  }

  test('is answered before the body', async () => {
    const connection = await connectTo(service().place)
    connection.send(requestBytes(testToken, { headers: expecting }))
    expect(await connection.answer()).toEqual({ status: 100, headers: {}, body: '' })
    expect(await connection.send(body()).answer()).toMatchObject({ status: 200, body: '{"name":"F"}' })
    expect(await connection.send(requestOf({ target: '/nope' })).answer()).toMatchObject({ status: 404 })
  })

  test.each<[string, RawRequest, Outcome]>([
    ['a token', { headers: { Authorization: 'Bearer wrong' } }, error(400, 401, 'This token is not accepted')],
    ['a path', { target: '/nope' }, nowhere],
    ['a length', { headers: { 'Content-Length': '9999999' } }, tooLarge],
    ['a Host', { headers: { Host: undefined } }, error(400, 400, 'The header Host is missing')],
    ['a body that no GET has', { method: 'GET' }, error(403, 403, 'This token has no right to read plants')],
  ])('is not answered when %s is rejected, which closes the connection', async (_, request, expected) => {
    const headers = { ...expecting, ...request.headers }
    expect(await outcomesOf(requestBytes(testToken, { ...request, headers }))).toEqual([expected])
  })

  test('is not answered in HTTP/1.0, which does not know it (RFC 9110, 10.1.1)', async () => {
    const bytes = requestOf({ headers: expecting }).replace('HTTP/1.1', 'HTTP/1.0')
    expect(await outcomesOf(bytes + body())).toMatchObject([{ status: 200 }])
  })
})

describe('behind a response that closes the connection, nothing is stored any more (RFC 9112, 9.6):', () => {
  test.each<[string, Record<string, string | string[]>]>([
    ['one that asked for it', { Connection: 'close' }],
    ['one with two Hosts', { Host: ['a', 'b'] }],
    ['one with an Upgrade, which is ignored', { Connection: 'Upgrade', Upgrade: 'h2c' }],
  ])('%s', async (_, headers) => {
    expect(await outcomesOf(next({ headers }) + next())).toHaveLength(1)
    await isNotStored()
  })

  test('a megabyte of other requests, which the log leaves out', async () => {
    expect(await outcomesOf(next(close) + next().repeat(5000))).toHaveLength(1)
    const { headers } = await exchange(service(), { method: 'GET', target: '/nope' })
    await expect.poll(() => service().log.map(({ requestId }) => requestId)).toContain(headers['request-id'])
    expect(service().log.filter(({ code }) => code === 'HPE_CLOSED_CONNECTION')).toEqual([])
    await isNotStored()
  })
})

describe('each request gets one response, its own:', () => {
  test('a create that was rejected before its body broke', async () => {
    const connection = await connectTo(service().place)
    const headers = { Authorization: 'Bearer wrong', 'Transfer-Encoding': 'chunked', 'Content-Length': undefined }
    const answer = await connection.send(requestOf({ headers })).answer()
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining('401') })
    expect(await connection.send('no chunk\r\n').answers()).toEqual([])
  })

  test.each<[status: number, RawRequest]>([
    [200, { method: 'GET', target: '/openapi.json' }],
    [404, { target: '/nope' }],
    [400, { headers: { Authorization: 'Bearer wrong' } }],
    [400, { headers: { 'Content-Type': 'text/plain' } }],
  ])('%i, and then comes a body that looks like a create: %j', async (status, request) => {
    const inside = next()
    const connection = await connectTo(service().place)
    connection.send(requestOf({ ...request, headers: { ...request.headers, 'Content-Length': `${inside.length}` } }))
    expect((await connection.answer())?.status).toBe(status)
    connection.send(inside + requestOf({ target: '/nope', ...close }))
    expect((await connection.answers()).map(outcomeOf)).toEqual([nowhere])
    await isNotStored()
  })
})
