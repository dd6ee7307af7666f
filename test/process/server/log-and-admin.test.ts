import { expect, test } from 'vitest'
import { draining } from '../../helpers/draining.js'
import { connectTo, exchange, type RawRequest, requestBytes } from '../../helpers/raw-http.js'
import { placeOf, serve } from '../../helpers/service.js'

const fern = '{"id":1,"name":"Fern"}'

test('the log tells of every exchange, and holds no token and no plant', async () => {
  const service = await serve([], { rights: 'create' })
  const { token } = service
  const requests: RawRequest[] = [
    { body: '{"id":1,"name":"SECRET","tag":"SECRET","SECRET":1}' },
    { body: '{"id":1,"name":"SECRET"}' },
    { body: '{"id":"SECRET"}' },
    { headers: { Authorization: 'Bearer SECRET' }, body: fern },
    { headers: { 'Idempotency-Key': 'SECRET twice' }, body: fern },
    { target: `/nowhere/${token}?token=SECRET`, body: fern },
    { method: 'GET', target: '/openapi.json' },
    { method: 'GET', target: '/plants/1?SECRET' },
    { headers: { 'SECRET ': 'x' }, body: '{"id":2,"name":"SECRET"}' },
  ]
  for (const request of requests) await exchange(service, request)
  const leaving = await connectTo(service.place)
  leaving.send(requestBytes(token, { headers: { 'Content-Length': '99' }, body: 'SECRET' })).socket.destroy()
  const exchanges = () => service.log.filter(({ outcome }) => outcome !== undefined)
  await expect.poll(() => exchanges().length, { timeout: 10_000, interval: 10 }).toBe(requests.length + 1)
  const seen = exchanges().map(({ outcome, status, token: name, method, path }) => [
    outcome,
    status,
    name,
    method,
    path,
  ])
  expect(seen).toEqual([
    ['created', 200, '1', 'POST', '/plants'],
    ['409', 400, '1', 'POST', '/plants'],
    ['422', 400, '1', 'POST', '/plants'],
    ['401', 400, undefined, 'POST', '/plants'],
    ['400', 400, '1', 'POST', '/plants'],
    ['404', 404, undefined, 'POST', undefined],
    ['described', 200, undefined, 'GET', '/openapi.json'],
    ['403', 403, '1', 'GET', '/plants/{id}'],
    ['400', undefined, undefined, undefined, undefined], // which is not HTTP
    [expect.toBeOneOf(['400', 'aborted']), undefined, undefined, 'POST', undefined],
  ])
  expect(exchanges()[0]).toMatchObject({
    level: 'info',
    from: '127.0.0.1',
    requestId: expect.stringMatching(/^[\da-f]{8}-[\da-z]+$/),
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    milliseconds: expect.any(Number),
  })
  const { out, err } = await service.stop()
  const bytes = Buffer.from('SECRET')
  expect(out + err).not.toMatch(new RegExp(`SECRET|${token}|${bytes.join(',')}|${bytes.toString('hex')}`))
})

test('the admin port tells of the life, the readiness and the figures of a service, without a token', async () => {
  const service = await serve(['--admin-port', '0'])
  const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
  const headers = { Authorization: undefined }
  const ask = (target: string, method = 'GET') =>
    exchange({ place: placeOf(String(address)), token: '' }, { method, target, headers })
  expect(await ask('/live')).toMatchObject({ status: 200 })
  expect(await ask('/ready')).toMatchObject({ status: 200 })
  const nothing = '{"error":404,"message":"Only /live, /ready and /metrics are here"}'
  expect(await ask('/nope')).toMatchObject({ status: 404, body: nothing })
  expect(await ask('/live', 'POST')).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } })
  expect((await exchange(service, { target: '/live', method: 'GET' })).status).toBe(404)
  await exchange(service, { body: fern })
  await exchange(service, { body: fern })
  const { body } = await ask('/metrics')
  expect(body.match(/^plants_(requests_total|queue_depth|batch_size_count).*$/gm)).toEqual([
    'plants_requests_total{outcome="404"} 1',
    'plants_requests_total{outcome="created"} 1',
    'plants_requests_total{outcome="409"} 1',
    'plants_batch_size_count 2',
    'plants_queue_depth 0',
  ])
  await draining(service)
  expect(await ask('/live')).toMatchObject({ status: 200 })
  const notReady = '{"error":503,"message":"The service is not ready"}'
  expect(await ask('/ready')).toMatchObject({ status: 503, headers: { 'retry-after': '1' }, body: notReady })
})
