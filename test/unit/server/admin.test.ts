import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createAdminServer, Metrics } from '../../../src/server/admin.js'
import {
  connectTo,
  exchangeOnce,
  type RawConnection,
  type RawRequest,
} from '../../helpers/scripted-server/raw-http.js'
import { createGate } from '../../helpers/scripted-server/service.js'

interface Options {
  /** Why the service is not ready. */
  explain?: () => Promise<string | undefined>
  /** As --admin-host names it; the port is on a loopback address all the same. */
  host?: string
}

/** An admin port on a loopback address, which ends with the test. */
async function listen({ explain = async () => undefined, host = '127.0.0.1' }: Options = {}) {
  const errors: unknown[] = []
  const server = createAdminServer({
    metrics: new Metrics(),
    readiness: { explain },
    host,
    log: { warn: () => undefined, error: (error: unknown) => void errors.push(error) },
    redact: (text) => text.replaceAll('s3cret', '***'),
  })
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // as it listens at one
  const endpoint = { host: '127.0.0.1', port }
  const ask = (target: string, request: RawRequest = {}) =>
    exchangeOnce({ endpoint, token: '' }, { method: 'GET', target, ...request })
  return { endpoint, ask, errors }
}

test('the admin port answers with 500 when a check fails, and continues', async () => {
  const broken = new Error('The store is broken')
  const { ask, errors } = await listen({ explain: () => Promise.reject(broken) })
  expect([(await ask('/ready')).status, (await ask('/live')).status]).toEqual([500, 200])
  expect(errors).toEqual([broken])
})

test('/ready answers with an Error that has the reason, without secrets', async () => {
  const { ask } = await listen({ explain: async () => 'The password s3cret expired' })
  const expected = { status: 503, text: '503 The password *** expired' }
  expect(await ask('/ready')).toMatchObject({ ...expected, headers: { 'retry-after': '1' } })
})

test.each(['/live', '/ready', '/metrics', '/nothing'])(
  'HEAD %s on the admin port has no body',
  async (target) => {
    const { ask } = await listen()
    const { status, headers } = await ask(target)
    const answer = await ask(target, { method: 'HEAD' })
    const type = headers['content-type']
    expect(answer).toMatchObject({ status, body: '', headers: { 'content-type': type } })
  },
)

describe('an admin port on a loopback address', () => {
  test.each([
    'localhost',
    'LOCALHOST:9090',
    '127.0.0.1:9090',
    '192.0.2.1', // a name is what a web page needs
    '[::1]:9090',
  ])('answers requests to %s', async (name) => {
    const { ask } = await listen({ host: 'localhost' })
    expect((await ask('/metrics', { headers: { Host: name } })).status).toBe(200)
  })

  test.each([
    'evil.example',
    'evil.example:9090',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'localhost@evil.example',
    'evil-localhost',
    'evil.localhost:9090',
    '[evil.example]',
    '',
  ])('tells nothing to a web page that sends requests to "%s"', async (name) => {
    for (const host of ['127.0.0.1', 'localhost', '::1']) {
      const { ask } = await listen({ host })
      for (const target of ['/metrics', '/ready', '/live', '/nothing'])
        expect((await ask(target, { headers: { Host: name } })).text).toBe(
          '421 An admin port on a loopback address answers only requests whose Host is localhost or an IP address',
        )
    }
  })

  test('answers a health check in HTTP/1.0, which has no Host', async () => {
    const { endpoint } = await listen()
    const connection = await connectTo(endpoint)
    connection.send('GET /ready HTTP/1.0\r\n\r\n')
    expect(await connection.readResponse()).toMatchObject({ status: 200, body: '{"ready":true}' })
  })
})

test('an admin port on another address answers requests to any name, as in a cluster', async () => {
  const { ask } = await listen({ host: '0.0.0.0' })
  const headers = { Host: 'plants.garden.svc.cluster.local:9011' }
  expect((await ask('/metrics', { headers })).status).toBe(200)
})

test('any number of silent connections to the admin port keeps out no probe, and ends no waiting one', async () => {
  const store = createGate()
  const { endpoint, ask } = await listen({ explain: () => store.wait() })
  const waiting = ask('/ready')
  await expect.poll(() => store.waiting).toBe(1)
  const silent = await Promise.all(Array.from({ length: 200 }, () => connectTo(endpoint)))
  expect((await ask('/live')).status).toBe(200)
  const isOpen = ({ socket }: RawConnection) => !socket.readableEnded && !socket.destroyed
  await expect.poll(() => silent.filter(isOpen).length).toBeLessThan(64)
  store.open()
  expect((await waiting).status).toBe(200)
})

test('a connection to the admin port serves one request', async () => {
  const { endpoint } = await listen()
  const connection = await connectTo(endpoint)
  connection.send('GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000))
  const answers = await connection.readResponses()
  expect(answers).toMatchObject([{ status: 200, headers: { connection: 'close' } }])
})
