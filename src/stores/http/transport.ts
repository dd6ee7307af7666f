import { setImmediate as nextIteration } from 'node:timers/promises'
import type { SecureContext, TLSSocket } from 'node:tls'
import type { HttpAddress } from '../address.js'
import { defaultConcurrency, type HttpOptions } from './http-options.js'
import { loadProtocol, type Transport } from './protocol.js'

/** This is less than the idle timeout of most services, which would close the connection. */
const idleTimeoutMs = 4000

/** The iterations of the event loop that pass before the first write to a new connection. */
const iterationsBeforeWrite = 3

/** @param secureContext is trusted instead of the certificates of the access and of Node.js */
export async function createTransport(
  { url }: HttpAddress,
  { access, concurrency = defaultConcurrency }: HttpOptions,
  secureContext?: SecureContext,
): Promise<Transport> {
  const { ca, proxy } = access
  const pool = { keepAlive: true, maxSockets: concurrency, timeout: idleTimeoutMs }
  // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
  const tls = { rejectUnauthorized: true, ...(secureContext ? { secureContext } : { ca }) }
  if (proxy !== undefined) {
    const { createForwarding, createTunnels } = await import('./proxied-transport.js')
    const create = url.protocol === 'https:' ? createTunnels : createForwarding
    return create(url, new URL(proxy), { pool, tls })
  }
  const { Agent, request, options } = await loadProtocol(url, tls)
  return { request, target: { ...options, agent: new Agent(pool) } }
}

/**
 * Calls a function when a connection may be written to. A connection that was kept alive may be
 * written to at once.
 *
 * A service at its connection limit accepts a new connection, and closes the connection at once. If
 * the client writes a request before it notices the close, the outcome of the request is unknown.
 * So the client waits for some iterations of the event loop, in which it would notice the close.
 * Over TLS, it takes one iteration more to notice.
 */
export function callWhenOpen(socket: TLSSocket, action: () => void): void {
  const isKeptAlive = socket.encrypted ? socket.authorized : !socket.connecting
  if (isKeptAlive) {
    action()
    return
  }
  socket.once(socket.encrypted ? 'secureConnect' : 'connect', async () => {
    for (let count = 0; count < iterationsBeforeWrite; count += 1) await nextIteration()
    action()
  })
}
