import { describe, expect, test } from 'vitest'
import { connectTo, exchange, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { serve, serveForAll } from '../../helpers/service.js'
import { answerTo, common } from '../../helpers/service-answers.js'

const int64 = 'an integer from -9223372036854775808 to 9223372036854775807'
const service = serveForAll(['--allow', 'create,read,update,delete'])
let last = 0

/** Creates a plant of its own for a test, and gives its path and its entity tag. */
async function planted(headers: Record<string, string> = {}): Promise<{ id: number; target: string; etag: string }> {
  last += 1
  await exchange(service(), { headers, body: `{"id":${last},"name":"Fern","tag":"shade"}` })
  return { id: last, target: `/plants/${last}`, etag: await etagOf(`/plants/${last}`) }
}

describe('PUT /plants/{id}', () => {
  test('replaces name and tag, and answers what is there now', async () => {
    const { id, target, etag } = await planted()
    const { status, body, headers } = await answerTo(service(), { method: 'PUT', target, body: '{"name":"Moss"}' })
    expect({ status, body, headers }).toEqual({
      status: 200,
      body: `{"id":${id},"name":"Moss"}`,
      headers: { ...common, etag: headers['etag'] },
    })
    expect(await read(target)).toBe(body)
    expect(headers['etag']).toBe(await etagOf(target))
    expect(headers['etag']).not.toBe(etag)
  })

  test('takes the id of its path, and other fields, and is the same when it is repeated', async () => {
    const { id, target } = await planted()
    for (const body of [`{"id":${id}.0,"name":"Moss","nmae":1}`, '{"name":"Moss"}'])
      expect(await answerTo(service(), { method: 'PUT', target, body })).toMatchObject({ status: 200, body: `{"id":${id},"name":"Moss"}` })
  })

  test('removes the idempotency key, so that a late retry of the create is a conflict', async () => {
    const { id, target } = await planted({ 'Idempotency-Key': 'late' })
    await exchange(service(), { method: 'PUT', target, body: '{"name":"Moss"}' })
    const retry = { headers: { 'Idempotency-Key': 'late' }, body: `{"id":${id},"name":"Fern","tag":"shade"}` }
    expect(await answerTo(service(), retry)).toMatchObject({ status: 400, body: { error: 409 } })
  })

  test.each<[string, RawRequest, number, string]>([
    ['no plant', { target: '/plants/99999', body: '{"name":"Moss"}' }, 404, 'No plant has id 99999'],
    ['no id', { target: '/plants/x', body: '{"name":"Moss"}' }, 400, `id must be ${int64}, in decimal digits, but was "x"`],
    ['another id', { body: '{"id":5,"name":"Moss"}' }, 422, 'Invalid plant: id must be ID, as in the path, but was 5'],
    ['an id that is none', { body: '{"id":"5","name":"Moss"}' }, 422, 'Invalid plant: id must be an integer, not a string, but was "5"'],
    ['no name', { body: '{"tag":null}' }, 422, 'Invalid plant: name must be a string, but is missing; tag must be a string, but was null'],
    ['an array', { body: '[]' }, 422, 'Invalid plant: it must be an object, but was an array'],
    ['no JSON', { body: '{' }, 400, 'The body is not JSON: unexpected end of input at line 1, column 2'],
    ['nothing', {}, 400, 'The body is empty'],
    ['a form', { headers: { 'Content-Type': 'text/plain' } }, 415, 'Content-Type must be application/json, but was "text/plain"'],
    ['too much', { body: ' '.repeat(1_048_577) }, 413, 'The body is larger than 1048576 bytes'],
  ])('refuses %s, with its error as the status', async (_, request, status, message) => {
    const { id, target } = await planted()
    const answer = await answerTo(service(), { method: 'PUT', target, ...request })
    expect({ status: answer.status, body: answer.body }).toEqual({
      status,
      body: { error: status, message: message.replace('ID', `${id}`) },
    })
    expect(await read(target)).toBe(`{"id":${id},"name":"Fern","tag":"shade"}`)
  })
})

describe('DELETE /plants/{id}', () => {
  test('answers what was deleted, and then 404', async () => {
    const { id, target } = await planted()
    const request: RawRequest = { method: 'DELETE', target }
    expect(await answerTo(service(), request)).toEqual({ status: 200, body: `{"id":${id},"name":"Fern","tag":"shade"}`, headers: common })
    expect(await answerTo(service(), request)).toEqual({
      status: 404,
      body: { error: 404, message: `No plant has id ${id}` },
      headers: common,
    })
  })
})

describe('If-Match', () => {
  const conditions: [string, (etag: string) => string, boolean][] = [
    ['the entity tag', (etag) => etag, true],
    ['a list with it', (etag) => `"a",${etag} , W/"b"`, true],
    ['any', () => ' * ', true],
    ['another one', () => '"a"', false],
    ['a weak one', (etag) => `W/${etag}`, false],
    ['what is none', (etag) => etag.slice(1), false],
  ]
  const rows = conditions.flatMap(([title, condition, fits]) =>
    (['PUT', 'DELETE'] as const).map((method) => ({ title, condition, fits, method })),
  )

  test.each(rows)('with $title lets a $method through: $fits', async ({ condition, fits, method }) => {
    const { id, target, etag } = await planted()
    const request = { method, target, headers: { 'If-Match': condition(etag) }, ...(method === 'PUT' && { body: '{"name":"Moss"}' }) }
    const { status, body } = await answerTo(service(), request)
    const message = `The plant ${id} no longer matches If-Match`
    expect({ status, body: fits || body }).toEqual({ status: fits ? 200 : 412, body: fits || { error: 412, message } })
    expect((await exchange(service(), { method: 'GET', target })).body.includes('Fern')).toBe(!fits)
  })

  test('is 404 where there is no plant', async () => {
    for (const method of ['PUT', 'DELETE']) {
      const request = { method, target: '/plants/99999', headers: { 'If-Match': '*' }, body: '{"name":"Moss"}' }
      expect(await answerTo(service(), request)).toMatchObject({ status: 404, body: { error: 404 } })
    }
  })

  test('lets one of many through that change the same plant at the same moment', async () => {
    const { target, etag } = await planted()
    const names = Array.from({ length: 20 }, (_, index) => `Moss ${index}`)
    const answers = await Promise.all(
      names.map((name) => exchange(service(), { method: 'PUT', target, headers: { 'If-Match': etag }, body: JSON.stringify({ name }) })),
    )
    const done = answers.flatMap(({ status, body }) => (status === 200 ? [body] : []))
    expect([done.length, answers.filter(({ status }) => status === 412).length]).toEqual([1, 19])
    expect(await read(target)).toBe(done[0])
  })
})

test('requests that come together on one connection are done in their order (RFC 9112, 9.3.2)', async () => {
  last += 1
  const target = `/plants/${last}`
  const get = { method: 'GET', target }
  const put = { method: 'PUT', target, body: '{"name":"Moss"}' }
  const requests = [{ body: `{"id":${last},"name":"Fern"}` }, get, put, get, { method: 'DELETE', target }, put, get]
  const connection = await connectTo(service().place)
  connection.send(Buffer.concat(requests.map((request) => requestBytes(service().token, request))))
  const answers: unknown[] = []
  for (const _ of requests) answers.push(await connection.answer().then((answer) => [answer?.status, answer?.body]))
  const [fern, moss] = ['Fern', 'Moss'].map((name) => [200, `{"id":${last},"name":"${name}"}`])
  const missing = [404, `{"error":404,"message":"No plant has id ${last}"}`]
  expect(answers).toEqual([[200, '{"name":"Fern"}'], fern, moss, moss, moss, missing, missing])
})

test('a service with --only-create has the operation of the specification, and no other', async () => {
  const only = await serve(['--only-create', '--allow', 'create,read,update,delete'])
  expect((await exchange(only, { body: '{"id":1,"name":"Fern"}' })).status).toBe(200)
  const answers = await Promise.all(
    ['GET /plants', 'GET /plants/1', 'PUT /plants/1', 'DELETE /plants/1'].map(async (line) => {
      const [method = '', target = ''] = line.split(' ')
      return (await exchange(only, { method, target })).status
    }),
  )
  expect(answers).toEqual([405, 404, 404, 404])
  const { paths } = JSON.parse((await exchange(only, { method: 'GET', target: '/openapi.json' })).body)
  expect(Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods as object)])).toEqual([['/plants', ['post']]])
})

test('a token that may not create gets the 400 of the specification', async () => {
  const reader = await serve(['--allow', 'read'])
  const { status, body, headers } = await answerTo(reader, { body: '{"id":1,"name":"Fern"}' })
  expect({ status, body, challenge: headers['www-authenticate'] }).toEqual({
    status: 400,
    body: { error: 403, message: 'This token has no right to create plants' },
    challenge: 'Bearer realm="plants", error="insufficient_scope", scope="create"',
  })
})

async function read(target: string): Promise<string> {
  return (await exchange(service(), { method: 'GET', target })).body
}

async function etagOf(target: string): Promise<string> {
  return (await exchange(service(), { method: 'GET', target })).headers['etag'] ?? ''
}
