/*
 * Opens connections to a service: directly, through tunnels of a proxy, or by a proxy that forwards
 * each request.
 */
import * as http from 'node:http'
import type { AgentOptions } from 'node:https'
import { isIP, isIPv6 } from 'node:net'
import type { Duplex } from 'node:stream'
import type { SecureContext, TLSSocket } from 'node:tls'
import type { HttpAddress } from '../address.js'
import type { ServiceAccess } from '../credentials.js'
import { maxConcurrency, type OpenContext } from '../store-kind.js'

/** A service, and how a client uses it. */
export interface Service extends HttpOptions {
  address: HttpAddress
}

export interface HttpOptions extends Pick<OpenContext, 'timeoutMs' | 'runtime' | 'retryMs'> {
  access: ServiceAccess
  /** At most this many requests are sent at once; 64 by default. */
  concurrency?: number | undefined
}

export interface Transport {
  request: typeof http.request
  target: Target & { agent: http.Agent }
  /** This is set if a proxy forwards each request. Otherwise, a proxy opens a tunnel. */
  forwarding?: {
    /** The origin of the service, which precedes the path of each request. */
    origin: string
    headers: Record<string, string>
  }
  close(): void
}

interface Target {
  protocol: string
  hostname: string
  port: string
  /** The name that the certificate must have. The default is the host of the request. */
  servername?: string
}

interface TlsOptions {
  rejectUnauthorized: boolean
  ca?: string | undefined
  secureContext?: SecureContext
}

/** This is less than the idle timeout of most services, which would close the connection. */
const idleTimeoutMs = 4000

/** @param secureContext is trusted instead of the certificates of the access and of Node.js */
export async function createTransport(
  { address: { url }, access: { ca, proxy }, concurrency = maxConcurrency }: Service,
  secureContext?: SecureContext,
): Promise<Transport> {
  const pool = { keepAlive: true, maxSockets: concurrency, timeout: idleTimeoutMs }
  // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
  const tls = { rejectUnauthorized: true, ...(secureContext ? { secureContext } : { ca }) }
  if (proxy !== undefined) {
    const create = url.protocol === 'https:' ? createTunnels : createForwarding
    return create(url, new URL(proxy), pool, tls)
  }
  const { Agent, request, target } = await loadProtocol(url, tls)
  const agent = new Agent(pool)
  return { request, target: { ...target, agent }, close: () => agent.destroy() }
}

async function loadProtocol(url: URL, tls: TlsOptions) {
  const { protocol, port } = url
  const hostname = url.hostname.replace(/^\[|\]$/g, '') // of an IPv6 address
  const isTls = protocol === 'https:'
  const { Agent, request } = isTls ? await import('node:https') : http
  return { Agent, request, target: { protocol, hostname, port, ...(isTls && tls) } }
}

/**
 * Opens a tunnel for each connection to a service over https (RFC 9110, 9.3.6). Only the proxy gets
 * its credentials, and not the service.
 *
 * Node.js parses the response to a CONNECT, so its limit of headers holds. https-proxy-agent is
 * not used, because it collects the headers of a proxy without a limit, and cannot be stopped while
 * a proxy sends nothing.
 */
async function createTunnels(
  url: URL,
  proxy: URL,
  pool: AgentOptions,
  tls: TlsOptions,
): Promise<Transport> {
  const { Agent, request, target } = await loadProtocol(url, tls)
  const proxyProtocol = await loadProtocol(proxy, tls)
  const servername = toServerName(proxyProtocol.target.hostname)
  const credentials = buildCredentials(proxy)
  const agent: http.Agent = new Agent(pool)
  const connectToService = agent.createConnection.bind(agent)
  const connectRequests = new Set<http.ClientRequest>()
  agent.createConnection = (options, onSocket): undefined => {
    // The type asks for a socket, which does not exist after an error.
    const fail = onSocket as ((error: Error) => void) | undefined
    const host = options.host ?? ''
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`
    const connectRequest = proxyProtocol.request({
      ...proxyProtocol.target,
      servername,
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: {
        connection: 'keep-alive',
        'proxy-connection': 'keep-alive',
        host: authority,
        ...credentials,
      },
    } as http.RequestOptions)
    connectRequests.add(connectRequest)
    connectRequest.once('close', () => connectRequests.delete(connectRequest))
    connectRequest.once('error', (error) => fail?.(error))
    connectRequest.once('connect', ({ statusCode = 0 }, socket, head) => {
      if (statusCode === 200 && head.length === 0) {
        onSocket?.(null, connectToService({ ...options, socket } as typeof options) as Duplex)
        return
      }
      socket.destroy()
      // In TLS, a service sends nothing before the client, so bytes in `head` are from the proxy.
      if (statusCode === 200) fail?.(Error('the proxy answered instead of the service'))
      else fail?.(createProxyError(statusCode))
    })
    connectRequest.end()
  }
  return {
    request,
    target: { ...target, agent },
    close: () => {
      for (const connectRequest of connectRequests) connectRequest.destroy()
      agent.destroy()
    },
  }
}

/**
 * Requests in plain http are sent to the proxy in absolute form (RFC 9112, 3.2.2), as curl sends
 * them. Many proxies open tunnels only to port 443, such as squid with the rules of Debian.
 */
async function createForwarding(
  url: URL,
  proxy: URL,
  pool: AgentOptions,
  tls: TlsOptions,
): Promise<Transport> {
  const { Agent, request, target } = await loadProtocol(proxy, tls)
  const agent = new Agent(pool)
  const servername = toServerName(target.hostname)
  return {
    request,
    target: { ...target, servername, agent },
    forwarding: { origin: url.origin, headers: { host: url.host, ...buildCredentials(proxy) } },
    close: () => agent.destroy(),
  }
}

/**
 * Returns the name that the certificate of the proxy must have. By default, Node.js would expect
 * the name in the header Host, which is the name of the service.
 */
function toServerName(hostname: string): string {
  return isIP(hostname) ? '' : hostname
}

function buildCredentials({ username, password }: URL): Record<string, string> {
  if (username === '' && password === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}

/** Creates the error of a request that the proxy has answered instead of passing it on. */
export function createProxyError(status: number): Error {
  const error = Error(`the proxy answered ${status}`)
  return status === 407 ? Object.assign(error, { code: 'PROXY_AUTHENTICATION' }) : error
}

/** Calls a function when a connection may be written to. */
export function callWhenOpen(socket: TLSSocket, action: () => void): void {
  const isOpen = socket.encrypted ? socket.authorized : !socket.connecting
  if (isOpen) action()
  else socket.once(socket.encrypted ? 'secureConnect' : 'connect', action)
}
