import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { malformed, PlantsError, shellWord, systemCode } from '../platform/errors.js'
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
    throw malformed(
      `${path} is longer than the ${maxSocketPathBytes} bytes of a socket's path`,
      'Give a shorter one with --socket',
    )
  if (!existsSync(`${folder}/`))
    throw malformed(`There is no directory ${folder} for the socket`, `Make it with: mkdir -p ${shellWord(folder)}`)
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw malformed(`${path} exists and is not a socket`, 'Give another path with --socket')
  // Only ECONNREFUSED proves that nobody listens: a busy service, or one without permission for this user, fails with
  // another code.
  const socket = connect(path)
  const failure = await once(socket, 'connect').then(() => undefined, systemCode)
  socket.destroy()
  if (failure !== 'ECONNREFUSED') throw inUse(path, 'Stop the other service, or give another path with --socket')
  unlinkSync(path)
}

function inUse(what: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${what} is in use by another program`, { hint, retryable: true })
}

function explain(error: unknown, address: ListenAddress): unknown {
  const code = systemCode(error) ?? ''
  const isDenied = code === 'EACCES' || code === 'EPERM'
  if ('path' in address)
    return isDenied ? malformed(`${address.path}: permission denied`, 'Give another path with --socket', error) : error
  const { host, port, isAdmin } = address
  const prefix = isAdmin ? '--admin-' : '--'
  const name = `Port ${port} of ${host}`
  const another = `Give another with ${prefix}port`
  if (code === 'EADDRINUSE') return inUse(name, `${another}, or 0 for any free port`)
  if (isDenied)
    return malformed(`${name}: permission denied`, `${another}; those below 1024 are often reserved for root`, error)
  if (!['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT'].includes(code)) return error
  const hint = `Give ${prefix}host 127.0.0.1, or 0.0.0.0 for all of them`
  return malformed(`${host} is not an address of this machine`, hint, error)
}
