/*
 * Opens a tunnel through the proxy for each connection to a service over https (RFC 9110, 9.3.6).
 *
 * Node.js parses the response to a CONNECT, so its limit of headers holds. https-proxy-agent is
 * not used, because it collects the headers of a proxy without a limit, and cannot be stopped while
 * a proxy sends nothing.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { Agent, type AgentOptions } from 'node:https'
import { isIPv6 } from 'node:net'
import type { Duplex } from 'node:stream'

interface Tunnels {
  /** Sends a request to the proxy. */
  request(options: RequestOptions): ClientRequest
  /** The headers of each CONNECT, such as the credentials for the proxy. */
  headers: Record<string, string>
  createProxyError(status: number): Error
}

type OnSocket = (error: Error | null, socket: Duplex) => void

export class TunnelAgent extends Agent {
  readonly #tunnels: Tunnels
  readonly #connectRequests = new Set<ClientRequest>()

  constructor(options: AgentOptions, tunnels: Tunnels) {
    super(options)
    this.#tunnels = tunnels
  }

  override createConnection(options: RequestOptions, onSocket: OnSocket): undefined {
    const { request, headers, createProxyError } = this.#tunnels
    // The type asks for a socket, which does not exist after an error.
    const fail = onSocket as (error: Error) => void
    const host = `${options.host}`
    const authority = `${isIPv6(host) ? `[${host}]` : host}:${options.port}`
    const target = { method: 'CONNECT', path: authority, agent: false }
    const connectRequest = request({ ...target, headers: { host: authority, ...headers } })
    this.#connectRequests.add(connectRequest)
    connectRequest.once('close', () => this.#connectRequests.delete(connectRequest))
    connectRequest.once('error', fail)
    connectRequest.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Duplex, head) => {
      const isOpen = statusCode === 200 && head.length === 0
      if (isOpen) {
        onSocket(null, super.createConnection({ ...options, socket } as RequestOptions) as Duplex)
        return
      }
      socket.destroy()
      // In TLS, a service sends nothing before the client, so these bytes are from the proxy.
      const isAnsweredByProxy = statusCode === 200
      fail(
        isAnsweredByProxy
          ? Error('the proxy answered instead of the service')
          : createProxyError(statusCode),
      )
    })
    connectRequest.end()
  }

  override destroy(): void {
    for (const connectRequest of this.#connectRequests) connectRequest.destroy()
    super.destroy()
  }
}
