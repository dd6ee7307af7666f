import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createClock, createCountingClock } from '../../helpers/sandbox/clock.js'
import { runPlants } from '../../helpers/sandbox/run.js'
import {
  buildJsonResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'
import {
  buildFailure,
  createAt,
  created,
  createRequest,
  createWithoutKeys,
  cutAfter,
  descriptionRequest,
  descriptionWithKeys,
  jsonHead,
  repeatHint,
  resetConnection,
} from './steps.js'

// What a create makes of a response that is incomplete, or late, or early. These services have no
// idempotency keys, unless a test says so, and therefore no plant is sent a second time.

const fern = '{"name":"Fern"}'
const plant = buildJsonResponse(200, fern)
const unendedChunks = `${jsonHead}Transfer-Encoding: chunked\r\n\r\nf\r\n${fern}\r\n`

test.each([
  {
    event: 'a response 500 with an Error',
    response: buildJsonResponse(500, { error: 409, message: 'No' }),
    error: { error: 502, status: 500 },
  },
  { event: 'a reset', response: resetConnection, error: { error: 504 } },
  {
    event: 'a body that lacks its last byte',
    response: cutAfter(`${jsonHead}Content-Length: 15\r\n\r\n${fern.slice(0, -1)}`),
    error: { error: 504 },
  },
  {
    event: 'the chunks of a whole Plant without their end',
    response: cutAfter(unendedChunks),
    error: { error: 504 },
  },
  {
    event: 'a response 101',
    response: 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    error: { error: 504 },
  },
  { event: 'a banner of SSH', response: 'SSH-2.0-OpenSSH_9.9\r\n', error: { error: 504 } },
  {
    event: 'a response with two lengths',
    response: `${jsonHead}Content-Length: 15\r\nContent-Length: 3\r\n\r\n${fern}`,
    error: { error: 504 },
  },
])('the outcome of a create is unknown after $event', async ({ response, error }) => {
  const requests = [createRequest, descriptionRequest]
  const failure = buildFailure(5, { ...error, ...repeatHint }, requests)
  expect(await createWithoutKeys(response)).toEqual(failure)
})

describe('a response to a create that is cut short', () => {
  const headOf25Bytes = `${jsonHead}Content-Length: 25\r\n\r\n`

  test.each([
    {
      where: 'before its Content-Length',
      response: cutAfter(headOf25Bytes + fern),
      received: '15 of 25 bytes',
    },
    {
      where: 'within its chunks',
      response: cutAfter(unendedChunks),
      received: '15 bytes, without its end',
    },
  ])('$where is reported with the number of received bytes', async ({ response, received }) => {
    const message = expect.stringContaining(`its response (200) was cut short after ${received}`)
    const { code, stderr } = await createWithoutKeys(response, createCountingClock(600_000))
    expect({ code, lastLine: stderr.at(-1) }).toEqual({
      code: 5,
      lastLine: expect.objectContaining({ error: 504, message, ...repeatHint }),
    })
  })

  test('makes the create repeat its request where the key prevents a second plant', async () => {
    const posts = [cutAfter(headOf25Bytes + fern), plant]
    const service = await ScriptedServer.listen({ posts, openapi: descriptionWithKeys })
    expect(await createAt(service)).toMatchObject({ code: 0, out: created.out })
  })
})

test('a create stops reading a body that does not end', async () => {
  const chunk = `10000\r\n${' '.repeat(65_536)}\r\n`
  let sentBytes: Promise<number> | undefined
  const response: ScriptedResponse = (socket) => {
    socket.write(`${jsonHead}Transfer-Encoding: chunked\r\n\r\n`)
    const sendMore = () => void (socket.writable && socket.write(chunk) && setImmediate(sendMore))
    socket.on('drain', sendMore)
    sentBytes = new Promise((resolve) => socket.once('close', () => resolve(socket.bytesWritten)))
    sendMore()
  }
  const error = { error: 502, status: 200, ...repeatHint }
  expect(await createWithoutKeys(response)).toEqual(buildFailure(5, error))
  // The buffers of the operating system hold more than the program reads.
  expect(await sentBytes).toBeLessThan(64 * 1_048_576)
})

test.each([
  { kind: 'of single bytes', parts: Array.from(plant, (byte) => Buffer.from([byte])) },
  { kind: 'of endless 103s', parts: Array(50).fill('HTTP/1.1 103 Early Hints\r\n\r\n') },
])('a create times out during a response $kind', async ({ parts }) => {
  const clock = createClock()
  const response: ScriptedResponse = async (socket) => {
    for (const [index, part] of parts.slice(0, -1).entries()) {
      await new Promise((resolve) => socket.write(part, resolve))
      if (index === 3) clock.timeOut()
    }
  }
  const error = { error: 504, message: expect.stringContaining('timed out'), ...repeatHint }
  expect(await createWithoutKeys(response, clock.now)).toEqual(buildFailure(5, error))
})

const tooLarge = buildJsonResponse(413, { error: 413, message: 'Too large' })

test.each([
  { event: 'stops reading', respond: (socket: Socket) => void socket.pause().write(tooLarge) },
  { event: 'closes its side', respond: (socket: Socket) => void socket.end(tooLarge) },
])(
  'a create reads a response that comes before its whole request was sent, when the service $event',
  async ({ respond }) => {
    const onConnect = (socket: Socket) => void socket.once('data', () => respond(socket))
    const service = await ScriptedServer.listen({ onConnect })
    const stdin = JSON.stringify({ id: 1, name: 'F'.repeat(1_048_000) })
    const argv = ['create', '--output', 'json', '--timeout', '1h', '--store', service.url]
    const { code, err } = await runPlants(argv, { stdin, env: { PLANTS_TOKEN: token } })
    expect(code).toBe(1)
    expect(JSON.parse(err)).toMatchObject({ error: 413, message: 'Too large' })
  },
)
