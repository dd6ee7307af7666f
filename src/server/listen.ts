import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { malformed, PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { isLoopback } from '../platform/network.js'
import { maxSocketPathBytes } from '../stores/common/address.js'

/** Where a server listens: on a host and port (`isAdmin`: of the admin port), or on the absolute path of a Unix socket. */
export type ListenAddress = { host: string; port: number; isAdmin?: boolean } | { path: string }

/**
 * Listens. Replaces a Unix socket that nobody listens on.
 *
 * @param basePath "" or "/v1"
 * @returns the base_url, as `--store` takes it
 * @throws {PlantsError} when it cannot
 */
export async function listen(server: Server, address: ListenAddress, { basePath = '', isSecure = false } = {}): Promise<string> {
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
  const bound = server.address()
  const port = typeof bound === 'object' && bound !== null ? bound.port : address.port
  // A wildcard address is not an address to connect to.
  const known = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host] ?? address.host
  const host = known.includes(':') ? `[${known}]` : known
  return `${isSecure ? 'https' : 'http'}://${host}:${port}${basePath}`
}

export function isLocal(address: ListenAddress): boolean {
  return 'path' in address || isLoopback(address.host)
}

async function prepareSocket(path: string): Promise<void> {
  const folder = dirname(path)
  // The system would truncate a longer path, and reports a missing folder as EACCES.
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    throw malformed(`${path} is longer than the ${maxSocketPathBytes} bytes of a socket's path`, 'Give a shorter one with --socket')
  if (!existsSync(`${folder}/`))
    throw malformed(`There is no directory ${folder} for the socket`, `Make it with: mkdir -p ${shellWord(folder)}`)
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw malformed(`${path} exists and is not a socket`, 'Give another path with --socket')
  // Only ECONNREFUSED proves that nobody listens: a busy service, or one without permission for this user, fails with another code.
  const isUnused = await new Promise<boolean>((resolve) => {
    const socket = connect(path)
    socket.once('error', (error) => resolve(systemCode(error) === 'ECONNREFUSED'))
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })
  if (!isUnused) throw inUse(path, 'Stop the other service, or give another path with --socket')
  unlinkSync(path)
}

function inUse(what: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${what} is in use by another program`, { hint, retryable: true })
}

function explain(error: unknown, address: ListenAddress): unknown {
  const isSocket = 'path' in address
  const name = isSocket ? address.path : `Port ${address.port} of ${address.host}`
  const prefix = !isSocket && address.isAdmin ? '--admin-' : '--'
  const another = (ofPort: string) => (isSocket ? 'Give another path with --socket' : `Give another with ${prefix}port${ofPort}`)
  const code = systemCode(error) ?? ''
  if (code === 'EADDRINUSE') return inUse(name, another(', or 0 for any free port'))
  if (code === 'EACCES' || code === 'EPERM')
    return malformed(`${name}: permission denied`, another('; those below 1024 are often reserved for root'), error)
  if (code === 'EMFILE' || code === 'ENFILE')
    return new PlantsError('unavailable', 'Too many open files to listen', { hint: 'Raise the limit: ulimit -n', cause: error })
  if (!isSocket && ['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT'].includes(code))
    return malformed(`${address.host} is not an address of this machine`, `Give ${prefix}host 127.0.0.1, or 0.0.0.0 for all of them`, error)
  return error
}
