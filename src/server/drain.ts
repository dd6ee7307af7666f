import type { Server } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import type { Connections } from './connections.js'

/** How long a load balancer may send requests before it knows that the service drains. */
const graceMs = 500

/**
 * Ends a server, whose responses say `Connection: close` from now on: it accepts connections for a
 * while, closes the port, closes each connection that has no request, and waits for the others.
 *
 * @param timeoutMs the drain takes no longer than this
 */
export async function drain(
  server: Server | SecureServer,
  connections: Connections,
  timeoutMs: number,
): Promise<void> {
  const endMs = performance.now() + timeoutMs
  for (const { request } of connections) if (request) request.response.shouldKeepAlive = false
  await wait(Math.min(graceMs, timeoutMs / 2))
  await connections.waitUntilAllAccepted()
  server.close()
  while (connections.size > 0 && performance.now() < endMs) {
    // The system may have received a request that the next iteration of the event loop reads.
    await nextIteration()
    for (const { request, socket } of connections) if (!request) socket.destroy()
    await wait(10)
  }
  connections.logClosedCount()
}
