import { type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, Socket } from 'node:net'
import { connect } from 'node:tls'
import type { Access } from '../common/access.js'
import { hostOf, type Transport, tlsOptions, traceSteps } from './transport.js'

/** Sends requests through a proxy: an http proxy forwards plain HTTP requests (RFC 9112, 3.2.2); everything else uses a tunnel. */
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

/** Opens each connection as a tunnel (CONNECT; RFC 9110, 9.3.6). Only the proxy receives the proxy credentials. */
function tunnelled(transport: Transport, url: URL, proxy: URL, access: Access): Transport {
  const { observer } = access
  const { agent } = transport
  const tls = tlsOptions(access)
  const isProxySecure = proxy.protocol === 'https:'
  const isSecure = url.protocol === 'https:'
  const host = `${url.hostname}:${url.port || (isSecure ? 443 : 80)}`
  const name = hostOf(url)
  const requests = new Set<ClientRequest>()
  agent.createConnection = (_, callback) => {
    const start = performance.now()
    const headers = { host, ...authorizationFor(proxy) }
    const options = { host: hostOf(proxy), port: proxy.port, method: 'CONNECT', path: host, headers, agent: false as const }
    const request = isProxySecure ? httpsRequest({ ...tls, ...options }) : httpRequest(options)
    const fail = (error: Error) => callback?.(error, new Socket())
    requests.add(request)
    if (observer) request.once('socket', (socket) => traceSteps(socket, isProxySecure ? 'secureConnect' : 'connect', observer))
    request.once('close', () => requests.delete(request))
    request.on('error', fail)
    request.once('connect', ({ statusCode = 0 }, tunnel: Socket) => {
      if (statusCode < 200 || statusCode > 299) {
        tunnel.destroy()
        return fail(new Error(`the proxy answered ${statusCode}`))
      }
      const socket = isSecure
        ? connect({ ...tls, socket: tunnel, host: name, servername: isIP(name) ? '' : name, ALPNProtocols: ['http/1.1'] })
        : tunnel
      const ready = () => {
        transport.ready.add(socket)
        observer?.connected({ tunnel: performance.now() - start })
      }
      if (isSecure) socket.prependOnceListener('secureConnect', ready)
      else ready()
      callback?.(null, socket)
    })
    request.end()
    return undefined
  }
  const close = () => {
    for (const request of requests) request.destroy()
    transport.close()
  }
  return { ...transport, close }
}

function authorizationFor({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}
