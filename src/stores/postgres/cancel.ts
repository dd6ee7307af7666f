/**
 * Asks a server to end what it does for a connection.
 *
 * While a server works, or waits for a lock or for a synchronous standby, it does not notice that
 * its client has gone. A statement that was given up would stay there, and so the server could have
 * more of them than the address allows with `max`. Therefore this is called before a connection is
 * dropped in the middle of a statement.
 *
 * The request goes over a connection of its own, as the protocol wants it
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS).
 * The driver has a method for it, which is not documented, and sends the secret key without TLS.
 */
import { connect, type NetConnectOpts } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'

export interface CancelTarget {
  /** The very server of the connection, because a name can have several. */
  server: NetConnectOpts
  /** Undefined for a connection without TLS. */
  tls: ConnectionOptions | undefined
  processId: number
  secretKey: number
}

/**
 * The driver waits a second longer than the timeout for an answer, and load balancers are told to
 * wait two seconds longer.
 */
const cancelTimeoutMs = 700

/**
 * Resolves when the server has done what it was asked, or could not be asked: the connection is
 * dropped anyway, so that there is nobody who could do anything about an error.
 */
export async function requestCancel(target: CancelTarget): Promise<void> {
  const socket = connect(target.server)
  const timer = setTimeout(() => socket.destroy(), cancelTimeoutMs)
  socket.on('error', () => undefined)
  const { tls } = target
  // The server closes the connection. PgBouncer would forget a request whose sender closes it.
  if (tls === undefined) socket.resume().write(createCancelRequest(target))
  else {
    socket.write(sslRequest)
    socket.once('data', (answer) => {
      if (answer.toString() !== acceptsTls) return void socket.destroy()
      const encrypted = connectTls({ ...tls, socket })
      encrypted.on('error', () => undefined)
      encrypted.once('close', () => socket.destroy())
      // Only from then on it is certain whose server this is.
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
