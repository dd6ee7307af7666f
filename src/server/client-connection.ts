import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import type { HttpError } from './answer.js'
import type { Caller } from './authenticator.js'
import { tooLarge } from './request-input.js'

export interface InFlight {
  /** that wait for the store, on all connections */
  requests: number
  /** of one body */
  readonly bodyLimit: number
}

/** bytes of bodies: as little as 10,000 connections may hold for nothing */
const maxUnverified = 65_536

/** milliseconds in which a client may still send after this side of the connection is closed */
const lingerTime = 1000

export const noBody = Buffer.alloc(0)

interface ArrivingBody {
  whole: Promise<Buffer>
  fail(error: HttpError): void
  drop(): void
}

export class ClientConnection {
  readonly socket: Socket
  /** whether this is the socket below TLS */
  readonly isHandshake: boolean
  /** unfinished responses: to the request that is being processed, and to those that wait */
  readonly open: ServerResponse[] = []
  /** the latest of all */
  last: ServerResponse | undefined
  /** whether input was no HTTP: nothing after it counts */
  isBroken = false
  /** whether more requests came than may wait */
  isOverfull = false
  /** whether the token of the request that is being processed is accepted */
  isAccepted = false
  /** of the last token; no other client can probe how long it takes to compare */
  known: { authorization: string | undefined; caller: Caller; until: number } | undefined
  /** whether a token was ever accepted */
  #hasToken = false
  readonly #inFlight: InFlight
  /** bytes of the bodies */
  #received = 0
  readonly #bodies = new WeakMap<ServerResponse, ArrivingBody>()
  #isPaused = false

  constructor(socket: Socket, inFlight: InFlight, isHandshake = false) {
    this.socket = socket
    this.#inFlight = inFlight
    this.isHandshake = isHandshake
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && !this.socket.writableEnded && !this.isOverfull
  }

  /** Collects a body while it arrives: node:http would keep each small chunk as an object of hundreds of bytes. */
  collectBody(response: ServerResponse): void {
    const { req: request } = response
    if (request.complete || this.#bodies.has(response)) return
    let received = new GrowingBuffer()
    let fail: ArrivingBody['fail'] = () => {}
    const whole = new Promise<Buffer>((resolve, reject) => {
      fail = reject
      request.once('end', () => resolve(received.bytes))
    })
    whole.catch(() => undefined) // a request without a token gets another response
    const drop = () => {
      request.off('data', append)
      this.#received -= received.length
      received = new GrowingBuffer()
      this.#regulate()
    }
    const append = (chunk: Buffer) => {
      const { bodyLimit } = this.#inFlight
      received.append(chunk)
      this.#received += chunk.length
      if (received.length <= bodyLimit) return this.#regulate()
      fail(tooLarge(bodyLimit))
      drop()
    }
    request.on('data', append)
    this.#bodies.set(response, { whole, fail, drop })
  }

  /** Rejects with 413. Never settles if the client leaves. */
  async bodyOf(response: ServerResponse): Promise<Buffer> {
    const arriving = this.#bodies.get(response)
    if (arriving) return arriving.whole.finally(arriving.drop)
    const { bodyLimit } = this.#inFlight
    if (response.req.readableLength > bodyLimit) throw tooLarge(bodyLimit)
    const bytes: Buffer | null = response.req.read()
    return bytes ?? noBody
  }

  dropBody(response: ServerResponse): void {
    this.#bodies.get(response)?.drop()
    response.req.resume()
  }

  add(response: ServerResponse): void {
    this.last = response
    this.open.push(response)
    this.#regulate()
  }

  remove(response: ServerResponse): void {
    if (response === this.open[0]) this.isAccepted = false
    this.open.splice(this.open.indexOf(response), 1)
    this.dropBody(response)
    this.#regulate()
  }

  /** The token of the request that is being processed is accepted, and there is memory for its body. */
  accept(): void {
    this.isAccepted = true
    if (this.#hasToken) return
    this.#hasToken = true
    this.#regulate()
  }

  /** Before a token is accepted, nothing is read after a request that waits, or above the limit of bodies. */
  #regulate(): void {
    const mustPause = !this.#hasToken && (this.open.length > 1 || this.#received > maxUnverified)
    if (this.#isPaused && !mustPause) this.socket.resume()
    this.#isPaused = mustPause
    // In the next tick, node:http resumes the socket of a request that is read.
    if (mustPause) queueMicrotask(() => this.#isPaused && this.socket.pause())
  }

  /**
   * Closes the connection for input that is no HTTP, after the responses to earlier requests. It sends the error, and
   * returns true, unless that is of the body of a request, or comes after the last one.
   */
  reject(error: HttpError): boolean {
    const { last, open } = this
    this.isBroken = true
    const isLast = last?.shouldKeepAlive === false // nothing that follows it counts
    const isOfBody = last?.req.complete === false
    const end = () => this.end(isLast || isOfBody ? '' : bytesOf(error))
    const previous = open.at(-1)
    if (isOfBody) {
      last.shouldKeepAlive = false
      this.#bodies.get(last)?.fail(error)
    }
    if (previous) {
      this.socket.pause()
      previous.once('close', end)
    } else end()
    return !isLast && !isOfBody
  }

  /** Closes it after the response to a request whose token was accepted. Those that wait get none. */
  endOverfull(): void {
    const { socket, open } = this
    this.isOverfull = true
    const accepted = this.isAccepted ? open[0] : undefined
    if (!accepted) return void socket.destroy()
    socket.pause()
    if (accepted.headersSent) accepted.once('close', () => this.end())
    else accepted.shouldKeepAlive = false
  }

  /** The client may still send for a while (RFC 9112, 9.6). */
  end(bytes = ''): void {
    const { socket } = this
    if (socket.writableEnded) return
    socket.end(bytes)
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }
}

/** A response without a response object. */
function bytesOf({ status, body }: HttpError): string {
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    `Connection: close\r\n\r\n${body}`,
  ].join('\r\n')
}
