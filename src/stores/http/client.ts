import type { IncomingMessage } from 'node:http'
import type { Access, Observer } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import { openTransport, type Transport } from './transport.js'

export interface HttpRequest {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** below the base_url */
  path: string
  headers: Record<string, string>
  body?: string | undefined
  /** the maximum size of the response body in bytes; 1 MiB by default */
  maxBody?: number
  /** the media type of a 200 response whose body is returned as a stream */
  streamedType?: string
}

/** A response, not yet parsed. */
export interface HttpResponse {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
  /** the maximum size of the body in bytes, and whether the whole body was read */
  maxBody: number
  isWhole: boolean
  /** the body, if it is streamed */
  stream?: IncomingMessage
}

/** A request that ended without a response. Its cause is the error of the system or the connection. */
export class NoResponse extends Error {
  /** whether the service may have received the request */
  readonly isSent: boolean

  constructor(cause: unknown, isSent: boolean) {
    super('No response', { cause })
    this.isSent = isSent
  }
}

/** Sends requests to one service. Does not follow redirects or decompress bodies. */
export class HttpClient {
  readonly #name: string
  readonly #transport: Transport
  readonly #observer: Observer | undefined

  private constructor({ name }: RemoteAddress, transport: Transport, observer: Observer | undefined) {
    this.#name = name
    this.#transport = transport
    this.#observer = observer
  }

  /**
   * Creates a client. It connects with the first request.
   *
   * @param maxSockets the maximum number of connections
   */
  static async open(address: RemoteAddress, access: Access, maxSockets: number): Promise<HttpClient> {
    const direct = await openTransport(address, access, maxSockets)
    if (access.proxy === undefined) return new HttpClient(address, direct, access.observer)
    const { throughProxy } = await import('./proxy.js')
    return new HttpClient(address, throughProxy(direct, address.url, new URL(access.proxy), access), access.observer)
  }

  /**
   * Sends a request and reads the response.
   *
   * @param signal aborts the request; its reason becomes the cause
   * @throws {NoResponse}
   */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      const abort = () => end(signal.reason)
      const end = this.start(request, (result) => {
        signal.removeEventListener('abort', abort)
        if (result instanceof NoResponse) reject(result)
        else resolve(result)
      })
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
    })
  }

  /**
   * The same as `send`, without the cost of a signal and a promise: calls `settle` once with the result.
   *
   * @returns a function that aborts the request; its argument becomes the cause
   */
  start(asked: HttpRequest, settle: (result: HttpResponse | NoResponse) => void): (reason: unknown) => void {
    const { method, path, headers, body, maxBody = 1_048_576, streamedType } = asked
    const { request, agent, place, base, proxyHeaders, readyEvent, ready } = this.#transport
    const observer = this.#observer
    const start = observer ? performance.now() : 0
    const { host, port, socketPath } = place
    const all = proxyHeaders ? { ...headers, ...proxyHeaders } : headers
    const outgoing = request({ agent, host, port, socketPath, method, path: base + path, headers: all }) // a spread costs 4 µs more
    let response: IncomingMessage | undefined
    let isSettled = false
    const fail = (cause: unknown, isSent = outgoing.socket !== null && ready.has(outgoing.socket)) => {
      if (isSettled) return
      isSettled = true
      observer?.failed(cause)
      settle(new NoResponse(cause, isSent))
    }
    outgoing.on('response', (incoming) => {
      response = incoming
      const { statusCode: status = 0, headers } = incoming
      if (proxyHeaders && status === 407) return fail(new Error(`the proxy answered ${status}`), false)
      observer?.answered({ status, headers: incoming.headersDistinct }, performance.now() - start)
      if (status === 200 && streamedType !== undefined && headers['content-type']?.split(';')[0]?.trim() === streamedType && !isSettled) {
        isSettled = true
        return settle({ status, headers, body: Buffer.alloc(0), maxBody, isWhole: true, stream: incoming })
      }
      readBody(incoming, maxBody, fail, (body, length) => {
        if (isSettled) return
        isSettled = true
        observer?.ended(length, performance.now() - start)
        settle({ status, headers, body, maxBody, isWhole: length <= maxBody })
        if (length > maxBody) outgoing.destroy()
      })
    })
    outgoing.on('error', (error) => {
      if (!response?.complete) fail(error) // otherwise the error concerns input after the response
    })
    outgoing.on('upgrade', (_, socket) => {
      socket.destroy()
      fail(Object.assign(new Error('The server switched protocols'), { code: 'HPE_PAUSED_UPGRADE' }))
    })
    if (observer) {
      const shown = { method, url: `${this.#name}${path}`, headers, length: Buffer.byteLength(body ?? '') }
      const sent = () => observer.sent(shown)
      outgoing.once('socket', (socket) => {
        if (ready.has(socket)) sent()
        else socket.once(readyEvent, sent)
      })
    }
    outgoing.end(body)
    return (reason) => {
      fail(reason)
      outgoing.destroy()
    }
  }

  close(): void {
    this.#transport.close()
  }
}

/** Reads a body until it ends or is too long. */
function readBody(
  response: IncomingMessage,
  maxBody: number,
  fail: (cause: unknown) => void,
  done: (body: Buffer, length: number) => void,
): void {
  const chunks: Buffer[] = []
  let length = 0
  const finish = () => done(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks), length)
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    chunks.push(chunk)
    if (length > maxBody) finish()
  })
  response.on('end', finish)
  response.on('error', fail)
}
