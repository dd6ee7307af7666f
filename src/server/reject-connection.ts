import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type FailedConnection, findConnectionState } from './connection-state.js'
import { createInvalidHttpError } from './http-error.js'
import type { Log } from './log.js'
import { formatRawResponse } from './respond.js'

/**
 * Closes a connection on which node:http found an error: a request that is late, or not HTTP. A
 * client that can still read a response gets an Error first.
 */
export function rejectConnection(connection: FailedConnection, log: Pick<Log, 'record'>): void {
  const { socket, code } = connection
  const state = findConnectionState(connection)
  switch (state.type) {
    case 'handshake':
      log.record({ outcome: 'handshake', code, from: socket.remoteAddress })
      socket.destroy()
      return
    case 'gone':
      socket.destroy()
      return
    case 'responding':
      closeAfterResponse(state.response, socket)
      return
    case 'receiving':
      respondWithError(connection, state.response, log)
  }
}

/** Closes a connection when its response is written, and reads no more of it. */
function closeAfterResponse(response: ServerResponse, socket: Socket): void {
  // node:http itself closes the connection after a response that is not to keep it.
  if (response.shouldKeepAlive) response.once('close', () => socket.destroySoon())
  response.shouldKeepAlive = false
  socket.pause()
}

function respondWithError(
  { socket, code }: FailedConnection,
  response: ServerResponse | undefined,
  log: Pick<Log, 'record'>,
): void {
  const error = createInvalidHttpError(code)
  // A request with a response object has a handler, which writes the line of the log.
  const isHandled = response !== undefined
  if (!isHandled) log.record({ outcome: String(error.status), code, from: socket.remoteAddress })
  socket.end(formatRawResponse(error, response?.req.method), () => socket.destroy())
}
