import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../platform/errors.js'
import { bytesOf, headersTooLarge, invalidHttp, late, lingerTime } from './answer.js'
import { Body } from './body.js'
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

export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  body: Body
  /** Whether its token is accepted, and it is being processed. */
  isAccepted: boolean
}

/** If it rejects, the connection is closed. */
export type Handler = (exchange: Exchange) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'warn' | 'error'>
}

/** The ciphers of TLS 1.3, and of TLS 1.2 those with forward secrecy and authenticated encryption (RFC 9325, 4.2). */
const ciphers =
  'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20'

/** In milliseconds. */
const headersTimeout = 10_000

/** A drain goes on accepting for so many milliseconds: clients may have connected before they can know of it. */
const drainGrace = 500
const pause = 10

/** Milliseconds between two warnings that connections are refused. */
const warningInterval = 60_000

/** A connection with so many requests is closed at the next. */
const maxUnanswered = 16

const parserErrors = { HPE_HEADER_OVERFLOW: headersTooLarge, ERR_HTTP_REQUEST_TIMEOUT: late }

/** Answers the requests of a connection one after the other (RFC 9112, 9.3.2). */
export class HttpServer {
  readonly server: Server
  isDraining = false
  readonly #handler: Handler
  readonly #log: HttpServerOptions['log']
  /** With TLS, those below it. */
  readonly #sockets = new Set<Socket>()
  /** The unanswered requests of each connection: the one that is processed, and those that wait. */
  readonly #connections = new Map<Socket, Exchange[]>()
  #accepted = 0
  /** The requests of this turn of the event loop, and the sockets that are paused for the rest of it. */
  readonly #arrived: Exchange[] = []
  #isScheduled = false
  #paused: Socket[] | undefined
  /** Set while a drain closes the port. */
  #isHeld = false
  #warnedAt = -warningInterval

  constructor(handler: Handler, { limits, tls, log }: HttpServerOptions) {
    const { requestTimeout, connectionLimit } = limits
    this.#handler = handler
    this.#log = log
    const options = {
      maxHeaderSize: 16_384,
      headersTimeout: Math.min(headersTimeout, requestTimeout), // node:http requires this order
      requestTimeout,
      keepAliveTimeout: 65_000, // proxies close idle connections after 60 s
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
    }
    const secure = { ...options, ...tls, ciphers, handshakeTimeout: headersTimeout }
    const server = tls ? createSecureServer(secure) : createServer(options)
    this.server = server
    server.maxConnections = connectionLimit
    server.on('drop', () => this.#warn())
    server.maxHeadersCount = maxHeaderLines + 1 // node:http drops those after it; this service rejects the request
    server.on('connection', (socket: Socket) => {
      this.#accepted += 1
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket))
    for (const event of ['request', 'checkContinue', 'checkExpectation'])
      server.on(event, (request: IncomingMessage, response: ServerResponse) =>
        this.#receive(request, response),
      )
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#reject(socket, systemCode(error) ?? ''),
    )
    // Nothing was sent or received for so long. A client may wait for its response, or get a 408.
    server.setTimeout(requestTimeout, (socket) => {
      if (socket.writableLength > 0 || this.#connections.get(socket)?.length === 0) socket.destroy()
    })
  }

  get connectionCount(): number {
    return this.#connections.size
  }

  /** Answers the requests that have arrived. Destroys the connections that are left after `milliseconds`. */
  async drain(milliseconds: number): Promise<void> {
    const end = performance.now() + milliseconds
    const isOver = () => this.#sockets.size === 0 || performance.now() >= end
    this.isDraining = true
    for (const exchanges of this.#connections.values()) closeAfter(exchanges.at(-1))
    await wait(Math.min(drainGrace, milliseconds / 2))
    // When the port closes, the system resets the connections in its queue, of which a turn of the event loop accepts
    // one. A client that connects anew after its response waits meanwhile.
    this.#isHeld = true
    let known = -1
    for (let left = 50; known !== this.#accepted && left > 0 && !isOver(); left -= 1) {
      known = this.#accepted
      await wait(pause)
      await new Promise(setImmediate) // so that what comes is accepted just before the port closes
    }
    // It would close connections whose next request may be there.
    this.server.closeIdleConnections = () => undefined
    this.server.close()
    await wait(pause)
    this.#isHeld = false
    this.#handleArrived()
    // Who has just connected may still send a request.
    for (let turn = 0; this.#connections.size > 0 && !isOver(); turn += 1) {
      if (turn >= 10)
        for (const [socket, { length }] of this.#connections) if (length === 0) socket.destroy()
      await wait(pause)
    }
    this.abort()
  }

  abort(): void {
    this.server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #warn(): void {
    if (performance.now() - this.#warnedAt < warningInterval) return
    this.#warnedAt = performance.now()
    const reason = 'the limit of --connection-limit'
    this.#log.warn(`Connections are refused: ${this.server.maxConnections} are open, ${reason}`)
  }

  #add(socket: Socket): void {
    this.#connections.set(socket, [])
    // With a listener, node:http reads the stream, and not past it what came with the end of a TLS handshake.
    this.#paused?.push(socket.pause().on('data', () => undefined))
    socket.once('close', () => this.#connections.delete(socket))
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const exchanges = this.#connections.get(socket)
    if (!exchanges || socket.destroyed) return
    // After a response that closes the connection, nothing counts (RFC 9112, 9.6).
    const isClosing = !socket.writable || exchanges.at(-1)?.response.shouldKeepAlive === false
    const isOverfull = exchanges.length >= maxUnanswered
    if (isOverfull && !isClosing) this.#closeOverfull(socket, exchanges)
    if (isOverfull || isClosing) return void this.#pauseAll(socket)
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const exchange = { request, response, body: new Body(request), isAccepted: false }
    exchanges.push(exchange)
    response.once('close', () => {
      exchanges.shift()
      const [next] = exchanges
      if (next) this.#handle(next)
    })
    if (exchanges.length > 1) return
    this.#arrived.push(exchange)
    if (!this.#isScheduled) this.#schedule()
  }

  /** All requests of a turn, when their bodies have come: one at a time takes three times as long. */
  #schedule(): void {
    this.#isScheduled = true
    setImmediate(() => this.#handleArrived())
  }

  #handleArrived(): void {
    if (this.#isHeld) return
    const arrived = this.#arrived.splice(0)
    this.#isScheduled = false
    // Before the store schedules its commit: requests that arrive until then share it.
    if (arrived.length > 0 && this.#connections.size > 1) this.#schedule()
    for (const exchange of arrived) this.#handle(exchange)
  }

  #handle(exchange: Exchange): void {
    const { socket } = exchange.request
    if (!socket.writable) return // the client has left
    this.#handler(exchange).catch((error: unknown) => {
      this.#log.error(error)
      socket.destroy()
    })
  }

  /** The response to a request that is with the store is sent; the others get none. */
  #closeOverfull(socket: Socket, exchanges: Exchange[]): void {
    const reason = `More than ${maxUnanswered} unanswered requests`
    this.#log.record({ outcome: 'closed', from: socket.remoteAddress, reason })
    if (!exchanges[0]?.isAccepted) return void socket.destroy()
    closeAfter(exchanges[0])
    exchanges.length = 1
  }

  /**
   * Nothing more is read from a connection, and in this turn of the event loop from none: node:http parses all that was
   * read at once, which may be thousands of requests, and keeps them until the turn ends.
   */
  #pauseAll(socket: Socket): void {
    socket.pause()
    if (!this.#paused) setImmediate(() => this.#resume())
    this.#paused ??= []
    for (const other of this.#connections.keys())
      if (!other.isPaused()) this.#paused.push(other.pause())
  }

  #resume(): void {
    for (const socket of this.#paused ?? []) socket.resume()
    this.#paused = undefined
  }

  /** What is no HTTP, or is late: it fails the request whose body it is, or closes the connection. */
  #reject(socket: Socket, code: string): void {
    if (code === 'ECONNRESET' || code === 'EPIPE') return void socket.destroy()
    if (!socket.writable || code === 'HPE_CLOSED_CONNECTION') return
    const error = parserErrors[code as keyof typeof parserErrors] ?? invalidHttp
    const last = this.#connections.get(socket)?.at(-1)
    if (last) {
      last.body.fail(error)
      closeAfter(last)
      socket.pause()
      return
    }
    this.#log.record({ outcome: String(error.error), code })
    socket.end(bytesOf(error))
    setTimeout(() => socket.destroy(), lingerTime).unref()
  }
}

/** Closes the connection after a response, also if its headers were sent without saying so. */
function closeAfter(exchange: Exchange | undefined): void {
  if (!exchange?.response.shouldKeepAlive) return
  const { request, response } = exchange
  response.shouldKeepAlive = false
  if (response.headersSent) response.once('close', () => request.socket.destroySoon())
}
