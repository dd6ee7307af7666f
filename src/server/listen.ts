import { once } from 'node:events'
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import { malformed, PlantsError, systemCode, systemReason } from '../platform/errors.js'
import { isLoopback } from '../platform/network.js'
import { maxSocketPathBytes } from '../stores/common/address.js'

/** `isAdmin`: of the admin port; `path`: absolute, of a Unix socket */
export type ListenAddress = { host: string; port: number; isAdmin?: boolean } | { path: string }

/**
 * Replaces a Unix socket that nobody listens on.
 *
 * @param basePath "" or "/v1"
 * @returns the base_url, as `--store` takes it
 */
export async function listen(
  server: Server,
  address: ListenAddress,
  { basePath = '', isSecure = false } = {},
): Promise<string> {
  try {
    if ('path' in address) await prepareSocket(address.path)
    server.listen(address)
    await once(server, 'listening') // rejects with an error
  } catch (error) {
    throw explain(error, address)
  }
  if ('path' in address) {
    chmodSync(address.path, 0o660) // clients still need a token
    return `unix:${address.path}${basePath && `:${basePath}`}`
  }
  const { port } = server.address() as AddressInfo // as it has no path
  // A wildcard address is not an address to connect to.
  const known = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host] ?? address.host
  const host = known.includes(':') ? `[${known}]` : known
  return `${isSecure ? 'https' : 'http'}://${host}:${port}${basePath}`
}

export function isLocal(address: ListenAddress): boolean {
  return 'path' in address || isLoopback(address.host)
}

const anotherPath = 'Give another path with --socket'

async function prepareSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    // the system would truncate it
    throw malformed(`${path} is longer than the ${maxSocketPathBytes} bytes of a socket's path`, anotherPath)
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw malformed(`${path} exists and is not a socket`, anotherPath)
  // Only ECONNREFUSED proves that nobody listens: there may be no permission, or a full queue.
  const socket = connect(path)
  const failure = await once(socket, 'connect').then(() => undefined, systemCode)
  socket.destroy()
  if (failure !== 'ECONNREFUSED') throw inUse(path, `Stop the other service, or ${anotherPath.toLowerCase()}`)
  unlinkSync(path)
}

function inUse(what: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${what} is in use by another program`, { hint, retryable: true })
}

function explain(error: unknown, address: ListenAddress): unknown {
  const code = systemCode(error)
  if (code === undefined) return error
  if ('path' in address) {
    // The system does not tell the two apart.
    const reason = systemReason(error, { EACCES: 'permission denied, or there is no such directory' })
    return malformed(`${address.path}: ${reason}`, anotherPath, error)
  }
  const { host, port, isAdmin } = address
  const option = `--${isAdmin ? 'admin-' : ''}`
  const another = `Give another with ${option}port`
  if (code === 'EADDRINUSE') return inUse(`Port ${port} of ${host}`, `${another}, or 0 for any free port`)
  if (code === 'EACCES' || code === 'EPERM')
    return malformed(`Port ${port} of ${host}: permission denied`, another, error)
  if (!['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT'].includes(code)) return error
  const hint = `Give ${option}host 127.0.0.1, or 0.0.0.0 for all of them`
  return malformed(`${host} is not an address of this machine`, hint, error)
}
