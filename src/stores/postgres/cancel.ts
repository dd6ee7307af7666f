/**
 * Asks a server to cancel the statement of a connection.
 *
 * While a server works, or waits for a lock or for a synchronous standby, it does not notice that
 * its client has gone. An abandoned statement would continue there, so that the server could run
 * more statements than the address allows with `max`. Therefore this is called before a connection
 * is dropped in the middle of a statement.
 *
 * The protocol requires another connection for the request
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS).
 * The driver has a method for the request, but the method is not documented, and sends the secret
 * key without TLS.
 */
import { connect, type NetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

export interface CancelTarget {
  /** This is the address that the connection has reached, because a name can have several. */
  server: NetConnectOpts
  /** This is undefined for a connection without TLS. */
  tls: ConnectionOptions | undefined
  processId: number
  secretKey: number
}

/**
 * A call may take two seconds longer than the timeout, and docs/proxies.md tells load balancers to
 * wait that long. The driver takes the first second, because it waits a second longer than the
 * server for the end of a statement. The request to cancel must fit into the other second.
 */
const cancelTimeoutMs = 700

/**
 * Resolves when the server has received the request, or could not be reached. It never rejects,
 * because the caller drops the connection in any case, and could do nothing about an error.
 */
export async function requestCancel(target: CancelTarget): Promise<void> {
  const socket = connect(target.server)
  const timer = setTimeout(() => socket.destroy(), cancelTimeoutMs)
  socket.on('error', () => undefined)
  const { tls } = target
  // The server closes this connection. If this program closed it, PgBouncer would drop the request.
  if (tls === undefined) socket.resume().write(createCancelRequest(target))
  else {
    socket.write(sslRequest)
    socket.once('data', (answer) => {
      if (answer.toString() !== tlsAccepted) return void socket.destroy()
      const tlsSocket = connectTls({ ...tls, socket })
      tlsSocket.on('error', () => undefined)
      tlsSocket.once('close', () => socket.destroy())
      // Before `secureConnect`, the server is not verified, so it must not get the secret key.
      tlsSocket.once('secureConnect', () => tlsSocket.resume().write(createCancelRequest(target)))
    })
  }
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  clearTimeout(timer)
}

/** See https://www.postgresql.org/docs/current/protocol-message-formats.html. */
const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const tlsAccepted = 'S'
const cancelRequestCode = 80_877_102

function createCancelRequest({ processId, secretKey }: CancelTarget): Buffer {
  const request = Buffer.alloc(16)
  request.writeInt32BE(request.length, 0)
  request.writeInt32BE(cancelRequestCode, 4)
  request.writeInt32BE(processId, 8)
  request.writeInt32BE(secretKey, 12)
  return request
}
