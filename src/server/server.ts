import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type Socket, Server as SocketServer } from 'node:net'
import { systemCode } from '../platform/errors.js'
import { Connections } from './connections.js'
import { HttpError, invalidHttp, parserErrors } from './errors.js'
import type { AccessLog } from './log.js'
import { validateHead } from './request.js'

/** What connections may cost. Times are in milliseconds, sizes in bytes. */
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
 * Answers a request.
 *
 * @param sendContinue is there when the client waits for "100 Continue", and lets it send the body
 * @returns a promise; when it rejects before an answer, the answer is 500
 */
export type Handler = (request: IncomingMessage, response: ServerResponse, sendContinue?: () => void) => Promise<void>

export interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  /** gets the requests that no handler saw */
  log: AccessLog
  /** milliseconds, never going back */
  now(): number
}

/** How many pipelined requests are handled before other connections get their turn. */
const pipelinedPerTurn = 100

/** milliseconds in which an idle connection may still bring a request after the start of a drain */
const idleGrace = 500

/**
 * A server of node:http that answers every request with an Error at least, also those that its parser rejects, and that drains without
 * leaving one unanswered.
 */
export class HttpServer {
  readonly server: Server
  readonly #handler: Handler
  readonly #log: AccessLog
  readonly #now: () => number
  readonly #connections = new Connections()
  /** requests that wait for the end of this turn of the event loop, when their bodies have arrived: the first on their connections */
  readonly #first: ServerResponse[] = []
  /** and those that came before the previous one was answered */
  readonly #pipelined: ServerResponse[] = []
  #isScheduled = false

  constructor(handler: Handler, { limits, tls, log, now }: HttpServerOptions) {
    this.#handler = handler
    this.#log = log
    this.#now = now
    const options = {
      maxHeaderSize: limits.headerLimit,
      headersTimeout: Math.min(limits.headerTimeout, limits.requestTimeout), // node:http accepts no other
      requestTimeout: limits.requestTimeout,
      keepAliveTimeout: limits.keepAlive,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, limits.headerTimeout / 2, limits.requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
      IncomingMessage: requestClass(this.#connections),
    }
    this.server = tls ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.headerTimeout }) : createServer(options)
    this.server.maxConnections = limits.connectionLimit
    this.server.maxHeadersCount = 0 // their size is limited; node:http would drop those after the 2000th
    Object.assign(this.server, { httpAllowHalfOpen: true }) // who has sent everything may still want an answer
    this.#listen(tls !== undefined)
    const check = () => this.#connections.endStalled(now(), limits.requestTimeout)
    const timer = setInterval(check, options.connectionsCheckingInterval).unref()
    this.server.once('close', () => clearInterval(timer))
  }

  get isDraining(): boolean {
    return this.#connections.isDraining
  }

  /** Accepts no more connections, answers what was received, and closes; what takes longer is cut off. */
  async drain(milliseconds: number): Promise<void> {
    this.#connections.startDraining()
    const end = this.#now() + milliseconds
    // Connections in the backlog of the socket come first: each turn of the event loop accepts some, until one accepts none.
    for (let known = -1; known !== this.#connections.count && this.#now() < end; ) {
      known = this.#connections.count
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const closed = new Promise<void>((resolve) => closeSparingIdle(this.server, resolve))
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
      // Without "100 Continue" the body may or may not follow, so that the answer has to close the connection.
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
    // node:http would keep each chunk of a body until it is read.
    else if (sendContinue || (isFirst && request.headers['transfer-encoding'] !== undefined)) this.#handle(response, sendContinue)
    else {
      const waiting = isFirst ? this.#first : this.#pipelined
      waiting.push(response)
      this.#schedule()
    }
  }

  /** Handles the waiting requests when all that has arrived is parsed. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const waiting = [...this.#first.splice(0), ...this.#pipelined.splice(0, pipelinedPerTurn)]
      // Before the store schedules its commit: requests that arrive until then are handled first, and share it.
      if (waiting.length > 0) this.#schedule()
      for (const response of waiting) this.#handle(response)
    })
  }

  /** Calls the handler, whose failure ends no other request, when it is the turn of this one. */
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

  /** Answers a request that no handler answers, and closes its connection. */
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
  /** names and values in turn */
  headers?: readonly string[]
}

export function respond(response: ServerResponse, { status, body, headers = [] }: HttpAnswer, requestId?: string): void {
  const length = Buffer.byteLength(body)
  // One write of one string; `end` with a body makes it two, which costs a tenth of a request.
  response.cork()
  respondWith(response, status, ['Content-Type', 'application/json', 'Content-Length', String(length), ...headers], requestId)
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  response.uncork()
  response.end()
}

/** Begins an answer, whose body is then written. */
export function respondWith(response: ServerResponse, status: number, headers: readonly string[], requestId?: string): void {
  const own = ['X-Content-Type-Options', 'nosniff']
  if (requestId !== undefined) own.push('Request-Id', requestId)
  response.writeHead(status, [...headers, ...own])
  // node:http would keep a body that nobody reads until the answer is taken.
  if (!response.req.readableEnded) response.req.resume()
}

/**
 * The class of requests. node:http makes objects of all requests in a read before any is answered, and a read of 64 KiB may hold thousands;
 * it stops at a CONNECT. So the first request after an answer that closes the connection passes for one.
 */
function requestClass(connections: Connections): typeof IncomingMessage {
  const ignore = () => undefined
  const asConnect = { method: { get: () => 'CONNECT', set: ignore }, upgrade: { get: () => true, set: ignore } }
  return class extends IncomingMessage {
    constructor(...given: ConstructorParameters<typeof IncomingMessage>) {
      super(...given) // Bun gives more than the socket
      if (connections.isClosing(connections.of(given[0]))) Object.defineProperties(this, asConnect)
    }
  }
}

/** Stops listening. The `close` of http.Server would also close connections that are idle, while a request may be on its way to them. */
function closeSparingIdle(server: Server, onClose: () => void): void {
  const isOfNode: boolean = server instanceof SocketServer
  if (isOfNode) {
    SocketServer.prototype.close.call(server, onClose)
    return
  }
  // Bun's http.Server is no net.Server: it listens by an object that it keeps, and asks that to close them.
  for (const key of Object.getOwnPropertySymbols(server)) {
    const part = Reflect.get(server, key)
    if (typeof part?.closeIdleConnections === 'function') part.closeIdleConnections = () => 0
  }
  server.close(onClose)
}
