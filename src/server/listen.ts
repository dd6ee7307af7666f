/**
 * Makes a server listen on a TCP port or on a Unix socket.
 *
 * The file of a socket stays when its process is killed, and prevents the next start. So a socket
 * on which nobody listens any more is replaced. Two starts at once must not take each other's new
 * socket for a left one: each decides, and takes the name, under a lock, and a socket gets its name
 * only once it is listened on.
 *
 * Node.js removes a socket by the name that it was bound to, whatever has that name by then.
 * Because the socket was renamed, that name is gone, and the server removes its own socket when it
 * closes.
 */
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, renameSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { PlantsError, systemCode, systemReason, toDescriptorsHint, usageError } from '../errors.js'
import { withTransientLock } from '../platform/file-lock.js'
import { findFileIdentity, makeFolderHint } from '../platform/files.js'
import type { Runtime } from '../platform/runtime.js'

export interface TcpAddress {
  host: string
  port: number
}

/** A port, or the absolute path of a socket. */
export type ListenAddress = TcpAddress | { path: string }

/** The options that a hint names, such as `--host` and `--port`. */
interface AddressFlags {
  host: string
  port: string
}

interface ListenOptions {
  address: ListenAddress
  scheme: 'http' | 'https'
  flags: AddressFlags
}

/**
 * Returns a URL, or `unix:` and the path of a socket.
 *
 * @throws {PlantsError} `usage` for an address that this machine does not have, otherwise
 * `unavailable`. The server must be closed then, too.
 */
export async function listen(server: Server, options: ListenOptions): Promise<string> {
  const { address, scheme, flags } = options
  if ('path' in address) {
    await listenOnSocket(server, address.path)
    return `unix:${address.path}`
  }
  const port = await listenOnPort(server, address, flags)
  const host = reachableHosts[address.host] ?? address.host
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Nobody can connect to a wildcard address, so its loopback address is shown instead. */
const reachableHosts: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

async function listenOnPort(
  server: Server,
  address: TcpAddress,
  flags: AddressFlags,
): Promise<number> {
  try {
    server.listen(address)
    await once(server, 'listening')
  } catch (error) {
    throw toPortError(error, address, flags)
  }
  // A server that listens on a port has an address of this type.
  const { port } = server.address() as AddressInfo
  return port
}

/** On many systems, only root may listen below this port. */
const firstUnprivilegedPort = 1024

function toPortError(error: unknown, { host, port }: TcpAddress, flags: AddressFlags): unknown {
  const name = `Port ${port} of ${host}`
  const otherHost = `Choose an address of this machine with ${flags.host}, such as 127.0.0.1`
  switch (systemCode(error)) {
    case 'EADDRINUSE': {
      const hint = `A program listens there. Stop it, or choose another port with ${flags.port}`
      return toListenError(error, name, 'unavailable', hint)
    }
    case 'EACCES': {
      const other = port < firstUnprivilegedPort ? 'a port from 1024 on' : 'another port'
      return toListenError(error, name, 'usage', `Choose ${other} with ${flags.port}`)
    }
    case 'ENOTFOUND':
      return usageError(`The host name ${host} was not found`, otherHost, error)
    case 'EAI_AGAIN': {
      const message = `The host name ${host} could not be looked up, as no name server answered`
      return new PlantsError('unavailable', message, { hint: otherHost, cause: error })
    }
    case 'EMFILE':
    case 'ENFILE':
      return toListenError(error, name, 'unavailable', otherHost)
    default:
      // Such as EADDRNOTAVAIL: this machine does not have the address.
      return toListenError(error, name, 'usage', otherHost)
  }
}

async function listenOnSocket(server: Server, path: string): Promise<void> {
  const temporary = join(dirname(path), `.plants-${crypto.randomUUID().slice(0, 6)}`)
  assertUsablePath(path, Math.max(Buffer.byteLength(path), Buffer.byteLength(temporary)))
  try {
    server.listen({ path: temporary })
    await once(server, 'listening')
    chmodSync(temporary, 0o660) // Clients still need a token.
    const lock = join(dirname(path), `.plants-${basename(path)}.lock`)
    await withTransientLock(
      { path: lock, timeoutMs: lockTimeoutMs, runtime: lockRuntime },
      async () => {
        await assertReplaceable(path)
        renameSync(temporary, path)
      },
    )
  } catch (error) {
    rmSync(temporary, { force: true })
    const hint = 'Choose a path with --socket in a directory that you can write to'
    throw toListenError(error, path, 'unavailable', hint)
  }
  const identity = findFileIdentity(path)
  server.once('close', () => {
    if (findFileIdentity(path) === identity) rmSync(path, { force: true })
  })
}

/** The size of `sun_path`, the field of a socket's address, without the zero byte at its end. */
const maxPathBytes = process.platform === 'darwin' ? 103 : 107

/** A longer path would be cut off, and a missing directory be reported as a missing permission. */
function assertUsablePath(path: string, bytes: number): void {
  if (bytes > maxPathBytes) {
    const message = `${path} is too long for a socket, whose path has up to ${maxPathBytes} bytes`
    throw usageError(message, 'Choose a shorter path with --socket')
  }
  const folder = dirname(path)
  if (existsSync(folder)) return
  const message = `${path}: the directory ${folder} does not exist`
  throw new PlantsError('unavailable', message, { hint: makeFolderHint(folder) })
}

/** Another start holds the lock for milliseconds. */
const lockTimeoutMs = 10_000

/** Before it listens, a service leaves signals to the system, which end it. */
const lockRuntime: Runtime = {
  handleSignals: () => new AbortController().signal,
  now: () => performance.now(),
  random: Math.random,
}

/** @throws {PlantsError} `unavailable` for what is not a socket, or may still be listened on */
async function assertReplaceable(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isSocket()) {
    const hint = 'Choose another path with --socket'
    throw new PlantsError('unavailable', `${path} exists, and is not a socket`, { hint })
  }
  const code = await connectOnce(path)
  if (code === 'ECONNREFUSED' || code === 'ENOENT') return
  if (code === 'EACCES' || code === 'EPERM') {
    const hint = 'Choose another path with --socket'
    throw new PlantsError('unavailable', `${path} belongs to another user`, { hint })
  }
  const hint = 'A program listens there. Stop it, or choose another path with --socket'
  throw new PlantsError('unavailable', `${path}: address already in use`, { hint })
}

/** Returns the code of the error, or undefined if something listens there. */
async function connectOnce(path: string): Promise<string | undefined> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return undefined
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    return code
  } finally {
    socket.destroy()
  }
}

function toListenError(
  error: unknown,
  name: string,
  kind: 'usage' | 'unavailable',
  hint: string,
): unknown {
  const reason = systemReason(error)
  if (reason === undefined) return error
  const descriptorsHint = toDescriptorsHint(systemCode(error))
  return new PlantsError(kind, `${name}: ${reason}`, {
    hint: descriptorsHint ?? hint,
    cause: error,
  })
}
