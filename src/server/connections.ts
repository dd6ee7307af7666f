import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpError } from './errors.js'

/** unanswered requests on one connection */
const maxPipelined = 32

/** unanswered requests on all connections, without the first on each */
const maxPipelinedInTotal = 10_000

/** milliseconds in which a client may still send after our side of its connection is closed */
const lingerTime = 1000

/** A connection and its unanswered requests. */
export class ServerConnection {
  readonly socket: Socket
  readonly canSend: boolean
  /** responses that are not finished, in the order of their requests */
  readonly open: ServerResponse[] = []
  /** the response to the latest request */
  last: ServerResponse | undefined
  /** whether no more requests are processed: too many are unanswered, or node:http reads no more of them */
  isFull = false
  /** whether the parser has rejected what came */
  isBroken = false
  /** bytes that the system has taken, and when that was seen to change */
  sent = -1
  sentAt = 0
  /** whether the last answer is decided */
  #isEnding = false

  constructor(socket: Socket, canSend: boolean) {
    this.socket = socket
    this.canSend = canSend
  }

  /**
   * Answers what the parser of node:http rejects, after the requests before it, and closes the connection.
   *
   * @param code of the parser's error
   * @returns whether it is answered: not where nobody listens, or where another answer is the last one already
   */
  reject(error: HttpError, code: string): boolean {
    const { socket, open, last } = this
    this.isBroken = true
    if (this.#isEnding) return false
    this.#isEnding = true
    const broken = open.at(-1)?.req.complete === false ? open.at(-1) : undefined
    // What comes after an answer that closes the connection, or the rest of a body whose request was answered early.
    if (code === 'HPE_CLOSED_CONNECTION' || (last?.writableFinished && !last.req.complete)) {
      afterAnswer(open.at(-1), () => this.end())
      return false
    }
    if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
      socket.destroy()
      return false
    }
    afterAnswer(broken ? open.at(-2) : open.at(-1), () => this.end(broken?.headersSent ? undefined : error))
    return true
  }

  /**
   * The previous response, where a request must not be handled before that is sent (RFC 9112, 9.3.2). Reads need not wait for reads, nor
   * creates for creates, which share a commit in their order.
   */
  toAwait(response: ServerResponse): ServerResponse | undefined {
    const at = this.open.indexOf(response)
    if (at <= 0) return undefined
    const { method } = response.req
    const isFree = (method === 'GET' || method === 'POST') && this.open.every(({ req }, index) => index > at || req.method === method)
    return isFree ? undefined : this.open[at - 1]
  }

  /** Answers a CONNECT, after which node:http neither reads the connection nor times it. */
  rejectConnect(error: HttpError): void {
    afterAnswer(this.open.at(-1), () => this.end(error))
  }

  /** Sends a last answer, if any, and closes our side; all a little later, since the client may still send (RFC 9112, 9.6). */
  end(error?: HttpError): void {
    const { socket } = this
    this.#isEnding = true
    if (socket.writableEnded) return
    if (error && socket.writable) socket.write(bytesOf(error))
    socket.end()
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }
}

function afterAnswer(response: ServerResponse | undefined, next: () => void): void {
  if (response) response.once('close', next)
  else next()
}

/** The bytes of an answer where node:http has no response object. */
function bytesOf({ status, body }: HttpError): string {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

/** The connections of a server. */
export class Connections {
  /** how many there have been */
  count = 0
  isDraining = false
  readonly #connections = new Map<Socket, ServerConnection>()
  #pipelined = 0

  /** @param canSend whether the client can send requests now: with TLS it cannot before the handshake */
  add(socket: Socket, canSend: boolean): ServerConnection {
    const connection = new ServerConnection(socket, canSend)
    this.count += 1
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      this.#connections.delete(socket)
      // node:http tells this only to the response whose turn it is.
      for (const response of [...connection.open]) {
        if (response.socket !== null) continue
        response.destroy()
        response.emit('close')
      }
      this.#pipelined -= Math.max(0, connection.open.length - 1)
      connection.open.length = 0
    })
    return connection
  }

  /** The connection of a socket; a new one where TLS has failed. */
  of(socket: Socket): ServerConnection {
    return this.#connections.get(socket) ?? new ServerConnection(socket, false)
  }

  /** Whether an answer closes the connection: requests after it must not be processed (RFC 9112, 9.6). */
  isClosing({ last, isFull }: ServerConnection): boolean {
    return last !== undefined && (isFull || (!last.shouldKeepAlive && (last.headersSent || !this.isDraining)))
  }

  /**
   * Takes in a request on a connection that is not closing. Its response closes it in a drain, when too many are unanswered, and after an
   * Upgrade: node:http drops what was read together with that, so that the rest of a next request would pass for one of its own.
   */
  admit(connection: ServerConnection, response: ServerResponse): void {
    const { open } = connection
    connection.last = response
    open.push(response)
    if (open.length > 1) this.#pipelined += 1
    if (this.isDraining) {
      const before = open.at(-2)
      response.shouldKeepAlive = false
      if (before && !before.headersSent) before.shouldKeepAlive = true
    }
    const isTooMany = open.length >= maxPipelined || (open.length > 1 && this.#pipelined > maxPipelinedInTotal)
    if (isTooMany || response.req.headers.upgrade !== undefined) {
      connection.isFull = true
      response.shouldKeepAlive = false
    }
  }

  /** A response is finished, or cannot be any more. */
  release({ open }: ServerConnection, response: ServerResponse): void {
    if (open.length > 1) this.#pipelined -= 1
    if (open[0] === response) open.shift()
    else open.splice(open.indexOf(response), 1)
  }

  /**
   * Ends the connections whose readers have taken nothing of what was written for so many milliseconds, and those that are full and were
   * not closed in that time after their last answer.
   */
  endStalled(now: number, timeout: number): void {
    for (const [socket, connection] of this.#connections) {
      const sent = socket.bytesWritten - socket.writableLength
      const isOver = connection.isFull && connection.open.length === 0
      if ((socket.writableLength === 0 && !isOver) || sent !== connection.sent) {
        connection.sent = sent
        connection.sentAt = now
      } else if (now - connection.sentAt >= timeout) {
        socket.destroy()
      }
    }
  }

  /** From now on the last response on each connection closes it. */
  startDraining(): void {
    this.isDraining = true
    for (const { open } of this.#connections.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
  }

  /** Ends those that have brought no request, or not even the first byte of a TLS handshake. */
  endUnused(): void {
    for (const [socket, { last, canSend }] of this.#connections)
      if (last === undefined && (canSend || socket.bytesRead === 0)) socket.destroy()
  }

  endAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }
}
