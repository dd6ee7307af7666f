import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../platform/errors.js'
import { headersTooLarge, invalidHttp, late } from './answer.js'
import { ClientConnection, type InFlight } from './client-connection.js'
import type { Log } from './log.js'
import { maxHeaderLines } from './request-input.js'

export interface Limits {
  requestTimeout: number
  connectionLimit: number
}

export interface Tls {
  cert: string
  key: string
}

/** If it rejects, the connection is closed. */
export type Handler = (response: ServerResponse, connection: ClientConnection) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'error'>
  inFlight: InFlight
}

/** The ciphers of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption (RFC 9325, 4.2). */
const ciphers = 'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20'

/** milliseconds */
const headersTimeout = 10_000

/** requests on one connection, which is closed at the next */
const maxUnanswered = 16

/** connections that are closed for that in one turn of the event loop, before it reads nothing more */
const maxOverfull = 8

const parserErrors = { HPE_HEADER_OVERFLOW: headersTooLarge, ERR_HTTP_REQUEST_TIMEOUT: late }

/** Answers the requests of a connection one after the other. A drain leaves no request unanswered. */
export class HttpServer {
  readonly server: Server
  isDraining = false
  readonly #handler: Handler
  readonly #options: HttpServerOptions
  readonly #connections = new Map<Socket, ClientConnection>()
  #accepted = 0
  /** in this turn of the event loop; and the sockets that are paused for it */
  #overfull = 0
  readonly #paused: Socket[] = []
  /** the requests of this turn; undefined between turns */
  #arrived: ServerResponse[] | undefined

  constructor(handler: Handler, options: HttpServerOptions) {
    this.#handler = handler
    this.#options = options
    const { tls } = options
    const { requestTimeout, connectionLimit } = options.limits
    const limits = {
      maxHeaderSize: 16_384,
      headersTimeout: Math.min(headersTimeout, requestTimeout), // node:http requires this order
      requestTimeout,
      keepAliveTimeout: 65_000, // proxies close idle connections after 60 s
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
    }
    const secure = { ...limits, ...tls, ciphers, handshakeTimeout: headersTimeout }
    const server = tls ? createSecureServer(secure) : createServer(limits)
    this.server = server
    server.maxConnections = connectionLimit
    server.maxHeadersCount = maxHeaderLines + 1 // node:http drops those after it; this service rejects the request
    // a client that has closed its side may still wait for a response
    Object.assign(server, { httpAllowHalfOpen: true })
    server.on('connection', (socket: Socket) => this.#add(socket, tls !== undefined))
    server.on('secureConnection', (socket: Socket) => {
      this.#add(socket, false)
      // With a listener, node:http reads the stream and not past it: nothing that came with the end of the handshake.
      if (this.#overfull >= maxOverfull) this.#paused.push(socket.pause().on('data', () => undefined))
    })
    const receive = (request: IncomingMessage, response: ServerResponse) => this.#receive(request, response)
    server.on('request', receive).on('checkExpectation', receive) // node:http would send a 417 without a body
    server.on('clientError', (error: Error, socket: Socket) => this.#rejectInput(socket, systemCode(error) ?? ''))
    // Nothing was sent or received for so long. A client may wait for its response, or get a 408.
    server.setTimeout(requestTimeout, (socket) => {
      const { open, last } = this.#of(socket)
      if (socket.writableLength > 0 || (last && open.length === 0)) socket.destroy()
    })
  }

  async drain(milliseconds: number): Promise<void> {
    this.isDraining = true
    for (const { open } of this.#connections.values()) for (const last of open.slice(-1)) last.shouldKeepAlive = false
    const timer = setTimeout(() => this.abort(), milliseconds)
    // Clients may have connected, or sent a request, before they can know. One turn of the event loop accepts one.
    let known = -1
    for (let left = 50; known !== this.#accepted || (this.#connections.size > 0 && left > 0); left -= 1) {
      known = this.#accepted
      await wait(10)
    }
    const closed = new Promise<unknown>((resolve) => this.server.close(resolve))
    // `close` keeps connections that never sent a request. A TLS handshake has a timeout of its own.
    for (const [socket, { last, isHandshake }] of this.#connections)
      if (last === undefined && !(isHandshake && socket.bytesRead > 0)) socket.destroy()
    await closed
    clearTimeout(timer)
  }

  abort(): void {
    this.server.close()
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  #add(socket: Socket, isHandshake: boolean): void {
    const connection = new ClientConnection(socket, this.#options.inFlight, isHandshake)
    this.#accepted += 1
    this.#connections.set(socket, connection)
    if (!isHandshake) socket.destroySoon = () => connection.end()
    socket.once('close', () => {
      this.#connections.delete(socket)
      // node:http emits `close` only on the response that is currently being sent.
      for (const response of [...connection.open]) {
        response.destroy()
        response.emit('close')
      }
    })
  }

  /** A new one if TLS has failed. */
  #of(socket: Socket): ClientConnection {
    return this.#connections.get(socket) ?? new ClientConnection(socket, this.#options.inFlight)
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#of(request.socket)
    const { open } = connection
    if (request.socket.destroyed || connection.isOverfull) return
    if (open.length >= maxUnanswered) {
      this.#closeOverfull(connection)
      return
    }
    connection.add(response)
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => this.#finish(connection, response))
    const isFirst = open.length === 1
    // node:http would buffer every chunk of a body until it is read.
    if (!isFirst || request.headers['transfer-encoding'] !== undefined) connection.collectBody(response)
    if (!isFirst) return
    if (this.#arrived) this.#arrived.push(response)
    else {
      this.#arrived = [response]
      this.#schedule()
    }
  }

  #finish(connection: ClientConnection, response: ServerResponse): void {
    const { open, isAccepted, isOverfull, socket } = connection
    const { method } = response.req
    // After this side has closed the connection, only a request with a token counts.
    const isReported = (isOverfull || socket.writableEnded) && !(isAccepted && response === open[0])
    if (!response.headersSent && !isReported)
      this.#options.log.record({ outcome: 'aborted', method, from: socket.remoteAddress })
    connection.remove(response)
    const [next] = open
    if (next) this.#handle(next)
    else if (this.isDraining) connection.end()
  }

  #closeOverfull(connection: ClientConnection): void {
    const { socket, open } = connection
    const reason = `More than ${maxUnanswered} unanswered requests`
    // After a response that closes the connection, nothing counts (RFC 9112, 9.6).
    const isClosing = open.some(({ headersSent, shouldKeepAlive }) => headersSent && !shouldKeepAlive)
    if (!isClosing && !socket.writableEnded)
      this.#options.log.record({ outcome: 'closed', from: socket.remoteAddress, reason })
    connection.endOverfull()
    this.#overfull += 1
    if (this.#overfull === 1) setImmediate(() => this.#resume())
    if (this.#overfull < maxOverfull) return
    // node:http parses thousands of requests that were read at once, and keeps those of a closed connection until the end
    // of the turn.
    for (const [other, { isHandshake }] of this.#connections)
      if (!isHandshake && !other.isPaused()) this.#paused.push(other.pause())
  }

  #resume(): void {
    this.#overfull = 0
    for (const socket of this.#paused.splice(0)) socket.resume()
  }

  /** Handles requests at the end of a turn of the event loop, when their bodies have arrived. */
  #schedule(): void {
    setImmediate(() => {
      const arrived = this.#arrived ?? []
      this.#arrived = arrived.length > 0 ? [] : undefined
      // Schedule the next turn before the store schedules its commit: requests that arrive until then share it.
      if (this.#arrived) this.#schedule()
      for (const response of arrived) this.#handle(response)
    })
  }

  /** Does nothing if an earlier response has closed the connection (RFC 9112, 9.6). */
  #handle(response: ServerResponse): void {
    const { socket } = response.req
    const connection = this.#of(socket)
    if (!connection.isOpen) return
    this.#handler(response, connection).catch((error: unknown) => {
      this.#options.log.error(error)
      socket.destroy()
    })
  }

  #rejectInput(socket: Socket, code: string): void {
    const connection = this.#of(socket)
    // After a response that closes the connection, nothing counts (RFC 9112, 9.6).
    if (connection.isBroken || socket.writableEnded || code === 'HPE_CLOSED_CONNECTION') return
    if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') return void socket.destroy()
    const error = parserErrors[code as keyof typeof parserErrors] ?? invalidHttp
    if (connection.reject(error)) this.#options.log.record({ outcome: String(error.error), code })
  }
}
