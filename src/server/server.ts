import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../platform/errors.js'
import type { InFlight } from './body.js'
import { ClientConnection } from './client-connection.js'
import type { Cors } from './cors.js'
import { HttpError, invalidHttp, notProxy, parserErrors } from './http-error.js'
import type { AccessLog, AccessLogEntry } from './log.js'
import { maxHeaderLines, validateHead } from './request-input.js'
import { originHeaders, respond } from './respond.js'

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

/** If it rejects before the response has begun, the response is 500. */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  connection: ClientConnection,
) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  /** records the requests that never reach the handler */
  log: AccessLog
  inFlight: InFlight
  cors?: Cors | undefined
  /** milliseconds, monotonic */
  now(): number
}

/** Those of TLS 1.3, and of TLS 1.2 with forward secrecy and authenticated encryption (RFC 9325, 4.2). */
const ciphers = 'TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20'

/** bytes */
const maxHeaderSize = 16_384

/** milliseconds */
const headersTimeout = 10_000

/** milliseconds: more than the 60 s after which proxies close idle connections */
const keepAliveTimeout = 65_000

/** requests on one connection, which is closed at the next */
const maxUnanswered = 16

/** bytes that the objects of node:http take for a request, and for each of its header lines */
const requestOverhead = 2000
const lineOverhead = 64

/** connections that may be closed for too many requests in one turn of the event loop */
const maxOverfull = 8

/** milliseconds in which a client may still connect or send a request after a drain has started */
const drainGrace = 500

/** Answers the requests of a connection one after the other. A drain leaves no request unanswered. */
export class HttpServer {
  readonly server: Server
  isDraining = false
  readonly #handler: Handler
  readonly #log: AccessLog
  readonly #inFlight: InFlight
  readonly #cors: Cors | undefined
  readonly #now: () => number
  readonly #connections = new Map<Socket, ClientConnection>()
  #accepted = 0
  /** connections closed for too many requests in this turn of the event loop, and those that were paused for it */
  #overfull = 0
  readonly #paused: Socket[] = []
  /**
   * the requests of this turn of the event loop, at the end of which their bodies have arrived; undefined between turns
   */
  #arrived: ServerResponse[] | undefined

  constructor(handler: Handler, { limits, tls, log, inFlight, cors, now }: HttpServerOptions) {
    this.#handler = handler
    this.#log = log
    this.#inFlight = inFlight
    this.#cors = cors
    this.#now = now
    const { requestTimeout, connectionLimit, replacesIdle = false } = limits
    const options = {
      maxHeaderSize,
      headersTimeout: Math.min(headersTimeout, requestTimeout), // node:http requires this order
      requestTimeout,
      keepAliveTimeout,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeout / 2)),
      requireHostHeader: false, // its 400 has no body
    }
    const secure = { ...options, ...tls, ciphers, handshakeTimeout: headersTimeout }
    const server = tls ? createSecureServer(secure) : createServer(options)
    this.server = server
    server.maxConnections = connectionLimit + (replacesIdle ? 1 : 0)
    server.maxHeadersCount = maxHeaderLines + 1 // node:http drops those after it; this service rejects the request
    // a client that has closed its side may still wait for a response
    Object.assign(server, { httpAllowHalfOpen: true })
    const add = (socket: Socket, isHandshake: boolean) => {
      this.#add(socket, isHandshake)
      if (replacesIdle && this.#connections.size > connectionLimit) this.#closeOldestIdle()
    }
    server.on('connection', (socket: Socket) => add(socket, tls !== undefined))
    server.on('secureConnection', (socket: Socket) => {
      add(socket, false)
      // With a listener, node:http reads the stream and not past it: nothing that came with the end of the handshake.
      if (this.#overfull >= maxOverfull) this.#paused.push(socket.pause().on('data', () => undefined))
    })
    const receive = (request: IncomingMessage, response: ServerResponse) => this.#receive(request, response)
    server.on('request', receive).on('checkContinue', receive)
    server.on('checkExpectation', receive) // node:http would send a 417 without a body
    server.on('connect', (request: IncomingMessage, socket: Socket) => {
      if (this.#of(socket).reject(notProxy, 'CONNECT')) this.#record(request, { outcome: '404', code: 'CONNECT' })
    })
    server.on('clientError', (error: Error, socket: Socket) => this.#rejectInput(socket, systemCode(error) ?? ''))
    const check = () => {
      for (const connection of this.#connections.values()) connection.endIfStalled(now(), requestTimeout)
    }
    const timer = setInterval(check, options.connectionsCheckingInterval).unref()
    server.once('close', () => clearInterval(timer))
  }

  async drain(milliseconds: number): Promise<void> {
    // From now on, the last response on each connection closes it.
    this.isDraining = true
    for (const { open } of this.#connections.values())
      for (const response of open.slice(-1)) response.shouldKeepAlive = false
    const timer = setTimeout(() => this.abort(), milliseconds)
    // Clients may have connected, or sent a request, before they can know. One turn of the event loop accepts one
    // connection.
    const end = this.#now() + Math.min(drainGrace, milliseconds)
    for (let known = -1; known !== this.#accepted || (this.#connections.size > 0 && this.#now() < end); ) {
      known = this.#accepted
      await wait(10)
    }
    const closed = new Promise<unknown>((resolve) => this.server.close(resolve))
    // `close` keeps connections that never sent a request. With TLS, one in the middle of its handshake is left to its
    // timeout.
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
    const connection = new ClientConnection(socket, isHandshake)
    this.#accepted += 1
    this.#connections.set(socket, connection)
    if (!isHandshake) socket.destroySoon = () => connection.end()
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

  /** A new one if TLS has failed. */
  #of(socket: Socket): ClientConnection {
    return this.#connections.get(socket) ?? new ClientConnection(socket, true)
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const { socket, headers } = request
    const connection = this.#of(socket)
    const { open } = connection
    if (socket.destroyed || connection.isOverfull) return
    if (open.length >= maxUnanswered) {
      this.#closeOverfull(connection, `More than ${maxUnanswered} unanswered requests`)
      return
    }
    const previous = open.at(-1)
    connection.last = response
    open.push(response)
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    response.once('close', () => {
      open.splice(open.indexOf(response), 1)
      connection.dropBody(response)
      const isAccepted = response === connection.accepted
      if (isAccepted) connection.accepted = undefined
      const isUnread = connection.isOverfull || socket.writableEnded // this side has closed the connection
      const isReported = (connection.isBroken && !request.complete) || (isUnread && !isAccepted)
      if (!response.headersSent && !isReported) this.#record(request, { outcome: 'aborted' })
      if (this.isDraining && open.length === 0) connection.end()
    })
    if (previous) this.#queue(connection, response, previous)
    // node:http would buffer every chunk of the body until it is read.
    else if (headers['transfer-encoding'] !== undefined) this.#handle(response)
    else if (this.#arrived) this.#arrived.push(response)
    else {
      this.#arrived = [response]
      this.#schedule()
    }
  }

  /** Handles a request after the response to the previous one. Until then it counts in what waits of its connection. */
  #queue(connection: ClientConnection, response: ServerResponse, previous: ServerResponse): void {
    const { req: request } = response
    const { waiting, unverified } = connection
    const { bodies, bodyLimit } = this.#inFlight
    connection.collectBody(response, bodyLimit, connection.hasToken ? bodies : unverified)
    let size = 0
    const count = (bytes: number) => {
      size += bytes
      waiting.used += bytes
      if (!connection.hasToken && !waiting.hasRoom())
        this.#closeOverfull(connection, 'The waiting requests are too large')
    }
    const countTrailers = () => count(sizeOf(request.rawTrailers))
    request.once('end', countTrailers)
    count(requestOverhead + (request.url?.length ?? 0) + sizeOf(request.rawHeaders))
    previous.once('close', () => {
      request.off('end', countTrailers)
      waiting.used -= size
      this.#handle(response)
    })
  }

  #closeOverfull(connection: ClientConnection, reason: string): void {
    const { socket, open } = connection
    if (connection.isOverfull) return
    // The response that closes a connection has a line already. After it, nothing else is answered (RFC 9112, 9.6).
    const isClosing = open.some(({ headersSent, shouldKeepAlive }) => headersSent && !shouldKeepAlive)
    if (!isClosing && !socket.writableEnded) this.#log.record({ outcome: 'closed', from: socket.remoteAddress, reason })
    connection.endOverfull()
    if (this.#overfull === 0) setImmediate(() => this.#resume())
    this.#overfull += 1
    if (this.#overfull >= maxOverfull) this.#pause()
  }

  /**
   * Reads nothing more in this turn of the event loop. node:http parses thousands of requests that were read at once,
   * and keeps those of a closed connection until the end of the turn.
   */
  #pause(): void {
    for (const [socket, { isHandshake }] of this.#connections) {
      if (isHandshake || socket.isPaused()) continue
      socket.pause()
      this.#paused.push(socket)
    }
  }

  #resume(): void {
    this.#overfull = 0
    for (const socket of this.#paused.splice(0)) if (!socket.destroyed) socket.resume()
  }

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
    const { req: request } = response
    const { socket } = request
    const connection = this.#of(socket)
    if (socket.destroyed || socket.writableEnded || connection.isOverfull) return
    const ofOrigin = this.#cors?.headersFor(request)
    if (ofOrigin) originHeaders.set(response, ofOrigin)
    const invalid = validateHead(request)
    if (invalid) {
      connection.dropBody(response)
      this.#reject(response, invalid, 'HEAD')
      return
    }
    this.#handler(request, response, connection).catch((error: unknown) => {
      this.#log.error(error)
      if (response.headersSent) response.destroy()
      else this.#reject(response, new HttpError(500, 'Internal error'), 'DEFECT')
    })
  }

  #rejectInput(socket: Socket, code: string): void {
    const connection = this.#of(socket)
    const request = connection.open.at(-1)?.req
    const error = parserErrors[code] ?? invalidHttp
    const isOfBody = request?.complete === false
    if (!connection.reject(error, code, isOfBody ? this.#cors?.headersFor(request) : [])) return
    const entry = { outcome: String(error.error), code }
    if (isOfBody) this.#record(request, entry)
    else this.#log.record(entry)
  }

  /** Closes the connection, too. */
  #reject(response: ServerResponse, error: HttpError, code: string): void {
    response.shouldKeepAlive = false
    respond(response, error)
    this.#record(response.req, { outcome: String(error.error), code })
  }

  #record({ method, socket }: IncomingMessage, entry: AccessLogEntry): void {
    this.#log.record({ ...entry, method, from: socket.remoteAddress })
  }
}

/** The bytes of header lines, as alternating names and values, in memory. */
function sizeOf(lines: readonly string[]): number {
  return lines.reduce((sum, { length }) => sum + length, (lines.length / 2) * lineOverhead)
}
