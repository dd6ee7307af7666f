/**
 * The HTTP server of a service: it receives requests, hands them to a handler, and drains.
 *
 * One request of a connection is handled at a time. A client that sends another one before it has
 * its response gets that response, and then its connection is closed (RFC 9112, 9.3.2). Which
 * connections are open, and which of them are read, is decided in `connection-limit.ts` and
 * `connections.ts`. docs/design/http-connections.md says why.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../errors.js'
import { Body } from './body.js'
import { ConnectionLimit } from './connection-limit.js'
import { findConnectionState } from './connection-state.js'
import { Connections, maxReadBytes } from './connections.js'
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
  /**
   * Says that the token of the request is accepted: its connection is not closed for another one,
   * and is read first.
   */
  preferConnection(): void
  /** Waits until all new connections are accepted, before work that takes long. */
  acceptConnections(): Promise<void>
  /** Returns what settles when the response may be sent, if a drain is closing the port. */
  findPortClosing(): Promise<void> | undefined
}

export type Handler = (request: ReceivedRequest) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'warn' | 'error'>
}

/** A request whose body or response is in progress. */
interface PendingRequest {
  response: ServerResponse
  body: Body
  /** How many further requests came on its connection before its response. */
  droppedCount: number
}

/** A connection with more is closed, unless its request may be with the store. */
const maxDroppedConnections = 100

/** A drain goes on accepting for so long: clients may come before they know of it. */
const drainGraceMs = 500

/** How long a client may go on to send a body after it has its response. */
const lingerMs = 1000

export class HttpServer {
  readonly server: Server | SecureServer
  isDraining = false
  readonly #handler: Handler
  readonly #log: HttpServerOptions['log']
  readonly #connections = new Connections()
  readonly #limit: ConnectionLimit
  /** The open connections, each with its request if one is in progress. */
  readonly #requests = new Map<Socket, PendingRequest | undefined>()
  /** The requests that arrived in this iteration of the event loop. */
  #arrived: PendingRequest[] = []
  /** The connections that have not had a whole request head yet. */
  readonly #silent = new Set<Socket>()
  /** While a drain closes the port, requests that arrive wait, and so do responses. */
  #isHeld = false
  /** Settles when a drain has closed the port. Undefined before a drain closes it. */
  #portClosing: Promise<void> | undefined

  constructor(handler: Handler, { limits, tls, log }: HttpServerOptions) {
    const { requestTimeoutMs, connectionLimit } = limits
    const options = {
      ...tls,
      handshakeTimeout: 10_000,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: 65_000, // Proxies close idle connections after 60 s.
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeoutMs / 2)),
      joinDuplicateHeaders: true, // So a second Host is seen.
      requireHostHeader: false, // A flood that node:http answers itself would not be noticed.
    }
    const server = tls ? createSecureServer(options) : createServer(options)
    // One more than is accepted. An unfinished head keeps its lines in memory, as a string each.
    server.maxHeadersCount = maxHeaderLines + 1
    this.server = server
    this.#handler = handler
    this.#log = log
    this.#limit = new ConnectionLimit({
      limit: connectionLimit,
      usesTls: tls !== undefined,
      log,
    })
    server.on('connection', (socket: Socket) => {
      this.#connections.countAccepted()
      this.#limit.add(socket)
    })
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket))
    for (const event of ['request', 'checkExpectation'])
      server.on(event, (_, response: ServerResponse) => this.#receive(response))
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#reject(socket, systemCode(error) ?? ''),
    )
    server.setTimeout(requestTimeoutMs, (socket) => this.#closeSilent(socket))
  }

  /**
   * Answers the requests that arrive, within `timeoutMs`.
   *
   * Each request is answered that was sent within `drainGraceMs`, if it can be within `timeoutMs`.
   * A client that connects later may be closed without an answer.
   */
  async drain(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs
    const graceMs = Math.min(drainGraceMs, timeoutMs / 2)
    this.isDraining = true
    // Where the headers were sent without saying so, the next request is answered.
    for (const pending of this.#requests.values())
      if (pending) pending.response.shouldKeepAlive = false
    await wait(graceMs)
    this.#portClosing = this.#closePort(Math.min(drainGraceMs, timeoutMs / 4))
    await this.#portClosing
    // A client may have sent a part of its request.
    const silentEnd = Math.min(performance.now() + graceMs, end)
    await wait(graceMs / 5)
    await this.#finishRequests(end, silentEnd)
    this.#limit.report()
  }

  /**
   * When a port closes, the system resets the connections that nobody has accepted, and their
   * clients get no answer. A client that connects for each request does so when it has its
   * response. So until no client has come for a while, nobody gets a response, and those that wait
   * in the system are accepted. Other clients may come all the time, so this has an end.
   */
  async #closePort(maxHoldMs: number): Promise<void> {
    this.#isHeld = true
    const end = performance.now() + maxHoldMs
    let countBefore: number
    do {
      countBefore = this.#connections.acceptedCount
      await wait(maxHoldMs / 5)
      await this.#connections.acceptWaiting()
    } while (this.#connections.acceptedCount > countBefore && performance.now() < end)
    this.server.close()
    this.#isHeld = false
    this.#handleArrived()
  }

  /**
   * Closes each connection when it has no request, until none is open or the time is over.
   *
   * @param silentEnd until when a connection without a request may bring its first one: a slow
   * client may have connected and not yet sent it
   */
  async #finishRequests(end: number, silentEnd: number): Promise<void> {
    while (this.#mayHaveRequests(silentEnd) && performance.now() < end) {
      const isOver = performance.now() >= silentEnd
      // What the system has received is read in the next iteration of the event loop.
      await nextIteration()
      for (const [socket, pending] of this.#requests)
        if (!pending && (isOver || !this.#silent.has(socket))) socket.destroy()
      await wait(10)
    }
  }

  #mayHaveRequests(silentEnd: number): boolean {
    if (this.#requests.size > 0) return true
    // Those in a TLS handshake are not among the connections that have a request.
    return performance.now() < silentEnd && this.#limit.openCount > 0
  }

  #add(socket: Socket): void {
    this.#requests.set(socket, undefined)
    this.#silent.add(socket)
    socket.once('close', () => {
      this.#requests.delete(socket)
      this.#silent.delete(socket)
      this.#connections.remove(socket)
    })
    const mustStayPaused = () => this.#requests.get(socket)?.body.mustStayUnread ?? false
    this.#connections.add(socket, mustStayPaused)
  }

  #receive(response: ServerResponse): void {
    const { req: request } = response
    const { socket, headers } = request
    this.#silent.delete(socket)
    const current = this.#requests.get(socket)
    const isBeforeResponse = current !== undefined && !current.response.headersSent
    if (!socket.writable || isBeforeResponse) {
      this.#drop(request, current)
      return
    }
    this.#countHead(request)
    const body = new Body(response, (bytes) => this.#connections.countFlood(1 + bytes / 1024))
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for one.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    const pending = { response, body, droppedCount: 0 }
    this.#requests.set(socket, pending)
    response.on('close', () => this.#release(pending))
    // Over TLS, the response before this one may still be written, or end in the next iteration.
    if (current && !current.response.closed)
      current.response.once('close', () => this.#queue(pending))
    else this.#queue(pending)
  }

  /** Counts what a client may send without a token: too many header lines, and a large body. */
  #countHead(request: IncomingMessage): void {
    if (hasUnseenHeaderLines(request)) this.#connections.countFlood(maxHeaderLines)
    const announcedBytes = Number(request.headers['content-length'] ?? 0)
    this.#connections.countFlood(Math.floor(Math.min(announcedBytes, maxReadBytes) / 1024))
  }

  /** Requests of one iteration are handled together: one at a time takes three times as long. */
  #queue(pending: PendingRequest): void {
    const isFirst = this.#arrived.push(pending) === 1
    if (isFirst) setImmediate(() => this.#handleArrived())
  }

  /** A request that comes before the response to another one gets no response. */
  #drop(request: IncomingMessage, current: PendingRequest | undefined): void {
    const { socket, headers, rawHeaders } = request
    socket.pause()
    this.#connections.countFlood(1 + rawHeaders.length / 2)
    if (headers['transfer-encoding'] !== undefined)
      request.on('data', () => this.#connections.countFlood(1))
    if (!current) return
    current.response.shouldKeepAlive = false
    if (current.droppedCount === 0) omitStacksAtClose(socket)
    current.droppedCount += 1
    if (current.droppedCount > maxDroppedConnections && !current.body.isWanted) socket.destroy()
  }

  #release(pending: PendingRequest): void {
    const { req: request } = pending.response
    const { socket } = request
    const free = () => {
      if (this.#requests.get(socket) === pending) this.#requests.set(socket, undefined)
    }
    if (request.complete) {
      free()
      return
    }
    pending.body.discard()
    request.once('end', free).resume()
    socket.resume()
    setTimeout(() => !request.complete && socket.destroy(), lingerMs).unref()
  }

  #handleArrived(): void {
    if (this.#isHeld) return
    const arrived = this.#arrived
    this.#arrived = []
    for (const pending of arrived) this.#handle(pending)
  }

  #handle({ response, body }: PendingRequest): void {
    const { socket } = response.req
    if (!socket.writable) {
      this.#log.record({ outcome: 'aborted', from: socket.remoteAddress })
      return
    }
    const preferConnection = () => {
      this.#limit.keep(socket)
      this.#connections.prefer(socket)
    }
    const acceptConnections = () => this.#connections.acceptWaiting()
    const findPortClosing = () => this.#portClosing
    const request = { response, body, preferConnection, acceptConnections, findPortClosing }
    this.#handler(request).catch((error: unknown) => {
      this.#log.error(error)
      socket.destroy()
    })
  }

  /** Answers a request that is late, or not HTTP, with an Error where that can still be done. */
  #reject(socket: Socket, code: string): void {
    const isOpen = this.#requests.has(socket)
    const response = this.#requests.get(socket)?.response
    const state = findConnectionState({ socket, code, isOpen, response })
    switch (state.type) {
      case 'handshake':
        this.#log.record({ outcome: 'handshake', code, from: socket.remoteAddress })
        socket.destroy()
        return
      case 'gone':
        socket.destroy()
        return
      case 'responding':
        closeAfter(state.response, socket)
        return
      case 'receiving':
        this.#respondWithError(socket, code, state.response)
    }
  }

  #respondWithError(socket: Socket, code: string, response: ServerResponse | undefined): void {
    const error = createParserError(code)
    // A request with a response has a handler, which writes the line of the log.
    const isHandled = response !== undefined
    if (!isHandled)
      this.#log.record({ outcome: String(error.status), code, from: socket.remoteAddress })
    socket.end(formatRawResponse(error, response?.req.method), () => socket.destroy())
  }

  /**
   * Nothing was sent or received on a connection for the timeout of a request. It stays open if its
   * client waits for the store, or is about to get a 408.
   */
  #closeSilent(socket: Socket): void {
    if (socket.writableLength > 0 || !this.#requests.get(socket)) socket.destroy()
  }
}

/** Closes a connection when its response is written, and reads no more of it. */
function closeAfter(response: ServerResponse, socket: Socket): void {
  if (response.shouldKeepAlive) response.once('close', () => socket.destroySoon())
  // node:http closes a connection that is not to be kept itself.
  response.shouldKeepAlive = false
  socket.pause()
}

/**
 * When a connection closes, node:http creates an error for each of its requests, of which a flood
 * has thousands. Their stacks, which nobody reads, took half of the time that a flood takes.
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
