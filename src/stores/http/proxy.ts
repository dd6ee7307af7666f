import { type Agent, type ClientRequest, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, Socket } from 'node:net'
import { type ConnectionOptions, connect } from 'node:tls'
import { hostOf, type Transport, traceSteps } from './transport.js'
import type { Observer } from './types.js'

interface Route {
  proxy: URL
  /** of the service */
  url: URL
}

/** Sends requests for HTTP to a proxy that forwards them (RFC 9112, 3.2.2). */
export function forwarded(transport: Transport, agent: Agent, { proxy, url }: Route): Transport {
  return {
    ...transport,
    options: { agent, ...placeOf(proxy) },
    base: url.origin + transport.base,
    proxyHeaders: { host: url.host, ...authorizationFor(proxy) },
  }
}

interface TunnelOptions extends Route {
  tls: ConnectionOptions
  observer: Observer | undefined
}

/** Makes the connections of an agent tunnels through a proxy (CONNECT; RFC 9110, 9.3.6). The proxy alone gets its password. */
export function tunnelled(transport: Transport, agent: Agent, { proxy, url, tls, observer }: TunnelOptions): Transport {
  const isProxySecure = proxy.protocol === 'https:'
  const isSecure = url.protocol === 'https:'
  const host = `${url.hostname}:${url.port || (isSecure ? 443 : 80)}`
  const name = hostOf(url)
  const requests = new Set<ClientRequest>()
  agent.createConnection = (_, callback) => {
    const start = performance.now()
    const headers = { host, ...authorizationFor(proxy) }
    const options = { ...placeOf(proxy), method: 'CONNECT', path: host, headers, agent: false as const }
    const request = isProxySecure ? httpsRequest({ ...tls, ...options }) : httpRequest(options)
    const fail = (error: Error) => callback?.(error, new Socket())
    requests.add(request)
    if (observer) request.once('socket', (socket) => traceSteps(socket, isProxySecure ? 'secureConnect' : 'connect', observer))
    request.once('close', () => requests.delete(request))
    request.once('error', fail)
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

function placeOf(proxy: URL): { host: string; port: string | number } {
  return { host: hostOf(proxy), port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80) }
}

function authorizationFor({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}
