import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpError } from './errors.js'

/** unanswered requests on one connection */
const maxPipelined = 32

/** unanswered requests on all connections, without the first on each */
const maxPipelinedInTotal = 10_000

/** milliseconds in which a client may still send after our side of its connection is closed */
const lingerTime = 1000

/** A connection that can bring requests, and those that are in flight on it. */
export class Connection {
  /** responses that are not finished, in the order of their requests */
  readonly open: ServerResponse[] = []
  /** the response to the latest request */
  last: ServerResponse | undefined
  /** whether no more requests are processed: too many are unanswered, or node:http reads no more of them */
  isFull = false
  /** whether the parser has rejected what came */
  isBroken = false
  readonly #socket: Socket
  /** whether the last answer is on its way */
  #isEnding = false
  #isLingering = false
  /** bytes that the system has taken, and when that was seen to change */
  #sent = -1
  #sentAt = 0

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /**
   * Answers what the parser of node:http rejects, after the requests before it, and closes the connection.
   *
   * @param error the answer
   * @param code of the parser's error
   * @returns whether it is answered: not where nobody listens, or where the last answer is on its way already
   */
  reject(error: HttpError, code: string): boolean {
    this.isBroken = true
    if (this.#isEnding) return false
    this.#isEnding = true
    // What comes after an answer that closes the connection, or the rest of a body whose request was answered early.
    if (code === 'HPE_CLOSED_CONNECTION' || (this.last?.writableFinished && !this.last.req.complete)) {
      afterAnswer(this.open.at(-1), () => this.end())
      return false
    }
    if (!this.#socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
      this.#socket.destroy()
      return false
    }
    const broken = this.open.at(-1)?.req.complete === false ? this.open.at(-1) : undefined
    afterAnswer(broken ? this.open.at(-2) : this.open.at(-1), () => (broken?.headersSent ? this.end() : this.#endWith(error)))
    return true
  }

  /** From a CONNECT on, node:http neither reads a connection nor times it: the answers in flight are its last. */
  rejectConnect(error: HttpError): void {
    afterAnswer(this.open.at(-1), () => this.#endWith(error))
  }

  /** Sends an answer where node:http has no response object. */
  #endWith({ status, body }: HttpError): void {
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'X-Content-Type-Options: nosniff',
      'Connection: close',
    ]
    if (this.#socket.writable) this.#socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
    this.end()
  }

  /** Closes our side, and all a little later: to close on what is still coming in would discard the answer on its way (RFC 9112, 9.6). */
  end(): void {
    if (this.#isLingering) return
    this.#isLingering = true
    this.#isEnding = true
    const socket = this.#socket
    socket.end()
    socket.on('error', () => socket.destroy())
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }

  /**
   * Ends a connection whose reader has taken nothing of what was written for so many milliseconds, and one that is full and was not
   * closed in that time after its last answer.
   */
  endIfStalled(now: number, timeout: number): void {
    const sent = this.#socket.bytesWritten - this.#socket.writableLength
    const isOver = this.isFull && this.open.length === 0
    if ((this.#socket.writableLength === 0 && !isOver) || sent !== this.#sent) {
      this.#sent = sent
      this.#sentAt = now
    } else if (now - this.#sentAt >= timeout) {
      this.#socket.destroy()
    }
  }

  destroy(): void {
    this.#socket.destroy()
  }
}

function afterAnswer(response: ServerResponse | undefined, next: () => void): void {
  if (response) response.once('close', next)
  else next()
}

/** The connections of a server. */
export class Connections {
  /** how many there have been */
  count = 0
  isDraining = false
  readonly #sockets = new Set<Socket>()
  readonly #connections = new Map<Socket, Connection>()
  #pipelined = 0

  /** A client has connected. Over TLS it cannot send requests yet. */
  add(socket: Socket): void {
    this.count += 1
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** A client can send requests now. */
  open(socket: Socket): Connection {
    const connection = new Connection(socket)
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      this.#connections.delete(socket)
      this.#pipelined -= Math.max(0, connection.open.length - 1)
      connection.open.length = 0
    })
    return connection
  }

  /** The connection of a socket; a new one where it ended before it could bring a request. */
  of(socket: Socket): Connection {
    return this.#connections.get(socket) ?? new Connection(socket)
  }

  /** Takes a request in, whose connection is not closing. Its response closes the connection when too many are unanswered, or in a drain. */
  admit(connection: Connection, response: ServerResponse): void {
    const { open } = connection
    connection.last = response
    open.push(response)
    if (open.length > 1) this.#pipelined += 1
    if (this.isDraining) {
      const before = open.at(-2)
      response.shouldKeepAlive = false
      if (before && !before.headersSent) before.shouldKeepAlive = true
    }
    if (open.length >= maxPipelined || (open.length > 1 && this.#pipelined > maxPipelinedInTotal)) {
      connection.isFull = true
      response.shouldKeepAlive = false
    }
  }

  /** A response is finished, or cannot be any more. */
  release({ open }: Connection, response: ServerResponse): void {
    if (open.length > 1) this.#pipelined -= 1
    if (open[0] === response) open.shift()
    else open.splice(open.indexOf(response), 1)
  }

  /** Whether an answer closes the connection: requests after it must not be processed (RFC 9112, 9.6). */
  isClosing({ last, isFull }: Connection): boolean {
    return last !== undefined && (isFull || (!last.shouldKeepAlive && (last.headersSent || !this.isDraining)))
  }

  /** @param timeout milliseconds */
  endStalled(now: number, timeout: number): void {
    for (const connection of this.#connections.values()) connection.endIfStalled(now, timeout)
  }

  /** From now on the last response on each connection closes it. */
  startDraining(): void {
    this.isDraining = true
    for (const { open } of this.#connections.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
  }

  /** Ends those that have brought no request. */
  endUnused(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    for (const connection of this.#connections.values()) if (connection.last === undefined && !connection.isFull) connection.destroy()
  }

  /** Ends all, also those in the handshake of TLS. */
  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
