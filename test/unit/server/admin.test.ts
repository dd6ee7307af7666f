import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createAdminServer, Metrics } from '../../../src/server/admin.js'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'

interface Options {
  /** Why the service is not ready. */
  explain?: () => Promise<string | undefined>
}

/** An admin port on a loopback address, which ends with the test. */
async function listen({ explain = async () => undefined }: Options = {}) {
  const errors: unknown[] = []
  const server = createAdminServer({
    metrics: new Metrics(),
    readiness: { explain },
    log: { error: (error: unknown) => void errors.push(error) },
    redact: (text) => text.replaceAll('s3cret', '***'),
  })
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // as it listens at one
  const place = { host: '127.0.0.1', port }
  const ask = (target: string, request: RawRequest = {}) =>
    exchange({ place, token: '' }, { method: 'GET', target, ...request })
  return { place, ask, errors }
}

test('the admin port answers a check that fails with 500, and goes on', async () => {
  const broken = new Error('The store is broken')
  const { ask, errors } = await listen({ explain: () => Promise.reject(broken) })
  expect([(await ask('/ready')).status, (await ask('/live')).status]).toEqual([500, 200])
  expect(errors).toEqual([broken])
})

test('/ready is an Error with the reason, without secrets', async () => {
  const { ask } = await listen({ explain: async () => 'The password s3cret expired' })
  const expected = { status: 503, text: '503 The password *** expired' }
  expect(await ask('/ready')).toMatchObject({ ...expected, headers: { 'retry-after': '1' } })
})

test.each(['/live', '/ready', '/metrics', '/nothing'])('HEAD %s has no body', async (target) => {
  const { ask } = await listen()
  const { status, headers } = await ask(target)
  const answer = await ask(target, { method: 'HEAD' })
  const type = headers['content-type']
  expect(answer).toMatchObject({ status, body: '', headers: { 'content-type': type } })
})
