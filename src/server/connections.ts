import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpError } from './errors.js'

/** the maximum number of unanswered requests on one connection */
const maxPipelined = 32

/** the maximum number of unanswered requests on all connections, not counting the first on each */
const maxPipelinedInTotal = 10_000

/** milliseconds in which a client may still send after this side of the connection is closed */
const lingerTime = 1000

/** A connection and its unanswered requests. */
export class ServerConnection {
  readonly socket: Socket
  readonly canSend: boolean
  /** unfinished responses, in the order of their requests */
  readonly open: ServerResponse[] = []
  /** the response to the latest request */
  last: ServerResponse | undefined
  /** whether no further requests are processed: too many are unanswered, or node:http has stopped reading */
  isFull = false
  /** whether the parser has rejected the input */
  isBroken = false
  /** bytes that the system has accepted, and when a check last saw that number change */
  sent = -1
  sentAt = 0
  /** whether the last response is decided */
  #isEnding = false

  constructor(socket: Socket, canSend: boolean) {
    this.socket = socket
    this.canSend = canSend
  }

  /**
   * Sends an error for input that the parser of node:http rejects, after the responses to earlier requests, and closes the connection.
   *
   * @param code the code of the parser's error
   * @returns whether the error is sent: not if the client is gone, or if an earlier response is the last one
   */
  reject(error: HttpError, code: string): boolean {
    const { socket, open, last } = this
    this.isBroken = true
    if (this.#isEnding) return false
    this.#isEnding = true
    const broken = open.at(-1)?.req.complete === false ? open.at(-1) : undefined
    // Input after a response that closes the connection, or the rest of a body whose request was answered early.
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

  /** Rejects a CONNECT, after which node:http neither reads from the connection nor applies timeouts to it. */
  rejectConnect(error: HttpError): void {
    afterAnswer(this.open.at(-1), () => this.end(error))
  }

  /** Sends a last response, if any, and closes this side. The client may still send for a while (RFC 9112, 9.6). */
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

/** The bytes of a response for which node:http has no response object. */
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
  /** how many have been accepted so far */
  count = 0
  isDraining = false
  readonly #connections = new Map<Socket, ServerConnection>()
  #pipelined = 0

  /** @param canSend whether the client can send requests now: with TLS, only after the handshake */
  add(socket: Socket, canSend: boolean): ServerConnection {
    const connection = new ServerConnection(socket, canSend)
    this.count += 1
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      this.#connections.delete(socket)
      // node:http emits `close` only on the response that is currently being sent.
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

  /** The connection of a socket; a new one if TLS has failed. */
  of(socket: Socket): ServerConnection {
    return this.#connections.get(socket) ?? new ServerConnection(socket, false)
  }

  /** Whether a response closes the connection: later requests must not be processed (RFC 9112, 9.6). */
  isClosing({ last, isFull }: ServerConnection): boolean {
    return last !== undefined && (isFull || (!last.shouldKeepAlive && (last.headersSent || !this.isDraining)))
  }

  /**
   * Accepts a request on a connection that is not closing. Its response closes the connection during a drain, at the limit, and after an
   * Upgrade: node:http drops the bytes that it read together with that, so the rest of the next request could pass for a request.
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

  /** Forgets a response that is finished or aborted. */
  release({ open }: ServerConnection, response: ServerResponse): void {
    if (open.length > 1) this.#pipelined -= 1
    if (open[0] === response) open.shift()
    else open.splice(open.indexOf(response), 1)
  }

  /**
   * Destroys connections whose client has read nothing for `timeout` milliseconds although data is pending, and full connections that the
   * client has not closed `timeout` milliseconds after their last response.
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

  /** From now on, the last response on each connection closes it. */
  startDraining(): void {
    this.isDraining = true
    for (const { open } of this.#connections.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
  }

  /** Destroys connections without any request, but not those in the middle of a TLS handshake. */
  endUnused(): void {
    for (const [socket, { last, canSend }] of this.#connections)
      if (last === undefined && (canSend || socket.bytesRead === 0)) socket.destroy()
  }

  endAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }
}
