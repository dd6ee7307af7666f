/**
 * Starts the HTTP service around a store, and its admin port: it opens the store, decides which
 * rights the service offers, and listens. If one of these steps fails, the store and the servers
 * are closed again.
 */
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
import { Admission } from './admission.js'
import type { TokenSource } from './authenticate.js'
import { createHandler } from './handler.js'
import { type ListenAddress, listen, type TcpAddress } from './listen.js'
import { Log, type LogOptions } from './log.js'
import { createOperationHandlers } from './plants.js'
import { Readiness } from './readiness.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  openStore(events: {
    onCreated(path: string): Promise<void>
    onUnreachable(failure: PlantsError | undefined): void
  }): Promise<DirectStore>
  /** @throws {PlantsError} `unauthorized` if no token would be accepted for anything */
  openTokenSource(tokens: TokenStore, offeredRights: readonly Right[]): Promise<TokenSource>
  /** True if requests look up their tokens in the store: then /ready checks that this works. */
  usesStoreTokens: boolean
  listen: ListenAddress
  /**
   * The service offers these rights, as far as the credentials of the store have them. Without
   * `allow`, it offers all rights of the credentials.
   */
  allow?: readonly Right[] | undefined
  /** Web pages of these origins may use the service. `*` stands for all origins. */
  cors: readonly string[]
  tls: TlsFiles | undefined
  admin: TcpAddress | undefined
  limits: Limits
  /** A request waits for the store no longer than this, and no longer for its slot. */
  timeoutMs: number
  log: LogOptions
}

interface TlsFiles {
  paths: readonly string[]
  /** The files are looked at this often, to find a renewed certificate. The default is 30 s. */
  intervalMs?: number
  read(): Tls
}

export interface Service {
  /** This is a URL, or `unix:` and a path. */
  address: string
  /** Answers the requests that it has received, for `timeoutMs` at most, and closes the store. */
  drain(timeoutMs: number): Promise<void>
}

/** No token has this digest. Looking it up shows whether the store can be asked for tokens. */
const unknownDigest = Buffer.alloc(32)

/**
 * @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address
 * cannot be used
 */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { admin, cors, tls, timeoutMs } = options
  const metrics = admin && new Metrics()
  const log = new Log({ ...options.log, onRequest: (entry) => metrics?.record(entry) })
  const keyPair = tls?.read()
  const { store, findOutage } = await openStore(options, log)
  const servers: (Server | SecureServer)[] = []
  try {
    const { offeredRights, permanentReason } = await chooseRights(store, options.allow, log)
    const handler = createHandler({
      handlers: createOperationHandlers(store),
      rights: offeredRights,
      cors,
      findCaller: await options.openTokenSource(store.tokens, offeredRights),
      admission: new Admission(timeoutMs),
      log,
    })
    const http = new HttpServer(handler, { limits: options.limits, tls: keyPair, log })
    servers.push(http.server)
    const address = await listen(http.server, options.listen, tls ? 'https' : 'http')
    const checkStore = async () => {
      await store.check(offeredRights)
      if (options.usesStoreTokens) await store.tokens.find(unknownDigest)
    }
    const isDraining = () => http.isDraining
    let adminAddress: string | undefined
    if (admin && metrics) {
      const readiness = new Readiness({ checkStore, isDraining, findOutage, permanentReason, log })
      const { redact } = options.log
      const adminServer = createAdminServer({ metrics, readiness, host: admin.host, log, redact })
      servers.push(adminServer)
      adminAddress = await listen(adminServer, admin, 'http')
    }
    if (tls) watchCertificate(tls, http, log)
    log.info('listening', { address, admin: adminAddress, rights: offeredRights })
    const isPrivate =
      tls !== undefined || 'path' in options.listen || isLoopback(options.listen.host)
    if (!isPrivate) log.warn('Without TLS, others can read tokens and plants on the network')
    const drain = async (drainTimeoutMs: number) => {
      log.info('draining')
      await http.drain(drainTimeoutMs)
      await stop(store, servers, log)
    }
    return { address, drain }
  } catch (error) {
    await stop(store, servers, log)
    throw error
  }
}

async function openStore(options: ServiceOptions, log: Log) {
  let outage: PlantsError | undefined
  const store = await options.openStore({
    onCreated: async (path) => log.info(`Created store ${path}`),
    onUnreachable: (failure) => {
      outage = failure
      if (failure) log.warn(`${failure.message}. Requests wait for it`)
      else log.info('The store is available again')
    },
  })
  return { store, findOutage: () => outage }
}

async function stop(
  store: DirectStore,
  servers: readonly (Server | SecureServer)[],
  log: Log,
): Promise<void> {
  await store.close()
  // A request that waited for the store fails now, and gets its response in this iteration of the
  // event loop. The connections must not be closed before that.
  await nextIteration()
  for (const server of servers) server.close().closeAllConnections()
  await log.flush()
}

/**
 * Without `allow`, a service offers all rights that its store gives it, and is ready. If the server
 * of the store is read-only, such as a standby of PostgreSQL, the only such right is to read.
 *
 * A right that `allow` names is expected of the service. If the store does not give it, the service
 * is not ready until it is started again with that right.
 */
async function chooseRights(store: DirectStore, allow: readonly Right[] | undefined, log: Log) {
  const storeRights = await store.findRights()
  const server = await store.findServer()
  const expectedRights = allow ?? (server?.isReadOnly ? readOnlyRights : rights)
  if (server?.isReadOnly) reportReadOnlyServer(server, allow, log)
  const offeredRights = expectedRights.filter((right) => storeRights.includes(right))
  const missingRights = expectedRights.filter((right) => !storeRights.includes(right))
  if (missingRights.length === 0) return { offeredRights, permanentReason: undefined }
  const message = describeMissingRights(missingRights)
  if (allow === undefined && offeredRights.length > 0) {
    log.info(`${message}, so the service does not offer that`)
    return { offeredRights, permanentReason: undefined }
  }
  const advice = 'Grant it, then restart the service'
  const permanentReason = `${message}, which the service should offer. ${advice}`
  log.warn(permanentReason)
  return { offeredRights, permanentReason }
}

/**
 * A service offers a right that `allow` names even if the server of its store is read-only, because
 * a standby may be promoted. Until then, changes are rejected, and the service is not ready.
 */
function reportReadOnlyServer(
  { name }: StoreServer,
  allow: readonly Right[] | undefined,
  log: Log,
): void {
  const missingRights = (allow ?? rights).filter((right) => !readOnlyRights.includes(right))
  if (missingRights.length === 0) return
  const changes = `${formatRights(missingRights)} plants`
  const message = `The server ${name} is read-only, so the service cannot ${changes}`
  if (allow === undefined) log.info(`${message}, even if the server accepts writes later`)
  else log.warn(`${message} until the server accepts writes`)
}

/** A certificate is renewed while the service runs, so it is read again when its file changes. */
function watchCertificate(files: TlsFiles, { server }: HttpServer, log: Log): void {
  const { paths, read, intervalMs = 30_000 } = files
  const renew = () => {
    try {
      const keyPair = read()
      if ('setSecureContext' in server) {
        server.setSecureContext(keyPair)
        log.info('The certificate was reloaded')
      } else {
        // Bun cannot change the certificate of a server that listens.
        log.warn('Restart the service to use the renewed certificate')
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
