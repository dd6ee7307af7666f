import { setMaxListeners } from 'node:events'
import {
  Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import type { Socket } from 'node:net'
import type { PeerCertificate } from 'node:tls'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { timeIsOver } from '../../platform/runtime.js'
import type { HttpAddress } from '../common/address.js'
import { type Access, defaultConcurrency, type HttpOptions } from './http-options.js'

export interface HttpRequest<T> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below the base URL. */
  path: string
  /** Besides those of `headersOf`. */
  headers?: Record<string, string>
  body?: string
  /** Without the token. */
  isPublic?: true
  /** A 404 with an Error says that the plant does not exist. */
  isOfOnePlant?: true
  expected: Expected<T>
}

export interface Expected<T> {
  /** As messages name it: "Plant". */
  what: string
  /** Undefined if a 200 response is not the expected one. */
  read(response: HttpResponse): T | undefined
  /** In bytes; by default 1 MiB. */
  maxBody?: number
  /** The media type of a response that is returned as a stream. */
  streamedType?: string
}

export interface HttpResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Cut off soon after `maxBody` bytes. */
  body: Buffer
  maxBody: number
  stream?: IncomingMessage
}

export interface NoResponse {
  /** The error of the system or the connection, a `TimeoutError`, or the reason of a signal. */
  cause: unknown
  /** Whether the service may have received the request. */
  isSent: boolean
}

/** Does not follow redirects or decompress bodies. Connects with the first request. */
export class HttpClient {
  readonly address: HttpAddress
  readonly options: HttpOptions
  /** With the newest token. */
  access: Access
  /** The time of the first connection, on the runtime. */
  connectedAt: number | undefined
  /** The service's `openapi.json`, once it was asked for; undefined if it could not be read. */
  description: Promise<object | undefined> | undefined
  readonly #transport: Transport
  /** The connected sockets, with TLS if the service needs it. */
  readonly #ready = new WeakSet<Socket>()
  readonly #warned = new Set<string>()

  private constructor(address: HttpAddress, options: HttpOptions, transport: Transport) {
    this.address = address
    this.access = options.access
    this.options = options
    this.#transport = transport
    this.#watchConnections()
  }

  static async open(address: HttpAddress, options: HttpOptions): Promise<HttpClient> {
    return new HttpClient(
      address,
      options,
      await transportTo(address, options.access, options.concurrency),
    )
  }

  #watchConnections(): void {
    const { url } = this.address
    const { agent } = this.#transport.target
    const connect = agent.createConnection.bind(agent)
    agent.createConnection = (options, callback) => {
      const start = this.#now
      const socket = connect(options, callback) as Socket // as agents of Node return it
      socket.on('error', () => undefined) // its request reports it; Bun emits it even after the request has ended
      const noteReady = () => {
        this.#ready.add(socket)
        this.connectedAt ??= this.#now
        this.access.observer?.connected(this.#now - start)
      }
      if (url.protocol === 'https:') socket.prependOnceListener('secureConnect', noteReady)
      else if (this.access.proxy === undefined) socket.prependOnceListener('connect', noteReady)
      else noteReady() // a tunnel is connected
      return socket
    }
  }

  /** @param timeout milliseconds */
  send(
    request: HttpRequest<unknown>,
    timeout: number,
    signal?: AbortSignal,
  ): Promise<HttpResponse | NoResponse> {
    const { method, path, body = '', expected } = request
    const { observer } = this.access
    const { url, name } = this.address
    const start = this.#now
    const headers = headersOf(request, this.access)
    const target = {
      ...this.#transport.target,
      method,
      path: url.pathname.replace(/\/$/, '') + path,
      headers,
    }
    const outgoing = this.#transport.request(target)
    return new Promise((resolve) => {
      let isSettled = false
      const settle = (result: HttpResponse | NoResponse) => {
        if (isSettled) return
        isSettled = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        if ('cause' in result) observer?.failed(result.cause)
        else if (!result.stream) observer?.ended(result.body.length, this.#now - start)
        resolve(result)
      }
      const fail = (cause: unknown) =>
        settle({ cause, isSent: outgoing.socket !== null && this.#ready.has(outgoing.socket) })
      const end = (cause: unknown) => {
        fail(cause)
        outgoing.destroy()
      }
      const abort = () => end(signal?.reason)
      const timer = setTimeout(() => end(timeIsOver()), Math.max(0, timeout))
      let response: IncomingMessage | undefined
      outgoing.on('proxyConnect', ({ statusCode }: { statusCode: number }) => {
        if (statusCode !== 200) end(new Error(`the proxy answered ${statusCode}`))
      })
      const length = Buffer.byteLength(body)
      if (observer)
        outgoing.on('finish', () => observer.sent({ method, url: name + path, headers, length }))
      outgoing.on('response', (incoming) => {
        response = incoming
        observer?.answered(
          { status: incoming.statusCode ?? 0, headers: incoming.headersDistinct },
          this.#now - start,
        )
        incoming.on('error', fail)
        receive(incoming, expected, settle)
      })
      outgoing.on('error', (error) => {
        if (!response?.complete) fail(error) // otherwise the error concerns input after the response
      })
      outgoing.on('upgrade', (_, socket) => {
        socket.destroy()
        fail(new Error('it switched protocols'))
      })
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
      else outgoing.end(request.body)
    })
  }

  get #now(): number {
    return this.options.runtime.now()
  }

  /** Whether there is a newer token than one that was rejected. */
  async renewToken(rejected: string): Promise<boolean> {
    const token = await this.access.renew?.()
    if (token === undefined || token === rejected) return false
    this.access = { ...this.access, token }
    return true
  }

  async warnOnce(topic: string, text: string): Promise<void> {
    if (this.#warned.has(topic)) return
    this.#warned.add(topic)
    await this.access.notify(text)
  }

  close(): void {
    this.#transport.closing.abort()
    this.#transport.target.agent.destroy()
  }
}

type Transport = Awaited<ReturnType<typeof transportTo>>

async function transportTo(
  { url, socketPath }: HttpAddress,
  { ca, proxy }: Access,
  maxSockets = defaultConcurrency,
) {
  const https = url.protocol === 'https:' ? await import('node:https') : undefined
  const request = https?.request ?? httpRequest
  const pool = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: idleTimeout }
  // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
  const tls = { rejectUnauthorized: true, ca }
  const hostname = url.hostname.replace(/^\[|\]$/g, '') // of an IPv6 address
  const service = {
    protocol: url.protocol,
    hostname,
    port: url.port,
    ...(https && tls),
    socketPath,
  }
  const closing = new AbortController() // for connections that a proxy has not answered yet
  if (proxy === undefined)
    return {
      request,
      target: { ...service, agent: https ? new https.Agent(pool) : new Agent(pool) },
      closing,
    }
  setMaxListeners(0, closing.signal) // each connection adds a listener
  const { HttpsProxyAgent } = await import('https-proxy-agent')
  const { checkServerIdentity } = await import('node:tls')
  // Each connection is a tunnel (RFC 9110, 9.3.6). Only the proxy receives the proxy credentials.
  const agent = new HttpsProxyAgent(proxy, { ...pool, ...tls, signal: closing.signal })
  Object.assign(agent.options, {
    // By default, Node would expect the certificate of an IP address to be for the proxy or for localhost. Node 24 opens
    // a connection for each request that brings its own check.
    checkServerIdentity: (_: string, certificate: PeerCertificate) =>
      checkServerIdentity(hostname, certificate),
  })
  return { request, target: { ...service, agent }, closing }
}

function receive(
  incoming: IncomingMessage,
  { maxBody = 1_048_576, streamedType }: Expected<unknown>,
  settle: (result: HttpResponse) => void,
): void {
  const { statusCode: status = 0, headers } = incoming
  const type = headers['content-type']?.split(';')[0]?.trim()
  if (status === 200 && streamedType !== undefined && type === streamedType) {
    settle({ status, headers, body: Buffer.alloc(0), maxBody, stream: incoming })
    return
  }
  const received = new GrowingBuffer()
  const finish = () => settle({ status, headers, body: received.bytes, maxBody })
  incoming.on('data', (chunk: Buffer) => {
    received.append(chunk)
    if (received.length <= maxBody) return
    finish()
    incoming.destroy()
  })
  incoming.on('end', finish)
}

/** In milliseconds: less than the idle timeout of most services. */
const idleTimeout = 4000

function headersOf(
  { headers, body, isPublic }: HttpRequest<unknown>,
  { token, userAgent }: Access,
) {
  return {
    accept: 'application/json',
    ...(!isPublic && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
    'user-agent': userAgent,
  }
}
