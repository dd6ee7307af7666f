import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { readPeakMemory } from '../../helpers/sandbox/import-sandbox.js'
import { isLinux } from '../../helpers/sandbox/linux.js'
import { buildRequest } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

/** What each of some connections sends so many times. */
interface Flood {
  request: string
  count: number
  connections: number
}

const requestWith = (headerLines: number) =>
  `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(headerLines - 1)}\r\n`
const headers = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
const inChunks = `${buildRequest('wrong', { headers })}${'1\r\n \r\n'.repeat(200)}0\r\n\r\n`
const longHeads: Flood = { request: requestWith(2000), count: 31, connections: 200 }
const smallest: Flood = { request: 'GET / HTTP/1.1\r\n\r\n', count: 3600, connections: 40 }

describe.runIf(isLinux)(
  'clients without a token cannot end a service that has a heap of 512 MB (needs /proc):',
  () => {
    test.each([
      ['31 requests of 2,000 header lines', longHeads],
      ['3,600 requests of 18 bytes', smallest],
    ])('%s on each connection, without reading a response', (_, flood) => closesAll(flood))

    test.runIf(hasOpenssl)('3,600 requests of 18 bytes over TLS (needs openssl)', () =>
      closesAll(smallest, createCertificate({ names: ['IP:127.0.0.1'] })),
    )

    test('2,300 lines of an endless head on each of 1,500 connections', async () => {
      const { service, open, create } = await attacked()
      const head = `GET /plants HTTP/1.1\r\nHost: x\r\n${'ab:cd\r\n'.repeat(2300)}`
      const flood = async () => {
        const socket = open()
        await once(socket, 'connect')
        await new Promise((resolve) => socket.write(head, resolve))
      }
      for (let left = 1500; left > 0; left -= 100) {
        await Promise.all(Array.from({ length: 100 }, flood))
        await create(left)
      }
      expect(readPeakMemory(service.pid)).toBeLessThan(200)
    })

    test('16 bodies in chunks of one byte on each connection, again and again, without reading a response', () =>
      outlasts({ request: inChunks, count: 16, connections: 300 }))
  },
)

type Certificate = ReturnType<typeof createCertificate>

/** Creates succeed until all connections have been closed, with one line in the log for each. */
async function closesAll({ request, count, connections }: Flood, tls?: Certificate) {
  const { service, open, create } = await attacked(tls)
  const flood = async () => {
    const socket = open().pause()
    socket.write(request.repeat(count))
    await once(socket, tls ? 'secureConnect' : 'connect') // all handshakes at once might take more than their 10 s
  }
  let created = 0
  const createNext = async () => {
    created += 1
    await create(created)
  }
  await createNext()
  for (let left = connections; left > 0; left -= 10)
    await Promise.all(Array.from({ length: 10 }, flood))
  const outcomes = () => service.log.flatMap(({ outcome }) => outcome ?? [])
  const others = () => outcomes().filter((outcome) => outcome !== 'created').length
  do await createNext()
  while (others() < connections)
  expect(readPeakMemory(service.pid)).toBeLessThan(450)
  await expect.poll(() => outcomes().length).toBe(created + connections)
  expect(others()).toBe(connections)
}

/** Creates succeed while clients come again and again. */
async function outlasts({ request, count, connections }: Flood) {
  const { service, open, create } = await attacked()
  const attack = () => {
    const socket = open().pause()
    socket.write(request.repeat(count))
    return socket
  }
  const attackers = Array.from({ length: connections }, attack)
  for (let id = 1; id <= 5; id += 1) {
    await create(id)
    for (const attacker of attackers.splice(0, connections / 10)) attacker.destroy()
    attackers.push(...Array.from({ length: connections / 10 }, attack))
  }
  expect(readPeakMemory(service.pid)).toBeLessThan(450)
}

async function attacked(tls?: Certificate) {
  const env = { PLANTS_SERVE_TOKEN: testToken, NODE_OPTIONS: '--max-old-space-size=512' }
  const flags = ['--request-timeout', '1h', '--timeout', '1h']
  const secure = tls ? ['--tls-cert', tls.path, '--tls-key', tls.keyPath] : []
  const service = await serve([...flags, ...secure], { env })
  const open = (): Socket => {
    const socket = tls
      ? connectSecurely({ ...(service.endpoint as object), ca: tls.cert })
      : connect(service.endpoint)
    onTestFinished(() => void socket.destroy())
    return socket.on('error', () => undefined)
  }
  // Headers must arrive within 10 s of a new connection, which may have to wait for longer.
  const client = open()
  const create = async (id: number) => {
    client.write(buildRequest(testToken, { body: `{"id":${id},"name":"Fern"}` }))
    const [answer] = await once(client, 'data')
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
  }
  return { service, open, create }
}
