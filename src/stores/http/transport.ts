import * as http from 'node:http'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { PeerCertificate, SecureContext, TLSSocket } from 'node:tls'
import type { HttpAddress } from '../address.js'
import { defaultConcurrency, type HttpOptions } from './http-options.js'

export type Transport = Awaited<ReturnType<typeof createTransport>>

/** Less than the idle timeout of most services. */
const idleTimeoutMs = 4000

/** Of the event loop. */
const iterationsBeforeWrite = 3

/** @param secureContext what is trusted in place of the access's certificates and Node.js's list */
export async function createTransport(
  { url }: HttpAddress,
  { access, concurrency = defaultConcurrency }: HttpOptions,
  secureContext?: SecureContext,
) {
  const { ca, proxy } = access
  const isTls = url.protocol === 'https:'
  const { Agent, request } = isTls ? await import('node:https') : http
  const pool = { keepAlive: true, maxSockets: concurrency, timeout: idleTimeoutMs }
  // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
  const tls = { rejectUnauthorized: true, ...(secureContext ? { secureContext } : { ca }) }
  const hostname = url.hostname.replace(/^\[|\]$/g, '') // of an IPv6 address
  const service = { protocol: url.protocol, hostname, port: url.port, ...(isTls && tls) }
  if (proxy === undefined) return { request, target: { ...service, agent: new Agent(pool) } }
  const { HttpsProxyAgent } = await import('https-proxy-agent')
  const { checkServerIdentity } = await import('node:tls')
  // Each connection is a tunnel (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials.
  const agent = new HttpsProxyAgent(proxy, { ...pool, ...tls })
  Object.assign(agent.options, {
    // Node would expect the certificate of an IP address to be for localhost. With an own check,
    // each request would open a connection (Node 24).
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkServerIdentity(hostname, certificate),
  })
  return { request, target: { ...service, agent } }
}

/**
 * Calls at once for a connection that was kept alive.
 *
 * A new one may be closed as soon as it is accepted, as by a service at its connection limit. What
 * is written then may have been received, so that its outcome is unknown. So a new connection waits
 * for what has arrived with it: over TLS, an end needs one more iteration of the event loop.
 */
export function callWhenOpen(socket: TLSSocket, call: () => void): void {
  const isKept = socket.encrypted ? socket.authorized : !socket.connecting
  if (isKept) {
    call()
    return
  }
  socket.once(socket.encrypted ? 'secureConnect' : 'connect', async () => {
    for (let count = 0; count < iterationsBeforeWrite; count += 1) await nextIteration()
    call()
  })
}
