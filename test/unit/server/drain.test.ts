import { once } from 'node:events'
import { type AddressInfo, connect, type NetConnectOpts } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../../src/server/handler.js'
import { Log } from '../../../src/server/log.js'
import { Quotas } from '../../../src/server/quotas.js'
import {
  type Handler,
  HttpServer,
  type ReceivedRequest,
  type Tls,
} from '../../../src/server/server.js'
import { rights } from '../../../src/stores/tokens.js'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { buildRequest, connectTo } from '../../helpers/scripted-server/raw-http.js'
import { createGate, createLogTo, limits } from '../../helpers/scripted-server/service.js'

const day = 86_400_000
const log = { record: () => undefined, warn: () => undefined, error: () => undefined }

/** A server in this process, which ends with the test. */
async function listen(handler: Handler, tls?: Tls) {
  const http = new HttpServer(handler, { limits, tls, log })
  onTestFinished(() => void http.server.close().closeAllConnections())
  await once(http.server.listen(0, '127.0.0.1'), 'listening')
  const { port } = http.server.address() as AddressInfo // as it listens at one
  const endpoint: NetConnectOpts = { host: '127.0.0.1', port }
  return { http, endpoint }
}

/** One iteration of the event loop. */
const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Waits until responses have to wait. */
async function untilHeld({ getPortClosing }: ReceivedRequest): Promise<void> {
  while (getPortClosing() === undefined) await nextIteration()
}

test('a drain sends no response before it has closed the port, because its client might connect again', async () => {
  const { http, endpoint } = await listen(async (received) => {
    await untilHeld(received)
    await received.getPortClosing()
    received.response.end('{}')
  })
  const connection = (await connectTo(endpoint)).send(buildRequest(''))
  await once(http.server, 'request')
  const drained = http.drain(day)
  expect(await connection.readResponse()).toMatchObject({ status: 200 })
  expect(http.server.listening).toBe(false)
  await drained
})

test('a drain delays the response to a request until the port is closed', async () => {
  const handler = createHandler({
    handlers: {
      createPlant: unused,
      listPlants: unused,
      countPlants: unused,
      getPlant: unused,
      updatePlant: unused,
      deletePlant: unused,
    },
    openApiJson: '{}',
    basePath: '',
    rights,
    cors: [],
    findCaller: async () => undefined,
    quotas: new Quotas({ bytesPerToken: 1, timeoutMs: 1 }),
    log: new Log({ ...createLogTo(async () => undefined), level: 'silent' }),
    bodyLimitBytes: 1,
  })
  const closing = createGate()
  const getPortClosing = () => closing.wait()
  const { endpoint } = await listen((received) => handler({ ...received, getPortClosing }))
  const connection = await connectTo(endpoint)
  let isAnswered = false
  connection.socket.on('data', () => {
    isAnswered = true
  })
  connection.send(buildRequest('', { method: 'GET', target: '/openapi.json' }))
  await expect.poll(() => closing.waiting).toBe(1)
  await nextIteration()
  expect(isAnswered).toBe(false)
  closing.open()
  expect(await connection.readResponse()).toMatchObject({ status: 200, body: '{}' })
})

test('a drain answers a client that connected in time, and sends its first request when others were closed', async () => {
  const { http, endpoint } = await listen(async ({ response }) => void response.end('{}'))
  const [used, silent] = [await connectTo(endpoint), await connectTo(endpoint)]
  expect(await used.send(buildRequest('')).readResponse()).toMatchObject({ status: 200 })
  used.send('POST /') // so that it is not idle, and not closed with the port
  const drained = http.drain(day)
  expect(await used.readResponse()).toBeUndefined()
  expect(await silent.send(buildRequest('')).readResponse()).toMatchObject({ status: 200 })
  await drained
})

test.runIf(hasOpenssl)(
  'a drain accepts all who wait for a TLS handshake (needs openssl)',
  async () => {
    const { cert, key } = createCertificate({ names: ['IP:127.0.0.1'] })
    const { http, endpoint } = await listen(async () => undefined, { cert, key })
    let accepted = 0
    http.server.on('connection', () => {
      accepted += 1
    })
    const sockets = Array.from({ length: 200 }, () => connect(endpoint))
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    await http.drain(0)
    expect(accepted).toBe(sockets.length)
  },
)

async function unused(): Promise<never> {
  throw new Error('No test needs this')
}
