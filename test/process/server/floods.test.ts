import { connect } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { peakOf } from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { requestBytes } from '../../helpers/raw-http.js'
import { serve, testToken } from '../../helpers/service.js'

const requestWith = (headerLines: number) =>
  `GET /openapi.json HTTP/1.1\r\nHost: x\r\n${'a:\r\n'.repeat(headerLines - 1)}\r\n`

const floods: [title: string, request: string, count: number, connections: number][] = [
  ['31 requests of 3,200 header lines', requestWith(3200), 31, 300],
  ['31 requests of 90 header lines', requestWith(90), 31, 300],
  ['3,600 requests of 18 bytes', 'GET / HTTP/1.1\r\n\r\n', 3600, 100],
]

describe.runIf(isLinux)('clients without a token cannot end a service that has a heap of 512 MB (needs /proc)', () => {
  test.each(floods)('%s on each connection, and nothing is read', (_, request, count, connections) =>
    withstands(request.repeat(count), connections),
  )

  test.runIf(hasOpenssl).each(floods)(
    'over TLS: %s on each connection, and nothing is read (needs openssl)',
    (_, request, count, connections) =>
      withstands(request.repeat(count), connections, certificate({ names: ['IP:127.0.0.1'] })),
  )
})

/** Sends the same on many connections. Meanwhile, creates succeed; afterwards, all connections have been closed. */
async function withstands(bytes: string, connections: number, tls?: { cert: string; path: string; keyPath: string }) {
  const env = { PLANTS_SERVE_TOKEN: testToken, NODE_OPTIONS: '--max-old-space-size=512' }
  const args = tls ? ['--tls-cert', tls.path, '--tls-key', tls.keyPath] : []
  const service = await serve(args, { env })
  const open = () => {
    const socket = tls ? connectSecurely({ ...(service.place as object), ca: tls.cert }) : connect(service.place)
    onTestFinished(() => void socket.destroy())
    return socket.on('error', () => undefined)
  }
  for (let count = 0; count < connections; count += 1) open().pause().write(bytes)
  const ended = () => service.log.filter(({ outcome }) => outcome === 'closed' || outcome === '431')
  let id = 0
  do {
    id += 1
    const request = { headers: { Connection: 'close' }, body: `{"id":${id},"name":"Fern"}` }
    const socket = open()
    socket.write(requestBytes(testToken, request))
    expect(Buffer.concat(await socket.toArray()).toString()).toMatch(/^HTTP\/1\.1 200 /)
  } while (ended().length < connections)
  expect(peakOf(service.pid)).toBeLessThan(450)
  const requests = () => service.log.filter(({ outcome }) => outcome !== undefined)
  await expect.poll(() => requests().length).toBe(connections + id) // one line for each connection
}
