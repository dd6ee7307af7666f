import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type Socket, Server as SocketServer } from 'node:net'
import { systemCode } from '../platform/errors.js'
import { ClientConnection } from './connection.js'
import { HttpError, invalidHttp, parserErrors } from './errors.js'
import type { AccessLog, AccessLogEntry } from './log.js'
import { validateHead } from './request.js'

export interface Limits {
  requestTimeout: number
  connectionLimit: number
  /** whether a connection above the limit closes the oldest one without a request, instead of being closed itself */
  replacesIdle?: boolean
}

export interface Tls {
  cert: string
  key: string
}

/**
 * Handles a request.
 *
 * @param sendContinue set if the client waits for "100 Continue"; lets it send the body
 * @returns a promise; if it rejects before the response has begun, the response is 500
 */
export type Handler = (request: IncomingMessage, response: ServerResponse, sendContinue?: () => void) => Promise<void>

export interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  /** records the requests that never reach the handler */
  log: AccessLog
  /** milliseconds, monotonic */
  now(): number
  /** the path to log for a request target; undefined if it must not be logged */
  pathOf?(url: string): string | undefined
}

/** Those of TLS 1.3, and of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325, 4.2). */
const ciphers = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':')

/** the maximum size of the headers of a request, in bytes */
const maxHeaderSize = 16_384

/** the maximum time to receive the headers, in milliseconds */
const headersTimeout = 10_000

/** milliseconds: more than the 60 s after which proxies close idle connections */
const keepAliveTimeout = 65_000

/** the maximum number of unanswered requests on one connection, which is closed at the next */
const maxUnanswered = 32

/** milliseconds in which an idle connection may still send a request after a drain has started */
const idleGrace = 500

/**
 * A node:http server that responds to every request, at least with an Error, including those that the parser rejects. A drain leaves no
 * request unanswered.
 */
export class HttpServer {
  readonly server: Server
  isDraining = false
  readonly #handler: Handler
  readonly #log: AccessLog
  readonly #now: () => number
  readonly #pathOf: HttpServerOptions['pathOf']
  readonly #connections = new Map<Socket, ClientConnection>()
  #accepted = 0
  /** the requests of this turn of the event loop, at the end of which their bodies have arrived */
  #arrived: ServerResponse[] = []
  #isScheduled = false
  readonly #idleLimit: number

  constructor(handler: Handler, { limits, tls, log, now, pathOf }: HttpServerOptions) {
    this.#handler = handler
    this.#log = log
    this.#now = now
    this.#pathOf = pathOf
    const { requestTimeout } = limits
    const options = {
      maxHeaderSize,
      headersTimeout: Math.min(headersTimeout, requestTimeout), // node:http requires this order
      requestTimeout,
      keepAliveTimeout,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
    }
    const secure = { ...options, ...tls, ciphers, handshakeTimeout: headersTimeout }
    this.server = tls ? createSecureServer(secure) : createServer(options)
    this.#idleLimit = limits.replacesIdle ? limits.connectionLimit : Infinity
    this.server.maxConnections = limits.connectionLimit + (limits.replacesIdle ? 1 : 0)
    this.server.maxHeadersCount = 0 // their size is limited; node:http would drop headers after the 2000th
    Object.assign(this.server, { httpAllowHalfOpen: true }) // a client that has closed its side may still wait for a response
    this.server.on('connection', (socket: Socket) => this.#add(socket, tls === undefined))
    if (tls) this.server.on('secureConnection', (socket: Socket) => this.#add(socket, true))
    this.#handleEvents()
    const check = () => {
      for (const connection of this.#connections.values()) connection.endIfStalled(now(), requestTimeout)
    }
    const timer = setInterval(check, options.connectionsCheckingInterval).unref()
    this.server.once('close', () => clearInterval(timer))
  }

  /** Stops accepting connections, answers every received request, and closes. Destroys the connections that are left after the timeout. */
  async drain(milliseconds: number): Promise<void> {
    // From now on, the last response on each connection closes it.
    this.isDraining = true
    for (const { open } of this.#connections.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
    const end = this.#now() + milliseconds
    // Accept the connections in the backlog first: each turn of the event loop accepts some, until a turn accepts none.
    for (let known = -1; known !== this.#accepted && this.#now() < end; ) {
      known = this.#accepted
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const closed = new Promise<void>((resolve) => stopListening(this.server, resolve))
    const closeIdle = () => {
      this.server.closeIdleConnections()
      // It keeps those without any request. One in the middle of a TLS handshake may still send one.
      for (const [socket, { last, canSend }] of this.#connections)
        if (last === undefined && (canSend || socket.bytesRead === 0)) socket.destroy()
    }
    const timers = [setTimeout(closeIdle, Math.min(idleGrace, milliseconds)), setTimeout(() => this.abort(), milliseconds)]
    await closed
    for (const timer of timers) clearTimeout(timer)
  }

  abort(): void {
    this.server.close()
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  #handleEvents(): void {
    this.server.on('request', (request, response) => this.#receive(request, response))
    this.server.on('checkContinue', (request, response) => {
      // Without "100 Continue", the body may or may not follow, so the response must close the connection.
      const { shouldKeepAlive } = response
      response.shouldKeepAlive = false
      this.#receive(request, response, () => {
        response.shouldKeepAlive = shouldKeepAlive && !this.isDraining && this.#of(request.socket).ignored === 0
        response.writeContinue()
      })
    })
    this.server.on('checkExpectation', (request, response) => {
      this.#receive(request, response, undefined, new HttpError(400, 'This Expect is not supported, only 100-continue'))
    })
    this.server.on('connect', ({ socket }) => {
      const connection = this.#of(socket)
      if (connection.isClosing) connection.ignored += 1
      else this.#rejectInput(connection, new HttpError(404, 'This is not a proxy'), 'CONNECT')
    })
    this.server.on('clientError', (cause: Error, socket: Socket) => {
      const code = systemCode(cause) ?? ''
      this.#rejectInput(this.#of(socket), parserErrors[code] ?? invalidHttp, code)
    })
  }

  /** @param canSend whether the client can send requests now: with TLS, only after the handshake */
  #add(socket: Socket, canSend: boolean): void {
    const connection = new ClientConnection(socket, canSend)
    this.#accepted += 1
    this.#connections.set(socket, connection)
    if (this.#connections.size > this.#idleLimit) this.#closeOldestIdle()
    if (canSend) socket.destroySoon = () => connection.end()
    socket.on('error', () => socket.destroy()) // node:http removes its own listener at a CONNECT
    socket.once('close', () => {
      this.#connections.delete(socket)
      // node:http emits `close` only on the response that is currently being sent.
      for (const response of [...connection.open]) {
        response.destroy()
        response.emit('close')
      }
    })
  }

  #closeOldestIdle(): void {
    for (const [socket, { open }] of this.#connections) if (open.length === 0) return void socket.destroy()
  }

  /** The connection of a socket; a new one if TLS has failed. */
  #of(socket: Socket): ClientConnection {
    return this.#connections.get(socket) ?? new ClientConnection(socket, false)
  }

  #receive(request: IncomingMessage, response: ServerResponse, sendContinue?: () => void, error = validateHead(request)): void {
    const { socket, headers } = request
    const connection = this.#of(socket)
    const { open } = connection
    if (open.length + connection.ignored >= maxUnanswered) socket.destroy()
    if (socket.destroyed) return
    if (connection.isClosing) {
      connection.ignored += 1
      return
    }
    const previous = open.at(-1)
    connection.last = response
    open.push(response)
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => {
      open.splice(open.indexOf(response), 1)
      const isLogged = response.headersSent || (connection.isEnding && !request.complete)
      if (!isLogged) this.#record(request, { outcome: 'aborted' })
    })
    if (error) this.#reject(response, error, 'HEAD')
    else if (previous) previous.once('close', () => this.#handle(response, sendContinue))
    // node:http would buffer every chunk of the body until it is read.
    else if (sendContinue || headers['transfer-encoding'] !== undefined) this.#handle(response, sendContinue)
    else {
      this.#arrived.push(response)
      if (!this.#isScheduled) this.#schedule()
    }
  }

  #schedule(): void {
    this.#isScheduled = true
    setImmediate(() => {
      const arrived = this.#arrived
      this.#arrived = []
      this.#isScheduled = false
      // Schedule the next turn before the store schedules its commit: requests that arrive until then are handled first, and share it.
      if (arrived.length > 0) this.#schedule()
      for (const response of arrived) this.#handle(response)
    })
  }

  /** Calls the handler. Its failure affects no other request. */
  #handle(response: ServerResponse, sendContinue?: () => void): void {
    if (response.req.socket.destroyed) return
    const fail = (error: unknown) => {
      this.#log.error(error)
      if (response.headersSent) response.destroy()
      else this.#reject(response, new HttpError(500, 'Internal error'), 'DEFECT')
    }
    this.#handler(response.req, response, sendContinue).catch(fail)
  }

  #rejectInput(connection: ClientConnection, error: HttpError, code: string): void {
    const request = connection.open.at(-1)?.req
    if (!connection.reject(error, code)) return
    const entry = { outcome: String(error.error), code }
    if (request?.complete === false) this.#record(request, entry)
    else this.#log.record(entry)
  }

  /** Sends an error for a request that does not reach the handler, and closes the connection. */
  #reject(response: ServerResponse, error: HttpError, code: string): void {
    response.shouldKeepAlive = false
    respond(response, error)
    this.#record(response.req, { outcome: String(error.error), code })
  }

  /** Records a request that the handler did not answer. */
  #record({ method, url = '', socket }: IncomingMessage, entry: AccessLogEntry): void {
    this.#log.record({ ...entry, method, path: this.#pathOf?.(url), from: socket.remoteAddress })
  }
}

export interface HttpAnswer {
  status: number
  /** application/json by default */
  contentType?: string
  body: string | Buffer
  /** alternating names and values */
  headers?: readonly string[] | undefined
}

export function respond(response: ServerResponse, answer: HttpAnswer, requestId?: string): void {
  const { status, contentType = 'application/json', body, headers = [] } = answer
  const length = Buffer.byteLength(body)
  // One write of headers and body. `end` with a body makes two, which costs a tenth of a request.
  response.cork()
  respondWith(response, status, ['Content-Type', contentType, 'Content-Length', String(length), ...headers], requestId)
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  response.uncork()
  response.end()
}

export function respondWith(response: ServerResponse, status: number, headers: readonly string[], requestId?: string): void {
  const own = ['X-Content-Type-Options', 'nosniff']
  if (requestId !== undefined) own.push('Request-Id', requestId)
  response.writeHead(status, [...headers, ...own])
  // node:http would buffer an unread body until the client has read the response.
  if (!response.req.readableEnded) response.req.resume()
}

/** Stops listening. `http.Server.close` would also close idle connections, although a request for them may be in transit. */
function stopListening(server: Server, onClose: () => void): void {
  const isOfNode: boolean = server instanceof SocketServer
  if (isOfNode) {
    SocketServer.prototype.close.call(server, onClose)
    return
  }
  // Bun's http.Server is not a net.Server: an internal object listens, and closes the idle connections.
  for (const key of Object.getOwnPropertySymbols(server)) {
    const part = Reflect.get(server, key)
    if (typeof part?.closeIdleConnections === 'function') part.closeIdleConnections = () => 0
  }
  server.close(onClose)
}
