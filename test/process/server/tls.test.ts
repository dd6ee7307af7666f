import { once } from 'node:events'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { buildRequest, connectTo } from '../../helpers/scripted-server/raw-http.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

const list = buildRequest(testToken, { method: 'GET', target: '/plants' })

describe.runIf(hasOpenssl)('over TLS (needs openssl), a service', () => {
  async function serveSecurely(args: string[] = []) {
    const { cert, path, keyPath } = createCertificate({ names: ['DNS:localhost', 'IP:127.0.0.1'] })
    const service = await serve(['--tls-cert', path, '--tls-key', keyPath, ...args])
    const open = (options: ConnectionOptions = {}): TLSSocket => {
      const socket = connect({ ...(service.endpoint as object), ca: cert, ...options })
      onTestFinished(() => void socket.destroy())
      return socket.on('error', () => undefined)
    }
    return { service, path, open }
  }

  test('answers a create of plants that trusts its certificate', async () => {
    const { service, path } = await serveSecurely()
    expect(service.address).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    const create = `create --id 1 --name Fern --store ${service.address} --timeout 1h`
    const options = { env: { PLANTS_TOKEN: testToken } }
    const trusting = await new Sandbox().run(`${create} --ca-cert ${path}`, options)
    expect(trusting).toEqual(toJsonResult({ name: 'Fern' }))
    expect(await new Sandbox().run(create, options)).toMatchObject({ code: 4, out: '' })
  })

  test('does not wait for connections without a request or a handshake when it drains', async () => {
    const { service, open } = await serveSecurely(['--drain-timeout', '24d'])
    await once(open(), 'secureConnect')
    await connectTo(service.endpoint)
    const served = open()
    served.write(list)
    await once(served, 'data') // which came after them
    expect(await service.stop()).toMatchObject({ code: 0 })
    expect(service.log.flatMap(({ code }) => code ?? [])).toEqual([]) // none was ended by a timeout of its own
  })

  test.skipIf(process.env['PLANTS_BIN'] !== undefined)(
    'logs a failed handshake, but not a connection without one (needs Node as its runtime)',
    async () => {
      const { service, open } = await serveSecurely()
      const old = {
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'ALL:@SECLEVEL=0',
      } as const
      await expect(once(open(old), 'secureConnect')).rejects.toThrow()
      const { socket } = await connectTo(service.endpoint)
      socket.resetAndDestroy()
      await once(open(), 'secureConnect')
      const failed = () => service.log.filter(({ outcome }) => outcome === 'handshake')
      await expect
        .poll(failed)
        .toMatchObject([{ level: 'info', code: 'ERR_SSL_UNSUPPORTED_PROTOCOL', from: '127.0.0.1' }])
    },
  )
})
