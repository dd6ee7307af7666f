import { describe, expect, test } from 'vitest'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../helpers/sandbox/certificates.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { token } from '../../helpers/sandbox/token-command-sandbox.js'
import {
  ipv4,
  proxyKinds,
  startProxy,
  startResigningProxy,
} from '../../helpers/scripted-server/proxies.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const host = `${ipv4}`
const names = [`IP:${host}`]
const creation = 'create --id 1 --name Fern'
const fern = { id: 1, name: 'Fern' }

/** Each service is asked for both: a change and a read. */
const script = {
  host,
  posts: [buildJsonResponse(200, { name: 'Fern' })],
  others: { 'GET /plants': [buildJsonResponse(200, [fern])] },
}

function runAt(store: string, line: string, variables: Record<string, string>) {
  const argv = [...line.split(' '), '--store', store, '--allow-http', '--timeout', '10s']
  return new Sandbox().spawn(argv, { env: { PLANTS_TOKEN: token, ...variables } })
}

async function createAndList(store: string, variables: Record<string, string>, args = '') {
  const create = await runAt(store, `${creation}${args}`, variables)
  return [create, await runAt(store, `list${args}`, variables)]
}

const succeeded = [
  { code: 0, out: '{"name":"Fern"}\n', err: '' },
  { code: 0, out: `${JSON.stringify(fern)}\n`, err: '' },
]

describe.each(Object.entries(proxyKinds))(
  'the proxy %s (needs it, and an address that is not loopback)',
  (_, kind) => {
    const canRun = kind.canRun && ipv4 !== undefined

    test.runIf(canRun)(
      'forwards plain http, although it opens tunnels only to port 443',
      async () => {
        const service = await ScriptedServer.listen(script)
        const http_proxy = await startProxy(kind)
        const results = await createAndList(`http://${host}:${service.port}`, { http_proxy })
        expect(results).toEqual(succeeded)
        expect(service.lines).toEqual(['POST /plants', expect.stringMatching(/^GET \/plants\?/)])
        // The service was reached by the proxy (RFC 9110, 7.6.3).
        for (const { headers } of service.requests) expect(headers['via']).toMatch(/^1\.1 /)
      },
    )

    test.runIf(canRun && hasOpenssl)('tunnels https (needs openssl)', async () => {
      const tls = createCertificate({ names })
      const service = await ScriptedServer.listen({ ...script, tls })
      const https_proxy = await startProxy(kind, service.port)
      const store = `https://${host}:${service.port}`
      expect(await createAndList(store, { https_proxy }, ` --ca-cert ${tls.path}`)).toEqual(
        succeeded,
      )
      for (const { headers } of service.requests) expect(headers['via']).toBeUndefined()
    })

    test.runIf(canRun && hasOpenssl)('names a tunnel that it rejects (needs openssl)', async () => {
      const service = await ScriptedServer.listen({ ...script, tls: createCertificate({ names }) })
      const https_proxy = await startProxy(kind)
      const store = `https://${host}:${service.port}`
      const proxyHost = new URL(https_proxy).host
      const err = expect.stringContaining(
        `Could not reach ${store} through the proxy ${proxyHost}: the proxy answered 403`,
      )
      const result = await runAt(store, `${creation} --retry 0`, { https_proxy })
      expect(result).toEqual({ code: 4, out: '', err })
      expect(service.connections).toBe(0)
    })
  },
)

describe.runIf(hasOpenssl && ipv4)(
  'a proxy that signs its own certificates (needs openssl, and an address that is not loopback)',
  () => {
    const trusts: Record<string, (authority: Certificate) => { args?: string; env?: object }> = {
      '--ca-cert names its authority': ({ path }) => ({ args: ` --ca-cert ${path}` }),
      'SSL_CERT_FILE names its authority': ({ path }) => ({ env: { SSL_CERT_FILE: path } }),
      'nothing names its authority': () => ({}),
    }

    test.each(Object.entries(trusts))('is used only if it is trusted: %s', async (name, find) => {
      const isTrusted = !name.startsWith('nothing')
      const authority = createCertificate({ names: ['DNS:authority'], isAuthority: true })
      const tls = createCertificate({ names })
      const service = await ScriptedServer.listen({ ...script, tls })
      const { port } = service
      const proxy = await startResigningProxy(authority, { host, port, ca: tls.cert })
      const { args, env } = find(authority)
      const variables = { https_proxy: proxy.url, ...env }
      const results = await createAndList(`https://${host}:${port}`, variables, args)
      const err = expect.stringMatching(/unable to verify the first certificate/)
      expect(results).toEqual(isTrusted ? succeeded : Array(2).fill({ code: 4, out: '', err }))
      expect(service.requests).toHaveLength(isTrusted ? 2 : 0)
      expect(proxy.seen().includes(token)).toBe(isTrusted)
    })
  },
)
