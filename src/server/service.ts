/** The HTTP service around a store, and its admin port. */
import { unwatchFile, watchFile } from 'node:fs'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { PlantsError } from '../errors.js'
import { isLoopback } from '../platform/urls.js'
import type { OwnStore } from '../stores/store.js'
import { describeMissingRights, type Right, rights, type TokenStore } from '../stores/tokens.js'
import { createAdminServer, Metrics } from './admin.js'
import type { TokenSource } from './authenticate.js'
import { createHandler } from './handler.js'
import { type ListenAddress, listen, type TcpAddress } from './listen.js'
import { Log, type LogOptions } from './log.js'
import { createOperationHandlers } from './plants.js'
import { Quotas } from './quotas.js'
import { Readiness } from './readiness.js'
import { formatOpenApi } from './routes.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  openStore(events: {
    onCreated(path: string): Promise<void>
    onAway(failure: PlantsError | undefined): void
  }): Promise<OwnStore>
  openTokenSource(tokens: TokenStore, warn: (message: string) => void): Promise<TokenSource>
  listen: ListenAddress
  /** "" or "/v1" */
  basePath: string
  /** What is offered, as far as the store's own credentials have it. By default all of that. */
  allow?: readonly Right[] | undefined
  /** Pages of these origins may use the service, or of all (`*`). */
  cors: readonly string[]
  tls: TlsFiles | undefined
  admin: TcpAddress | undefined
  limits: Limits & { bodyLimitBytes: number }
  /** A request waits so long for the store, and for memory. */
  timeoutMs: number
  log: LogOptions
}

interface TlsFiles {
  paths: readonly string[]
  /** Until a change is seen. */
  intervalMs?: number
  read(): Tls
}

export interface Service {
  address: string
  /** Drains the server within `timeoutMs`, then closes the store. */
  drain(timeoutMs: number): Promise<void>
}

const memoryPerTokenBytes = 16 * 1_048_576

/** @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address cannot be used */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { allow, basePath, cors, limits, tls, timeoutMs } = options
  const metrics = options.admin && new Metrics()
  const log = new Log({ ...options.log, onRequest: (entry) => metrics?.record(entry) })
  const warn = (message: string) => log.warn(message)
  const pair = tls?.read()
  let outage: PlantsError | undefined
  const store = await options.openStore({
    onCreated: async (path) => log.info(`Created store ${path}`),
    onAway: (failure) => {
      outage = failure
      if (failure) warn(`${failure.message}. Requests wait for it`)
      else log.info('The store is back')
    },
  })
  let stop = () => store.close()
  try {
    const { offered, missing } = compareRights(await store.rights(), allow)
    const lasting = reportMissing({ offered, missing, allow }, log)
    const handler = createHandler({
      handlers: createOperationHandlers(store),
      description: formatOpenApi(basePath),
      basePath,
      rights: offered,
      cors,
      findCaller: await options.openTokenSource(store.tokens, warn),
      quotas: new Quotas({ bytesPerToken: memoryPerTokenBytes, timeoutMs }),
      log,
      bodyLimitBytes: limits.bodyLimitBytes,
    })
    const server = new HttpServer(handler, { limits, tls: pair, log })
    const readiness = new Readiness({
      checkStore: () => store.check(offered),
      isDraining: () => server.isDraining,
      findOutage: () => outage,
      lasting,
      log,
    })
    const { redact } = options.log
    const { host = '' } = options.admin ?? {}
    const admin = metrics && createAdminServer({ metrics, readiness, host, log, redact })
    stop = async () => {
      // What still waits for the store gets its response before its connection is closed.
      await store.close()
      await nextIteration()
      server.server.close().closeAllConnections()
      admin?.close().closeAllConnections()
    }
    const scheme = tls ? 'https' : 'http'
    const address = `${await listen(server.server, { address: options.listen, scheme })}${basePath}`
    const adminAddress =
      options.admin && admin && (await listen(admin, { address: options.admin, scheme: 'http' }))
    if (tls) renewFrom(tls, server, log)
    log.info('listening', { address, admin: adminAddress, rights: offered })
    const isLocal = 'path' in options.listen || isLoopback(options.listen.host)
    if (!isLocal && !tls) warn('Without TLS, others can read tokens and plants on the network')
    return {
      address,
      drain: async (limitMs) => {
        log.info('draining')
        await server.drain(limitMs)
        await stop()
        await log.flush()
      },
    }
  } catch (error) {
    await stop()
    await log.flush()
    throw error
  }
}

interface RightsOfService {
  offered: readonly Right[]
  /** What the service lacks of `allow` or, without it, of all rights. */
  missing: readonly Right[]
  allow: readonly Right[] | undefined
}

function compareRights(storeRights: readonly Right[], allow: readonly Right[] = rights) {
  return {
    offered: allow.filter((right) => storeRights.includes(right)),
    missing: allow.filter((right) => !storeRights.includes(right)),
  }
}

/**
 * Without `allow`, a service offers what its store lets it do, and is ready. A right that `allow`
 * names is expected of it: without that it is not ready, until it is started with the right.
 *
 * @returns why the service is not ready
 */
function reportMissing({ offered, missing, allow }: RightsOfService, log: Log): string | undefined {
  if (missing.length === 0) return undefined
  const message = describeMissingRights(missing)
  if (allow === undefined && offered.length > 0) {
    log.info(`${message}, so the service does not offer that`)
    return undefined
  }
  const lasting = `${message}, which the service should offer. Grant it, then restart the service`
  log.warn(lasting)
  return lasting
}

function renewFrom(files: TlsFiles, { server }: HttpServer, log: Log): void {
  const { paths, read, intervalMs: interval = 30_000 } = files
  const renew = () => {
    try {
      const pair = read()
      if ('setSecureContext' in server) {
        server.setSecureContext(pair)
        log.info('The certificate was read again')
      } else log.warn('Restart to serve the renewed certificate') // Bun has no way
    } catch (error) {
      log.error(error)
    }
  }
  for (const path of paths) {
    watchFile(path, { interval, persistent: false }, renew)
    server.once('close', () => unwatchFile(path, renew))
  }
}
