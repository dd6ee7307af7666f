import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { isLinux } from '../../helpers/sandbox/linux.js'
import { scaleRounds } from '../../helpers/sandbox/rounds.js'
import { openDatabase, readIds } from '../../helpers/sandbox/sqlite-file.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  RawConnection,
} from '../../helpers/scripted-server/raw-http.js'
import {
  getStorePath,
  quickStore,
  type RunningService,
  serve,
  serveStore,
  testToken,
  toConnectOptions,
} from '../../helpers/scripted-server/service.js'

const long = ['--drain-timeout', '24d']
const moss = '{"id":4,"name":"Moss"}'
const createOf = (id: number) => buildRequest(testToken, { body: `{"id":${id},"name":"Fern"}` })
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)('the signal %s', (signal) => {
  test('ends a service at once when it comes a second time', async () => {
    const service = await serve(long)
    await draining(service, signal)
    // Two that come within a tenth of a second are taken for one.
    const again = setInterval(() => service.kill(signal), 50)
    const { code } = await service.ended
    clearInterval(again)
    expect(code).toBe(signal === 'SIGINT' ? 130 : 143)
  })

  test('drains a service even immediately after the line with the address', async () => {
    const service = await serve()
    expect(await service.stop(signal)).toMatchObject({ code: 0, out: `${service.address}\n` })
  })
})

test.skipIf(process.platform === 'win32')('nohup keeps a service from SIGHUP', async () => {
  const env = { PLANTS_SERVE_TOKEN: testToken, _: '/usr/bin/nohup' } // as shells do
  const service = await serve([], { env, through: ['nohup'] })
  service.kill('SIGHUP')
  const connection = await connectTo(service.endpoint)
  expect((await connection.send(createOf(1)).readResponse())?.status).toBe(200)
  expect(service.log.map(({ msg }) => msg)).not.toContain('draining')
  expect(await service.stop()).toMatchObject({ code: 0 })
})

test('a draining service stores exactly the creates that it acknowledges', {
  repeats: scaleRounds(1) - 1,
}, async () => {
  const service = await serve(long)
  const answered = Array.from({ length: 30 }, (): number[] => [])
  let last = 0
  const createUntilClosed = async (ids: number[]) => {
    const connection = await connectTo(service.endpoint)
    for (let isOpen = true; isOpen; ) {
      last += 1
      const id = last
      const answer = await connection.send(createOf(id)).readResponse()
      expect([id, answer?.status]).toEqual([id, 200])
      ids.push(id)
      isOpen = answer?.headers['connection'] !== 'close'
    }
  }
  const work = Promise.all(answered.map(createUntilClosed))
  work.catch(() => undefined) // it is looked at when the service has ended
  await expect.poll(() => Math.min(...answered.map((ids) => ids.length))).toBeGreaterThan(5)
  expect((await service.stop()).code).toBe(0)
  await work
  const ids = answered.flat().toSorted((a, b) => a - b)
  expect(readIds(getStorePath(service))).toEqual(ids)
  expect(ids).toEqual(upTo(last)) // all that were sent
})

test('clients that reconnect for each request are answered for half a second of a drain, and do not delay it', async () => {
  const service = await serve(long)
  const counts = { sent: 0, answered: 0 }
  /** When each request was sent that got no answer. */
  const unanswered: number[] = []
  const comeAgain = async () => {
    for (;;) {
      const connection = new RawConnection(service.endpoint)
      const isOpen = await once(connection.socket, 'connect').catch(() => false)
      if (!isOpen) return
      counts.sent += 1
      connection.send(createOf(counts.sent))
      const sentAt = performance.now()
      const answer = await connection.readResponse()
      if (answer?.status === 200) counts.answered += 1
      else unanswered.push(sentAt)
      connection.socket.destroy()
    }
  }
  const clients = Promise.all(upTo(30).map(comeAgain))
  await expect.poll(() => counts.answered).toBeGreaterThan(100)
  const signaledAt = performance.now()
  expect((await service.stop()).code).toBe(0)
  await clients
  // A slow client may connect later, just when the port closes, and is promised no answer.
  expect(unanswered.filter((sentAt) => sentAt < signaledAt + 500)).toEqual([])
  const { length: stored } = readIds(getStorePath(service))
  expect([stored >= counts.answered, stored <= counts.sent]).toEqual([true, true])
})

describe('while it drains, a service', () => {
  test('answers received requests, does not wait for idle connections, and accepts no new ones', async () => {
    const service = await serve([...long, '--request-timeout', '24d'])
    const idle = await sentTo(service, buildRequest(testToken, { target: '/nope' }))
    await connectTo(service.endpoint) // which never brings a byte
    expect((await idle.readResponse())?.status).toBe(404)
    const db = openDatabase(getStorePath(service))
    db.exec('BEGIN IMMEDIATE')
    const waiting = await Promise.all(upTo(3).map((id) => sentTo(service, createOf(id))))
    const start = performance.now()
    const slow = await draining(service)
    await expect.poll(() => isRefused(service)).toBe(true)
    db.exec('ROLLBACK')
    const answers = await Promise.all(waiting.map((connection) => connection.readResponse()))
    expect(answers.map((answer) => answer?.body)).toEqual(upTo(3).map(() => '{"name":"Fern"}'))
    const answer = await slow.send(' '.repeat(99 - moss.length)).readResponse()
    const headers = { connection: 'close' }
    expect(answer).toMatchObject({ status: 200, headers, body: '{"name":"Moss"}' })
    expect((await service.ended).code).toBe(0)
    expect(performance.now() - start).toBeLessThan(60_000) // soon after, idle connections end by themselves
    expect(readIds(getStorePath(service))).toEqual([1, 2, 3, 4])
  })

  test('answers 503 at its end to requests that still wait for the store', async () => {
    const service = await serve(['--drain-timeout', '1s'])
    const db = openDatabase(getStorePath(service))
    db.exec('BEGIN IMMEDIATE')
    const waiting = await Promise.all(upTo(3).map((id) => sentTo(service, createOf(id))))
    const ended = service.stop()
    const answers = await Promise.all(waiting.map((connection) => connection.readResponse()))
    expect(answers).toMatchObject(
      upTo(3).map(() => ({
        status: 503,
        body: expect.stringMatching(/"error":503,.*nothing was stored/),
      })),
    )
    expect((await ended).code).toBe(0)
    db.exec('ROLLBACK')
    expect(readIds(getStorePath(service))).toEqual([])
    expect(service.err).not.toContain('"stack"')
  })

  test('answers each request with Connection: close', async () => {
    const service = await serveStore(quickStore)
    const connection = await connectTo(service.endpoint)
    const kept = await connection.send(createOf(1)).readResponse()
    connection.send(createOf(2))
    const drained = service.drain(60_000)
    const last = await connection.readResponse()
    expect([kept, last].map((answer) => answer?.headers['connection'])).toEqual([
      'keep-alive',
      'close',
    ])
    await drained
  })

  test.runIf(isLinux)(
    'answers connections that waited in the queue of its socket at the signal',
    async () => {
      const service = await serve()
      service.kill('SIGSTOP')
      const ids = upTo(50)
      const connections = await Promise.all(ids.map(() => connectTo(service.endpoint)))
      for (const id of ids) connections[id - 1]?.send(createOf(id))
      service.kill('SIGTERM')
      service.kill('SIGCONT')
      const answers = await Promise.all(connections.map((connection) => connection.readResponse()))
      expect(answers.map((answer) => answer?.status)).toEqual(ids.map(() => 200))
      expect((await service.ended).code).toBe(0)
      expect(readIds(getStorePath(service))).toEqual(ids)
    },
  )
})

test('the admin port needs no token, and is not ready during a drain', async () => {
  const service = await serve(['--admin-port', '0'])
  const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
  const headers = { Authorization: undefined }
  const ask = (target: string) =>
    exchangeOnce(
      { endpoint: toConnectOptions(String(address)), token: '' },
      { method: 'GET', target, headers },
    )
  expect([(await ask('/live')).status, (await ask('/ready')).status]).toEqual([200, 200])
  expect((await ask('/nope')).status).toBe(404)
  expect((await exchangeOnce(service, { target: '/live', method: 'GET' })).status).toBe(404)
  for (const body of [moss, moss]) await exchangeOnce(service, { body })
  expect((await ask('/metrics')).body.match(/^plants_request_duration_seconds_count.*$/gm)).toEqual(
    [
      'plants_request_duration_seconds_count{outcome="404"} 1',
      'plants_request_duration_seconds_count{outcome="created"} 1',
      'plants_request_duration_seconds_count{outcome="409"} 1',
    ],
  )
  await draining(service)
  expect((await ask('/live')).status).toBe(200)
  const notReady = { text: '503 The service is draining', headers: { 'retry-after': '1' } }
  expect(await ask('/ready')).toMatchObject(notReady)
})

/** Sends a request, and waits until it has come. */
async function sentTo(service: RunningService, request: Buffer) {
  const connection = await connectTo(service.endpoint)
  connection.send(request)
  expect((await exchangeOnce(service, { target: '/nope' })).status).toBe(404) // which came after them
  return connection
}

async function isRefused({ endpoint }: RunningService): Promise<boolean> {
  const socket = connect(endpoint)
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return !isOpen
}

/** Tells a service to stop while a request is half received, on the connection that is returned. */
async function draining(
  service: RunningService,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<RawConnection> {
  const headers = { 'Content-Length': '99' }
  const connection = await sentTo(service, buildRequest(testToken, { headers, body: moss }))
  service.kill(signal)
  await expect.poll(() => service.log.map(({ msg }) => msg)).toContain('draining')
  return connection
}
