/** The HTTP service around a store: routes, authentication, limits, drain, access log, metrics and admin port. */
import { once } from 'node:events'
import { chmodSync, lstatSync, unlinkSync } from 'node:fs'
import { type AddressInfo, connect, type Server } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { PlantsError, systemCode, systemReason, usageError } from '../platform/errors.js'
import { isLoopback } from '../platform/urls.js'
import { maxSocketPathBytes } from '../stores/common/address.js'
import type { OwnStore } from '../stores/common/store.js'
import type { Right, TokenStore } from '../stores/common/token-store.js'
import type { PostgresOptions } from '../stores/postgres/options.js'
import type { SqliteOptions } from '../stores/sqlite/connection.js'
import { adminServer, Metrics } from './admin.js'
import type { TokenSource } from './authenticator.js'
import { RequestHandler } from './handler.js'
import { Log, type LogOptions } from './log.js'
import { Shares } from './memory.js'
import { Streams } from './plant-streams.js'
import { plantHandlers } from './plants.js'
import { Routes } from './routes.js'
import { HttpServer, type Limits, type Tls } from './server.js'

/** Of pages and unread responses, in bytes, besides those of 64 bodies. */
const otherMemory = 67_108_864

/** What a store of any kind reports to the service. */
export type StoreEvents = Pick<PostgresOptions, 'onAway' | 'onCommit'> &
  Pick<SqliteOptions, 'onCreated'>

export interface ServiceOptions {
  openStore(events: StoreEvents): Promise<OwnStore>
  openTokenSource(tokens: TokenStore, warn: (message: string) => void): Promise<TokenSource>
  /** Called once the addresses are known to be free, before they are reported. */
  onListening?(tokens: TokenStore): Promise<void>
  listen: ListenAddress
  /** "" or "/v1" */
  basePath: string
  /** The operations of these rights are offered, as far as the store's own credentials permit them. */
  allow: readonly Right[]
  /** Pages of these origins may use the service; `*` stands for all. */
  cors: readonly string[]
  tls: Tls | undefined
  admin: Exclude<ListenAddress, { path: string }> | undefined
  limits: Limits & { bodyLimit: number }
  /** A request waits so many milliseconds for the store, and for memory when there is no other token. */
  timeout: number
  log: LogOptions
  /** Milliseconds, monotonic. */
  now(): number
}

export interface Service {
  address: string
  /** Answers what was received, then closes. Destroys the connections that are left after `milliseconds`. */
  drain(milliseconds: number): Promise<void>
}

/** @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address cannot be used */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { allow, basePath, cors, limits, tls, timeout, now } = options
  const { bodyLimit } = limits
  let handler: RequestHandler | undefined
  const metrics = options.admin && new Metrics(() => handler?.waiting ?? 0)
  const log = new Log({ ...options.log, onRequest: (entry) => metrics?.record(entry) })
  const warn = (message: string) => log.warn(message)
  const store = await options.openStore({
    onCommit: (count) => metrics?.recordCommit(count),
    onCreated: async (path) => log.info(`Created store ${path}`),
    onAway: (failure) =>
      failure ? warn(`${failure.message}. Requests wait for it`) : log.info('The store is back'),
  })
  let stop = () => store.close()
  try {
    const rights = (await store.rights()).filter((right) => allow.includes(right))
    const findToken = await options.openTokenSource(store.tokens, warn)
    const routes = new Routes(basePath, rights, cors)
    const memory = new Shares(64 * bodyLimit + otherMemory, timeout, now)
    const parts = {
      handlers: plantHandlers(store),
      routes,
      memory,
      streams: new Streams(store, now),
      log,
    }
    handler = new RequestHandler({ ...parts, rights, findToken, bodyLimit, cors, now })
    const server = new HttpServer(handler.handle, { limits, tls, log })
    const { host = '' } = options.admin ?? {}
    const isReady = async () => {
      const checked = store.check(allow).then(
        () => !server.isDraining,
        () => false,
      )
      return Promise.race([checked, wait(1000, false, { ref: false })])
    }
    const admin =
      metrics && adminServer({ metrics, host, isReady, error: (error) => log.error(error) })
    stop = async () => {
      server.abort()
      admin?.close().closeAllConnections()
      await store.close()
    }
    const address = await listen(server.server, options.listen, {
      basePath,
      isSecure: tls !== undefined,
    })
    const adminAddress = options.admin && admin && (await listen(admin, options.admin))
    await options.onListening?.(store.tokens)
    log.info('listening', { address, admin: adminAddress })
    if (!isLocal(options.listen) && !tls)
      warn(
        'Other machines can reach this address. Without TLS, tokens and plants can be read on the network',
      )
    if (options.admin && !isLocal(options.admin))
      warn('Other machines can reach the admin port, which needs no token')
    return {
      address,
      drain: async (milliseconds) => {
        log.info('draining')
        await server.drain(milliseconds)
        await stop()
        log.info('stopped')
        await log.flush()
      },
    }
  } catch (error) {
    await stop()
    await log.flush()
    throw error
  }
}

/** `isAdmin`: of the admin port; `path`: absolute, of a Unix socket */
export type ListenAddress = { host: string; port: number; isAdmin?: boolean } | { path: string }

/**
 * Replaces a Unix socket that nobody listens on.
 *
 * @param basePath "" or "/v1"
 * @returns the base_url, as `--store` takes it
 */
async function listen(
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

function isLocal(address: ListenAddress): boolean {
  return 'path' in address || isLoopback(address.host)
}

const anotherPath = 'Give another path with --socket'

async function prepareSocket(path: string): Promise<void> {
  if (Buffer.byteLength(path) > maxSocketPathBytes)
    // The system would truncate it.
    throw usageError(
      `${path} is longer than the ${maxSocketPathBytes} bytes of a socket's path`,
      anotherPath,
    )
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return
  if (!stats.isSocket()) throw usageError(`${path} exists and is not a socket`, anotherPath)
  // Only ECONNREFUSED proves that nobody listens: there may be no permission, or a full queue.
  const socket = connect(path)
  const failure = await once(socket, 'connect').then(() => undefined, systemCode)
  socket.destroy()
  if (failure !== 'ECONNREFUSED')
    throw inUse(path, `Stop the other service, or ${anotherPath.toLowerCase()}`)
  unlinkSync(path)
}

function inUse(what: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${what} is in use by another program`, { hint })
}

function explain(error: unknown, address: ListenAddress): unknown {
  const code = systemCode(error)
  if (code === undefined) return error
  if ('path' in address) {
    // The system does not tell the two apart.
    const reason = systemReason(error)
    return usageError(`${address.path}: ${reason}`, anotherPath, error)
  }
  const { host, port, isAdmin } = address
  const option = `--${isAdmin ? 'admin-' : ''}`
  const another = `Give another with ${option}port`
  if (code === 'EADDRINUSE')
    return inUse(`Port ${port} of ${host}`, `${another}, or 0 for any free port`)
  if (code === 'EACCES' || code === 'EPERM')
    return usageError(`Port ${port} of ${host}: permission denied`, another, error)
  if (!['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EAFNOSUPPORT'].includes(code)) return error
  const hint = `Give ${option}host 127.0.0.1, or 0.0.0.0 for all of them`
  return usageError(`${host} is not an address of this machine`, hint, error)
}
