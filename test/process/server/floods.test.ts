import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { peakOf } from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { requestBytes } from '../../helpers/raw-http.js'
import { serve, testToken } from '../../helpers/service.js'

type Certificate = ReturnType<typeof certificate>
type Flood = [title: string, request: string, count: number, connections: number]

const requestWith = (headerLines: number) =>
  `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(headerLines - 1)}\r\n`
const chunkedHeaders = { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }
const inChunks = `${requestBytes('wrong', { headers: chunkedHeaders })}${'1\r\n \r\n'.repeat(200)}0\r\n\r\n`

const tooMuch: Flood[] = [
  ['31 requests of 2,000 header lines', requestWith(2000), 31, 300],
  ['3,600 requests of 18 bytes', 'GET / HTTP/1.1\r\n\r\n', 3600, 100],
]

const withinLimits: Flood[] = [
  ['16 requests for openapi.json', requestWith(1), 16, 300],
  ['16 bodies in chunks of a byte', inChunks, 16, 300],
]

describe.runIf(isLinux)(
  'clients without a token cannot end a service that has a heap of 512 MB (needs /proc)',
  () => {
    test.each(tooMuch)('%s on each connection, and nothing is read', (_, ...flood) =>
      closesAll(flood),
    )
    test.each(withinLimits)(
      '%s on each connection, again and again, and nothing is read',
      (_, ...flood) => outlasts(flood),
    )

    test.runIf(hasOpenssl).each(tooMuch.slice(1))(
      '%s over TLS (needs openssl), and nothing is read',
      (_, ...flood) => closesAll(flood, certificate({ names: ['IP:127.0.0.1'] })),
    )
  },
)

type FloodOfBytes = [request: string, count: number, connections: number]

/** Creates succeed until all connections have been closed, with one line in the log for each. */
async function closesAll([request, count, connections]: FloodOfBytes, tls?: Certificate) {
  const { service, open } = await attacked(tls)
  const client = open() // headers must arrive within 10 s of a new connection, which may have to wait for longer
  let id = 0
  const create = () => {
    id += 1
    return createOn(client, id)
  }
  const flood = async () => {
    const socket = open().pause()
    socket.write(request.repeat(count))
    await once(socket, tls ? 'secureConnect' : 'connect') // all handshakes at once might take more than their 10 s
  }
  await create()
  for (let left = connections; left > 0; left -= 10)
    await Promise.all(Array.from({ length: 10 }, flood))
  const others = () =>
    service.log.filter(({ outcome }) => outcome !== undefined && outcome !== 'created')
  do await create()
  while (others().length < connections)
  expect(peakOf(service.pid)).toBeLessThan(450)
  await expect
    .poll(() => service.log.filter(({ outcome }) => outcome === 'created').length)
    .toBe(id)
  expect(others()).toHaveLength(connections)
}

/** Creates succeed while clients come again and again. */
async function outlasts([request, count, connections]: FloodOfBytes, tls?: Certificate) {
  const { service, open } = await attacked(tls)
  const client = open()
  const attack = () => {
    const socket = open().pause()
    socket.write(request.repeat(count))
    return socket
  }
  const attackers = Array.from({ length: connections }, attack)
  for (let id = 1; id <= 5; id += 1) {
    await createOn(client, id)
    for (const attacker of attackers.splice(0, connections / 10)) attacker.destroy()
    attackers.push(...Array.from({ length: connections / 10 }, attack))
  }
  expect(peakOf(service.pid)).toBeLessThan(450)
}

async function createOn(client: Socket, id: number): Promise<void> {
  client.write(requestBytes(testToken, { body: `{"id":${id},"name":"Fern"}` }))
  const [answer] = await once(client, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
}

async function attacked(tls: Certificate | undefined) {
  const env = { PLANTS_SERVE_TOKEN: testToken, NODE_OPTIONS: '--max-old-space-size=512' }
  const flags = ['--request-timeout', '1h', '--timeout', '1h']
  const secure = tls ? ['--tls-cert', tls.path, '--tls-key', tls.keyPath] : []
  const service = await serve([...flags, ...secure], { env })
  const open = () => {
    const socket = tls
      ? connectSecurely({ ...(service.place as object), ca: tls.cert })
      : connect(service.place)
    onTestFinished(() => void socket.destroy())
    return socket.on('error', () => undefined)
  }
  return { service, open }
}
