import connect from 'undici/lib/api/api-connect.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js'
import type { Access } from '../store.js'

/** Connections that go through a proxy: TLS through a tunnel, plain HTTP as a request to the proxy. */
export function proxyAgent(proxy: string, noProxy: string, isSecure: boolean, tls: { ca?: Access['ca'] }): EnvHttpProxyAgent {
  Dispatcher.prototype.connect = connect // undici/index.js does this, and loads four fifths that are not needed
  const addresses = isSecure ? { httpProxy: '', httpsProxy: proxy } : { httpProxy: proxy, httpsProxy: '' }
  return new EnvHttpProxyAgent({ ...addresses, noProxy, connect: tls, requestTls: tls, proxyTls: tls, proxyTunnel: isSecure })
}
