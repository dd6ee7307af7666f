import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { HttpsProxyAgent } from 'https-proxy-agent'
import type { Access } from '../common/access.js'
import { hostOf, poolOf, type Transport, tlsOptions } from './transport.js'

/** Sends requests through a proxy: an http proxy forwards plain HTTP (RFC 9112, 3.2.2); all else uses a tunnel. */
export function throughProxy(transport: Transport, url: URL, proxy: URL, access: Access): Transport {
  if (url.protocol === 'https:' || proxy.protocol === 'https:') return tunnelled(transport, url, proxy, access)
  return {
    ...transport,
    host: hostOf(proxy),
    port: proxy.port,
    base: url.origin + transport.base,
    proxyHeaders: { host: url.host, ...authorizationFor(proxy) },
  }
}

type Connect = HttpsProxyAgent<string>['connect']

/** Opens each connection as a tunnel (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials. */
function tunnelled(transport: Transport, url: URL, proxy: URL, access: Access): Transport {
  const isSecure = url.protocol === 'https:'
  const tls = tlsOptions(access)
  const tlsToService = {
    ...tls,
    ALPNProtocols: ['http/1.1'],
    // Without a host, which is not passed on, Node would expect the certificate of an IP address to be for localhost.
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(hostOf(url), certificate),
  }
  class TunnelAgent extends HttpsProxyAgent<string> {
    override isSecureEndpoint(): boolean {
      return isSecure
    }

    override async connect(...[request, options]: Parameters<Connect>): ReturnType<Connect> {
      const start = performance.now()
      let status = 0
      request.once('proxyConnect', (answer: { statusCode: number }) => {
        status = answer.statusCode
      })
      const socket = await super.connect(request, { ...options, ...tlsToService })
      if (status !== 200) {
        socket.destroy() // it would read the answer of the proxy as that of the service
        throw new Error(`the proxy answered ${status}`)
      }
      const ready = () => {
        transport.ready.add(socket)
        access.observer?.connected({ tunnel: performance.now() - start })
      }
      if (isSecure) socket.prependOnceListener('secureConnect', ready)
      else ready()
      return socket
    }
  }
  const closing = new AbortController()
  const pool = poolOf(transport.agent.maxSockets)
  const agent = new TunnelAgent(proxy, { ...pool, ...tls, signal: closing.signal })
  Object.assign(agent.options, pool) // which the constructor leaves out
  const close = () => {
    closing.abort()
    agent.destroy()
  }
  return { ...transport, agent, close }
}

function authorizationFor({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}
