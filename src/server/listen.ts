/**
 * Makes a server listen on a TCP port or on a Unix socket.
 *
 * The file of a socket stays when its process is killed, and would prevent the next start. So a
 * socket on which nobody listens any more is replaced. When a server closes, Node.js removes the
 * file of its socket.
 */
import { once } from 'node:events'
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import {
  createExplainedError,
  createUsageError,
  describeSystemError,
  descriptorExplanations,
  type Explanation,
  getSystemCode,
  PlantsError,
} from '../errors.js'

export interface TcpAddress {
  host: string
  port: number
}

/** The `path` is the absolute one of a Unix socket. */
export type ListenAddress = TcpAddress | { path: string }

const addressHint = 'Choose an address of this machine, such as 127.0.0.1'

/** What the codes of the system mean for a port. */
const portExplanations: Readonly<Record<string, Explanation>> = {
  EADDRINUSE: {
    kind: 'unavailable',
    hint: 'Choose another port, because another program listens on this one',
  },
  EACCES: { kind: 'usage', hint: 'Choose a port from 1024 on' },
  ENOTFOUND: { kind: 'usage', reason: 'the host name was not found', hint: addressHint },
  EAI_AGAIN: { kind: 'unavailable', reason: 'no name server answered', hint: addressHint },
  ...descriptorExplanations,
}
/** The most frequent one is EADDRNOTAVAIL: this machine does not have the address. */
const otherExplanation: Explanation = { kind: 'usage', hint: addressHint }

/**
 * @returns a URL such as `http://127.0.0.1:4010`, or `unix:` and the path of a socket. Its host is
 *   the host of the address, such as `0.0.0.0`, so that it shows who can connect
 * @throws {PlantsError} `usage` for an address that this machine does not have, otherwise
 * `unavailable`. The caller must close the server even then: it may listen already.
 */
export async function listen(
  server: Server,
  address: ListenAddress,
  scheme: 'http' | 'https',
): Promise<string> {
  if ('path' in address) {
    await listenOnSocket(server, address.path)
    return `unix:${address.path}`
  }
  const { host } = address
  try {
    server.listen(address)
    await once(server, 'listening')
  } catch (error) {
    const explanation = portExplanations[getSystemCode(error) ?? ''] ?? otherExplanation
    throw toListenError(error, `Port ${address.port} of ${host}`, explanation)
  }
  // The type of `address()` includes the path of a socket, which no server on a port has.
  const { port } = server.address() as AddressInfo
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function listenOnSocket(server: Server, path: string): Promise<void> {
  assertUsablePath(path)
  try {
    await removeAbandonedSocket(path)
    server.listen({ path })
    await once(server, 'listening')
    // The group may connect, because a proxy often runs as another user.
    chmodSync(path, 0o660)
  } catch (error) {
    const hint = 'Choose a path with --socket in a directory that you can write to'
    throw toListenError(error, path, { kind: 'accessDenied', hint })
  }
}

/**
 * The path is stored in the field `sun_path`, which has 104 bytes on macOS and 108 on Linux. Its
 * last byte is zero.
 */
const maxPathBytes = process.platform === 'darwin' ? 103 : 107

/** Node.js would cut off a path that is too long. */
function assertUsablePath(path: string): void {
  if (Buffer.byteLength(path) <= maxPathBytes) return
  const message = `${path} is too long for a socket: its path has at most ${maxPathBytes} bytes`
  throw createUsageError(message, 'Choose a shorter path with --socket')
}

/**
 * @throws {PlantsError} `accessDenied` for a file that is not a socket of this user, and
 *   `unavailable` for a socket on which somebody may still listen
 */
async function removeAbandonedSocket(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  const hint = 'Choose another path with --socket'
  if (!stats.isSocket())
    throw new PlantsError('accessDenied', `${path} exists, and is not a socket`, { hint })
  const code = await findConnectError(path)
  if (code === 'EACCES' || code === 'EPERM')
    throw new PlantsError('accessDenied', `${path} belongs to another user`, { hint })
  // Another service that starts at the same time may have replaced the socket since it was examined.
  const isReplaced = lstatSync(path, { throwIfNoEntry: false })?.ctimeMs !== stats.ctimeMs
  if (code !== 'ECONNREFUSED' || isReplaced)
    throw new PlantsError('unavailable', `${path}: address already in use`, {
      hint: 'Choose another path with --socket, because another program listens on this one',
    })
  rmSync(path, { force: true })
}

/** Returns the code of the system's error, or undefined if somebody listens there. */
async function findConnectError(path: string): Promise<string | undefined> {
  const socket = connect(path)
  const result = await once(socket, 'connect').catch((error: unknown) => error)
  socket.destroy()
  return getSystemCode(result)
}

/** An error without a code of the system is an internal error, so it is returned unchanged. */
function toListenError(error: unknown, subject: string, explanation: Explanation): unknown {
  const reason = describeSystemError(error)
  if (reason === undefined) return error
  const message = '{subject}: {reason}'
  return createExplainedError({ message, ...explanation }, { subject, reason }, error)
}
