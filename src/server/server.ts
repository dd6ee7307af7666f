import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../platform/errors.js'
import { parserError, rawResponse } from './answer.js'
import type { Log } from './log.js'
import { Body } from './request-input.js'

// One request of a connection is handled at a time: a client that sends another before its response gets that response,
// and no other (RFC 9112, 9.3.2). node:http parses up to 64 KiB of a connection at once: thousands of requests, or of
// chunks of a body, which take 30 ms. Who sends that pauses all connections until the next turn of the event loop. Then
// one resumes in each turn, and first those that were served before, and the newest: what several sent would be parsed
// at once.

export interface Limits {
  requestTimeoutMs: number
  connectionLimit: number
}

export interface Tls {
  cert: string
  key: string
}

export type Handler = (response: ServerResponse, body: Body) => Promise<void>

interface HttpServerOptions {
  limits: Limits
  tls: Tls | undefined
  log: Pick<Log, 'record' | 'error'>
}

/** A request whose body or response is in progress. */
interface Pending {
  response: ServerResponse
  body: Body
  /** Requests before its response. */
  dropped: number
}

/** With more, a connection is closed, unless its request may be with the store. */
const maxDropped = 100

/** Connections that may wait to be accepted. */
const backlog = 511

/** A drain goes on accepting: clients may come before they know of it. */
const drainGraceMs = 500

/** How long a body may go on whose request has its response. */
const lingerMs = 1000

export class HttpServer {
  readonly server: Server | SecureServer
  isDraining = false
  readonly #handler: Handler
  readonly #log: HttpServerOptions['log']
  readonly #connections = new Map<Socket, Pending | undefined>()
  /** Of this turn of the event loop. */
  #arrived: Pending[] = []
  readonly #paused: Socket[] = []
  #accepted = 0
  #isPausing = false
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
    server.maxHeadersCount = 0 // all lines: those after the first 1000 may say what the parser does
    this.server = server
    this.#handler = handler
    this.#log = log
    server.maxConnections = connectionLimit
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket))
    for (const event of ['request', 'checkExpectation'])
      server.on(event, (_, response: ServerResponse) => this.#receive(response))
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#reject(socket, systemCode(error) ?? ''),
    )
    // Nothing was sent or received for so long. A client may wait for its response, or get a 408.
    server.setTimeout(requestTimeoutMs, (socket) => {
      if (socket.writableLength > 0 || !this.#connections.get(socket)) socket.destroy()
    })
  }

  /** Answers the requests that arrive, within `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs
    const graceMs = Math.min(drainGraceMs, timeoutMs / 2)
    this.isDraining = true
    // Where the headers were sent without saying so, the next request is answered.
    for (const pending of this.#connections.values())
      if (pending) pending.response.shouldKeepAlive = false
    await wait(graceMs)
    // When a port closes, the system resets connections that nobody has accepted. So for a moment, nobody gets a
    // response and comes anew.
    this.#isHeld = true
    await wait(graceMs / 5)
    await this.#acceptAll()
    this.server.close()
    this.#isHeld = false
    this.#handleArrived()
    await wait(graceMs / 5) // who connected may send a request
    while (this.#connections.size > 0 && performance.now() < end) {
      await nextTurn() // reads what came
      for (const [socket, pending] of this.#connections) if (!pending) socket.destroy()
      await wait(10)
    }
  }

  #add(socket: Socket): void {
    this.#accepted += 1
    this.#connections.set(socket, undefined)
    socket.once('close', () => this.#connections.delete(socket))
    // With a listener, node:http reads through the stream, whose pause also holds what is there already.
    if (this.#isPausing) this.#paused.push(socket.on('data', () => undefined).pause())
  }

  #receive(response: ServerResponse): void {
    const { socket, headers } = response.req
    const body = new Body(response, () => void this.#pauseForTurn())
    const current = this.#connections.get(socket)
    // Over TLS, a response may still be written, or end a turn later, when its client sends the next request.
    if (!socket.writable || (current && !current.response.headersSent)) {
      this.#drop(socket, current)
      return
    }
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    const pending = { response, body, dropped: 0 }
    this.#connections.set(socket, pending)
    response.once('close', () => this.#release(pending))
    // All requests of a turn are handled together: one at a time takes three times as long.
    const arrive = () => {
      if (this.#arrived.push(pending) === 1) setImmediate(() => this.#handleArrived())
    }
    if (current && !current.response.closed) current.response.once('close', arrive)
    else arrive()
  }

  /** A request that comes before the response to another gets none. */
  #drop(socket: Socket, current: Pending | undefined): void {
    socket.pause()
    void this.#pauseForTurn()
    if (!current) return
    current.response.shouldKeepAlive = false
    current.dropped += 1
    if (current.dropped > maxDropped && !current.body.isWanted) socket.destroy()
  }

  #release(pending: Pending): void {
    const { req: request } = pending.response
    const { socket } = request
    const free = () => {
      if (this.#connections.get(socket) === pending) this.#connections.set(socket, undefined)
    }
    if (request.complete) free()
    else {
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
      if (socket.writable) this.#handler(response, body).catch(fail)
      else this.#log.record({ outcome: 'aborted', from: socket.remoteAddress })
    }
  }

  /** Reads nothing more in this turn of the event loop, and then one connection in each. */
  async #pauseForTurn(): Promise<void> {
    if (this.#isPausing) return
    this.#isPausing = true
    // A socket resumes in a tick, even if it was paused since: this waits for it.
    await undefined
    for (const socket of this.#connections.keys())
      if (!socket.isPaused()) this.#paused.push(socket.pause())
    await nextTurn()
    await this.#acceptAll() // before what the others send
    this.#isPausing = false
    // The next pause, which takes some turns, ends this loop, and has its own.
    while (this.#paused.length > 0 && !this.#isPausing) {
      const lastServed = this.#paused.findLastIndex(({ bytesWritten }) => bytesWritten > 0)
      const [socket] = this.#paused.splice(lastServed, 1) // -1 is the last of all
      if (socket && !this.#connections.get(socket)?.body.isUnread) socket.resume()
      await nextTurn()
    }
  }

  /** A turn of the event loop accepts one connection. */
  async #acceptAll(): Promise<void> {
    let known = -1
    for (let turns = 0; turns < backlog && this.#accepted > known; turns += 1) {
      known = this.#accepted
      await nextTurn()
    }
  }

  /** What is no HTTP, or late, gets an Error, unless a request on its connection waits for a response. */
  #reject(socket: Socket, code: string): void {
    const from = socket.remoteAddress
    const response = this.#connections.get(socket)?.response
    const isOpen = this.#connections.has(socket) // after its TLS handshake
    const hasLeft = code === 'ECONNRESET' || code === 'EPIPE'
    if (!isOpen && !hasLeft) this.#log.record({ outcome: 'handshake', code, from })
    if (!isOpen || hasLeft || !socket.writable || response?.socket === null) socket.destroy()
    else if (response?.headersSent || response?.req.complete) {
      if (response.shouldKeepAlive) response.once('close', () => socket.destroySoon())
      response.shouldKeepAlive = false // for which node:http does that
      socket.pause()
    } else {
      const error = parserError(code)
      // or its handler does
      if (!response) this.#log.record({ outcome: String(error.status), code, from })
      socket.end(rawResponse(error, response?.req.method), () => socket.destroy())
    }
  }
}
