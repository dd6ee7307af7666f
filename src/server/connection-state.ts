/**
 * Decides what a connection was doing when node:http found an error on it. The answer says what can
 * still be sent: only a client whose request was arriving can get an Error as its response.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * - `handshake`: the TLS handshake failed, so nothing can be sent that the client could read.
 * - `gone`: the client has left, or can receive nothing more.
 * - `receiving`: a request was arriving. It has a response object if its head was complete.
 * - `responding`: the request was complete, so the error is about what the client sent after it.
 */
type ConnectionState =
  | { type: 'handshake' }
  | { type: 'gone' }
  | { type: 'receiving'; response: ServerResponse | undefined }
  | { type: 'responding'; response: ServerResponse }

export interface FailedConnection {
  socket: Socket
  /** The system or node:http gave the error this code, such as `ECONNRESET`. */
  code: string
  /** This is false before the TLS handshake is done. Without TLS, it is always true. */
  isOpen: boolean
  /** The request in progress has this response; undefined if no request is in progress. */
  response: ServerResponse | undefined
}

export function findConnectionState(connection: FailedConnection): ConnectionState {
  const { socket, code, isOpen, response } = connection
  const hasLeft = code === 'ECONNRESET' || code === 'EPIPE'
  if (!isOpen) return { type: hasLeft ? 'gone' : 'handshake' }
  const hasLostItsResponse = response?.socket === null
  if (hasLeft || !socket.writable || hasLostItsResponse) return { type: 'gone' }
  const isResponding = response && (response.headersSent || response.req.complete)
  return isResponding ? { type: 'responding', response } : { type: 'receiving', response }
}
