import { once } from 'node:events'
import { expect } from 'vitest'
import { connectTo, exchange, type RawConnection, requestBytes } from './raw-http.js'
import { type RunningService, testToken } from './service.js'

const body = '{"id":1,"name":"Fern"}'
const half = requestBytes(testToken, { headers: { 'Content-Length': '99' }, body })

/** Tells a service to stop while it waits for the rest of a request, on the connection that this gives. */
export async function draining(service: RunningService, signal: NodeJS.Signals = 'SIGTERM'): Promise<RawConnection> {
  const connection = await connectTo(service.place)
  connection.send(half)
  expect((await exchange(service, { target: '/nope' })).status).toBe(404) // by now the half has come as well
  service.kill(signal)
  await expect.poll(() => service.log.map(({ msg }) => msg), { timeout: 10_000, interval: 10 }).toContain('draining')
  return connection
}

/** What a service gives when it has ended, which must not take longer. */
export async function endedIn<T>(milliseconds: number, ending: Promise<T>): Promise<T> {
  const end = AbortSignal.timeout(milliseconds)
  const late = once(end, 'abort').then(() => {
    throw new Error(`It had not ended after ${milliseconds} ms`)
  })
  return Promise.race([ending, late])
}
