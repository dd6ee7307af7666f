import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type Socket, Server as SocketServer } from 'node:net'
import type { Duplex } from 'node:stream'
import { refuseAndClose, type Witness } from './answers.js'
import { answerParserError, answerRaw } from './parser-errors.js'
import { type Refused, refused, refusedWith } from './refusal.js'

/** What a connection may cost. Times are in milliseconds, sizes in bytes. */
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
 * A server of node:http that gives each request an answer of ours, also those that its parser refuses, and that can stop
 * without leaving one unanswered.
 */
export class HttpServer {
  readonly server: Server
  readonly #sockets = new Set<Socket>()
  /** responses to requests that the parser broke off, and has told of */
  readonly #broken = new WeakSet<ServerResponse>()
  /** connections so far */
  #count = 0
  /** connections that have not brought a request yet */
  readonly #fresh = new Set<Socket>()
  /**
   * The responses that are not finished, in the order of their requests, by connection. A set of all of them would do, but a set
   * that every request changes keeps dead ones from the garbage collector for long, at a tenth of the speed.
   */
  readonly #open = new Map<Socket, ServerResponse[]>()
  readonly #witness: Omit<Witness, 'now'>
  isDraining = false

  /** @param witness told of each request that did not get as far as the handler */
  constructor(handler: RequestListener, limits: Limits, tls: Tls | undefined, witness: Omit<Witness, 'now'>) {
    const options = {
      maxHeaderSize: limits.headerLimit,
      headersTimeout: Math.min(limits.headerTimeout, limits.requestTimeout), // node:http takes no other
      requestTimeout: limits.requestTimeout,
      keepAliveTimeout: limits.keepAlive,
      connectionsCheckingInterval: Math.ceil(Math.min(1000, limits.headerTimeout / 2, limits.requestTimeout / 2)),
      requireHostHeader: false,
    }
    this.#witness = witness
    const listener = this.#listenerOf(handler)
    this.server = tls
      ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.headerTimeout }, listener)
      : createServer(options, listener)
    this.server.maxConnections = limits.connectionLimit
    Object.assign(this.server, { httpAllowHalfOpen: true }) // who has said all may still want to hear
    this.server.maxHeadersCount = 0 // their size is limited; node:http would drop those behind the 2000th
    this.server.on('connection', (socket: Socket) => {
      this.#count += 1
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    this.server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      this.#fresh.add(socket)
      socket.once('close', () => this.#fresh.delete(socket))
    })
    this.#answerOddities(listener)
  }

  /** Lets no one in any more, answers what was received, and closes; what is not done in time is cut off. */
  async drain(milliseconds: number): Promise<void> {
    this.isDraining = true
    for (const open of this.#open.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
    await this.#letIn(milliseconds)
    // The close of http.Server would cut off connections that a request may be on its way through.
    const closed = new Promise<void>((resolve) => SocketServer.prototype.close.call(this.server, () => resolve()))
    const grace = setTimeout(() => this.#closeIdle(), Math.min(idleGrace, milliseconds))
    const end = setTimeout(() => this.cutOff(), milliseconds)
    await closed
    for (const timer of [grace, end]) clearTimeout(timer)
  }

  /** Lets those in who stand in the queue of the socket: a turn of the loop brings some of them, until one brings none. */
  async #letIn(milliseconds: number): Promise<void> {
    const end = performance.now() + milliseconds
    for (let known = -1; known !== this.#count && performance.now() < end; ) {
      known = this.#count
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
  }

  /** Closes all connections, also those that are still at the beginning of TLS. */
  cutOff(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Closes connections that bring no request. */
  #closeIdle(): void {
    this.server.closeIdleConnections()
    for (const socket of [...this.#fresh, ...this.#sockets]) if (socket.bytesRead === 0 || this.#fresh.has(socket)) socket.destroy()
  }

  #listenerOf(handler: RequestListener): RequestListener {
    return (request, response) => {
      const open = this.#openOn(request.socket)
      open.push(response)
      response.once('close', () => {
        open.splice(open.indexOf(response), 1)
        if (!response.headersSent && !this.#broken.has(response)) this.#witness.record({ outcome: 'aborted' })
      })
      if (this.isDraining) this.#endWith(response, open.at(-2))
      const failure = headFailure(request)
      if (failure) this.#refuse(response, failure, 'HEAD')
      else this.#handle(handler, request, response)
    }
  }

  /** The last response on a connection closes it, and takes that over from the one before. */
  #endWith(response: ServerResponse, before: ServerResponse | undefined): void {
    response.shouldKeepAlive = false
    if (before && !before.headersSent) before.shouldKeepAlive = true
  }

  #openOn(socket: Socket): ServerResponse[] {
    const known = this.#open.get(socket)
    if (known) return known
    const open: ServerResponse[] = []
    this.#open.set(socket, open)
    socket.once('close', () => this.#open.delete(socket))
    this.#fresh.delete(socket)
    return open
  }

  /** A mistake in one request must not end the others. */
  #handle(handler: RequestListener, request: IncomingMessage, response: ServerResponse): void {
    try {
      handler(request, response)
    } catch (error) {
      this.#witness.complain('of no id', error)
      if (response.headersSent) response.destroy()
      else this.#refuse(response, refusedWith(500, 'The service made a mistake'), 'DEFECT')
    }
  }

  #refuse(response: ServerResponse, { refusal }: Refused, code: string): void {
    refuseAndClose(response, refusal)
    this.#witness.record({ outcome: String(refusal.error), code })
  }

  #answerOddities(listener: RequestListener): void {
    this.server.on('clientError', (error: Error, socket: Socket) => {
      const open = this.#open.get(socket) ?? []
      const answered = answerParserError(error, socket, open)
      for (const response of open) if (!response.req.complete) this.#broken.add(response)
      if (answered) this.#witness.record(answered)
    })
    // Whoever waits for "100 Continue" is told what is wrong before it sends the body, and then may not send it at all.
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      const { shouldKeepAlive } = response
      response.shouldKeepAlive = false
      request.once('resume', () => {
        if (response.headersSent) return
        response.shouldKeepAlive = shouldKeepAlive && !this.isDraining
        response.writeContinue()
      })
      listener(request, response)
    })
    this.server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) => {
      this.#refuse(response, refused(400, 'This Expect is not supported, only 100-continue'), 'EXPECT')
    })
    this.server.on('connect', (_: IncomingMessage, socket: Duplex) => {
      answerRaw(socket, refusedWith(404, 'This is no proxy').refusal)
      this.#witness.record({ outcome: '404', code: 'CONNECT' })
    })
  }
}

/** milliseconds in which a connection that was kept alive may still bring a request */
const idleGrace = 500

/** What node:http lets through: a version that it does not speak, no Host, and what must stand there once (RFC 9110, 5.3 and 7.2). */
function headFailure({ rawHeaders, httpVersion }: IncomingMessage): Refused | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused(400, `HTTP/${httpVersion} is not spoken here, only HTTP/1.1`)
  let seen = 0 // a bit for each of the singles
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const bit = 1 << (singles.get(name) ?? singles.get(name.toLowerCase()) ?? 0)
    if (bit > 1 && (seen & bit) > 0) return refused(400, `The header ${name} must be given once`)
    seen |= bit
  }
  return (seen & hostBit) > 0 || httpVersion === '1.0' ? undefined : refused(400, 'The header Host is missing')
}

const singles = new Map([
  ['host', 1],
  ['Host', 1], // as most write it, which saves the lower case
  ['content-type', 2],
  ['content-encoding', 3],
  ['authorization', 4],
])
const hostBit = 1 << 1
