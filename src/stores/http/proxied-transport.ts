import type { AgentOptions } from 'node:https'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate, type SecureContext } from 'node:tls'
import { PlantsError } from '../../errors.js'
import { chooseProtocol, type Transport } from './protocol.js'

interface ConnectionOptions {
  pool: AgentOptions
  tls: { rejectUnauthorized: boolean; ca?: string | undefined; secureContext?: SecureContext }
}

/** Each connection is a tunnel (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials. */
export async function createTunnels(
  url: URL,
  proxy: URL,
  { pool, tls }: ConnectionOptions,
): Promise<Transport> {
  const { HttpsProxyAgent } = await import('https-proxy-agent')
  const { request, options } = await chooseProtocol(url, tls)
  const agent = new HttpsProxyAgent(proxy, { ...pool, ...tls })
  Object.assign(agent.options, {
    // Node would expect the certificate of an IP address to be for localhost. With an own check,
    // each request would open a connection (Node 24).
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkServerIdentity(options.hostname, certificate),
  })
  const createProxyError = (status: number) => explainProxyStatus(status, proxy)
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
  const { Agent, request, options } = await chooseProtocol(proxy, tls)
  const { hostname } = options
  // Node would expect the certificate of the host that the Host header names.
  const servername = isIP(hostname) ? '' : hostname
  const target = { ...options, servername, agent: new Agent(pool) }
  const headers = { host: url.host, ...buildCredentials(proxy) }
  const createProxyError = (status: number) => explainProxyStatus(status, proxy)
  return { request, target, forwarding: { origin: url.origin, headers }, createProxyError }
}

function buildCredentials({ username, password }: URL) {
  if (username === '' && password === '') return undefined
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
}

function explainProxyStatus(status: number, { protocol, host }: URL): Error {
  if (status !== 407) return Error(`the proxy answered ${status}`)
  const message = `The proxy ${host} answered 407: it asks for another user name or password`
  const hint = `Set them in the variable of the proxy: ${protocol}//USER:PASSWORD@${host}`
  return new PlantsError('accessDenied', message, { hint })
}
