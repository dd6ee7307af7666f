import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { replay } from '../../helpers/exchanges.js'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import { serve, serveForAll, storedIn, testToken } from '../../helpers/service.js'
import { answerTo, planted } from '../../helpers/service-answers.js'

test.each(['create', 'read', 'change'])('exchanges/%s.http shows what the service responds', async (name) => {
  const path = join(import.meta.dirname, `exchanges/${name}.http`)
  const service = await serve(['--allow', 'create,read,update,delete'])
  await expect(await replay(readFileSync(path, 'utf8'), service)).toMatchFileSnapshot(path)
})

describe('a create', () => {
  const service = serveForAll()
  const limit = 1_048_576
  const fern = '{"id":1,"name":"Fern"}'
  const inChunks = (...chunks: string[]): RawRequest => ({
    headers: { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' },
    body: [...chunks, ''].map((chunk) => `${chunk.length.toString(16)};a=b\r\n${chunk}\r\n`).join(''),
  })

  test.each<[string, plant: string, RawRequest]>([
    ['a body as large as the limit', '{"id":2,"name":"Fern"}', { body: '{"id":2,"name":"Fern"}'.padEnd(limit) }],
    ['white space around', '{"id":3,"name":"Fern"}', { body: '\r\n\t {"id":3,"name":"Fern"}\n' }],
    ['chunks', '{"id":4,"name":"Fern"}', inChunks('{', '"id":4,"name":"Fern"}')],
    ['a key of 255 characters', '{"id":5,"name":"Fern"}', { headers: { 'Idempotency-Key': 'k'.repeat(255) } }],
    ['a tab in its type', '{"id":6,"name":"Fern"}', { headers: { 'Content-Type': 'application/json\t; a=b' } }],
  ])('with %s is accepted', async (_, plant, request) => {
    expect(await answerTo(service(), { body: plant, ...request })).toEqual(planted)
    expect(await storedIn(service())).toContain(plant)
  })

  const bytes = new Uint8Array(limit + 1).fill(0xff)
  const key = 'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated'
  test.each<[error: number, message: string, RawRequest]>([
    [401, 'This token is not accepted', { headers: { Authorization: `Bearer ${'x'.repeat(5000)}` } }],
    [401, 'This token is not accepted', { headers: { Authorization: `Bearer ${testToken.toLowerCase()}` } }],
    [413, `The body is larger than ${limit} bytes`, { body: fern.padEnd(limit + 1) }],
    [413, `The body is larger than ${limit} bytes`, inChunks(' '.repeat(limit + 1))],
    [413, `The body is larger than ${limit} bytes`, { headers: { 'Idempotency-Key': 'a b' }, body: bytes }],
    [400, key, { headers: { 'Idempotency-Key': 'k'.repeat(256) }, body: fern }],
    [400, 'The body is empty', {}],
    [400, 'The body is empty', inChunks()],
    [400, 'The body is not UTF-8', { body: Buffer.from('{"id":1,"name":"gr\u00fcn"}', 'latin1') }],
    [400, 'The body is not UTF-8', { body: Buffer.from(`\ufeff${fern}`, 'utf16le') }],
    [400, 'The body is not JSON: unexpected U+FEFF at line 1, column 1', { body: `\ufeff${fern}` }],
    [400, 'The body contains more than one JSON value, the second at line 2, column 1', { body: `${fern}\n{}` }],
    [422, 'Invalid plant: it must be an object, but was an array', { body: '['.repeat(1e5) + ']'.repeat(1e5) }],
  ])('is rejected with %i, %s', async (error, message, request) => {
    expect(await answerTo(service(), request)).toMatchObject({ status: 400, body: { error, message } })
    expect(await storedIn(service())).not.toContain(fern)
  })

  test('gets a response with an id of its own, which the log has as well', async () => {
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await exchange(service())).headers['request-id']),
    )
    expect(new Set(ids).size).toBe(20)
    await expect.poll(() => service().log.map(({ requestId }) => requestId)).toEqual(expect.arrayContaining(ids))
  })
})
