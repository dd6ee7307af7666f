import type { Dispatcher } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import BaseDispatcher from 'undici/lib/dispatcher/dispatcher.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js'
import type { Connect, Sockets, Tunnel } from './sockets.js'

/** Connections that go through a proxy: TLS through a tunnel, plain HTTP as a request to the proxy. */
export function proxyAgent(
  proxy: string,
  isSecure: boolean,
  { tls, connections }: { tls: { rejectUnauthorized: boolean; ca?: string }; connections: number },
  sockets: Sockets,
): Dispatcher {
  BaseDispatcher.prototype.connect = connect // undici/index.js does this, and loads four fifths that are not needed
  const watched = (origin: URL | string, options: object) => {
    const { connect: connectTo } = options as { connect: Connect } // which ProxyAgent has made
    return new Pool(origin, { connections, connect: sockets.watch(connectTo) })
  }
  const tunnelled = (origin: URL | string, options: object) => {
    const { connect: connectTo } = options as { connect: Tunnel } // as above
    return new Pool(origin, { connections, connect: sockets.watchTunnel(connectTo) })
  }
  const proxyTunnel = isSecure || proxy.startsWith('https:')
  const factory = proxyTunnel ? tunnelled : watched
  return new ProxyAgent({ uri: proxy, requestTls: tls, proxyTls: tls, proxyTunnel, clientFactory: watched, factory })
}
