import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { hashToken } from '../../src/server/authenticate.js'
import { TokenCache } from '../../src/server/token-cache.js'
import type { Store } from '../../src/stores/store.js'
import { rights, type TokenStore } from '../../src/stores/tokens.js'
import {
  buildRequest,
  connectTo,
  exchangeOnce,
  type RawConnection,
  type RawRequest,
} from '../helpers/scripted-server/raw-http.js'
import {
  createGate,
  quickStore,
  serveStore,
  testCaller,
  testToken,
} from '../helpers/scripted-server/service.js'

import { fern, listRequest, runIterations } from './steps.js'

// What a token can use of a service while other tokens use it.

test('a token with 16 lists whose responses are not read gets 503 for another list', async () => {
  let readCount = 0
  const read = async function* () {
    readCount += 1
    yield [{ id: 1n, name: 'F'.repeat(8 * 1_048_576) }]
  }
  const service = await serveStore({ ...quickStore, read }, { timeoutMs: 1 })
  const unread: RawConnection[] = []
  for (let count = 1; count <= 16; count += 1) {
    const connection = await connectTo(service.endpoint)
    connection.socket.pause()
    unread.push(connection.send(buildRequest(testToken, listRequest)))
    await expect.poll(() => service.log().match(/"status":200/g)?.length).toBe(count)
  }
  const busy = { status: 503, headers: { 'retry-after': '1' } }
  expect(await exchangeOnce(service, listRequest)).toMatchObject(busy)
  expect(readCount).toBe(16)
  await runIterations(service)
  for (const { socket } of unread) socket.resetAndDestroy()
  await expect.poll(async () => (await exchangeOnce(service, listRequest)).status).toBe(200)
})

test('a token with a count in progress gets 503 for another one until its client leaves', async () => {
  const signals: (AbortSignal | undefined)[] = []
  const count: Store['count'] = async ({ signal } = {}) => {
    signals.push(signal)
    if (signals.length > 1) return 7n
    if (signal && !signal.aborted) await once(signal, 'abort')
    throw signal?.reason
  }
  const service = await serveStore({ ...quickStore, count }, { timeoutMs: 1 })
  const request: RawRequest = { method: 'GET', target: '/plants/count' }
  const { socket } = (await connectTo(service.endpoint)).send(buildRequest(testToken, request))
  await expect.poll(() => signals.length).toBe(1)
  expect((await exchangeOnce(service, request)).status).toBe(503)
  expect(signals[0]?.aborted).toBe(false)
  socket.resetAndDestroy()
  await expect.poll(() => signals[0]?.aborted).toBe(true)
  await expect.poll(async () => (await exchangeOnce(service, request)).text).toBe('200 {"count":7}')
  expect(service.log()).toMatch(/"outcome":"aborted",.*"path":"\/plants\/count"/)
})

test('bodies above 4 KiB that do not end delay neither a search of their token nor its creates', async () => {
  const read: Store['read'] = async function* () {}
  const service = await serveStore({ ...quickStore, read }, { timeoutMs: 1 })
  const headers = { 'Content-Length': '70000' }
  const slow = buildRequest(testToken, { headers, body: ' '.repeat(69_999) })
  const connections = await Promise.all(
    Array.from({ length: 64 }, () => connectTo(service.endpoint)),
  )
  for (const connection of connections) connection.send(slow)
  await runIterations(service)
  const search = await exchangeOnce(service, { method: 'GET', target: '/plants?search=x' })
  const creates = await Promise.all(
    Array.from({ length: 64 }, () => exchangeOnce(service, { body: fern.padEnd(70_000) })),
  )
  expect([search, ...creates].every(({ status }) => status === 200)).toBe(true)
})

describe('one token does not keep out another one', () => {
  const openTokenSource = async () => (name: string) => ({ ...testCaller, name })
  const withOtherToken = <T extends object>(service: T) => ({ ...service, token: 'another' })

  test('by searches, of which a token has one at a time', async () => {
    const searches = createGate()
    const read: Store['read'] = async function* ({ search } = {}) {
      if (search) await searches.wait()
      yield [{ id: 1n, name: 'Fern' }]
    }
    const service = await serveStore({ ...quickStore, read }, { openTokenSource })
    const search: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const answers = Array.from({ length: 60 }, () => exchangeOnce(service, search))
    await expect.poll(() => searches.waiting).toBe(1)
    for (const caller of [service, withOtherToken(service)])
      expect((await exchangeOnce(caller, listRequest)).status).toBe(200)
    answers.push(exchangeOnce(withOtherToken(service), search))
    await expect.poll(() => searches.waiting).toBe(2)
    searches.open()
    expect((await Promise.all(answers)).every(({ status }) => status === 200)).toBe(true)
  })

  test('by counts of searches, of which a token has one at a time', async () => {
    const searches = createGate()
    const count: Store['count'] = async ({ search } = {}) => {
      if (search !== undefined) await searches.wait()
      return 1n
    }
    const read: Store['read'] = async function* () {}
    const service = await serveStore({ ...quickStore, count, read }, { openTokenSource })
    const search: RawRequest = { method: 'GET', target: '/plants/count?search=x' }
    const listSearch: RawRequest = { method: 'GET', target: '/plants?search=x' }
    const plain: RawRequest = { method: 'GET', target: '/plants' }
    const answers = [search, search, listSearch].map((request) => exchangeOnce(service, request))
    await expect.poll(() => searches.waiting).toBe(1)
    for (const caller of [service, withOtherToken(service)])
      expect((await exchangeOnce(caller, plain)).text).toBe('200 []')
    answers.push(exchangeOnce(withOtherToken(service), search))
    await expect.poll(() => searches.waiting).toBe(2)
    searches.open()
    const statuses = (await Promise.all(answers)).map(({ text }) => text)
    expect(statuses).toEqual(['200 {"count":1}', '200 {"count":1}', '200 []', '200 {"count":1}'])
  })

  test('by bodies that do not end', async () => {
    const service = await serveStore(quickStore, { openTokenSource })
    const size = 1_048_576
    const headers = { 'Content-Length': `${size}` }
    const slow = buildRequest(testToken, { headers, body: ' '.repeat(size - 1) })
    const connecting = Array.from({ length: 80 }, () => connectTo(service.endpoint))
    const connections = await Promise.all(connecting)
    for (const connection of connections) connection.send(slow)
    const sent = () => connections.filter(({ socket }) => socket.writableLength === 0).length
    await expect.poll(sent).toBeGreaterThanOrEqual(1)
    await runIterations(service)
    expect((await exchangeOnce(withOtherToken(service), { body: fern.padEnd(size) })).status).toBe(
      200,
    )
  })

  test('by tokens that are not valid, of which 32 are looked up at a time', async () => {
    const lookups = createGate()
    const token = {
      id: 1n,
      note: undefined,
      rights,
      createdAt: new Date(0),
      expiresAt: undefined,
      revokedAt: undefined,
    }
    const valid = hashToken(testToken)
    const find: TokenStore['find'] = async (digest) =>
      valid.equals(digest) ? token : lookups.wait()
    const clock = { now: () => performance.now(), getTimeMs: Date.now }
    const cache = new TokenCache({ find } as TokenStore, clock)
    const service = await serveStore(quickStore, {
      openTokenSource: async () => (token) => cache.findCaller(token),
    })
    const sendWrongToken = (index: number) =>
      exchangeOnce({ ...service, token: `made-up-${index}` }, { body: fern })
    const wrong = Array.from({ length: 32 }, (_, index) => sendWrongToken(index))
    await expect.poll(() => lookups.waiting).toBe(32)
    wrong.push(sendWrongToken(32))
    const first = exchangeOnce(service, { body: fern })
    await runIterations(service)
    expect(lookups.waiting).toBe(32)
    lookups.open()
    expect((await first).status).toBe(200)
    for (const { text } of await Promise.all(wrong)) expect(text).toMatch(/^400 \(401\)/)
  })
})
