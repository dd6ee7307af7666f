import { describe, expect, test } from 'vitest'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { createdResponse, fern, token } from '../../helpers/sandbox/token-command-sandbox.js'
import { ScriptedServer, startForwardProxy } from '../../helpers/scripted-server/scripted-server.js'

describe.runIf(hasOpenssl)('over TLS (needs openssl)', () => {
  const env = { PLANTS_TOKEN: token }
  const store = 'https://plants.example.com'

  test.each(['directly', 'through a proxy'])(
    'NODE_TLS_REJECT_UNAUTHORIZED=0 sends no token to an impostor, %s',
    async (way) => {
      const names = ['IP:127.0.0.1', 'DNS:plants.example.com']
      const impostor = await ScriptedServer.listen({
        posts: [createdResponse],
        tls: createCertificate({ names }),
      })
      const proxy = await startForwardProxy({ to: impostor.port })
      const isDirect = way === 'directly'
      const place = isDirect ? {} : { HTTPS_PROXY: proxy.url }
      const result = await new Sandbox().spawn(`${fern} ${isDirect ? impostor.url : store}`, {
        env: { ...env, ...place, NODE_TLS_REJECT_UNAUTHORIZED: '0' },
      })
      expect(result).toMatchObject({ code: 4, out: '' })
      expect(result.err).toMatch(/self.signed certificate/)
      expect([impostor.bytes.length, proxy.bytes.includes(token)]).toEqual([0, false])
    },
  )

  test('DEBUG=* prints neither the token nor the password of a proxy', async () => {
    const tls = createCertificate({ names: ['DNS:plants.example.com'] })
    const service = await ScriptedServer.listen({ posts: [createdResponse], tls })
    const proxy = await startForwardProxy({ to: service.port })
    const HTTPS_PROXY = proxy.url.replace('//', '//me:of-the-proxy@')
    const result = await new Sandbox().spawn(`${fern} ${store} --ca-cert ${tls.path}`, {
      env: { ...env, HTTPS_PROXY, DEBUG: '*' },
    })
    expect(result).toEqual(toTextResult('{"name":"Fern"}\n'))
    const credentials = Buffer.from('me:of-the-proxy').toString('base64')
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${credentials}`)
  })
})
