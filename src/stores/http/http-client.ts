import { once } from 'node:events'
import * as http from 'node:http'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { PeerCertificate, TLSSocket } from 'node:tls'
import { isJsonType } from '../../plant/json.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { within } from '../../platform/runtime.js'
import type { HttpAddress } from '../address.js'
import type { ServiceAccess } from '../credentials.js'
import { defaultConcurrency, type HttpOptions } from './http-options.js'

export interface HttpRequest<T = unknown> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the base URL. */
  path: string
  idempotencyKey?: string
  body?: string
  expected: Expected<T>
}

export interface Expected<T> {
  /** As messages name it: "Plant". */
  what: string
  /** Undefined for another response with 200. */
  read(response: HttpResponse): T | undefined
}

export interface HttpResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  /** The body was larger than 16 MiB. */
  isCut: boolean
}

export interface NoResponse {
  cause: unknown
  /** A byte of the request may have left, so that the service may have received all of it. */
  isSent: boolean
}

/** A plant has at most 1 MiB, and JSON escapes grow it up to sixfold. */
const maxBodyBytes = 16 * 1_048_576

/** Less than the idle timeout of most services. */
const idleTimeoutMs = 4000

/** Of the event loop. */
const iterationsBeforeWrite = 3

/** Does not follow redirects. */
export class HttpClient {
  readonly address: HttpAddress
  readonly options: HttpOptions
  access: ServiceAccess
  connectedAt: number | undefined
  /** Once the service was asked whether it lists idempotency keys. */
  keepsKeys: Promise<boolean> | undefined
  /** A person knows of a repetition. */
  hasWarned = false
  #transport: ReturnType<typeof transportTo> | undefined
  #speaksTls: Promise<boolean> | undefined

  constructor(address: HttpAddress, options: HttpOptions) {
    this.address = address
    this.access = options.access
    this.options = options
  }

  async send(
    request: HttpRequest,
    timeoutMs: number,
    signals: AbortSignal[],
  ): Promise<HttpResponse | NoResponse> {
    const { method, path, body } = request
    const { url, name } = this.address
    const { trace } = this.access
    let isSent = false
    trace?.(`> ${method} ${name}${path}`)
    const result = await within(timeoutMs, signals, async (signal) => {
      this.#transport ??= transportTo(this.address, this.options)
      const transport = await this.#transport
      try {
        signal.throwIfAborted()
        const outgoing = transport.request({
          ...transport.target,
          method,
          path: url.pathname.replace(/\/$/, '') + path,
          headers: buildHeaders(request, this.access),
        })
        signal.addEventListener('abort', () => outgoing.destroy(signal.reason))
        let isOver = false
        // After the response, an error concerns nobody.
        outgoing.on('error', () => {
          isOver = true
        })
        // Otherwise what the proxy says would be taken for the response of the service.
        outgoing.on('proxyConnect', ({ statusCode }: { statusCode: number }) => {
          if (statusCode !== 200) outgoing.destroy(Error(`the proxy answered ${statusCode}`))
        })
        const write = () => {
          if (isOver || outgoing.destroyed) return
          isSent = true
          this.connectedAt ??= this.options.runtime.now()
          // Without a body, too, nothing is written before this.
          outgoing.end(body)
        }
        outgoing.on('socket', (socket) => callWhenOpen(socket as TLSSocket, write))
        const [incoming] = await Promise.race([once(outgoing, 'response'), once(outgoing, 'close')])
        if (!incoming) throw Error('the connection was closed') // after a 101
        const response = await readResponse(incoming)
        if (!mayComeFromTlsPort(response)) return response
        return (await this.#examineTlsPort(transport.target, signal)) ?? response
      } catch (cause) {
        if (signal.aborted) return { cause: signal.reason, isSent }
        const lost = { cause, isSent }
        if (!isSent) return lost
        return (await this.#examineTlsPort(transport.target, signal, cause)) ?? lost
      }
    })
    if ('cause' in result) trace?.(`* failed: ${result.cause}`)
    else trace?.(`< ${result.status}, ${result.body.length} bytes`)
    return result
  }

  /**
   * Explains a request in plain http whose port speaks TLS; any other is undefined.
   *
   * @param cause why it has no response; undefined for one that may come from such a port
   */
  async #examineTlsPort(
    target: Pick<URL, 'hostname' | 'port'>,
    signal: AbortSignal,
    cause?: unknown,
  ): Promise<NoResponse | undefined> {
    if (this.address.url.protocol !== 'http:' || this.access.proxy !== undefined) return undefined
    const { createTlsPortError, isTlsAlert, speaksTls } = await import('./tls-port.js')
    const isAlert = isTlsAlert(cause)
    if (!isAlert) {
      this.#speaksTls ??= speaksTls(target, signal)
      if (!(await this.#speaksTls)) return undefined
    }
    // A response, or an alert, says that the request was not understood.
    const isAnswered = isAlert || cause === undefined
    return { cause: createTlsPortError(this.address, cause), isSent: !isAnswered }
  }

  /** Whether there is another token than one that was rejected. */
  async renewToken(rejected: string): Promise<boolean> {
    const token = await this.access.renew?.()
    if (token === undefined || token === rejected) return false
    this.access = { ...this.access, token }
    return true
  }

  async close(): Promise<void> {
    const transport = await this.#transport
    transport?.target.agent.destroy()
  }
}

async function transportTo({ url }: HttpAddress, options: HttpOptions) {
  const { access, concurrency = defaultConcurrency } = options
  const { ca, proxy } = access
  const isTls = url.protocol === 'https:'
  const { Agent, request } = isTls ? await import('node:https') : http
  const pool = { keepAlive: true, maxSockets: concurrency, timeout: idleTimeoutMs }
  // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
  const tls = { rejectUnauthorized: true, ca }
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

/** Such as "Client sent an HTTP request to an HTTPS server", in text or HTML. */
function mayComeFromTlsPort({ status, headers }: HttpResponse): boolean {
  return status === 400 && !isJsonType(headers['content-type'] ?? '')
}

/**
 * Calls at once for a connection that was kept alive.
 *
 * A new one may be closed as soon as it is accepted, as by a service at its connection limit. What
 * is written then may have been received, so that its outcome is unknown. So a new connection waits
 * for what has arrived with it: over TLS, an end needs one more iteration of the event loop.
 */
function callWhenOpen(socket: TLSSocket, call: () => void): void {
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

async function readResponse(incoming: http.IncomingMessage): Promise<HttpResponse> {
  const { statusCode: status = 0, headers } = incoming
  const received = new GrowingBuffer()
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    received.append(chunk)
    if (received.length > maxBodyBytes) break
  }
  return { status, headers, body: received.bytes, isCut: received.length > maxBodyBytes }
}

function buildHeaders({ idempotencyKey, body }: HttpRequest, { token, userAgent }: ServiceAccess) {
  return {
    accept: 'application/json',
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    'user-agent': userAgent,
  }
}
