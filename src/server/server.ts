/**
 * The HTTP server of a service: it receives requests, hands them to a handler, and drains.
 *
 * One request of a connection is handled at a time: a client that sends another before its response gets that
 * response, and no other (RFC 9112, 9.3.2). Which connections are open, and which of them are read, is decided in
 * `connection-limit.ts` and `connections.ts`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../errors.js'
import { Body } from './body.js'
import { ConnectionLimit } from './connection-limit.js'
import { Connections } from './connections.js'
import { createParserError } from './http-error.js'
import type { Log } from './log.js'
import { hasUnseenHeaderLines, maxHeaderLines } from './parse-request.js'
import { formatRawResponse } from './respond.js'

export interface Limits {
  requestTimeoutMs: number
  connectionLimit: number
}

export interface Tls {
  cert: string
  key: string
}

/** A request of a connection, with what its handler may ask of the server. */
export interface ReceivedRequest {
  response: ServerResponse
  body: Body
  /** Says that the token of the request is accepted: its connection is not closed for another, and is read first. */
  preferConnection(): void
  /** Waits until all new connections are accepted, before work that takes long. */
  acceptConnections(): Promise<void>
}

export type Handler = (request: ReceivedRequest) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'warn' | 'error'>
}

/** A request whose body or response is in progress. */
interface Pending {
  response: ServerResponse
  body: Body
  /** The requests that came on its connection before its response. */
  droppedCount: number
}

/** With more, a connection is closed, unless its request may be with the store. */
const maxDropped = 100

/** A drain goes on accepting: clients may come before they know of it. */
const drainGraceMs = 500

/** What libuv reads of a connection at once, at most. */
const maxReadBytes = 65_536

/** How long a body may go on whose request has its response. */
const lingerMs = 1000

export class HttpServer {
  readonly server: Server | SecureServer
  isDraining = false
  readonly #handler: Handler
  readonly #log: HttpServerOptions['log']
  readonly #connections = new Connections()
  readonly #limit: ConnectionLimit
  /** The request of each open connection, if any is in progress. */
  readonly #requests = new Map<Socket, Pending | undefined>()
  /** The requests that arrived in this iteration of the event loop. */
  #arrived: Pending[] = []
  /** While a drain closes the port, what arrives waits. */
  #isHeld = false

  constructor(handler: Handler, { limits, tls, log }: HttpServerOptions) {
    const { requestTimeoutMs, connectionLimit } = limits
    const options = {
      ...tls,
      handshakeTimeout: 10_000,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: 65_000, // proxies close idle connections after 60 s
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeoutMs / 2)),
      joinDuplicateHeaders: true, // so that a second Host is seen
      requireHostHeader: false, // a flood of what node:http answers itself would not be noticed
    }
    const server = tls ? createSecureServer(options) : createServer(options)
    // One more than is accepted. An unfinished head keeps its lines in memory, as a string each.
    server.maxHeadersCount = maxHeaderLines + 1
    this.server = server
    this.#handler = handler
    this.#log = log
    this.#limit = new ConnectionLimit({ limit: connectionLimit, log })
    server.on('connection', (socket: Socket) => this.#limit.add(socket))
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket))
    for (const event of ['request', 'checkExpectation'])
      server.on(event, (_, response: ServerResponse) => this.#receive(response))
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#reject(socket, systemCode(error) ?? ''),
    )
    // Nothing was sent or received for so long. A client may wait for its response, or get a 408.
    server.setTimeout(requestTimeoutMs, (socket) => {
      if (socket.writableLength > 0 || !this.#requests.get(socket)) socket.destroy()
    })
  }

  /** Answers the requests that arrive, within `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs
    const graceMs = Math.min(drainGraceMs, timeoutMs / 2)
    this.isDraining = true
    // Where the headers were sent without saying so, the next request is answered.
    for (const pending of this.#requests.values())
      if (pending) pending.response.shouldKeepAlive = false
    await wait(graceMs)
    // When a port closes, the system resets connections that nobody has accepted. So for a moment, nobody gets a
    // response and comes anew.
    this.#isHeld = true
    await wait(graceMs / 5)
    await this.#connections.acceptWaiting()
    this.server.close()
    this.#isHeld = false
    this.#handleArrived()
    await wait(graceMs / 5) // who connected may send a request
    while (this.#requests.size > 0 && performance.now() < end) {
      await nextIteration() // reads what came
      for (const [socket, pending] of this.#requests) if (!pending) socket.destroy()
      await wait(10)
    }
  }

  #add(socket: Socket): void {
    this.#requests.set(socket, undefined)
    socket.once('close', () => this.#requests.delete(socket))
    const mustStayPaused = () => this.#requests.get(socket)?.body.mustStayUnread ?? false
    this.#connections.add(socket, mustStayPaused)
  }

  #receive(response: ServerResponse): void {
    const { socket, headers } = response.req
    const current = this.#requests.get(socket)
    // Over TLS, a response may still be written, or end an iteration later, when its client sends the next request.
    if (!socket.writable || (current && !current.response.headersSent)) {
      this.#drop(response.req, current)
      return
    }
    if (hasUnseenHeaderLines(response.req)) this.#connections.countFlood(maxHeaderLines)
    const announcedBytes = Number(headers['content-length'] ?? 0)
    this.#connections.countFlood(Math.min(announcedBytes, maxReadBytes) / 1024)
    const body = new Body(response, (bytes) => this.#connections.countFlood(1 + bytes / 1024))
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    const pending = { response, body, droppedCount: 0 }
    this.#requests.set(socket, pending)
    response.once('close', () => this.#release(pending))
    // All requests of an iteration are handled together: one at a time takes three times as long.
    const arrive = () => {
      if (this.#arrived.push(pending) === 1) setImmediate(() => this.#handleArrived())
    }
    if (current && !current.response.closed) current.response.once('close', arrive)
    else arrive()
  }

  /** A request that comes before the response to another gets none, and is the last of its connection. */
  #drop(request: IncomingMessage, current: Pending | undefined): void {
    const { socket, headers, rawHeaders } = request
    socket.pause()
    this.#connections.countFlood(1 + rawHeaders.length / 2)
    if (headers['transfer-encoding'] !== undefined)
      request.on('data', () => this.#connections.countFlood(1))
    if (!current) return
    current.response.shouldKeepAlive = false
    if (current.droppedCount === 0) omitStacksAtClose(socket)
    current.droppedCount += 1
    if (current.droppedCount > maxDropped && !current.body.isWanted) socket.destroy()
  }

  #release(pending: Pending): void {
    const { req: request } = pending.response
    const { socket } = request
    const free = () => {
      if (this.#requests.get(socket) === pending) this.#requests.set(socket, undefined)
    }
    if (request.complete) free()
    else {
      pending.body.discard()
      request.once('end', free).resume()
      socket.resume()
      setTimeout(() => !request.complete && socket.destroy(), lingerMs).unref()
    }
  }

  #handleArrived(): void {
    if (this.#isHeld) return
    const arrived = this.#arrived
    this.#arrived = []
    for (const { response, body } of arrived) {
      const { socket } = response.req
      const fail = (error: unknown) => {
        this.#log.error(error)
        socket.destroy()
      }
      const preferConnection = () => {
        this.#limit.keep(socket)
        this.#connections.prefer(socket)
      }
      const acceptConnections = () => this.#connections.acceptWaiting()
      if (socket.writable)
        this.#handler({ response, body, preferConnection, acceptConnections }).catch(fail)
      else this.#log.record({ outcome: 'aborted', from: socket.remoteAddress })
    }
  }

  /** What is no HTTP, or late, gets an Error, unless a request on its connection waits for a response. */
  #reject(socket: Socket, code: string): void {
    const from = socket.remoteAddress
    const response = this.#requests.get(socket)?.response
    const isOpen = this.#requests.has(socket) // after its TLS handshake
    const hasLeft = code === 'ECONNRESET' || code === 'EPIPE'
    if (!isOpen && !hasLeft) this.#log.record({ outcome: 'handshake', code, from })
    if (!isOpen || hasLeft || !socket.writable || response?.socket === null) socket.destroy()
    else if (response?.headersSent || response?.req.complete) {
      if (response.shouldKeepAlive) response.once('close', () => socket.destroySoon())
      response.shouldKeepAlive = false // for which node:http does that
      socket.pause()
    } else {
      const error = createParserError(code)
      // or its handler does
      if (!response) this.#log.record({ outcome: String(error.status), code, from })
      socket.end(formatRawResponse(error, response?.req.method), () => socket.destroy())
    }
  }
}

/**
 * When a connection closes, node:http creates an error for each of its requests, of which a flood has thousands. Their
 * stacks, which nobody reads, took half of the time that a flood takes.
 */
function omitStacksAtClose(socket: Socket): void {
  const { stackTraceLimit } = Error
  socket.prependOnceListener('close', () => {
    Error.stackTraceLimit = 0
  })
  socket.once('close', () => {
    Error.stackTraceLimit = stackTraceLimit
  })
}
