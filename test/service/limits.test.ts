import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { collectGarbage } from '../helpers/sandbox/store.js'
import { buildRequest, connectTo, exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import {
  createGate,
  quickStore,
  serveStore,
  testCaller,
  testToken,
} from '../helpers/scripted-server/service.js'

import { fern, getBytes, listRequest, runIterations } from './steps.js'

// How large a request and a response may be, and how much memory a request needs.

test('a service rejects more than 100 header lines before it checks anything else', async () => {
  const service = await serveStore(quickStore)
  const buildExtraLines = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, 'a']))
  const omitted = {
    Authorization: undefined,
    'Content-Length': undefined,
    'Content-Type': undefined,
  }
  const rows = [
    // Host is the hundredth line.
    { count: 99, status: 404 },
    { count: 100, status: 431 },
    { count: 500, status: 431 },
  ]
  for (const { count, status } of rows) {
    const connection = await connectTo(service.endpoint)
    const headers = { ...omitted, ...buildExtraLines(count) }
    connection.send(buildRequest(testToken, { method: 'GET', target: '/no', headers }))
    const answer = await connection.readResponse()
    expect(answer?.status).toBe(status)
    if (status !== 431) continue
    const limits = 'larger than 16 KiB, or have more than 100 lines'
    expect(answer?.text).toBe(`431 The request headers are ${limits}`)
    expect(answer?.headers['connection']).toBe('close')
    expect(await connection.readResponse()).toBeUndefined()
  }
})

const chunkedHeaders = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }

function buildChunked(body: string): Buffer {
  const chunks = body.match(/.{1,65536}/g) ?? []
  const text = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('')
  return buildRequest(testToken, { headers: chunkedHeaders, body: `${text}0\r\n\r\n` })
}

test.each([
  { framing: 'with a length', build: (body: string) => buildRequest(testToken, { body }) },
  { framing: 'in chunks of 64 KiB', build: buildChunked },
])(
  'a service reads less than 200 KB of a body $framing while it looks up the token',
  async ({ build }) => {
    const lookups = createGate()
    const size = 1_048_576
    const service = await serveStore(quickStore, {
      openTokenSource: async () => () => lookups.wait().then(() => testCaller),
    })
    const [connection, { bytesRead }] = await Promise.all([
      connectTo(service.endpoint),
      waitForServedSocket(),
    ])
    connection.send(build(fern.padEnd(size)))
    let lastBytesRead = -1
    const isStill = () => {
      const isSame = bytesRead() === lastBytesRead
      lastBytesRead = bytesRead()
      return isSame
    }
    await expect.poll(isStill, { interval: 100 }).toBe(true)
    expect(lastBytesRead).toBeLessThan(200_000)
    ;(await connectTo(service.endpoint)).send(getBytes.repeat(2000))
    await runIterations(service)
    expect(bytesRead()).toBe(lastBytesRead)
    lookups.open()
    expect((await connection.readResponse())?.text).toBe('200 {"name":"Fern"}')
  },
)

test('a service explains the syntax of a body of at most 4 KiB', async () => {
  const service = await serveStore(quickStore)
  const explain = async (size: number) =>
    (await exchangeOnce(service, { body: '['.repeat(size) })).text
  expect(await explain(4096)).toMatch(/^400 The body is not JSON: ./)
  expect(await explain(4097)).toBe('400 The body is not JSON')
})

/** Waits for the service's side of the next connection, and tells how much it has read. */
async function waitForServedSocket() {
  const served = await new Promise<Socket>((resolve) => {
    const listener = (message: unknown) => {
      unsubscribe('net.server.socket', listener)
      // The documentation of Node.js says that a message has this shape.
      resolve((message as { socket: Socket }).socket)
    }
    subscribe('net.server.socket', listener)
  })
  return { bytesRead: () => served.bytesRead }
}

test.each([
  { count: 200, link: '<plants?limit=100&after=99>; rel="next"' },
  { count: 100, link: undefined },
])(
  'a service lists 100 of $count plants when the request has no limit, and links only to more',
  async ({ count, link }) => {
    const read = async function* () {
      yield Array.from({ length: count }, (_, id) => ({ id: BigInt(id), name: 'Fern' }))
    }
    const { body, headers } = await exchangeOnce(
      await serveStore({ ...quickStore, read }),
      listRequest,
    )
    expect(JSON.parse(body)).toHaveLength(100)
    expect(headers['link']).toBe(link)
  },
)

test('a body in chunks of one byte needs little more memory than its bytes', async () => {
  const formatChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  const service = await serveStore(quickStore)
  const connection = await connectTo(service.endpoint)
  const measureMemory = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = measureMemory()
  connection
    .send(buildRequest(testToken, { headers: chunkedHeaders }))
    .send(formatChunk(' ').repeat(200_000))
  await expect.poll(() => connection.socket.writableLength).toBe(0)
  await runIterations(service)
  expect(measureMemory() - before).toBeLessThan(20_000_000)
  connection.send(formatChunk(fern) + formatChunk(''))
  expect((await connection.readResponse())?.status).toBe(200)
})
