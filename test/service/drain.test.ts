import { once } from 'node:events'
import { type AddressInfo, connect, type NetConnectOpts } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { type Handler, HttpServer, type Tls } from '../../src/server/server.js'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { buildRequest, connectTo } from '../helpers/scripted-server/raw-http.js'
import { limits, testToken } from '../helpers/scripted-server/service.js'

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

test('a response to a request that comes during a drain says that the connection closes', async () => {
  const { http, endpoint } = await listen(async ({ response }) => void response.end())
  const connection = await connectTo(endpoint)
  const drained = http.drain(60_000)
  const response = await connection.send(buildRequest(testToken)).readResponse()
  expect(response?.headers['connection']).toBe('close')
  await drained
})
