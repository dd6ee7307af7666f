import { Agent, type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http'
import { Socket } from 'node:net'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { Access, Observer, Steps } from './types.js'

/** How requests get to a service: connections that are kept alive, made directly or through a proxy. */
export interface Transport {
  request(options: RequestOptions): ClientRequest
  agent: Agent
  place: { host?: string; port?: string | number; socketPath?: string }
  /** what stands before the path of a request: the path of the base_url, or all of it for a proxy that forwards requests */
  base: string
  /** what a proxy that forwards requests gets with each */
  proxyHeaders: Record<string, string> | undefined
  /** the event of a socket over which a request can be sent */
  readyEvent: 'connect' | 'secureConnect'
  /** the sockets that had it */
  ready: WeakSet<Socket>
  /** Ends all connections, also those that are being made. */
  close(): void
}

/**
 * Connects directly, and to nothing yet.
 *
 * @param maxSockets connections at most
 */
export async function openTransport({ url, socketPath }: RemoteAddress, access: Access, maxSockets: number): Promise<Transport> {
  const { observer, beforeConnect } = access
  const https = url.protocol === 'https:' ? await import('node:https') : undefined
  const pool = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: idleTimeout }
  const agent: Agent = https ? new https.Agent({ ...pool, ...tlsOptions(access) }) : new Agent(pool)
  const transport: Transport = {
    request: https?.request ?? httpRequest,
    agent,
    place: socketPath === undefined ? { host: hostOf(url), port: url.port } : { socketPath },
    base: url.pathname.replace(/\/$/, ''),
    proxyHeaders: undefined,
    readyEvent: https ? 'secureConnect' : 'connect',
    ready: new WeakSet(),
    close: () => agent.destroy(),
  }

  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (options, callback) => {
    try {
      beforeConnect?.()
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      callback?.(error, new Socket())
      return undefined
    }
    const socket = connect(options, callback)
    if (!(socket instanceof Socket)) throw new TypeError('An agent makes sockets')
    socket.on('error', () => undefined) // its request reports it; Bun emits it also when that has ended
    socket.prependOnceListener(transport.readyEvent, () => transport.ready.add(socket))
    if (observer) traceSteps(socket, transport.readyEvent, observer)
    return socket
  }
  return transport
}

/** Certificates count whatever NODE_TLS_REJECT_UNAUTHORIZED says. */
export function tlsOptions({ ca }: Access): { rejectUnauthorized: true; ca?: string } {
  return { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
}

/** milliseconds; a connection without a request is closed before most services would close it */
const idleTimeout = 4000

/** A host as the system takes it: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Tells how long each step of a connection took, when it is there. */
export function traceSteps(socket: Socket, readyEvent: Transport['readyEvent'], observer: Observer): void {
  const steps: Steps = {}
  let last = performance.now()
  const note = (event: string, name: keyof Steps) =>
    socket.prependOnceListener(event, () => {
      const now = performance.now()
      steps[name] = now - last
      last = now
      if (event === readyEvent) observer.connected(steps)
    })
  note('lookup', 'name')
  note('connect', 'connect')
  note('secureConnect', 'tls')
}
