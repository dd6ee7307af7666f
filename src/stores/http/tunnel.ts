import type { AgentOptions } from 'node:https'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { HttpsProxyAgent } from 'https-proxy-agent'

type Connect = HttpsProxyAgent<string>['connect']

/**
 * Opens each connection as a tunnel through a proxy (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials.
 */
export class TunnelAgent extends HttpsProxyAgent<string> {
  readonly #service: { host: string; isSecure: boolean }
  readonly #closing: AbortController

  constructor(proxy: string, service: { host: string; isSecure: boolean }, settings: AgentOptions) {
    const closing = new AbortController()
    super(proxy, { ...settings, signal: closing.signal })
    Object.assign(this.options, settings) // which the constructor leaves out
    this.#service = service
    this.#closing = closing
  }

  override isSecureEndpoint(): boolean {
    return this.#service.isSecure
  }

  override async connect(...[request, options]: Parameters<Connect>): ReturnType<Connect> {
    let status = 0
    request.once('proxyConnect', (answer: { statusCode: number }) => {
      status = answer.statusCode
    })
    const tls = {
      ALPNProtocols: ['http/1.1'],
      // Without a host, which is not passed on, Node would expect the certificate of an IP address to be for localhost.
      checkServerIdentity: (_: string, certificate: PeerCertificate) =>
        checkServerIdentity(this.#service.host, certificate),
    }
    const socket = await super.connect(request, { ...options, ...tls })
    if (status === 200) return socket
    socket.destroy() // it would read the answer of the proxy as that of the service
    throw new Error(`the proxy answered ${status}`)
  }

  override destroy(): void {
    this.#closing.abort()
    super.destroy()
  }
}
