import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ReceivedRequest } from '../../src/server/connection.js'
import { respond } from '../../src/server/respond.js'
import { HttpServer } from '../../src/server/server.js'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { buildRequest, connectTo } from '../helpers/scripted-server/raw-http.js'
import {
  limits,
  quickStore,
  serveStore,
  testCaller,
  testToken,
} from '../helpers/scripted-server/service.js'

import { createBytes, fern, getBytes } from './steps.js'

// How many connections a service has, and which of them it closes.

describe('a new connection at the limit of --connection-limit', () => {
  const startLimited = () => serveStore(quickStore, { limits: { ...limits, connectionLimit: 3 } })
  const connectWithToken = async (service: Awaited<ReturnType<typeof startLimited>>) => {
    const connection = (await connectTo(service.endpoint)).send(createBytes)
    expect((await connection.readResponse())?.status).toBe(200)
    return connection
  }
  const connectWithWrongToken = async (service: Awaited<ReturnType<typeof startLimited>>) => {
    const connection = (await connectTo(service.endpoint)).send(buildRequest('wrong'))
    expect((await connection.readResponse())?.text).toMatch(/^400 \(401\)/)
    return connection
  }

  test('closes the connection that has been open longest without an accepted token', async () => {
    const service = await startLimited()
    const [kept, first, second] = [
      await connectWithToken(service),
      await connectWithWrongToken(service),
      await connectWithWrongToken(service),
    ]
    const another = await connectWithToken(service)
    expect(await first.readResponse()).toBeUndefined()
    for (const connection of [kept, another])
      expect((await connection.send(createBytes).readResponse())?.status).toBe(200)
    expect((await second.send(buildRequest('wrong')).readResponse())?.status).toBe(400)
    expect(service.log()).toContain('The limit of 3 connections was reached: the oldest are closed')
  })

  test.runIf(hasOpenssl)(
    'does not close a connection over TLS that has an accepted token (needs openssl)',
    async () => {
      const { path, keyPath, cert, key } = createCertificate({ names: ['IP:127.0.0.1'] })
      const service = await serveStore(quickStore, {
        limits: { ...limits, connectionLimit: 2 },
        tls: { paths: [path, keyPath], read: () => ({ cert, key }) },
      })
      const open = async (token: string) => {
        const socket = connectSecurely({ ...(service.endpoint as object), ca: cert })
        onTestFinished(() => void socket.destroy())
        await once(socket, 'secureConnect')
        socket.write(buildRequest(token, { body: fern }))
        const [answer] = await once(socket, 'data')
        return { socket, status: String(answer).slice(9, 12) }
      }
      const authorized = await open(testToken)
      const unauthorized = await open('wrong')
      const closed = once(unauthorized.socket, 'close')
      expect([authorized.status, unauthorized.status]).toEqual(['200', '400'])
      expect((await open(testToken)).status).toBe('200')
      await closed
      authorized.socket.write(createBytes)
      const [answer] = await once(authorized.socket, 'data')
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
    },
  )

  test('closes the connection whose last accepted request is longest ago if all have one', async () => {
    const service = await startLimited()
    const connections = [
      await connectWithToken(service),
      await connectWithToken(service),
      await connectWithToken(service),
    ] as const
    expect((await connections[0].send(createBytes).readResponse())?.status).toBe(200)
    const stranger = await connectWithWrongToken(service)
    expect(await connections[1].readResponse()).toBeUndefined()
    await connectWithWrongToken(service)
    expect(await stranger.readResponse()).toBeUndefined()
    for (const connection of [connections[0], connections[2]])
      expect((await connection.send(createBytes).readResponse())?.status).toBe(200)
    // The service logs it once a minute.
    expect(service.log().match(/The limit of 3 connections was reached/g)).toHaveLength(1)
  })

  test('closes the oldest connection if its token is accepted no more', async () => {
    let isAccepted = true
    const revoked = { ...testCaller, isAccepted: () => isAccepted }
    const openTokenSource = async () => (token: string) =>
      token === testToken ? testCaller : revoked
    const service = await serveStore(quickStore, {
      openTokenSource,
      limits: { ...limits, connectionLimit: 3 },
    })
    const connectAs = async (token: string) => {
      const connection = (await connectTo(service.endpoint)).send(
        buildRequest(token, { body: fern }),
      )
      expect((await connection.readResponse())?.status).toBe(200)
      return connection
    }
    const kept = await connectAs(testToken)
    const closed = await connectAs('revoked')
    const stranger = await connectTo(service.endpoint)
    isAccepted = false
    await connectTo(service.endpoint)
    expect(await closed.readResponse()).toBeUndefined()
    for (const connection of [kept, stranger])
      expect((await connection.send(createBytes).readResponse())?.status).toBe(200)
  })
})

test.each([
  { what: 'sends nothing', sendsBytes: false },
  { what: 'sends single bytes', sendsBytes: true },
])(
  'a service closes the connection of a client that $what and does not read in time',
  async ({ sendsBytes }) => {
    const respondWithLargeBody = async ({ response }: ReceivedRequest) =>
      respond(response, { status: 200, body: 'x'.repeat(32 * 1_048_576) })
    const http = new HttpServer(respondWithLargeBody, {
      limits: { requestTimeoutMs: 300, connectionLimit: 500 },
      tls: undefined,
      log: { record: () => undefined, warn: () => undefined, error: () => undefined },
    })
    onTestFinished(() => http.server.closeAllConnections())
    const { server } = http
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo // It listens at a port.
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => undefined).write(getBytes)
    await once(server, 'request')
    const count = () => {
      if (sendsBytes && socket.writable) socket.write(' ')
      return promisify(server.getConnections).call(server)
    }
    await expect.poll(count).toBe(0)
  },
)
