import { setImmediate as nextIteration } from 'node:timers/promises'
import type { SecureContext, TLSSocket } from 'node:tls'
import type { HttpAddress } from '../address.js'
import { defaultConcurrency, type HttpOptions } from './http-options.js'
import { chooseProtocol, type Transport } from './protocol.js'

/** Less than the idle timeout of most services. */
const idleTimeoutMs = 4000

/** Of the event loop. */
const iterationsBeforeWrite = 3

/** @param secureContext what is trusted in place of the access's certificates and Node.js's list */
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
  const { Agent, request, options } = await chooseProtocol(url, tls)
  return { request, target: { ...options, agent: new Agent(pool) } }
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
