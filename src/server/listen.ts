import { chmodSync, existsSync, lstatSync, unlinkSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { dirname } from 'node:path'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { isLoopback } from '../platform/network.js'
import { maxSocketPathBytes } from '../stores/address.js'

/** Where a server listens: at a port of a host, which the flags of the admin port may have given, or at the absolute path of a Unix socket. */
export type Place = { host: string; port: number; isAdmin?: boolean } | { path: string }

/**
 * Listens; a Unix socket that was left behind is replaced.
 *
 * @returns the port; 0 for a socket
 * @throws {PlantsError} when it cannot
 */
export async function listen(server: Server, place: Place): Promise<number> {
  try {
    if ('path' in place) {
      checkPath(place.path)
      await removeStale(place.path)
    }
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(place, () => {
        server.off('error', reject)
        resolve()
      })
    })
  } catch (error) {
    throw explain(error, place)
  }
  if ('path' in place) chmodSync(place.path, 0o660) // whoever connects needs a token as well
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Whether only this machine can come in. */
export function isOnlyHere(place: Place): boolean {
  return 'path' in place || isLoopback(place.host)
}

/** The system would cut a longer path off, and calls a folder that is not there a lack of rights. */
function checkPath(path: string): void {
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    throw new PlantsError('malformed', `${path} is longer than the ${maxSocketPathBytes} bytes of a socket's path`, {
      hint: 'Give a shorter one with --socket',
    })
  if (!existsSync(dirname(path)))
    throw new PlantsError('malformed', `There is no folder ${dirname(path)} for the socket`, {
      hint: `Make it with: mkdir -p ${shellWord(dirname(path))}`,
    })
}

async function removeStale(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket())
    throw new PlantsError('malformed', `${path} is there already, and is no socket`, { hint: 'Give another path with --socket' })
  if (!(await isLeftBehind(path))) throw inUse(path, 'Stop the other service, or give another path with --socket')
  unlinkSync(path)
}

/** Only a refusal proves that nobody listens: who is busy, or lets others in, says something else. */
function isLeftBehind(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('error', (error) => resolve(systemCode(error) === 'ECONNREFUSED'))
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })
}

function inUse(what: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${what} is in use by another program`, { hint, retryable: true })
}

function explain(error: unknown, place: Place): unknown {
  const name = 'path' in place ? place.path : `Port ${place.port} of ${place.host}`
  const prefix = 'isAdmin' in place && place.isAdmin ? '--admin-' : '--'
  const other = 'path' in place ? '--socket' : `${prefix}port`
  const refuse = (message: string, hint: string) => new PlantsError('malformed', message, { hint, cause: error })
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return inUse(name, 'path' in place ? 'Give another path with --socket' : `Give another with ${other}, or 0 for any that is free`)
    case 'EACCES':
    case 'EPERM':
      return refuse(
        `This user may not listen at ${name}`,
        `Give another with ${other}${'path' in place ? '' : '; those below 1024 are often kept for root'}`,
      )
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAFNOSUPPORT':
      return refuse(
        `${'path' in place ? place.path : place.host} is no address of this machine`,
        `Give ${prefix}host 127.0.0.1, or 0.0.0.0 for all of them`,
      )
    case 'EMFILE':
    case 'ENFILE':
      return new PlantsError('unavailable', 'Too many open files to listen', { hint: 'Raise the limit: ulimit -n', cause: error })
    case 'ENOENT':
    case 'ENOTDIR':
    case 'EINVAL':
    case 'ENAMETOOLONG':
      return refuse(`There cannot be a socket at ${name}`, 'Its folder must exist, and the path be shorter than 108 bytes')
    default:
      return error
  }
}
