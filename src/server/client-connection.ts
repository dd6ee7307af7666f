import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { ArrivingBody, Budget } from './body.js'
import type { HttpError } from './http-error.js'

/** bytes: about sixteen requests of a few hundred bytes, and as little as 10,000 connections may hold for nothing */
const maxWaitingBytes = 65_536

/** milliseconds in which a client may still send after this side of the connection is closed */
const lingerTime = 1000

export class ClientConnection {
  readonly socket: Socket
  /** whether this is the socket below TLS, which brings no requests itself */
  readonly isHandshake: boolean
  /** unfinished responses, in the order of their requests */
  readonly open: ServerResponse[] = []
  /** the response to the latest request */
  last: ServerResponse | undefined
  /** whether input was no request, so that nothing after it is read */
  isBroken = false
  /** whether more requests came than may wait, so that none of them is answered */
  isOverfull = false
  /** the response to the request that is being processed, once its token is accepted */
  accepted: ServerResponse | undefined
  /** whether a token was accepted on it */
  hasToken = false
  /** lines of requests that wait for the responses to earlier ones */
  readonly waiting = new Budget(maxWaitingBytes)
  /** bodies that arrive before a token is accepted: above it, nothing more is read of the connection */
  readonly unverified = new Budget(maxWaitingBytes, { pauses: true })
  readonly #bodies = new Map<ServerResponse, ArrivingBody>()
  /** bytes that the system has accepted, and when a check last saw that number change */
  #sent = -1
  #sentAt = 0

  constructor(socket: Socket, isHandshake: boolean) {
    this.socket = socket
    this.isHandshake = isHandshake
  }

  /**
   * Sends an error for input that is no request, after the responses to earlier requests, and closes the connection.
   *
   * @param code of the parser's error
   * @param headers alternating names and values
   * @returns whether the input counts: not if the client is gone, or if an earlier response is the last one
   */
  reject(error: HttpError, code: string, headers: readonly string[] = []): boolean {
    const { socket, open, last } = this
    if (this.isBroken || socket.writableEnded) return false
    this.isBroken = true
    if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
      socket.destroy()
      return false
    }
    // The request whose body is broken gets no second response if it was answered early.
    const broken = last?.req.complete === false ? last : undefined
    const isLast = code === 'HPE_CLOSED_CONNECTION' || last?.shouldKeepAlive === false
    const isAnswered = () => isLast || broken?.headersSent === true
    const end = () => this.end(isAnswered() ? undefined : bytesOf(error, headers))
    const previous = open.filter((response) => response !== broken).at(-1)
    if (previous) previous.once('close', end)
    else end()
    return !isAnswered()
  }

  /** Counts the body of a request in `budget` from now on; undefined if node:http has all of it already. */
  collectBody(response: ServerResponse, limit: number, budget: Budget): ArrivingBody | undefined {
    const known = this.#bodies.get(response)
    if (known) {
      known.countIn(budget)
      return known
    }
    if (response.req.complete) return undefined
    const body = new ArrivingBody(response.req, limit, budget)
    this.#bodies.set(response, body)
    return body
  }

  /** From now on, its bodies count with those of all connections that have a token. */
  accept(response: ServerResponse, bodies: Budget): void {
    this.accepted = response
    this.hasToken = true
    for (const body of this.#bodies.values()) body.countIn(bodies)
  }

  /** Drops what has arrived of a body, and what still arrives. */
  dropBody(response: ServerResponse): void {
    this.#bodies.get(response)?.discard()
    this.#bodies.delete(response)
    response.req.resume()
  }

  /** Sends the response to a request whose token was accepted, but none to those that wait, and closes the connection. */
  endOverfull(): void {
    const { socket, accepted } = this
    this.isOverfull = true
    if (!accepted) {
      socket.destroy()
      return
    }
    socket.pause()
    if (accepted.headersSent) accepted.once('close', () => this.end())
    else accepted.shouldKeepAlive = false
  }

  /** Destroys a connection whose client has read nothing for `timeout` milliseconds although data is pending. */
  endIfStalled(now: number, timeout: number): void {
    const { socket } = this
    const sent = socket.bytesWritten - socket.writableLength
    if (socket.writableLength === 0 || sent !== this.#sent) {
      this.#sent = sent
      this.#sentAt = now
    } else if (now - this.#sentAt >= timeout) {
      socket.destroy()
    }
  }

  /** The client may still send for a while (RFC 9112, 9.6). */
  end(bytes?: string): void {
    const { socket } = this
    if (socket.writableEnded) return
    if (bytes !== undefined && socket.writable) socket.write(bytes)
    socket.end()
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }
}

/** The bytes of a response for which node:http has no response object. */
function bytesOf({ status, body }: HttpError, headers: readonly string[]): string {
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : []))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
    ...pairs,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
