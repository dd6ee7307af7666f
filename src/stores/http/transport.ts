import { Agent, type AgentOptions, type ClientRequest, request as httpRequest, type RequestOptions } from 'node:http'
import { Socket } from 'node:net'
import { PlantsError } from '../../platform/errors.js'
import type { Access, Observer, Steps } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'

export interface Transport {
  request(options: RequestOptions): ClientRequest
  agent: Agent
  host?: string
  port?: string
  socketPath?: string
  /** the prefix of request paths: the path of the base URL, or the whole base URL for a proxy that forwards requests */
  base: string
  proxyHeaders: Record<string, string> | undefined
  /** the event after which a socket can send a request */
  readyEvent: 'connect' | 'secureConnect'
  /** the sockets that have emitted it */
  ready: WeakSet<Socket>
  close(): void
}

/** It connects with the first request. */
export async function openTransport({ url, socketPath }: RemoteAddress, access: Access, maxSockets: number): Promise<Transport> {
  const { observer, beforeConnect } = access
  const https = url.protocol === 'https:' ? await import('node:https') : undefined
  const pool = poolOf(maxSockets)
  const agent: Agent = https ? new https.Agent({ ...pool, ...tlsOptions(access) }) : new Agent(pool)
  const transport: Transport = {
    request: https?.request ?? httpRequest,
    agent,
    ...(socketPath === undefined ? { host: hostOf(url), port: url.port } : { socketPath }),
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
    if (!(socket instanceof Socket)) throw new TypeError('An agent must return a socket')
    socket.on('error', () => undefined) // its request reports it; Bun emits it even after the request has ended
    socket.prependOnceListener(transport.readyEvent, () => transport.ready.add(socket))
    if (observer) traceSteps(socket, transport.readyEvent, observer)
    return socket
  }
  return transport
}

export function poolOf(maxSockets: number): AgentOptions {
  return { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: idleTimeout }
}

/** Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED. */
export function tlsOptions({ ca }: Access): { rejectUnauthorized: true; ca?: string } {
  return { rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
}

/** milliseconds after which an idle connection is closed: sooner than most services would close it */
const idleTimeout = 4000

/** A host for `connect`: an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

function traceSteps(socket: Socket, readyEvent: Transport['readyEvent'], observer: Observer): void {
  const steps: Steps = {}
  let last = performance.now()
  for (const [event, name] of [
    ['lookup', 'name'],
    ['connect', 'connect'],
    ['secureConnect', 'tls'],
  ] as const) {
    socket.prependOnceListener(event, () => {
      const now = performance.now()
      steps[name] = now - last
      last = now
      if (event === readyEvent) observer.connected(steps)
    })
  }
}
