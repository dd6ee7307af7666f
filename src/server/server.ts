import { createServer, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { systemCode } from '../platform/errors.js'
import { parserError, rawResponse } from './answer.js'
import type { Log } from './log.js'
import { Body } from './request-input.js'

// One request of a connection is handled at a time, as browsers, curl and proxies send them: a client that sends another
// before its response gets that response, and no other (RFC 9112, 9.3.2). node:http parses the up to 64 KiB that were read
// from a connection at once: thousands of requests, or of chunks of a body, which take 30 ms and much memory. So who sends
// such a thing pauses all connections until the next turn of the event loop, which would otherwise take seconds. Then one
// resumes in each turn, and first those that were served before, and the newest: what several sent would be parsed at once.

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
  log: Pick<Log, 'record' | 'warn' | 'error'>
}

/** A request whose body or response is in progress. */
interface Pending {
  response: ServerResponse
  body: Body
  /** Requests before its response. */
  dropped: number
}

/** A connection with more is closed, unless its first request is with the store: Bun parses on while it waits. */
const maxDropped = 100

/** A drain goes on accepting: clients may come before they can know of it. */
const drainGraceMs = 500

/** How long a body may go on whose request has its response. */
const lingerMs = 1000

export class HttpServer {
  readonly server: Server
  isDraining = false
  readonly #handler: Handler
  readonly #log: HttpServerOptions['log']
  readonly #connections = new Map<Socket, Pending | undefined>()
  /** The requests of this turn of the event loop. */
  #arrived: Pending[] = []
  readonly #paused: Socket[] = []
  #isPausing = false
  /** While a drain closes the port, what arrives waits. */
  #isHeld = false

  constructor(handler: Handler, { limits, tls, log }: HttpServerOptions) {
    const { requestTimeoutMs, connectionLimit } = limits
    const options = {
      ...tls,
      handshakeTimeout: 10_000,
      headersTimeout: Math.min(60_000, requestTimeoutMs), // it counts while a socket is paused
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: 65_000, // proxies close idle connections after 60 s
      connectionsCheckingInterval: Math.ceil(Math.min(1000, requestTimeoutMs / 2)),
      joinDuplicateHeaders: true, // so that a second Host is seen
      requireHostHeader: false, // a flood of what node:http answers itself would not be noticed
    }
    const server = tls ? createSecureServer(options) : createServer(options)
    this.server = server
    this.#handler = handler
    this.#log = log
    server.maxConnections = connectionLimit
    const refused = `Connections are refused: ${connectionLimit} are open, the limit of the service`
    server.once('drop', () => log.warn(refused))
    server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => this.#add(socket))
    server.on('request', (_, response) => this.#receive(response))
    server.on('clientError', (error: Error, socket: Socket) =>
      this.#reject(socket, systemCode(error) ?? ''),
    )
    // Nothing was sent or received for so long. A client may wait for its response, or get a 408.
    server.setTimeout(requestTimeoutMs, (socket) => {
      if (socket.writableLength > 0 || !this.#connections.get(socket)) socket.destroy()
    })
  }

  /** Answers the requests that arrive. Destroys the connections that are left after `timeoutMs`. */
  async drain(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs
    const graceMs = Math.min(drainGraceMs, timeoutMs / 2)
    this.isDraining = true
    for (const pending of this.#connections.values()) if (pending) closeAfter(pending.response)
    await wait(graceMs)
    // The system resets the connections that nobody has accepted when a port closes. So for a moment, nobody gets a
    // response, and comes anew.
    this.#isHeld = true
    for (let known = -1; known < this.#connections.size && performance.now() < end; ) {
      known = this.#connections.size
      await wait(graceMs / 5)
    }
    await nextTurn() // after an accept
    this.server.close()
    this.#isHeld = false
    this.#handleArrived()
    await wait(graceMs / 5) // who connected just before may send a request
    while (this.#connections.size > 0 && performance.now() < end) {
      for (const [socket, pending] of this.#connections) if (!pending) socket.destroy()
      await wait(10)
    }
    this.abort()
  }

  abort(): void {
    this.server.close()
    this.server.closeAllConnections()
  }

  #add(socket: Socket): void {
    this.#connections.set(socket, undefined)
    socket.once('close', () => this.#connections.delete(socket))
    // With a listener, node:http reads through the stream, whose pause also holds what is there already.
    if (this.#isPausing) this.#paused.push(socket.on('data', () => undefined).pause())
  }

  #receive(response: ServerResponse): void {
    const { socket, headers } = response.req
    const current = this.#connections.get(socket)
    // Over TLS, a response is finished a turn after its client has read it, and may have sent the next request.
    if (!socket.writable || (current && !current.response.writableEnded)) {
      this.#drop(socket, current)
      return
    }
    // After an Upgrade, node:http drops bytes: the rest of the next request could pass for a request.
    if (this.isDraining || headers.upgrade !== undefined) response.shouldKeepAlive = false
    const body = new Body(response, () => void this.#pauseForTurn())
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
    closeAfter(current.response)
    current.dropped += 1
    if (current.dropped > maxDropped && this.#arrived.includes(current)) socket.destroy()
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

  /** Reads nothing more in this turn of the event loop. */
  async #pauseForTurn(): Promise<void> {
    if (this.#isPausing) return
    this.#isPausing = true
    // A socket resumes in a tick of its own, even if it was paused since: this waits for it.
    await undefined
    for (const socket of this.#connections.keys())
      if (!socket.isPaused()) this.#paused.push(socket.pause())
    await nextTurn()
    // A turn accepts one connection: all that wait come before what the others send.
    let known = 0
    do {
      known = this.#connections.size
      await nextTurn()
    } while (this.#connections.size > known)
    this.#isPausing = false
    while (this.#paused.length > 0 && !this.#isPausing) {
      const lastServed = this.#paused.findLastIndex(({ bytesWritten }) => bytesWritten > 0)
      this.#paused.splice(lastServed, 1)[0]?.resume() // -1 is the last of all
      await nextTurn()
    }
  }

  /** What is no HTTP, or is late, gets an Error, unless a request on its connection waits for a response. */
  #reject(socket: Socket, code: string): void {
    const response = this.#connections.get(socket)?.response
    const isGone = !socket.writable || code === 'ECONNRESET' || code === 'EPIPE'
    if (isGone || response?.closed) socket.destroy()
    else if (response?.headersSent || response?.req.complete) {
      closeAfter(response)
      socket.pause()
    } else {
      const error = parserError(code)
      const outcome = String(error.error)
      // Else its handler does.
      if (!response) this.#log.record({ outcome, code, from: socket.remoteAddress })
      socket.end(rawResponse(error), () => socket.destroy())
    }
  }
}

/** Closes the connection after a response, also if its headers were sent without saying so. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.shouldKeepAlive = false
  else if (response.shouldKeepAlive) {
    response.shouldKeepAlive = false
    response.once('close', () => response.req.socket.destroySoon())
  }
}
