import type { AgentOptions } from 'node:https'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { PlantsError } from '../../errors.js'
import { loadProtocol, type Transport } from './protocol.js'

interface ConnectionOptions {
  pool: AgentOptions
  tls: { rejectUnauthorized: boolean; ca?: string | undefined; secureContext?: SecureContext }
}

/** Creates tunnels through a proxy. Only the proxy gets its credentials, and not the service. */
export async function createTunnels(
  url: URL,
  proxy: URL,
  { pool, tls }: ConnectionOptions,
): Promise<Transport> {
  const { TunnelAgent } = await import('./tunnel-agent.js')
  const { request, options } = await loadProtocol(url, tls)
  const proxyProtocol = await loadProtocol(proxy, tls)
  const target = {
    ...proxyProtocol.options,
    servername: toServerName(proxyProtocol.options.hostname),
  }
  const createProxyError = (status: number) => explainProxyStatus(status, proxy)
  const agent = new TunnelAgent(pool, {
    request: (connect) => proxyProtocol.request({ ...target, ...connect }),
    headers: {
      connection: 'keep-alive',
      'proxy-connection': 'keep-alive',
      ...buildCredentials(proxy),
    },
    createProxyError,
  })
  return { request, target: { ...options, agent }, createProxyError }
}

/**
 * Requests in plain http are sent to the proxy in absolute form (RFC 9112, 3.2.2), as curl sends
 * them. Many proxies open tunnels only to port 443, such as squid with the rules of Debian.
 */
export async function createForwarding(
  url: URL,
  proxy: URL,
  { pool, tls }: ConnectionOptions,
): Promise<Transport> {
  const { Agent, request, options } = await loadProtocol(proxy, tls)
  const servername = toServerName(options.hostname)
  const target = { ...options, servername, agent: new Agent(pool) }
  const headers = { host: url.host, ...buildCredentials(proxy) }
  const createProxyError = (status: number) => explainProxyStatus(status, proxy)
  return { request, target, forwarding: { origin: url.origin, headers }, createProxyError }
}

/**
 * Returns the name that the certificate of the proxy must have. By default, Node.js would expect
 * the name in the header Host, which is the name of the service.
 */
function toServerName(hostname: string): string {
  return isIP(hostname) ? '' : hostname
}

function buildCredentials({ username, password }: URL) {
  if (username === '' && password === '') return {}
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}

function explainProxyStatus(status: number, { protocol, host }: URL): Error {
  if (status !== 407) return Error(`the proxy answered ${status}`)
  const message = `The proxy ${host} answered 407: it asks for another user name or password`
  const hint = `Set them in the variable of the proxy: ${protocol}//USER:PASSWORD@${host}`
  return new PlantsError('accessDenied', message, { hint })
}
