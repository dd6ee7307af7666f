import * as http from 'node:http'

export interface Transport {
  request: typeof http.request
  target: { protocol: string; hostname: string; port: string; agent: http.Agent }
  /** This is set if a proxy forwards each request. Otherwise, a proxy opens a tunnel. */
  forwarding?: Forwarding
  /** Creates the error for a request that the proxy has answered instead of passing it on. */
  createProxyError?(status: number): Error
}

interface Forwarding {
  /** The origin of the service, which precedes the path of each request. */
  origin: string
  headers: Record<string, string>
}

export async function loadProtocol<Tls extends object>(url: URL, tls: Tls) {
  const { protocol, port } = url
  const hostname = url.hostname.replace(/^\[|\]$/g, '') // of an IPv6 address
  const isTls = protocol === 'https:'
  const { Agent, request } = isTls ? await import('node:https') : http
  return { Agent, request, options: { protocol, hostname, port, ...(isTls && tls) } }
}
