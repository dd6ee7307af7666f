/** Decides what a connection was doing when node:http found an error on it. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

type ConnectionState =
  | { type: 'handshake' }
  | { type: 'gone' }
  | { type: 'receiving'; response: ServerResponse | undefined }
  | { type: 'responding'; response: ServerResponse }

interface FailedConnection {
  socket: Socket
  /** The code of the error. */
  code: string
  /** Whether the connection has had its TLS handshake, if it needs one. */
  isOpen: boolean
  /** That of the request that is in progress on the connection, if there is one. */
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
