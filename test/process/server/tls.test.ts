import { once } from 'node:events'
import { type ConnectionOptions, connect as connectSecurely, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { connectTo, requestBytes } from '../../helpers/raw-http.js'
import { serve, testToken } from '../../helpers/service.js'
import { answer, World } from '../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}'

describe.runIf(hasOpenssl)('over TLS (needs openssl), a service', () => {
  test('answers, and lets plants create in that trusts the certificate', async () => {
    const { service, path } = await serveSecurely()
    expect(service.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const create = `create --id 1 --name Fern --store ${service.address} --timeout 1h`
    const options = { env: { PLANTS_TOKEN: testToken } }
    expect(await new World().run(`${create} --ca-cert ${path}`, options)).toEqual(
      answer({ name: 'Fern' }),
    )
    expect(await new World().run(create, options)).toMatchObject({ code: 4, out: '' })
  })

  test('agrees only on TLS 1.3, or on ECDHE with an AEAD cipher of TLS 1.2', async () => {
    const { open } = await serveSecurely([], true)
    const agree = async (ciphers: string) => {
      const socket = open({
        ciphers,
        maxVersion: ciphers.startsWith('TLS_') ? 'TLSv1.3' : 'TLSv1.2',
      })
      return once(socket, 'secureConnect').then(
        () => socket.getProtocol(),
        ({ message }: Error) => /handshake failure/.exec(message)?.[0] ?? message,
      )
    }
    const agreed: Record<string, string> = {
      'TLSv1.2': 'ECDHE-RSA-AES128-GCM-SHA256 ECDHE-RSA-CHACHA20-POLY1305',
      'TLSv1.3': 'TLS_AES_128_GCM_SHA256',
      // without forward secrecy, with CBC, and with DHE
      'handshake failure':
        'AES256-SHA AES128-GCM-SHA256 ECDHE-RSA-AES256-SHA384 DHE-RSA-AES128-GCM-SHA256',
    }
    for (const [protocol, names] of Object.entries(agreed))
      for (const name of names.split(' '))
        expect([name, await agree(name)]).toEqual([name, protocol])
  })

  test('does not wait, when it drains, for connections without a request, or even a hello', async () => {
    const { service, open, isServed } = await serveSecurely(['--drain-timeout', '24d'])
    await once(open(), 'secureConnect')
    await connectTo(service.place)
    await isServed()
    expect(await service.stop()).toMatchObject({ code: 0 })
    expect(service.log.flatMap(({ code }) => code ?? [])).toEqual([]) // none was ended by a timeout of its own
  })
})

async function serveSecurely(args: string[] = [], isRsa = false) {
  const { cert, path, keyPath } = certificate({ names: ['DNS:localhost', 'IP:127.0.0.1'], isRsa })
  const service = await serve(['--tls-cert', path, '--tls-key', keyPath, ...args])
  const { hostname: host, port } = new URL(service.address)
  const open = (options: ConnectionOptions = {}): TLSSocket => {
    const socket = connectSecurely({ host, port: Number(port), ca: cert, ...options })
    onTestFinished(() => void socket.destroy())
    return socket.on('error', () => undefined)
  }
  const isServed = async () => {
    const socket = open()
    socket.write(requestBytes(testToken, { body: fern }))
    const [head] = await once(socket, 'data')
    expect(String(head)).toMatch(/^HTTP\/1\.1 200 /)
  }
  return { service, path, open, isServed }
}
