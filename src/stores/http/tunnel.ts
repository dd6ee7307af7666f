import type { AgentOptions, RequestOptions } from 'node:https'
import { checkServerIdentity } from 'node:tls'
import { HttpsProxyAgent } from 'https-proxy-agent'

/** Opens each connection as a tunnel (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials. */
export function tunnelThrough(proxy: string, host: string, settings: AgentOptions & { signal: AbortSignal }) {
  return {
    agent: new HttpsProxyAgent(proxy, settings),
    // By default, Node would expect the certificate of an IP address to be for the proxy or for localhost.
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
  } satisfies RequestOptions
}
