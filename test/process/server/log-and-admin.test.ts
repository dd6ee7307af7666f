import { describe, expect, test } from 'vitest'
import { draining } from '../../helpers/draining.js'
import { plants } from '../../helpers/process.js'
import { connectTo, exchange, requestBytes } from '../../helpers/raw-http.js'
import { type RunningService, serve } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const patience = { timeout: 10_000, interval: 10 }
const fern = '{"id":1,"name":"Fern"}'

test('the log tells of every exchange, and holds no token and no plant', async () => {
  const folder = temporaryFolder()
  const made = (await plants(['tokens', 'create', '--note', 'laptop'], folder)).out.trim()
  const service = await serve([], { folder, env: {} })
  const headers = { Authorization: `Bearer ${made}` }
  await exchange(service, { headers, body: '{"id":1,"name":"SECRET","tag":"SECRET","SECRET":1}' })
  await exchange(service, { headers, body: '{"id":1,"name":"SECRET"}' })
  await exchange(service, { headers, body: '{"id":"SECRET"}' })
  await exchange(service, { headers: { Authorization: 'Bearer SECRET' }, body: fern })
  await exchange(service, { headers: { ...headers, 'Idempotency-Key': 'SECRET twice' }, body: fern })
  await exchange(service, { target: `/nowhere/${made}?token=SECRET`, headers, body: fern })
  await exchange(service, { method: 'GET', target: '/openapi.json', headers })
  await exchange(service, { headers: { ...headers, 'SECRET ': 'x' }, body: '{"id":2,"name":"SECRET"}' })
  const connection = await connectTo(service.place)
  connection
    .send(requestBytes(made, { headers: { ...headers, 'Content-Length': '99' }, body: 'SECRET' }))
    .socket.destroy()
  await expect
    .poll(() => service.log.filter(({ outcome }) => outcome !== undefined).length, patience)
    .toBeGreaterThan(8)
  const { out, err } = await service.stop()
  const exchanges = service.log.filter(({ outcome }) => outcome !== undefined)
  const create = ['POST', '/plants']
  expect(exchanges.map(({ outcome, status, token, method, path }) => [outcome, status, token, method, path])).toEqual([
    ['created', 200, '1', ...create],
    ['409', 400, '1', ...create],
    ['422', 400, '1', ...create],
    ['401', 400, undefined, ...create],
    ['400', 400, '1', ...create],
    ['404', 404, undefined, 'POST', undefined],
    ['described', 200, undefined, 'GET', '/openapi.json'],
    ['400', undefined, undefined, undefined, undefined], // which is not HTTP
    [expect.toBeOneOf(['400', 'aborted']), undefined, undefined, 'POST', undefined],
  ])
  for (const { level, status, requestId, time, milliseconds, from } of exchanges.slice(0, 5)) {
    expect({ level, status, requestId, time, milliseconds, from }).toEqual({
      level: 'info',
      from: '127.0.0.1',
      status: expect.any(Number),
      requestId: expect.stringMatching(/^[\da-f]{8}-[\da-z]+$/),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      milliseconds: expect.any(Number),
    })
  }
  expect(out + err).not.toMatch(
    new RegExp(`SECRET|${made}|${Buffer.from('SECRET').join(',')}|${Buffer.from('SECRET').toString('hex')}`),
  )
})

describe('the admin port', () => {
  test('tells of the life, the readiness and the figures of a service, without a token', async () => {
    const service = await serve(['--admin-port', '0'])
    const ask = adminOf(service)
    expect(await ask('/live')).toMatchObject({ status: 200 })
    expect(await ask('/ready')).toMatchObject({ status: 200 })
    expect(await ask('/nope')).toMatchObject({
      status: 404,
      body: { error: 404, message: 'Only /live, /ready and /metrics are here' },
    })
    expect(await ask('/live', 'POST')).toMatchObject({ status: 405, allow: 'GET, HEAD', body: { error: 405 } })
    expect((await exchange(service, { target: '/live', method: 'GET' })).status).toBe(404)
    await exchange(service, { body: fern })
    await exchange(service, { body: fern })
    const { body } = await ask('/metrics')
    expect(String(body).match(/^plants_(requests_total|queue_depth|batch_size_count).*$/gm)).toEqual([
      'plants_requests_total{outcome="404"} 1',
      'plants_requests_total{outcome="created"} 1',
      'plants_requests_total{outcome="409"} 1',
      'plants_batch_size_count 2',
      'plants_queue_depth 0',
    ])
    await draining(service)
    expect(await ask('/live')).toMatchObject({ status: 200 })
    expect(await ask('/ready')).toMatchObject({
      status: 503,
      again: '1',
      body: { error: 503, message: 'The service is not ready' },
    })
  })
})

function adminOf(service: RunningService) {
  return async (path: string, method = 'GET') => {
    const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
    const response = await fetch(`${address}${path}`, { method })
    const text = await response.text()
    const isJson = response.headers.get('content-type') === 'application/json'
    const { headers, status } = response
    return {
      status,
      allow: headers.get('allow'),
      again: headers.get('retry-after'),
      body: isJson ? (JSON.parse(text) as unknown) : text,
    }
  }
}
