import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { maxTimer, timeIsOver } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import type { Access } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { defaultConcurrency, type OpenOptions } from '../common/store.js'
import { openTransport, type Transport } from './transport.js'

export interface HttpRequest<T> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  headers: Record<string, string>
  body?: string | undefined
  sends: string
  expected: Expected<T>
}

export interface Expected<T> {
  /** for messages: "Plant" */
  what: string
  /** of any final status; undefined if it is not the expected one */
  read(response: HttpResponse): T | undefined
  /** the maximum size of the body in bytes; 1 MiB by default */
  maxBody?: number
  /** the media type of a 200 response whose body is not read, but returned as a stream */
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

/** Sends requests to one service. Does not follow redirects or decompress bodies. */
export class HttpClient {
  readonly address: RemoteAddress
  readonly options: OpenOptions
  access: Access
  readonly #transport: Transport
  readonly #warned = new Set<string>()
  #renewal: Promise<boolean> | undefined

  private constructor(address: RemoteAddress, access: Access, options: OpenOptions, transport: Transport) {
    this.address = address
    this.access = access
    this.options = options
    this.#transport = transport
  }

  static async open(address: RemoteAddress, access: Access, options: OpenOptions): Promise<HttpClient> {
    const direct = await openTransport(address, access, options.concurrency ?? defaultConcurrency)
    if (access.proxy === undefined) return new HttpClient(address, access, options, direct)
    const { throughProxy } = await import('./proxy.js')
    return new HttpClient(address, access, options, throughProxy(direct, address.url, new URL(access.proxy), access))
  }

  /** `timeout` is in milliseconds; `signal` aborts the request, with its reason. */
  send(request: HttpRequest<unknown>, timeout: number, signal?: AbortSignal): Promise<HttpResponse | NoResponse> {
    return new Promise((resolve) => {
      const end = this.#start(request, (result) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        resolve(result)
      })
      const timer = setTimeout(() => end(timeIsOver()), Math.min(timeout, maxTimer))
      const abort = () => end(signal?.reason)
      signal?.addEventListener('abort', abort)
      if (signal?.aborted) abort()
    })
  }

  /** Returns a function that aborts the request with a cause. */
  #start({ method, path, headers, body, expected }: HttpRequest<unknown>, settle: (result: HttpResponse | NoResponse) => void) {
    const { maxBody = 1_048_576, streamedType } = expected
    const { request, agent, host, port, socketPath, base, proxyHeaders, readyEvent, ready } = this.#transport
    const { observer } = this.access
    const { clock } = this.options
    const start = clock.now()
    const all = proxyHeaders ? { ...headers, ...proxyHeaders } : headers
    const outgoing = request({ agent, host, port, socketPath, method, path: base + path, headers: all }) // a spread costs 4 µs more
    let response: IncomingMessage | undefined
    let isSettled = false
    const fail = (cause: unknown, isSent = outgoing.socket !== null && ready.has(outgoing.socket)) => {
      if (isSettled) return
      isSettled = true
      observer?.failed(cause)
      settle({ cause, isSent })
    }
    outgoing.on('response', (incoming) => {
      response = incoming
      const { statusCode: status = 0, headers } = incoming
      if (proxyHeaders && status === 407) return fail(new Error(`the proxy answered ${status}`), false)
      observer?.answered({ status, headers: incoming.headersDistinct }, clock.now() - start)
      if (status === 200 && streamedType !== undefined && headers['content-type']?.split(';')[0]?.trim() === streamedType && !isSettled) {
        isSettled = true
        return settle({ status, headers, body: Buffer.alloc(0), maxBody, stream: incoming })
      }
      const received = new GrowingBuffer()
      const finish = () => {
        if (isSettled) return
        isSettled = true
        observer?.ended(received.length, clock.now() - start)
        settle({ status, headers, body: received.bytes, maxBody })
        if (received.length > maxBody) outgoing.destroy()
      }
      incoming.on('data', (chunk: Buffer) => {
        if (!isSettled) received.append(chunk)
        if (received.length > maxBody) finish()
      })
      incoming.on('end', finish)
      incoming.on('error', fail)
    })
    outgoing.on('error', (error) => {
      if (!response?.complete) fail(error) // otherwise the error concerns input after the response
    })
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy()
      fail(Object.assign(new Error('The server switched protocols'), { code: 'HPE_PAUSED_UPGRADE' }))
    })
    if (observer) {
      const url = `${this.address.name}${path}`
      const sent = () => observer.sent({ method, url, headers, length: Buffer.byteLength(body ?? '') })
      outgoing.once('socket', (socket) => {
        if (ready.has(socket)) sent()
        else socket.once(readyEvent, sent)
      })
    }
    outgoing.end(body)
    return (reason: unknown) => {
      fail(reason)
      outgoing.destroy()
    }
  }

  /**
   * The request with a newer token, if it was rejected with 401 and there is one. Concurrent calls share one renewal.
   */
  async withNewerToken<T>(request: HttpRequest<T>, { error }: PlantsError): Promise<HttpRequest<T> | undefined> {
    const { authorization } = request.headers
    if (error !== 401 || authorization === undefined) return undefined
    if (authorization === bearer(this.access.token)) {
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined
      })
      if (!(await this.#renewal)) return undefined
    }
    return { ...request, headers: { ...request.headers, authorization: bearer(this.access.token) } }
  }

  async #renew(): Promise<boolean> {
    const token = await this.access.renew?.()
    if (token === undefined || token === this.access.token) return false
    this.access = { ...this.access, token }
    return true
  }

  /** Warns once per topic, which may concern thousands of plants. */
  warnOnce(topic: string, text: string): void {
    if (this.#warned.has(topic)) return
    this.#warned.add(topic)
    void this.access.notify(text)
  }

  close(): void {
    this.#transport.close()
  }
}

export function bearer(token: string): string {
  return `Bearer ${token}`
}
