/**
 * The HTTP server of a service: it receives requests, hands them to a handler, and drains.
 *
 * One request of a connection is handled at a time. A client that sends another one before the head
 * of the response to the first was sent gets only that response, and then its connection is closed
 * (RFC 9112, 9.3.2). Otherwise the server would have to hold what one read can contain: thousands
 * of parsed requests of a client that may have no token.
 *
 * A request goes through these steps: `#receiveRequest` decides whether it is the next one of its
 * connection; `#queueRequest` lets the other requests of the iteration of the event loop come;
 * `#handleRequest` calls the handler; `#freeConnection` frees the connection for the next request
 * when the response is closed.
 *
 * `limit.ts` decides which connections are open, and `floods.ts` which of them are read.
 * docs/design/http-connections.md says why.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import { getSystemCode } from '../errors.js'
import { Body } from './body.js'
import type { Connection, ReceivedRequest } from './connection.js'
import { Floods } from './floods.js'
import { createInvalidHttpError } from './http-error.js'
import { Connections } from './limit.js'
import type { Log } from './log.js'
import { hasUnseenHeaderLines, maxHeaderLines } from './parse-request.js'
import { formatRawResponse } from './respond.js'

export interface Limits {
  /** A request must arrive within this time, and its client must not be silent for longer. */
  requestTimeoutMs: number
  /** The largest number of open connections. */
  connectionLimit: number
}

/** Both are PEM. */
export interface Tls {
  cert: string
  key: string
}

export type Handler = (request: ReceivedRequest) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'warn' | 'error'>
}

/**
 * A connection that sends more requests is closed, unless its first request may be with the store.
 */
const maxDroppedRequests = 100

/** How long a client that has its response may go on sending the body, which is not kept. */
const lingerMs = 1000

/** How long a load balancer may send requests before it knows that the service drains. */
const drainGraceMs = 500

export class HttpServer {
  readonly server: Server | SecureServer
  readonly #log: HttpServerOptions['log']
  readonly #connections: Connections
  readonly #floods: Floods
  isDraining = false

  constructor(
    private readonly handler: Handler,
    { limits, tls, log }: HttpServerOptions,
  ) {
    const { requestTimeoutMs, connectionLimit } = limits
    const options = {
      ...tls,
      handshakeTimeout: 10_000,
      requestTimeout: requestTimeoutMs,
      // A proxy usually closes idle connections after 60 s. If the service did so first, a request
      // of the proxy could arrive at a closed connection.
      keepAliveTimeout: 65_000,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeoutMs / 2)),
      // By default, node:http drops a second Host, and a request with two would look harmless.
      joinDuplicateHeaders: true,
      // If node:http itself answered a request without Host, a flood of them would not be counted.
      requireHostHeader: false,
    }
    const server = tls ? createSecureServer(options) : createServer(options)
    // An unfinished head keeps a string in memory for each of its lines, so their number is
    // limited. One more than is accepted shows that there are too many.
    server.maxHeadersCount = maxHeaderLines + 1
    this.server = server
    this.#log = log
    this.#connections = new Connections(connectionLimit, log)
    this.#floods = new Floods(this.#connections)
    this.#listenToEvents(server, tls !== undefined)
    // Nothing was sent or received on this connection for the timeout of a request. It stays open if
    // its client waits for the store, or is about to get a 408. If the client does not read its
    // response (`writableLength` is above 0), it is closed in any case.
    server.setTimeout(requestTimeoutMs, (socket) => {
      if (socket.writableLength > 0 || !this.#connections.find(socket)?.request) socket.destroy()
    })
  }

  #listenToEvents(server: Server | SecureServer, usesTls: boolean): void {
    server.on('connection', (socket: Socket) =>
      this.#floods.add(this.#connections.accept(socket, !usesTls)),
    )
    if (usesTls)
      server.on('secureConnection', (socket: Socket) =>
        this.#floods.add(this.#connections.open(socket)),
      )
    // Without a listener, node:http would itself answer an Expect that is not `100-continue`. This
    // server ignores it, as it may (RFC 9110, 10.1.1).
    for (const event of ['request', 'checkExpectation'])
      server.on(event, (_, response: ServerResponse) => this.#receiveRequest(response))
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#rejectConnection(socket, getSystemCode(error) ?? ''),
    )
  }

  /**
   * Ends the server, whose responses say `Connection: close` from now on: it accepts connections
   * for a while, closes the port, closes each connection that has no request, and waits for the
   * others. A connection that a flood has paused has no request until it is read again.
   *
   * @param timeoutMs the drain takes no longer than this
   */
  async drain(timeoutMs: number): Promise<void> {
    const connections = this.#connections
    const endMs = performance.now() + timeoutMs
    this.isDraining = true
    for (const { request } of connections) if (request) request.response.shouldKeepAlive = false
    await wait(Math.min(drainGraceMs, timeoutMs / 2))
    await connections.waitUntilAllAccepted()
    this.server.close()
    while (connections.size > 0 && performance.now() < endMs) {
      // The system may have received a request that the next iteration of the event loop reads.
      await nextIteration()
      for (const { request, socket } of connections) if (!request) socket.destroy()
      await wait(10)
    }
  }

  #receiveRequest(response: ServerResponse): void {
    const { req: request } = response
    const { socket, headers } = request
    const connection = this.#connections.find(socket)
    const currentRequest = connection?.request
    const isPipelined = currentRequest !== undefined && !currentRequest.response.headersSent
    if (!connection || !socket.writable || isPipelined) {
      this.#dropRequest(request, connection)
      return
    }
    const countUnits = (units: number) => this.#floods.countUnits(units, connection)
    if (hasUnseenHeaderLines(request)) countUnits(maxHeaderLines)
    const body = new Body(response, connection, countUnits)
    // After a request with Upgrade, node:http drops bytes of the next request, and the remaining
    // bytes could be taken for another request. So the connection is closed instead.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    const receivedRequest = { connection, response, body, droppedCount: 0 }
    connection.request = receivedRequest
    response.on('close', () => this.#freeConnection(receivedRequest))
    this.#queueRequest(receivedRequest, currentRequest?.response)
  }

  /**
   * Queues a request as soon as the response before it has closed. A client may send its next
   * request when it has the head of that response, and over TLS, the end of the response may not be
   * written by then.
   *
   * Requests of one iteration of the event loop are handled together, so that the store commits
   * their changes together, and a burst of creates waits for few syncs of the disk.
   */
  #queueRequest(receivedRequest: ReceivedRequest, previousResponse?: ServerResponse): void {
    const handleSoon = () => setImmediate(() => this.#handleRequest(receivedRequest))
    if (!previousResponse || previousResponse.closed) handleSoon()
    else previousResponse.once('close', handleSoon)
  }

  /** Drops a pipelined request, or one that cannot be answered. What comes with it is a flood. */
  #dropRequest(request: IncomingMessage, connection: Connection | undefined): void {
    const { socket, headers, rawHeaders } = request
    connection?.hold('pipelined')
    this.#floods.countUnits(1 + rawHeaders.length / 2, connection)
    if (headers['transfer-encoding'] !== undefined)
      request.on('data', () => this.#floods.countUnits(1, connection))
    const currentRequest = connection?.request
    if (!currentRequest) return
    currentRequest.response.shouldKeepAlive = false
    if (currentRequest.droppedCount === 0) omitStacksAtClose(socket)
    currentRequest.droppedCount += 1
    if (currentRequest.droppedCount > maxDroppedRequests && !currentRequest.body.isAdmitted)
      socket.destroy()
  }

  /**
   * Frees the connection for its next request. If the response came before the whole body, as a 413
   * does, the rest of the body is read and dropped first: to close the connection at once could
   * destroy the response on its way.
   */
  #freeConnection(receivedRequest: ReceivedRequest): void {
    const { connection, response, body } = receivedRequest
    const { req: request } = response
    body.discard()
    const free = () => {
      if (connection.request === receivedRequest) connection.request = undefined
    }
    if (request.complete) {
      free()
      return
    }
    request.once('end', free).resume()
    setTimeout(() => !request.complete && connection.socket.destroy(), lingerMs).unref()
  }

  #handleRequest(receivedRequest: ReceivedRequest): void {
    const { socket } = receivedRequest.connection
    if (!socket.writable) {
      this.#log.record({ outcome: 'aborted', from: socket.remoteAddress })
      return
    }
    this.handler(receivedRequest).catch((error: unknown) => {
      this.#log.error(error)
      socket.destroy()
    })
  }

  /**
   * Closes a connection on which node:http found an error: a request that is late, or not HTTP. A
   * client that can still read a response gets an Error first.
   */
  #rejectConnection(socket: Socket, code: string): void {
    const connection = this.#connections.find(socket)
    const response = connection?.request?.response
    const from = socket.remoteAddress
    const hasLeft = code === 'ECONNRESET' || code === 'EPIPE'
    if (!connection && !hasLeft) this.#log.record({ outcome: 'handshake', code, from })
    if (!connection || hasLeft || !socket.writable || response?.socket === null) {
      socket.destroy()
      return
    }
    // The request is complete, so the error is about what the client sent after it.
    if (response && (response.headersSent || response.req.complete)) {
      connection.hold('pipelined')
      // node:http itself closes the connection after a response that is not to keep it.
      if (response.shouldKeepAlive) response.once('close', () => socket.destroySoon())
      response.shouldKeepAlive = false
      return
    }
    const { response: rejection } = createInvalidHttpError(code)
    // A request with a response object has a handler, which writes the line of the log.
    if (!response) this.#log.record({ outcome: String(rejection.status), code, from })
    socket.end(formatRawResponse(rejection, response?.req.method), () => socket.destroy())
  }
}

/**
 * When a connection closes, node:http creates an error for each of its requests, and a flood has
 * thousands of requests. Nobody reads their stacks, which take half of the time of a flood. So no
 * stacks are recorded while node:http's listener of `close` runs: one listener before it turns
 * stacks off, and one after it turns them on again.
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
