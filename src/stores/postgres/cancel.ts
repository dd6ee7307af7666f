/**
 * Asks a server to end what it does for a connection.
 *
 * While a server works, or waits for a lock or for a synchronous standby, it does not notice that
 * its client has gone. A statement that was given up would go on there, so that the server could
 * have more of them than the address allows with `max`. Therefore this is called before a
 * connection is dropped in the middle of a statement.
 *
 * The protocol requires another connection for the request
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS).
 * The driver has a method for it, but that is not documented, and sends the secret key without TLS.
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
 * wait that long. The driver takes one of the two, because it waits a second longer than the server
 * for the end of a statement. This must fit into the other one.
 */
const cancelTimeoutMs = 700

/**
 * Resolves when the server has taken the request, or could not be asked. It never rejects, because
 * the caller drops the connection in any case, and could do nothing about an error.
 */
export async function requestCancel(target: CancelTarget): Promise<void> {
  const socket = connect(target.server)
  const timer = setTimeout(() => socket.destroy(), cancelTimeoutMs)
  socket.on('error', () => undefined)
  const { tls } = target
  // The server closes this connection. If this side did so, PgBouncer would forget the request.
  if (tls === undefined) socket.resume().write(createCancelRequest(target))
  else {
    socket.write(sslRequest)
    socket.once('data', (answer) => {
      if (answer.toString() !== acceptsTls) return void socket.destroy()
      const encrypted = connectTls({ ...tls, socket })
      encrypted.on('error', () => undefined)
      encrypted.once('close', () => socket.destroy())
      // Before `secureConnect`, the server may be another one, which must not get the secret key.
      encrypted.once('secureConnect', () => encrypted.resume().write(createCancelRequest(target)))
    })
  }
  await new Promise<void>((resolve) => socket.once('close', () => resolve()))
  clearTimeout(timer)
}

/** See https://www.postgresql.org/docs/current/protocol-message-formats.html. */
const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const acceptsTls = 'S'
const cancelRequestCode = 80_877_102

function createCancelRequest({ processId, secretKey }: CancelTarget): Buffer {
  const request = Buffer.alloc(16)
  request.writeInt32BE(request.length, 0)
  request.writeInt32BE(cancelRequestCode, 4)
  request.writeInt32BE(processId, 8)
  request.writeInt32BE(secretKey, 12)
  return request
}
