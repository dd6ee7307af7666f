import { describe, expect, test } from 'vitest'
import { connectTo, exchange, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { serve, serveForAll } from '../../helpers/service.js'
import { answerTo } from '../../helpers/service-answers.js'

const all = 'create,read,update,delete'
const service = serveForAll(['--allow', all])
const moss = '{"name":"Moss"}'

test('If-Match lets one of many through that change the same plant at the same moment', async () => {
  const get = { method: 'GET', target: '/plants/1' }
  await exchange(service(), { body: '{"id":1,"name":"Fern"}' })
  const { etag } = (await exchange(service(), get)).headers
  const change = (_: unknown, index: number) =>
    exchange(service(), { ...get, method: 'PUT', headers: { 'If-Match': etag }, body: `{"name":"Moss ${index}"}` })
  const answers = await Promise.all(Array.from({ length: 20 }, change))
  expect(answers.filter(({ status }) => status === 412)).toHaveLength(19)
  expect(answers.find(({ status }) => status === 200)?.body).toBe((await exchange(service(), get)).body)
})

test('requests that come together on one connection are done in their order (RFC 9112, 9.3.2)', async () => {
  const target = '/plants/2'
  const get = { method: 'GET', target }
  const put = { method: 'PUT', target, body: moss }
  const requests = [{ body: '{"id":2,"name":"Fern"}' }, get, put, get, { method: 'DELETE', target }, put, get]
  const connection = await connectTo(service().place)
  connection.send(Buffer.concat(requests.map((request) => requestBytes(service().token, request))))
  const answers: unknown[] = []
  for (const _ of requests) answers.push(await connection.answer().then((answer) => [answer?.status, answer?.body]))
  const [before, after] = ['Fern', 'Moss'].map((name) => [200, `{"id":2,"name":"${name}"}`])
  const missing = [404, '{"error":404,"message":"No plant has id 2"}']
  expect(answers).toEqual([[200, '{"name":"Fern"}'], before, after, after, after, missing, missing])
})

describe('a service with --allow', () => {
  const requests = ['POST /plants', 'GET /plants', 'GET /plants/1', 'PUT /plants/1', 'DELETE /plants/1']

  /** The statuses of requests with a token of the store with these rights, or of the environment, and the description. */
  async function offeredBy(allow: string, rights: string) {
    const offering = await serve(allow === '' ? [] : ['--allow', allow], { rights })
    const statuses: number[] = []
    for (const line of requests) {
      const [method = '', target = ''] = line.split(' ')
      const body = method.startsWith('P') ? '{"id":1,"name":"Fern"}' : ''
      statuses.push((await exchange(offering, { method, target, body })).status)
    }
    const { paths } = JSON.parse((await exchange(offering, { method: 'GET', target: '/openapi.json' })).body)
    const described = Object.entries(paths).map(([path, methods]) =>
      [path, ...Object.keys(methods as object)].join(' '),
    )
    return [statuses.join(' '), ...described]
  }

  test.each([
    ['', all, '200 200 200 200 200', '/plants post get', '/plants/{id} get put delete'],
    ['create', all, '200 405 404 404 404', '/plants post'],
    ['read', all, '400 200 404 405 405', '/plants get', '/plants/{id} get'],
    ['create,delete', all, '200 405 405 405 200', '/plants post', '/plants/{id} delete'],
    ['delete', all, '400 404 405 405 404', '/plants/{id} delete'],
    ['create,read,update', 'create', '200 403 403 403 405', '/plants post get', '/plants/{id} get put'],
    ['', '', '200 403 403 403 403', '/plants post get', '/plants/{id} get put delete'],
    ['create', '', '200 405 404 404 404', '/plants post'],
    ['read', '', '400 200 404 405 405', '/plants get', '/plants/{id} get'],
    [all, '', '200 200 200 200 200', '/plants post get', '/plants/{id} get put delete'],
  ])('"%s" gives a token with "%s" %s', async (allow, rights, ...offered) => {
    expect(await offeredBy(allow, rights)).toEqual(offered)
  })

  const create: RawRequest = { body: '{' }
  test.each([
    { args: ['--allow', 'read'], rights: 'create', request: create, message: 'This service does not create plants' },
    { args: [], rights: 'read', request: create, message: 'This token has no right to create plants' },
    ...['update', 'delete'].map((right) => ({
      ...{ args: [], rights: 'read', message: `This token has no right to ${right} plants` },
      request: { method: right === 'update' ? 'PUT' : 'DELETE', target: '/plants/x', body: '{' },
    })),
  ])('$args rejects $request of a token with "$rights"', async ({ args, rights, request, message }) => {
    const { status, body, headers } = await answerTo(await serve(args, { rights }), request)
    const right = /create|update|delete/.exec(message)
    const scope = message.startsWith('This token') ? `, scope="${right}"` : ''
    expect({ status, body, challenge: headers['www-authenticate'] }).toEqual({
      status: request === create ? 400 : 403, // as the specification has it
      body: { error: 403, message },
      challenge: `Bearer realm="plants", error="insufficient_scope"${scope}`,
    })
  })

  test('read lists what it offers in Allow, and rejects a create without a token with 401', async () => {
    const reader = await serve(['--allow', 'read'])
    const { headers } = await answerTo(reader, { method: 'PATCH', target: '/plants' })
    expect(headers['allow']).toBe('GET, HEAD')
    const anonymous = await answerTo(reader, { headers: { Authorization: undefined }, body: '{}' })
    expect(anonymous).toMatchObject({ status: 400, body: { error: 401 } })
  })
})
