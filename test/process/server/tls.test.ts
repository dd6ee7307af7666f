import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as secureRequest } from 'node:https'
import { join } from 'node:path'
import { connect as connectSecurely } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { endedIn } from '../../helpers/draining.js'
import { plants } from '../../helpers/process.js'
import { connectTo, requestBytes } from '../../helpers/raw-http.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const fern = '{"id":1,"name":"Fern"}'

describe.runIf(spawnSync('openssl', ['version']).status === 0)('over TLS (needs openssl), a service', () => {
  test('answers, and lets plants create in that trusts the certificate', async () => {
    const { service, cert } = await serveSecurely()
    expect(service.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', service.address, '--timeout', '3s']
    const trusting = await plants([...args, '--ca-cert', cert], service.folder, { env: { PLANTS_TOKEN: testToken } })
    expect(trusting).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    const other = await plants(args, service.folder, { env: { PLANTS_TOKEN: testToken } })
    expect([other.code, other.out]).toEqual([4, ''])
  })

  test('agrees on TLS 1.3, or on ECDHE with an AEAD cipher of TLS 1.2, and on nothing else', async () => {
    const { service, ca } = await serveSecurely([], ['rsa:2048'])
    const { hostname: host, port } = new URL(service.address)
    const agree = async (ciphers: string) => {
      const maxVersion = ciphers.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2'
      const socket = connectSecurely({ host, port: parseInt(port, 10), ca, ciphers, maxVersion })
      onTestFinished(() => void socket.destroy())
      return once(socket, 'secureConnect').then(
        () => socket.getProtocol(),
        ({ message }: Error) => /handshake failure/.exec(message)?.[0] ?? message,
      )
    }
    for (const ciphers of ['ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'])
      expect([ciphers, await agree(ciphers)]).toEqual([ciphers, 'TLSv1.2'])
    for (const ciphers of ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'])
      expect([ciphers, await agree(ciphers)]).toEqual([ciphers, 'TLSv1.3'])
    // Without forward secrecy, with CBC, and with DHE.
    for (const ciphers of ['AES256-SHA', 'AES128-GCM-SHA256', 'ECDHE-RSA-AES256-SHA384', 'DHE-RSA-AES128-GCM-SHA256'])
      expect([ciphers, await agree(ciphers)]).toEqual([ciphers, 'handshake failure'])
  })

  test('closes on whoever speaks no TLS, and goes on', async () => {
    const { service, ca } = await serveSecurely()
    const plain = await connectTo(service.place)
    expect(await plain.send(requestBytes(testToken, { body: fern })).answers()).toEqual([])
    expect(await statusOf(service, ca)).toBe(200)
  })

  test.each([
    ['a connection that has brought no request', true],
    ['a connection that has not even said hello', false],
  ])('does not wait, when it drains, for %s', async (_, isSecure) => {
    const { service, ca } = await serveSecurely(['--drain-timeout', '9s'])
    if (isSecure) await helloTo(service, ca)
    else await connectTo(service.place)
    expect(await statusOf(service, ca)).toBe(200)
    expect(await endedIn(4000, service.stop())).toMatchObject({ code: 0 })
  })

  test('does not start with a key that is not the one of the certificate', async () => {
    const folder = temporaryFolder()
    const [one, two] = [certificate(folder, 'one'), certificate(folder, 'two')]
    const args = ['serve', '--port', '0', '--tls-cert', one.cert]
    const env = { PLANTS_SERVE_TOKEN: testToken }
    expect((await plants([...args, '--tls-key', two.key], folder, { env })).code).toBe(2)
    expect((await plants(args, folder, { env })).code).toBe(2)
    expect((await plants([...args, '--tls-key', join(folder, 'none')], folder, { env })).code).toBe(2)
  })
})

function certificate(folder: string, name = 'plants', type = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']) {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  const names = 'subjectAltName=DNS:localhost,IP:127.0.0.1'
  const how = ['-x509', '-newkey', ...type, '-nodes', '-days', '2', '-subj', '/CN=localhost']
  const { status, stderr } = spawnSync('openssl', ['req', ...how, '-addext', names, '-keyout', key, '-out', cert], {
    encoding: 'utf8',
  })
  expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  return { cert, key }
}

async function serveSecurely(args: string[] = [], type?: string[]) {
  const folder = temporaryFolder()
  const { cert, key } = certificate(folder, 'plants', type)
  const service = await serve(['--tls-cert', cert, '--tls-key', key, ...args], { folder })
  return { service, cert, ca: readFileSync(cert) }
}

/** A TLS connection that says no more than hello. */
async function helloTo({ address }: RunningService, ca: Buffer): Promise<void> {
  const { hostname: host, port } = new URL(address)
  const socket = connectSecurely({ host, port: parseInt(port, 10), ca })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'secureConnect')
}

function statusOf(service: RunningService, ca: Buffer): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${testToken}`, 'Content-Type': 'application/json' }
    const request = secureRequest(
      `${service.address}/plants`,
      { method: 'POST', ca, headers, agent: false },
      (response) => {
        response.resume()
        resolve(response.statusCode)
      },
    )
    request.once('error', reject).end(fern)
  })
}
