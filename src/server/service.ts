/** The HTTP service around a store, and its admin port. */
import { unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { PlantsError } from '../errors.js'
import { isLoopback } from '../platform/urls.js'
import type { DirectStore, StoreServer } from '../stores/store.js'
import {
  describeMissingRights,
  formatRights,
  type Right,
  readOnlyRights,
  rights,
  type TokenStore,
} from '../stores/tokens.js'
import { createAdminServer, Metrics } from './admin.js'
import type { TokenSource } from './authenticate.js'
import { createHandler } from './handler.js'
import { type ListenAddress, listen, type TcpAddress } from './listen.js'
import { Log, type LogOptions } from './log.js'
import { createOperationHandlers } from './plants.js'
import { Quotas } from './quotas.js'
import { Readiness } from './readiness.js'
import { formatOpenApi } from './routes.js'
import { type Handler, HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  openStore(events: {
    onCreated(path: string): Promise<void>
    onUnreachable(failure: PlantsError | undefined): void
  }): Promise<DirectStore>
  openTokenSource(tokens: TokenStore, warn: (message: string) => void): Promise<TokenSource>
  /** Whether each request looks up its token in the store. */
  usesStoreTokens: boolean
  listen: ListenAddress
  /** A prefix such as "/v1", or "" for none. */
  basePath: string
  /**
   * The rights that the service offers, as far as the store's own credentials have them. The
   * default is all of these.
   */
  allow?: readonly Right[] | undefined
  /** Pages of these origins may use the service, or of all (`*`). */
  cors: readonly string[]
  tls: TlsFiles | undefined
  admin: TcpAddress | undefined
  limits: Limits & { bodyLimitBytes: number }
  /** How long a request waits for the store, and for its quota. */
  timeoutMs: number
  log: LogOptions
}

interface TlsFiles {
  paths: readonly string[]
  /** How often the files are looked at. */
  intervalMs?: number
  read(): Tls
}

export interface Service {
  address: string
  /** Drains the server within `timeoutMs`, then closes the store. */
  drain(timeoutMs: number): Promise<void>
}

/** A store that is open, and why it has not answered for a while, if it knows. */
interface ServedStore {
  store: DirectStore
  findOutage(): PlantsError | undefined
}

/** No token has it: a look-up shows that the store can be asked for tokens. */
const unknownDigest = Buffer.alloc(32)

const memoryPerTokenBytes = 16 * 1_048_576

/**
 * @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address
 * cannot be used
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { limits, tls } = options
  const metrics = options.admin && new Metrics()
  const log = new Log({ ...options.log, onRequest: (entry) => metrics?.record(entry) })
  const pair = tls?.read()
  const { store, findOutage } = await openStore(options, log)
  const servers: (Server | SecureServer)[] = []
  try {
    const { offered, permanentReason } = await chooseRights(store, options.allow, log)
    const handler = await buildHandler({ options, store, offered, log })
    const server = new HttpServer(handler, { limits, tls: pair, log })
    servers.push(server.server)
    const readiness = new Readiness({
      checkStore: async () => {
        await store.check(offered)
        if (options.usesStoreTokens) await store.tokens.find(unknownDigest)
      },
      isDraining: () => server.isDraining,
      findOutage,
      permanentReason,
      log,
    })
    const { redact } = options.log
    const { host = '' } = options.admin ?? {}
    const admin = metrics && createAdminServer({ metrics, readiness, host, log, redact })
    if (admin) servers.push(admin)
    const addresses = await startListening(options, server, admin)
    if (tls) watchCertificate(tls, server, log)
    log.info('listening', { ...addresses, rights: offered })
    if (!isPrivate(options)) log.warn(exposureWarning)
    return {
      address: addresses.address,
      drain: async (timeoutMs) => {
        log.info('draining')
        await server.drain(timeoutMs)
        await stop(store, servers)
        await log.flush()
      },
    }
  } catch (error) {
    await stop(store, servers)
    await log.flush()
    throw error
  }
}

async function openStore(options: ServiceOptions, log: Log): Promise<ServedStore> {
  let outage: PlantsError | undefined
  const store = await options.openStore({
    onCreated: async (path) => log.info(`Created store ${path}`),
    onUnreachable: (failure) => {
      outage = failure
      if (failure) log.warn(`${failure.message}. Requests wait for it`)
      else log.info('The store is back')
    },
  })
  return { store, findOutage: () => outage }
}

async function stop(
  store: DirectStore,
  servers: readonly (Server | SecureServer)[],
): Promise<void> {
  await store.close()
  // A request that waited for the store gets its response now, before its connection is closed.
  await nextIteration()
  for (const server of servers) server.close().closeAllConnections()
}

interface HandlerParts {
  options: ServiceOptions
  store: DirectStore
  offered: readonly Right[]
  log: Log
}

async function buildHandler({ options, store, offered, log }: HandlerParts): Promise<Handler> {
  const { basePath, cors, limits, timeoutMs } = options
  return createHandler({
    handlers: createOperationHandlers(store),
    description: formatOpenApi(basePath),
    basePath,
    rights: offered,
    cors,
    findCaller: await options.openTokenSource(store.tokens, (message) => log.warn(message)),
    quotas: new Quotas({ bytesPerToken: memoryPerTokenBytes, timeoutMs }),
    log,
    bodyLimitBytes: limits.bodyLimitBytes,
  })
}

interface Addresses {
  address: string
  /** That of the admin port. */
  admin: string | undefined
}

async function startListening(
  { listen: address, admin: adminAddress, basePath, tls }: ServiceOptions,
  { server }: HttpServer,
  admin: Server | undefined,
): Promise<Addresses> {
  const url = await listen(server, {
    address,
    scheme: tls ? 'https' : 'http',
    flags: { host: '--host', port: '--port' },
  })
  const hasAdmin = admin !== undefined && adminAddress !== undefined
  const adminUrl = hasAdmin
    ? await listen(admin, {
        address: adminAddress,
        scheme: 'http',
        flags: { host: '--admin-host', port: '--admin-port' },
      })
    : undefined
  return { address: `${url}${basePath}`, admin: adminUrl }
}

const exposureWarning = 'Without TLS, others can read tokens and plants on the network'

/** Whether nobody on a network can read what clients send. */
function isPrivate({ listen: address, tls }: ServiceOptions): boolean {
  return tls !== undefined || 'path' in address || isLoopback(address.host)
}

interface ServiceRights {
  offered: readonly Right[]
  /** Why the service will not be ready until it is started again, if that is so. */
  permanentReason: string | undefined
}

/**
 * Without `allow`, a service offers what its store lets it do, and is ready. At a server that is
 * read-only, that is to read. A right that `allow`
 * names is expected of it: without that it is not ready, until it is started with the right.
 */
async function chooseRights(
  store: DirectStore,
  allow: readonly Right[] | undefined,
  log: Log,
): Promise<ServiceRights> {
  const storeRights = await store.rights()
  const server = await store.findServer()
  const expected = allow ?? (server?.isReadOnly ? readOnlyRights : rights)
  if (server?.isReadOnly) reportReadOnlyServer(server, allow, log)
  const offered = expected.filter((right) => storeRights.includes(right))
  const missing = expected.filter((right) => !storeRights.includes(right))
  if (missing.length === 0) return { offered, permanentReason: undefined }
  const message = describeMissingRights(missing)
  if (allow === undefined && offered.length > 0) {
    log.info(`${message}, so the service does not offer that`)
    return { offered, permanentReason: undefined }
  }
  const advice = 'Grant it, then restart the service'
  const permanentReason = `${message}, which the service should offer. ${advice}`
  log.warn(permanentReason)
  return { offered, permanentReason }
}

/**
 * A right that `allow` names is offered at a server that is read-only, too, which may be promoted:
 * until then, a change is rejected, and the service is not ready.
 */
function reportReadOnlyServer(
  { name }: StoreServer,
  allow: readonly Right[] | undefined,
  log: Log,
): void {
  const missing = (allow ?? rights).filter((right) => !readOnlyRights.includes(right))
  if (missing.length === 0) return
  const fact = `The server ${name} is read-only`
  const changes = `${formatRights(missing)} plants`
  if (allow === undefined)
    log.info(
      `${fact}, so the service does not offer to ${changes}. Restart it when that has changed`,
    )
  else log.warn(`${fact}, so the service cannot ${changes} before that has changed`)
}

/** Serves a certificate that was renewed. */
function watchCertificate(files: TlsFiles, { server }: HttpServer, log: Log): void {
  const { paths, read, intervalMs = 30_000 } = files
  const renew = () => {
    try {
      const pair = read()
      if ('setSecureContext' in server) {
        server.setSecureContext(pair)
        log.info('The certificate was read again')
      } else {
        // Bun cannot change the certificate of a server that listens.
        log.warn('Restart to serve the renewed certificate')
      }
    } catch (error) {
      log.error(error)
    }
  }
  for (const path of paths) {
    watchFile(path, { interval: intervalMs, persistent: false }, renew)
    server.once('close', () => unwatchFile(path, renew))
  }
}
