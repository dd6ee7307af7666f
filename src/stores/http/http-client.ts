import {
  Agent,
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import { Socket } from 'node:net'
import { delayOf, timeIsOver } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import type { Access } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { defaultConcurrency, type OpenOptions } from '../common/store.js'

export interface HttpRequest<T> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  headers: Record<string, string>
  body?: string | undefined
  expected: Expected<T>
}

export interface Expected<T> {
  /** for messages: "Plant" */
  what: string
  /** of any final status; undefined if it is not the expected one */
  read(response: HttpResponse): T | undefined
  /** in bytes; 1 MiB by default */
  maxBody?: number
  /** the media type of a 200 response that is returned as a stream */
  streamedType?: string
}

export interface HttpResponse {
  status: number
  headers: IncomingHttpHeaders
  /** cut off soon after `maxBody` bytes */
  body: Buffer
  maxBody: number
  stream?: IncomingMessage
}

export interface NoResponse {
  /** the error of the system or the connection, a `TimeoutError`, or the reason of a signal */
  cause: unknown
  /** whether the service may have received the request */
  isSent: boolean
}

/** Does not follow redirects or decompress bodies. Connects with the first request. */
export class HttpClient {
  readonly address: RemoteAddress
  readonly options: OpenOptions
  access: Access
  readonly #request: typeof httpRequest
  readonly #agent: Agent
  readonly #target: { host?: string; port?: string; socketPath?: string }
  readonly #basePath: string
  /** connected, and with TLS if the service needs it */
  readonly #ready = new WeakSet<Socket>()
  readonly #warned = new Set<string>()
  #renewal: Promise<void> | undefined

  private constructor(
    address: RemoteAddress,
    access: Access,
    options: OpenOptions,
    request: typeof httpRequest,
    agent: Agent,
  ) {
    this.address = address
    this.access = access
    this.options = options
    this.#request = request
    this.#agent = agent
    const { url, socketPath } = address
    this.#target = socketPath === undefined ? { host: hostOf(url), port: url.port } : { socketPath }
    this.#basePath = basePathOf(url)
    this.#watchConnections()
  }

  static async open(address: RemoteAddress, access: Access, options: OpenOptions): Promise<HttpClient> {
    const { concurrency: maxSockets = defaultConcurrency } = options
    const https = address.url.protocol === 'https:' ? await import('node:https') : undefined
    const pool = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets, timeout: idleTimeout }
    // Certificates are always verified, regardless of NODE_TLS_REJECT_UNAUTHORIZED.
    const settings = { ...pool, rejectUnauthorized: true, ca: access.ca }
    let agent = https ? new https.Agent(settings) : new Agent(pool)
    if (access.proxy !== undefined) {
      const { TunnelAgent } = await import('./tunnel.js')
      agent = new TunnelAgent(access.proxy, { host: hostOf(address.url), isSecure: https !== undefined }, settings)
    }
    return new HttpClient(address, access, options, https?.request ?? httpRequest, agent)
  }

  #watchConnections(): void {
    const connect = this.#agent.createConnection.bind(this.#agent)
    this.#agent.createConnection = (options, callback) => {
      try {
        this.access.beforeConnect?.()
      } catch (error) {
        if (!(error instanceof PlantsError)) throw error
        callback?.(error, new Socket())
        return undefined
      }
      const socket = connect(options, callback)
      if (!(socket instanceof Socket)) throw new TypeError('An agent must return a socket')
      socket.on('error', () => undefined) // its request reports it; Bun emits it even after the request has ended
      const isTunnel = this.access.proxy !== undefined && this.#readyEvent === 'connect' // which is connected
      if (isTunnel) this.#ready.add(socket)
      else socket.prependOnceListener(this.#readyEvent, () => this.#ready.add(socket))
      return socket
    }
  }

  get #readyEvent(): 'connect' | 'secureConnect' {
    return this.address.url.protocol === 'https:' ? 'secureConnect' : 'connect'
  }

  /** @param timeout milliseconds */
  send(request: HttpRequest<unknown>, timeout: number, signal?: AbortSignal): Promise<HttpResponse | NoResponse> {
    const { method, path, headers, body, expected } = request
    const start = this.options.clock.now()
    const target = { agent: this.#agent, ...this.#target, method, path: this.#basePath + path, headers }
    const outgoing = this.#request(target)
    this.#observeSent(outgoing, request, start)
    return new Promise((resolve) => {
      let isSettled = false
      const settle = (result: HttpResponse | NoResponse) => {
        if (isSettled) return
        isSettled = true
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        if ('cause' in result) this.access.observer?.failed(result.cause)
        resolve(result)
      }
      const fail = (cause: unknown) =>
        settle({ cause, isSent: outgoing.socket !== null && this.#ready.has(outgoing.socket) })
      const end = (cause: unknown) => {
        fail(cause)
        outgoing.destroy()
      }
      const abort = () => end(signal?.reason)
      const timer = setTimeout(() => end(timeIsOver()), delayOf(timeout))
      let response: IncomingMessage | undefined
      outgoing.on('response', (incoming) => {
        response = incoming
        incoming.on('error', fail)
        this.#receive(incoming, expected, start, settle)
      })
      outgoing.on('error', (error) => {
        if (!response?.complete) fail(error) // otherwise the error concerns input after the response
      })
      outgoing.on('upgrade', (_, socket) => {
        socket.destroy()
        fail(Object.assign(new Error('The server switched protocols'), { code: 'HPE_PAUSED_UPGRADE' }))
      })
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
      else outgoing.end(body)
    })
  }

  #observeSent(
    outgoing: ClientRequest,
    { method, path, headers, body = '' }: HttpRequest<unknown>,
    start: number,
  ): void {
    const { observer } = this.access
    if (!observer) return
    const sent = () =>
      observer.sent({ method, url: this.address.name + path, headers, length: Buffer.byteLength(body) })
    outgoing.once('socket', (socket) => {
      if (this.#ready.has(socket)) return sent()
      socket.once(this.#readyEvent, () => {
        observer.connected(this.options.clock.now() - start)
        sent()
      })
    })
  }

  #receive(
    incoming: IncomingMessage,
    { maxBody = 1_048_576, streamedType }: Expected<unknown>,
    start: number,
    settle: (result: HttpResponse) => void,
  ): void {
    const { observer } = this.access
    const { clock } = this.options
    const { statusCode: status = 0, headers, headersDistinct } = incoming
    observer?.answered({ status, headers: headersDistinct }, clock.now() - start)
    const type = headers['content-type']?.split(';')[0]?.trim()
    if (status === 200 && streamedType !== undefined && type === streamedType) {
      settle({ status, headers, body: Buffer.alloc(0), maxBody, stream: incoming })
      return
    }
    const received = new GrowingBuffer()
    const finish = () => {
      observer?.ended(received.length, clock.now() - start)
      settle({ status, headers, body: received.bytes, maxBody })
    }
    incoming.on('data', (chunk: Buffer) => {
      if (received.length > maxBody) return
      received.append(chunk)
      if (received.length <= maxBody) return
      finish()
      incoming.destroy()
    })
    incoming.on('end', finish)
  }

  /** After a 401, the request with a newer token, if there is one. Concurrent calls share one renewal. */
  async withNewerToken<T>(request: HttpRequest<T>, { error }: PlantsError): Promise<HttpRequest<T> | undefined> {
    const { authorization } = request.headers
    if (error !== 401 || authorization === undefined) return undefined
    if (authorization === bearer(this.access.token)) {
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined
      })
      await this.#renewal
    }
    const headers = { ...request.headers, authorization: bearer(this.access.token) }
    return headers.authorization === authorization ? undefined : { ...request, headers }
  }

  async #renew(): Promise<void> {
    const token = await this.access.renew?.()
    if (token !== undefined) this.access = { ...this.access, token }
  }

  /** A topic may concern thousands of plants. */
  async warnOnce(topic: string, text: string): Promise<void> {
    if (this.#warned.has(topic)) return
    this.#warned.add(topic)
    await this.access.notify(text)
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** milliseconds: less than the idle timeout of most services */
const idleTimeout = 4000

/** A host for `connect`: an IPv6 address without brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** "" or "/v1" */
export function basePathOf({ pathname }: URL): string {
  return pathname.replace(/\/$/, '')
}

export function bearer(token: string): string {
  return `Bearer ${token}`
}
