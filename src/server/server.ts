import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { type Socket, Server as SocketServer } from 'node:net'
import { refuseAndClose, type Witness } from './answers.js'
import { headFailure } from './body.js'
import { Connections } from './connections.js'
import { answerParserError, answerRaw, lingerThenClose, type Refused, refused, refusedWith, whenAnswered } from './errors.js'

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
 * Answers a request. Of one that waits for "100 Continue" it emits 'continue' when the body may come.
 *
 * @returns a promise when it goes on; one that rejects is answered as a mistake of the service
 */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/**
 * A server of node:http that gives each request an answer of ours, also those that its parser refuses, and that can stop
 * without leaving one unanswered.
 */
export class HttpServer {
  readonly server: Server
  readonly #connections = new Connections()
  readonly #witness: Witness
  /** responses to requests that the parser broke off, and has told of */
  readonly #broken = new WeakSet<ServerResponse>()
  /** requests that came before the one in front of them on their connection was answered, in the order in which they are handled */
  readonly #waiting: (() => void)[] = []

  /** @param witness told of each request that did not get as far as the handler */
  constructor(handler: Handler, limits: Limits, tls: Tls | undefined, witness: Witness) {
    this.#witness = witness
    const listener = (request: IncomingMessage, response: ServerResponse) => this.#receive(handler, request, response)
    const options = { ...optionsOf(limits), IncomingMessage: requestClass(this.#connections) }
    this.server = tls
      ? createSecureServer({ ...options, ...tls, handshakeTimeout: limits.headerTimeout }, listener)
      : createServer(options, listener)
    this.server.maxConnections = limits.connectionLimit
    this.server.maxHeadersCount = 0 // their size is limited; node:http would drop those behind the 2000th
    Object.assign(this.server, { httpAllowHalfOpen: true }) // who has said all may still want to hear
    this.server.on('connection', (socket: Socket) => {
      socket.on('error', () => socket.destroy()) // node:http takes its listener away at a CONNECT
      this.#connections.add(socket)
    })
    this.server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => {
      socket.destroySoon = () => lingerThenClose(socket)
      this.#connections.open(socket)
    })
    this.#answerOddities(listener)
    const { connectionsCheckingInterval } = options
    const check = () => this.#connections.endStalled(witness.now(), limits.requestTimeout)
    const timer = setInterval(check, connectionsCheckingInterval).unref()
    this.server.once('close', () => clearInterval(timer))
  }

  get isDraining(): boolean {
    return this.#connections.isDraining
  }

  /** Lets no one in any more, answers what was received, and closes; what is not done in time is cut off. */
  async drain(milliseconds: number): Promise<void> {
    this.#connections.startDraining()
    await this.#letIn(milliseconds)
    const closed = new Promise<void>((resolve) => closeSparingIdle(this.server, resolve))
    const grace = setTimeout(() => this.#closeIdle(), Math.min(idleGrace, milliseconds))
    const end = setTimeout(() => this.#connections.cutOff(), milliseconds)
    await closed
    for (const timer of [grace, end]) clearTimeout(timer)
  }

  /** Stops at once. */
  abort(): void {
    this.server.close()
    this.#connections.cutOff()
  }

  /** Lets those in who stand in the queue of the socket: a turn of the loop brings some of them, until one brings none. */
  async #letIn(milliseconds: number): Promise<void> {
    const end = this.#witness.now() + milliseconds
    for (let known = -1; known !== this.#connections.count && this.#witness.now() < end; ) {
      known = this.#connections.count
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
  }

  #closeIdle(): void {
    this.server.closeIdleConnections()
    this.#connections.endFresh()
  }

  #receive(handler: Handler, request: IncomingMessage, response: ServerResponse): void {
    const onClose = () => {
      if (!response.headersSent && !this.#broken.has(response)) this.#witness.record({ outcome: 'aborted' })
    }
    if (!this.#connections.admit(response, onClose)) return
    const failure = headFailure(request)
    const isFirst = this.#connections.on(request.socket).open.length === 1
    if (failure) this.#refuse(response, failure, 'HEAD')
    else if (isFirst || request.headers.expect !== undefined) this.#handle(handler, request, response)
    else if (this.#waiting.push(() => this.#handle(handler, request, response)) === 1) setImmediate(() => this.#handleWaiting())
  }

  /** Lets other connections in after every few milliseconds. */
  #handleWaiting(): void {
    const end = this.#witness.now() + turn
    let count = 0
    for (const handle of this.#waiting) {
      handle()
      count += 1
      if (this.#witness.now() > end) break
    }
    this.#waiting.splice(0, count)
    if (this.#waiting.length > 0) setImmediate(() => this.#handleWaiting())
  }

  /** A mistake in one request must not end the others. */
  #handle(handler: Handler, request: IncomingMessage, response: ServerResponse): void {
    const fail = (error: unknown) => {
      this.#witness.complain('of no id', error)
      if (response.headersSent) response.destroy()
      else this.#refuse(response, refusedWith(500, 'The service made a mistake'), 'DEFECT')
    }
    if (request.socket.destroyed) return
    try {
      handler(request, response)?.catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  #refuse(response: ServerResponse, { refusal }: Refused, code: string): void {
    refuseAndClose(response, refusal)
    this.#witness.record({ outcome: String(refusal.error), code })
  }

  #answerOddities(listener: (request: IncomingMessage, response: ServerResponse) => void): void {
    this.server.on('clientError', (error: Error, socket: Socket) => {
      const exchanges = this.#connections.on(socket)
      const answered = answerParserError(error, socket, exchanges)
      for (const response of exchanges.open) if (!response.req.complete) this.#broken.add(response)
      if (answered) this.#witness.record(answered)
    })
    // Whoever waits for "100 Continue" is told what is wrong before it sends the body, and then may not send it at all.
    this.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
      const { shouldKeepAlive } = response
      response.shouldKeepAlive = false
      request.once('continue', () => {
        response.shouldKeepAlive = shouldKeepAlive && !this.isDraining && !this.#connections.on(request.socket).isFull
        response.writeContinue()
      })
      listener(request, response)
    })
    this.server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) => {
      if (!this.#connections.admit(response)) return
      this.#refuse(response, refused(400, 'This Expect is not supported, only 100-continue'), 'EXPECT')
    })
    this.server.on('connect', (_: IncomingMessage, socket: Socket) => {
      if (this.#connections.isClosing(socket)) return this.#connections.cut(socket)
      whenAnswered(this.#connections.on(socket).open.at(-1), () => answerRaw(socket, refusedWith(404, 'This is no proxy').refusal))
      this.#witness.record({ outcome: '404', code: 'CONNECT' })
    })
  }
}

/**
 * Requests after an answer that closes their connection. node:http makes objects of all requests in a read before any is answered, and a
 * read of 64 KiB may hold thousands; at a CONNECT it stops. So the first of those that are not processed passes for one.
 */
function requestClass(connections: Connections) {
  return class extends IncomingMessage {
    constructor(...given: ConstructorParameters<typeof IncomingMessage>) {
      super(...given) // Bun gives more than the socket
      if (connections.isClosing(given[0])) Object.defineProperties(this, asConnect)
    }
  }
}

const ignored = () => undefined
const asConnect = { method: { get: () => 'CONNECT', set: ignored }, upgrade: { get: () => true, set: ignored } }

/** milliseconds for which requests that waited are handled at a time */
const turn = 5

/** milliseconds in which a connection that was kept alive may still bring a request */
const idleGrace = 500

/** The close of http.Server would cut off connections that a request may be on its way through. */
function closeSparingIdle(server: Server, onClose: () => void): void {
  const isOfNode: boolean = server instanceof SocketServer
  if (isOfNode) {
    SocketServer.prototype.close.call(server, onClose)
  } else {
    spareIdle(server)
    server.close(onClose)
  }
}

/** Bun's http.Server is no net.Server: it listens by way of an object that it keeps, and asks that to cut them off. */
function spareIdle(server: object): void {
  for (const key of Object.getOwnPropertySymbols(server)) {
    const part = Reflect.get(server, key)
    if (typeof part?.closeIdleConnections === 'function') part.closeIdleConnections = () => 0
  }
}

function optionsOf(limits: Limits) {
  return {
    maxHeaderSize: limits.headerLimit,
    headersTimeout: Math.min(limits.headerTimeout, limits.requestTimeout), // node:http takes no other
    requestTimeout: limits.requestTimeout,
    keepAliveTimeout: limits.keepAlive,
    connectionsCheckingInterval: Math.ceil(Math.min(1000, limits.headerTimeout / 2, limits.requestTimeout / 2)),
    requireHostHeader: false,
  }
}
