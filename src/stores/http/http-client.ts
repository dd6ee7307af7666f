import { once } from 'node:events'
import type * as http from 'node:http'
import type { TLSSocket } from 'node:tls'
import { getSystemCode } from '../../errors.js'
import { isJsonType } from '../../plant/json.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { runWithin } from '../../platform/runtime.js'
import { isUnknownIssuer } from '../certificate-errors.js'
import type { ServiceAccess } from '../credentials.js'
import {
  callWhenOpen,
  createProxyError,
  createTransport,
  type Service,
  type Transport,
} from './transport.js'

export interface HttpRequest<T = unknown> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** The path below the base URL. */
  path: string
  idempotencyKey?: string
  body?: string
  expectedValue: ExpectedValue<T>
}

/** A request with the token that it sends. */
type AuthorizedRequest = HttpRequest & { token: string }

export interface ExpectedValue<T> {
  /** The name of the expected value in messages, such as "Plant". */
  noun: string
  /** The largest body of a response with status 200; 4 MiB by default. */
  maxBytes?: number
  /**
   * Returns the value of a response with status 200, or undefined if the body is not the expected
   * value.
   */
  read(response: HttpResponse): T | undefined
}

export interface HttpResponse {
  status: number
  headers: http.IncomingHttpHeaders
  body: Buffer
  /** The number of bytes that the body may have and exceeds. Then its rest was not received. */
  exceededBytes: number | undefined
}

export interface NoResponse {
  cause: unknown
  /**
   * True if a byte of the request may have left this process: then the service may have received
   * the whole request.
   */
  isSent: boolean
}

/**
 * A plant has at most 1 MiB as JSON in UTF-8, and a service that escapes all letters beyond ASCII
 * sends up to three times as much. To parse a body may take 50 times its size in memory.
 */
const maxBodyBytes = 4 * 1_048_576

/** Sends requests to a service. It follows no redirects, because the token is for one address. */
export class HttpClient {
  #connectedAtMs: number | undefined
  #transport: Promise<Transport> | undefined
  /** The transport that also trusts the certificates of the system, if there are any. */
  #systemTransport: Promise<Transport | undefined> | undefined

  constructor(private readonly service: Service) {}

  /** The time of the first connection, or undefined if there was none. */
  get connectedAtMs(): number | undefined {
    return this.#connectedAtMs
  }

  async send(
    request: AuthorizedRequest,
    timeoutMs: number,
    signals: AbortSignal[],
  ): Promise<HttpResponse | NoResponse> {
    const { address, access } = this.service
    access.trace?.(`> ${request.method} ${address.name}${request.path}`)
    const result = await runWithin(timeoutMs, signals, (signal) => this.#exchange(request, signal))
    if ('cause' in result) access.trace?.(`* failed: ${result.cause}`)
    else access.trace?.(`< ${result.status}, ${result.body.length} bytes`)
    return result
  }

  async #exchange(
    request: AuthorizedRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse | NoResponse> {
    let isSent = false
    const onSent = () => {
      isSent = true
      this.#connectedAtMs ??= this.service.runtime.now()
    }
    this.#transport ??= createTransport(this.service)
    const transport = (await this.#systemTransport) ?? (await this.#transport)
    try {
      signal.throwIfAborted()
      const response = await this.#sendAndReceive(transport, request, signal, onSent)
      const cause = findForeignCause(response, transport)
      return cause ? { cause, isSent: false } : response
    } catch (cause) {
      if (signal.aborted) return { cause: signal.reason, isSent }
      const mayRepeat = !isSent && isUnknownIssuer(cause) && (await this.#trustSystem(transport))
      return mayRepeat ? this.#exchange(request, signal) : { cause, isSent }
    }
  }

  /** @param onSent is called before the first byte is written */
  async #sendAndReceive(
    { request: open, target, forwarding }: Transport,
    request: AuthorizedRequest,
    signal: AbortSignal,
    onSent: () => void,
  ): Promise<HttpResponse> {
    const { address, access } = this.service
    const path = address.url.pathname.replace(/\/$/, '') + request.path
    const outgoingRequest = open({
      ...target,
      method: request.method,
      path: forwarding ? forwarding.origin + path : path,
      headers: { ...buildHeaders(request, access), ...forwarding?.headers },
    })
    // A request that waits for a tunnel has no socket, and emits no event when it is destroyed.
    const abortPromise = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        outgoingRequest.destroy(signal.reason)
        reject(signal.reason)
      })
    })
    let hasFailed = false
    // Before the response, `once` rejects with an error. After it, an error would end the process
    // without this listener.
    outgoingRequest.on('error', () => {
      hasFailed = true
    })
    const write = () => {
      if (hasFailed || outgoingRequest.destroyed) return
      onSent()
      // Even the head of a request is written only by `end`.
      outgoingRequest.end(request.body)
    }
    outgoingRequest.on('socket', (socket) => callWhenOpen(socket as TLSSocket, write))
    const events = [once(outgoingRequest, 'response'), once(outgoingRequest, 'close'), abortPromise]
    const [incomingMessage] = await Promise.race(events)
    if (!incomingMessage) throw Error('the connection was closed') // after a 101
    return readResponse(incomingMessage, request.expectedValue)
  }

  /**
   * Begins to trust the certificates of the system, after a handshake failed for an unknown issuer.
   * The certificates are not loaded earlier, because to load them takes longer than most commands.
   *
   * @returns true if the request must be repeated. No byte of it was sent.
   */
  async #trustSystem(failedTransport: Transport): Promise<boolean> {
    const { createSystemContext, trace } = this.service.access
    this.#systemTransport ??= (async () => {
      const secureContext = await createSystemContext?.()
      if (secureContext === undefined) return undefined
      trace?.('* unknown issuer: trying again with the certificates of the system')
      return createTransport(this.service, secureContext)
    })()
    const transport = await this.#systemTransport
    return transport !== undefined && transport !== failedTransport
  }

  async close(): Promise<void> {
    for (const transport of [await this.#transport, await this.#systemTransport]) transport?.close()
  }
}

/**
 * Recognizes a response that shows that no service has got the request. Only a proxy answers 407
 * (RFC 9110, 15.5.8). Ports with TLS of Go (Caddy), nginx, Apache and Tomcat answer plain HTTP with
 * these words.
 */
function findForeignCause(
  { status, headers, body }: HttpResponse,
  { target, forwarding }: Transport,
): Error | undefined {
  if (status === 407 && forwarding) return createProxyError(status)
  if (status !== 400 || target.protocol !== 'http:') return undefined
  const isError = isJsonType(headers['content-type'] ?? '')
  const pattern = /HTTPS (?:server|port)|SSL-enabled server|requires TLS/
  if (isError || !pattern.test(body.toString('latin1', 0, 1000))) return undefined
  return Object.assign(Error('the port speaks TLS'), { code: 'TLS_PORT' })
}

async function readResponse(
  incomingMessage: http.IncomingMessage,
  expectedValue: ExpectedValue<unknown>,
): Promise<HttpResponse> {
  const { statusCode: status = 0, headers } = incomingMessage
  const maxBytes = (status === 200 && expectedValue.maxBytes) || maxBodyBytes
  const receivedBody = new GrowingBuffer()
  try {
    for await (const chunk of incomingMessage as AsyncIterable<Buffer>) {
      receivedBody.append(chunk)
      if (receivedBody.length > maxBytes) break
    }
  } catch (error) {
    if (getSystemCode(error) !== 'ECONNRESET') throw error
    const announcedBytes = headers['content-length']
    const lengthClause =
      announcedBytes === undefined ? 'bytes, without its end' : `of ${announcedBytes} bytes`
    const receivedAmount = `${receivedBody.length} ${lengthClause}`
    throw Error(`its response (${status}) was cut short after ${receivedAmount}`, { cause: error })
  }
  return {
    status,
    headers,
    body: receivedBody.bytes,
    exceededBytes: receivedBody.length > maxBytes ? maxBytes : undefined,
  }
}

function buildHeaders(
  { idempotencyKey, body, token }: AuthorizedRequest,
  { userAgent }: ServiceAccess,
) {
  return {
    accept: 'application/json',
    // Without this header, a service could use any encoding (RFC 9110, 12.5.3).
    'accept-encoding': 'identity',
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    'user-agent': userAgent,
  }
}
