import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpError } from './errors.js'

/** milliseconds in which a client may still send after this side of the connection is closed */
const lingerTime = 1000

export class ClientConnection {
  readonly socket: Socket
  readonly canSend: boolean
  /** unfinished responses, in the order of their requests */
  readonly open: ServerResponse[] = []
  /** the response to the latest request */
  last: ServerResponse | undefined
  /** how many requests came after one whose response closes the connection: they are not processed (RFC 9112, 9.6) */
  ignored = 0
  /** whether the last response is decided */
  isEnding = false
  /** bytes that the system has accepted, and when a check last saw that number change */
  #sent = -1
  #sentAt = 0

  constructor(socket: Socket, canSend: boolean) {
    this.socket = socket
    this.canSend = canSend
  }

  /**
   * Sends an error for input that is no request, after the responses to earlier requests, and closes the connection.
   *
   * @param code the code of the parser's error
   * @returns whether the error is sent: not if the client is gone, or if an earlier response is the last one
   */
  reject(error: HttpError, code: string): boolean {
    const { socket, open, last } = this
    if (this.isEnding) return false
    this.isEnding = true
    if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
      socket.destroy()
      return false
    }
    const broken = open.at(-1)?.req.complete === false ? open.at(-1) : undefined
    // Input after a response that closes the connection, or the rest of a body whose request was answered early.
    const isAnswered = code === 'HPE_CLOSED_CONNECTION' || (last?.writableFinished && !last.req.complete)
    const end = () => this.end(isAnswered || broken?.headersSent ? undefined : error)
    const previous = open.at(broken ? -2 : -1)
    if (previous) previous.once('close', end)
    else end()
    return !isAnswered
  }

  get isClosing(): boolean {
    return this.last?.shouldKeepAlive === false
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

  /** Sends a last response, if any, and closes this side. The client may still send for a while (RFC 9112, 9.6). */
  end(error?: HttpError): void {
    const { socket } = this
    this.isEnding = true
    if (socket.writableEnded) return
    if (error && socket.writable) socket.write(bytesOf(error))
    socket.end()
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), lingerTime)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
  }
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
