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
      expect(await answerTo(service(), { method: 'PUT', target, body })).toMatchObject({
        status: 200,
        body: `{"id":${id},"name":"Moss"}`,
      })
  })

  test('removes the idempotency key, so that a late retry of the create is a conflict', async () => {
    const { id, target } = await planted({ 'Idempotency-Key': 'late' })
    await exchange(service(), { method: 'PUT', target, body: '{"name":"Moss"}' })
    const retry = { headers: { 'Idempotency-Key': 'late' }, body: `{"id":${id},"name":"Fern","tag":"shade"}` }
    expect(await answerTo(service(), retry)).toMatchObject({ status: 400, body: { error: 409 } })
  })

  test.each<[string, RawRequest, number, string]>([
    ['no plant', { target: '/plants/99999', body: '{"name":"Moss"}' }, 404, 'No plant has id 99999'],
    [
      'no id',
      { target: '/plants/x', body: '{"name":"Moss"}' },
      400,
      `id must be ${int64}, in decimal digits, but was "x"`,
    ],
    ['another id', { body: '{"id":5,"name":"Moss"}' }, 422, 'Invalid plant: id must be ID, as in the path, but was 5'],
    [
      'an id that is none',
      { body: '{"id":"5","name":"Moss"}' },
      422,
      'Invalid plant: id must be an integer, not a string, but was "5"',
    ],
    [
      'no name',
      { body: '{"tag":null}' },
      422,
      'Invalid plant: name must be a string, but is missing; tag must be a string, but was null',
    ],
    ['an array', { body: '[]' }, 422, 'Invalid plant: it must be an object, but was an array'],
    ['no JSON', { body: '{' }, 400, 'The body is not JSON: unexpected end of input at line 1, column 2'],
    ['nothing', {}, 400, 'The body is empty'],
    [
      'a form',
      { headers: { 'Content-Type': 'text/plain' } },
      415,
      'Content-Type must be application/json, but was "text/plain"',
    ],
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
    expect(await answerTo(service(), request)).toEqual({
      status: 200,
      body: `{"id":${id},"name":"Fern","tag":"shade"}`,
      headers: common,
    })
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
    const request = {
      method,
      target,
      headers: { 'If-Match': condition(etag) },
      ...(method === 'PUT' && { body: '{"name":"Moss"}' }),
    }
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
      names.map((name) =>
        exchange(service(), { method: 'PUT', target, headers: { 'If-Match': etag }, body: JSON.stringify({ name }) }),
      ),
    )
    const done = answers.flatMap(({ status, body }) => (status === 200 ? [body] : []))
    expect([done.length, answers.filter(({ status }) => status === 412).length]).toEqual([1, 19])
    expect(await read(target)).toBe(done[0])
  })
})

describe('If-None-Match (RFC 9110, 13.1.2)', () => {
  const conditions: [string, (etag: string) => Record<string, string>, number][] = [
    ['any', () => ({ 'If-None-Match': '*' }), 412],
    ['the entity tag', (etag) => ({ 'If-None-Match': etag }), 412],
    ['the entity tag, weak, in a list', (etag) => ({ 'If-None-Match': `"a", W/${etag}` }), 412],
    ['another one', () => ({ 'If-None-Match': '"a"' }), 200],
    ['another one, and If-Match with the entity tag', (etag) => ({ 'If-None-Match': '"a"', 'If-Match': etag }), 200],
    ['another one, and another If-Match', () => ({ 'If-None-Match': '"a"', 'If-Match': '"b"' }), 412],
    ['the entity tag, and If-Match with it', (etag) => ({ 'If-None-Match': etag, 'If-Match': etag }), 412],
  ]
  const rows = conditions.flatMap(([title, condition, status]) =>
    (['PUT', 'DELETE'] as const).map((method) => ({ title, condition, status, method })),
  )

  test.each(rows)('with $title: $method gets $status', async ({ condition, status, method }) => {
    const { target, etag } = await planted()
    const request = { method, target, headers: condition(etag), ...(method === 'PUT' && { body: '{"name":"Moss"}' }) }
    const answer = await answerTo(service(), request)
    expect([answer.status, (await read(target)).includes('Fern')]).toEqual([status, status === 412])
    if (status === 412) expect(answer.body).toEqual({ error: 412, message: expect.stringMatching(/^The plant \d+ /) })
  })

  test('says which condition failed', async () => {
    const { id, target } = await planted()
    const answer = await answerTo(service(), { method: 'DELETE', target, headers: { 'If-None-Match': '*' } })
    expect(answer.body).toEqual({ error: 412, message: `The plant ${id} matches If-None-Match` })
  })

  test('is 404 where there is no plant', async () => {
    for (const method of ['PUT', 'DELETE']) {
      const request = { method, target: '/plants/99999', headers: { 'If-None-Match': '*' }, body: '{"name":"Moss"}' }
      expect(await answerTo(service(), request)).toMatchObject({ status: 404, body: { error: 404 } })
    }
  })
})

test('an unknown parameter of the query is rejected, but by a create, which the specification gives none', async () => {
  const { target } = await planted()
  for (const method of ['PUT', 'DELETE']) {
    const request = { method, target: `${target}?if-exists=1`, body: '{"name":"Moss"}' }
    const body = { error: 400, message: 'There is no parameter "if-exists"' }
    expect(await answerTo(service(), request)).toMatchObject({ status: 400, body })
  }
  expect(await read(`${target}?`)).toContain('Fern')
  last += 1
  const create = { target: '/plants?x=1', body: `{"id":${last},"name":"Fern"}` }
  expect(await answerTo(service(), create)).toMatchObject({ status: 200 })
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

describe('a service with --allow', () => {
  const all = 'create,read,update,delete'

  /** What requests with a token get, and what the description lists. */
  async function offeredBy(args: string[], given: string) {
    const offering = await serve(args, { rights: given })
    const lines = ['POST /plants', 'GET /plants', 'GET /plants/1', 'PUT /plants/1', 'DELETE /plants/1']
    const statuses: number[] = []
    for (const line of lines) {
      const [method = '', target = ''] = line.split(' ')
      const body = method === 'GET' || method === 'DELETE' ? '' : '{"id":1,"name":"Fern"}'
      statuses.push((await exchange(offering, { method, target, body })).status)
    }
    const { paths } = JSON.parse((await exchange(offering, { method: 'GET', target: '/openapi.json' })).body)
    const listed = Object.entries(paths).map(([path, methods]) => [path, ...Object.keys(methods as object)].join(' '))
    return { statuses, listed }
  }

  test.each<[string[], string, number[], string[]]>([
    [[], all, [200, 200, 200, 200, 200], ['/plants post get', '/plants/{id} get put delete']],
    [['--allow', 'create'], all, [200, 405, 404, 404, 404], ['/plants post']],
    [['--allow', 'read'], all, [400, 200, 404, 405, 405], ['/plants get', '/plants/{id} get']],
    [['--allow', 'create,delete'], all, [200, 405, 405, 405, 200], ['/plants post', '/plants/{id} delete']],
    [['--allow', 'delete'], all, [400, 404, 405, 405, 404], ['/plants/{id} delete']],
    [
      ['--allow', 'create,read,update'],
      'create',
      [200, 403, 403, 403, 405],
      ['/plants post get', '/plants/{id} get put'],
    ],
  ])('%s offers the same to all tokens of the store: %s', async (args, given, statuses, listed) => {
    expect(await offeredBy(args, given)).toEqual({ statuses, listed })
  })

  test.each<[string[], number[]]>([
    [[], [200, 403, 403, 403, 403]],
    [
      ['--allow', 'create'],
      [200, 405, 404, 404, 404],
    ],
    [
      ['--allow', 'read'],
      [400, 200, 404, 405, 405],
    ],
    [
      ['--allow', all],
      [200, 200, 200, 200, 200],
    ],
  ])('%s lets PLANTS_SERVE_TOKEN do what it names, and create alone without it', async (args, statuses) => {
    expect((await offeredBy(args, '')).statuses).toEqual(statuses)
  })

  test('read rejects a create as the specification has it, of whoever may create elsewhere', async () => {
    const reader = await serve(['--allow', 'read'], { rights: 'create' })
    const { status, body, headers } = await answerTo(reader, { body: '{"id":1,"name":"Fern"}' })
    expect({ status, body, challenge: headers['www-authenticate'] }).toEqual({
      status: 400,
      body: { error: 403, message: 'This service does not create plants' },
      challenge: 'Bearer realm="plants", error="insufficient_scope"',
    })
    const { headers: others } = await answerTo(reader, { method: 'PATCH', target: '/plants' })
    expect(others['allow']).toBe('GET, HEAD')
    const anonymous = await answerTo(reader, { headers: { Authorization: undefined }, body: '{}' })
    expect(anonymous).toMatchObject({ status: 400, body: { error: 401 } })
  })
})

test('a token that may not create gets the 400 of the specification', async () => {
  const { status, body, headers } = await answerTo(await serve([], { rights: 'read' }), {
    body: '{"id":1,"name":"Fern"}',
  })
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
