import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { Store } from '../../../src/stores/common/store.js'
import { connectTo, exchange, requestBytes } from '../../helpers/raw-http.js'
import { gate, quick, serveStore, testCaller, testToken } from '../../helpers/service.js'
import { settableTime } from '../../helpers/time.js'

const fern = '{"id":1,"name":"Fern"}'
const large = 'F'.repeat(65_536)
const page: NewPlant[] = [{ id: 1n, name: large }]

/** A store that is read in pages as `next` has them, and what has become of it. */
function storeWith(next: (count: number) => Promise<NewPlant[] | undefined>) {
  const seen = { pages: 0, isEnded: false }
  const store: Pick<Store, 'write' | 'close' | 'read'> = {
    ...quick,
    async *read() {
      try {
        for (let found = await next(0); found; found = await next(seen.pages)) {
          seen.pages += 1
          yield found
        }
      } finally {
        seen.isEnded = true
      }
    },
  }
  return { store, seen }
}

const endless = async () => page

/** Accepts each token, and calls its holder by its name. */
const openTokenSource = async () => (name: string) => ({ ...testCaller, name })

/** Asks for all plants as a stream, of which nothing is read yet. */
async function streamFrom(
  { address }: { address: string },
  token = testToken,
): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }
  const [response] = await once(
    request(`${address}/plants`, { headers, agent: false }).end(),
    'response',
  )
  onTestFinished(() => void response.destroy())
  return response
}

/** All of a stream; undefined when it is not complete. */
async function textOf(response: IncomingMessage): Promise<string | undefined> {
  const chunks = await response.toArray().catch(() => [])
  return response.complete ? Buffer.concat(chunks).toString() : undefined
}

test('a client that stops reading holds up nobody, and costs little memory', async () => {
  const { store, seen } = storeWith(endless)
  const service = await serveStore(store)
  const stream = await streamFrom(service)
  let before = -1
  const isStill = async () => {
    for (let count = 0; count < 20; count += 1)
      expect((await exchange(service, { body: fern })).status).toBe(200)
    const last = before
    before = seen.pages
    return seen.pages === last
  }
  await expect.poll(isStill).toBe(true)
  expect(seen.pages).toBeLessThan(500)
  stream.destroy()
  await expect.poll(() => seen.isEnded).toBe(true)
})

test('a stream that fails is not complete, and at its start an Error', async () => {
  const failingAt = (failure: number) =>
    serveStore(
      storeWith((count) => (count < failure ? endless() : Promise.reject(new Error('SECRET disk'))))
        .store,
    )
  const service = await failingAt(3)
  expect(await textOf(await streamFrom(service))).toBeUndefined()
  await expect.poll(() => service.log()).toMatch(/"outcome":"500"/)
  const stream = await streamFrom(await failingAt(0))
  expect([stream.statusCode, await textOf(stream)]).toEqual([
    500,
    expect.stringContaining('"error":500'),
  ])
})

test('a stream without plants is empty, and HEAD opens none', async () => {
  const { store, seen } = storeWith(async () => undefined)
  const service = await serveStore(store)
  expect(await textOf(await streamFrom(service))).toBe('')
  seen.isEnded = false
  const head = await exchange(service, {
    method: 'HEAD',
    headers: { Accept: 'application/x-ndjson' },
  })
  expect([head.status, head.headers['content-type'], seen.isEnded]).toEqual([
    200,
    'application/x-ndjson',
    false,
  ])
})

test('a second stream of a token gets 503, and so does a ninth of all', async () => {
  const service = await serveStore(storeWith(endless).store, { openTokenSource })
  const ask = (token: string) => streamFrom(service, token)
  const first = await ask('0')
  const second = await ask('0')
  const already = expect.stringContaining(
    'This token is reading a stream already, and may read one at a time',
  )
  expect([second.statusCode, second.headers['retry-after'], await textOf(second)]).toEqual([
    503,
    '1',
    already,
  ])
  for (const token of '1234567') expect((await ask(token)).statusCode).toBe(200)
  const ninth = await ask('8')
  expect([ninth.statusCode, ninth.headers['retry-after']]).toEqual([503, '1'])
  first.destroy()
  await expect.poll(async () => (await ask('0')).statusCode).toBe(200)
})

test('a stream is cut off after a time, for slow and fast readers', async () => {
  const { store, seen } = storeWith(async (count) => [{ id: BigInt(count), name: large }])
  const time = settableTime()
  const service = await serveStore(store, { openTokenSource, now: time.now })
  const [slow, fast] = [await streamFrom(service, 'slow'), await streamFrom(service, 'fast')]
  time.timeOut(600_000)
  expect(await textOf(fast)).toBeUndefined()
  await expect.poll(() => service.log().match(/"outcome":"503"/g)?.length).toBe(2)
  await expect.poll(() => seen.isEnded).toBe(true)
  expect(await textOf(slow)).toBeUndefined()
})

test('a stream ends when its token is revoked, but not when a lookup fails', async () => {
  const { store, seen } = storeWith(endless)
  const time = settableTime()
  let find = async (): Promise<typeof testCaller | string> => testCaller
  const options = { openTokenSource: async () => () => find(), now: time.now }
  const service = await serveStore(store, options)
  const stream = await streamFrom(service)
  const lookups = gate()
  find = () => lookups.wait().then(() => Promise.reject(new Error('The database is away')))
  time.timeOut(1000)
  expect(lookups.waiting).toBe(1)
  lookups.open()
  find = async () => 'The token was revoked on 2026-01-01'
  expect(seen.isEnded).toBe(false)
  time.timeOut(1000)
  expect(await textOf(stream)).toBeUndefined()
  await expect
    .poll(() => service.log())
    .toMatch(/"outcome":"401".*"reason":"The token was revoked on 2026-01-01"/)
  await expect.poll(() => seen.isEnded).toBe(true)
})

test('the oldest stream is cut when it has lasted a minute and the log has passed 1 GiB; no other begins', async () => {
  const { store } = storeWith(endless)
  const time = settableTime()
  let logSize = 0
  const service = await serveStore(
    { ...store, logSize: () => logSize },
    { openTokenSource, now: time.now },
  )
  const first = await streamFrom(service, 'first')
  time.timeOut(2000)
  const second = await streamFrom(service, 'second')
  logSize = 2 ** 30 + 1
  expect((await streamFrom(service, 'third')).statusCode).toBe(503)
  time.timeOut(57_000)
  expect(service.log()).not.toContain('1 GiB')
  time.timeOut(1000)
  expect(await textOf(first)).toBeUndefined()
  await expect.poll(() => service.log()).toMatch(/"outcome":"503".*"token":"first".*1 GiB/)
  expect([second.destroyed, service.log()]).toEqual([
    false,
    expect.not.stringContaining('"token":"second"'),
  ])
})

test('HTTP/1.0, which does not tell the end of a stream, gets none', async () => {
  const connection = await connectTo((await serveStore(storeWith(endless).store)).place)
  const request = requestBytes(testToken, {
    method: 'GET',
    headers: { Accept: 'application/x-ndjson' },
  })
  const answer = await connection.send(request.toString().replace('HTTP/1.1', 'HTTP/1.0')).answer()
  expect(answer?.text).toBe('400 HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
})

test('a drain lets a stream come to its end, and ends one that takes longer', async () => {
  const end = gate()
  const service = await serveStore(storeWith((count) => (count < 2 ? endless() : end.wait())).store)
  const stream = await streamFrom(service)
  const drained = service.drain(20_000)
  await expect.poll(() => service.log()).toMatch(/draining/)
  end.open()
  expect(await textOf(stream)).toBe(`{"id":1,"name":"${large}"}\n`.repeat(2))
  await drained

  const { store, seen } = storeWith(endless)
  const other = await serveStore(store)
  const endlessStream = await streamFrom(other)
  await other.drain(100)
  expect(await textOf(endlessStream)).toBeUndefined()
  await expect.poll(() => seen.isEnded).toBe(true)
})

test('clients that leave early keep no place among streams', async () => {
  const service = await serveStore(storeWith(endless).store)
  const ask = requestBytes(testToken, {
    method: 'GET',
    headers: { Accept: 'application/x-ndjson' },
  })
  for (let round = 1; round <= 12; round += 1) {
    const { socket } = (await connectTo(service.place)).send(ask).send(ask) // the second one waits
    await once(socket, 'data')
    await once(socket.resetAndDestroy(), 'close')
    await expect
      .poll(() => service.log().match(/aborted/g)?.length ?? 0, { interval: 5 })
      .toBeGreaterThanOrEqual(round)
  }
  expect((await streamFrom(service)).statusCode).toBe(200)
})
