import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type Socket, Server as SocketServer } from 'node:net'
import { systemCode } from '../platform/errors.js'
import { Connections } from './connections.js'
import { HttpError, invalidHttp, parserErrors } from './errors.js'
import type { AccessLog } from './log.js'
import { validateHead } from './request.js'

/** The limits of connections. Times are in milliseconds, sizes in bytes. */
export interface Limits {
  headerLimit: number
  headerTimeout: number
  requestTimeout: number
  keepAlive: number
  connectionLimit: number
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
}

/** How many pipelined requests are handled in one turn of the event loop, before other connections are served. */
const pipelinedPerTurn = 100

/** milliseconds in which an idle connection may still send a request after a drain has started */
const idleGrace = 500

/**
 * A node:http server that responds to every request, at least with an Error, including those that the parser rejects. A drain leaves no
 * request unanswered.
 */
export class HttpServer {
  readonly server: Server
  readonly #handler: Handler
  readonly #log: AccessLog
  readonly #now: () => number
  readonly #connections = new Connections()
  /** the first unanswered request of each connection, until the end of this turn of the event loop, when their bodies have arrived */
  readonly #first: ServerResponse[] = []
  /** requests that arrived before the previous one on their connection was answered */
  readonly #pipelined: ServerResponse[] = []
  #isScheduled = false

  constructor(handler: Handler, { limits, tls, log, now }: HttpServerOptions) {
    this.#handler = handler
    this.#log = log
    this.#now = now
    const options = {
      maxHeaderSize: limits.headerLimit,
      headersTimeout: Math.min(limits.headerTimeout, limits.requestTimeout), // node:http requires this order
      requestTimeout: limits.requestTimeout,
      keepAliveTimeout: limits.keepAlive,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, limits.headerTimeout / 2, limits.requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
      IncomingMessage: requestClass(this.#connections),
    }
    this.server = tls ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.headerTimeout }) : createServer(options)
    this.server.maxConnections = limits.connectionLimit
    this.server.maxHeadersCount = 0 // their size is limited; node:http would drop headers after the 2000th
    Object.assign(this.server, { httpAllowHalfOpen: true }) // a client that has closed its side may still wait for a response
    this.#listen(tls !== undefined)
    const check = () => this.#connections.endStalled(now(), limits.requestTimeout)
    const timer = setInterval(check, options.connectionsCheckingInterval).unref()
    this.server.once('close', () => clearInterval(timer))
  }

  get isDraining(): boolean {
    return this.#connections.isDraining
  }

  /** Stops accepting connections, answers every received request, and closes. Destroys the connections that are left after the timeout. */
  async drain(milliseconds: number): Promise<void> {
    this.#connections.startDraining()
    const end = this.#now() + milliseconds
    // Accept the connections in the backlog first: each turn of the event loop accepts some, until a turn accepts none.
    for (let known = -1; known !== this.#connections.count && this.#now() < end; ) {
      known = this.#connections.count
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const closed = new Promise<void>((resolve) => stopListening(this.server, resolve))
    const closeIdle = () => {
      this.server.closeIdleConnections()
      this.#connections.endUnused()
    }
    const timers = [setTimeout(closeIdle, Math.min(idleGrace, milliseconds)), setTimeout(() => this.#connections.endAll(), milliseconds)]
    await closed
    for (const timer of timers) clearTimeout(timer)
  }

  /** Stops at once. */
  abort(): void {
    this.server.close()
    this.#connections.endAll()
  }

  #listen(isSecure: boolean): void {
    const connections = this.#connections
    const add = (socket: Socket, canSend: boolean) => {
      const connection = connections.add(socket, canSend)
      if (canSend) socket.destroySoon = () => connection.end()
      socket.on('error', () => socket.destroy()) // node:http removes its own listener at a CONNECT
    }
    this.server.on('connection', (socket: Socket) => add(socket, !isSecure))
    if (isSecure) this.server.on('secureConnection', (socket: Socket) => add(socket, true))
    this.server.on('request', (request, response) => this.#receive(request, response))
    this.server.on('checkContinue', (request, response) => {
      // Without "100 Continue", the body may or may not follow, so the response must close the connection.
      const { shouldKeepAlive } = response
      response.shouldKeepAlive = false
      this.#receive(request, response, () => {
        response.shouldKeepAlive = shouldKeepAlive && !this.isDraining && !connections.of(request.socket).isFull
        response.writeContinue()
      })
    })
    this.server.on('checkExpectation', (request, response) => {
      this.#receive(request, response, undefined, new HttpError(400, 'This Expect is not supported, only 100-continue'))
    })
    this.server.on('connect', (_, socket: Socket) => {
      const connection = connections.of(socket)
      if (connections.isClosing(connection)) connection.isFull = true
      else {
        connection.rejectConnect(new HttpError(404, 'This is not a proxy'))
        this.#log.record({ outcome: '404', code: 'CONNECT' })
      }
    })
    this.server.on('clientError', (cause: Error, socket: Socket) => {
      const code = systemCode(cause) ?? ''
      const error = parserErrors[code] ?? invalidHttp
      if (connections.of(socket).reject(error, code)) this.#log.record({ outcome: error.outcome, code })
    })
  }

  #receive(request: IncomingMessage, response: ServerResponse, sendContinue?: () => void, error = validateHead(request)): void {
    const connection = this.#connections.of(request.socket)
    if (this.#connections.isClosing(connection)) return
    this.#connections.admit(connection, response)
    response.once('close', () => {
      this.#connections.release(connection, response)
      const isLogged = response.headersSent || (connection.isBroken && !request.complete)
      if (!isLogged) this.#log.record({ outcome: 'aborted' })
    })
    const isFirst = connection.open.length === 1
    if (error) this.#reject(response, error, 'HEAD')
    // node:http would buffer every chunk of the body until it is read.
    else if (sendContinue || (isFirst && request.headers['transfer-encoding'] !== undefined)) this.#handle(response, sendContinue)
    else {
      const waiting = isFirst ? this.#first : this.#pipelined
      waiting.push(response)
      this.#schedule()
    }
  }

  /** Handles the waiting requests when everything that has arrived is parsed. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const waiting = [...this.#first.splice(0), ...this.#pipelined.splice(0, pipelinedPerTurn)]
      // Schedule the next turn before the store schedules its commit: requests that arrive until then are handled first, and share it.
      if (waiting.length > 0) this.#schedule()
      for (const response of waiting) this.#handle(response)
    })
  }

  /** Calls the handler when it is the turn of the request. Its failure affects no other request. */
  #handle(response: ServerResponse, sendContinue?: () => void): void {
    const { socket } = response.req
    if (socket.destroyed) return
    const previous = this.#connections.of(socket).toAwait(response)
    if (previous) return void previous.once('close', () => this.#handle(response, sendContinue))
    const fail = (error: unknown) => {
      this.#log.error(error)
      if (response.headersSent) response.destroy()
      else this.#reject(response, new HttpError(500, 'Internal error'), 'DEFECT')
    }
    this.#handler(response.req, response, sendContinue).catch(fail)
  }

  /** Sends an error for a request that does not reach the handler, and closes the connection. */
  #reject(response: ServerResponse, error: HttpError, code: string): void {
    response.shouldKeepAlive = false
    respond(response, error)
    this.#log.record({ outcome: error.outcome, code })
  }
}

export interface HttpAnswer {
  status: number
  /** JSON */
  body: string | Buffer
  /** alternating names and values */
  headers?: readonly string[]
}

export function respond(response: ServerResponse, { status, body, headers = [] }: HttpAnswer, requestId?: string): void {
  const length = Buffer.byteLength(body)
  // One write of headers and body. `end` with a body makes two, which costs a tenth of a request.
  response.cork()
  respondWith(response, status, ['Content-Type', 'application/json', 'Content-Length', String(length), ...headers], requestId)
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  response.uncork()
  response.end()
}

/** Sends the headers of a response; the caller writes the body. */
export function respondWith(response: ServerResponse, status: number, headers: readonly string[], requestId?: string): void {
  const own = ['X-Content-Type-Options', 'nosniff']
  if (requestId !== undefined) own.push('Request-Id', requestId)
  response.writeHead(status, [...headers, ...own])
  // node:http would buffer an unread body until the client has read the response.
  if (!response.req.readableEnded) response.req.resume()
}

/**
 * The class of requests. node:http parses all requests of one read before any is answered, and a read of 64 KiB may contain thousands. It
 * stops at a CONNECT, so the first request after a response that closes the connection pretends to be one.
 */
function requestClass(connections: Connections): typeof IncomingMessage {
  const ignore = () => undefined
  const asConnect = { method: { get: () => 'CONNECT', set: ignore }, upgrade: { get: () => true, set: ignore } }
  return class extends IncomingMessage {
    constructor(...given: ConstructorParameters<typeof IncomingMessage>) {
      super(...given) // Bun passes more than the socket
      if (connections.isClosing(connections.of(given[0]))) Object.defineProperties(this, asConnect)
    }
  }
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
