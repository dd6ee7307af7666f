/**
 * The HTTP service: routes, authentication, limits, drain, access log, metrics and admin port, around a store. It may import `stores`,
 * `plant` and `platform`, and never knows settings, the command line, or the kind of its store.
 */
import { randomBytes } from 'node:crypto'
import type { Output } from '../platform/io.js'
import type { OpenOptions, ServedStore, TokenStore } from '../stores/store.js'
import { adminHandler, adminLimits, Metrics } from './admin.js'
import { Authenticator, type TokenSource } from './authenticator.js'
import { isLocal, type ListenAddress, listen } from './listen.js'
import { type AccessLog, type Log, openLog } from './log.js'
import { plantRoutes } from './plants.js'
import { Router } from './router.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  /** @param watch is called with how many creates a commit held, and when the store is lost and back */
  openStore(watch: Pick<OpenOptions, 'onCommit' | 'onAway'>): Promise<ServedStore>
  /** @param warn logs a warning */
  openTokenSource(tokens: TokenStore, warn: (message: string) => void): Promise<TokenSource>
  listen: ListenAddress
  /** "" or "/v1" */
  basePath: string
  tls: Tls | undefined
  /** where `/live`, `/ready` and `/metrics` are; nowhere when undefined */
  admin: ListenAddress | undefined
  limits: Limits & { bodyLimit: number; queueLimit: number }
  log: { output: Output; level: string }
  /** milliseconds, never going back */
  now(): number
}

/** A store behind the specification's HTTP operation. */
export interface Service {
  /** the base_url, as `--store` takes it */
  address: string
  /** Answers what was received, then closes; what takes more than so many milliseconds is cut off. */
  drain(milliseconds: number): Promise<void>
}

/** @throws {PlantsError} when the store cannot be opened, no token would be accepted, or it cannot listen there */
export async function startService(options: ServiceOptions): Promise<Service> {
  const inFlight = { creates: 0, bytes: 0 }
  const metrics = options.admin && new Metrics(() => inFlight.creates)
  const log = openLog(options.log.output, options.log.level)
  const store = await options.openStore({
    onCommit: (count) => attempt(log, () => metrics?.recordCommit(count)),
    onAway: (failure) => (failure ? log.warn(`${failure.message}. Creates wait for it`) : log.info('The store is back')),
  })
  try {
    const { limits, tls, basePath, now } = options
    const accessLog = accessLogOf(log, metrics)
    const tokenSource = await options.openTokenSource(store.tokens, (message) => log.warn(message))
    const authenticator = new Authenticator(tokenSource, now)
    const runId = randomBytes(4).toString('hex')
    const routes = plantRoutes({ store, basePath, inFlight, queueLimit: limits.queueLimit })
    const router = new Router(routes, { log: accessLog, authenticator, now, basePath, runId, inFlight, bodyLimit: limits.bodyLimit })
    const http = new HttpServer(router.handle, { limits, tls, log: accessLog, now })
    const address = addressOf(options.listen, await listen(http.server, options.listen), basePath, tls !== undefined)
    const admin = options.admin && metrics && (await startAdmin(options.admin, http, { log, store, metrics, now }))
    log.info({ address, admin: admin?.address }, 'listening')
    if (!isLocal(options.listen) && !tls)
      log.warn('Other machines can reach this address. Without TLS, tokens and plants can be read on their way')
    if (options.admin && !isLocal(options.admin)) log.warn('Other machines can reach the admin port, which needs no token')
    return {
      address,
      drain: async (milliseconds) => {
        log.info('draining')
        await http.drain(milliseconds)
        admin?.http.abort()
        await store.close()
        log.info('stopped')
      },
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** What only watches the service never fails a request. */
function attempt(log: Log, watch: () => void): void {
  try {
    watch()
  } catch (error) {
    log.error({ err: error }, 'failed')
  }
}

function accessLogOf(log: Log, metrics: Metrics | undefined): AccessLog {
  return {
    record(entry) {
      log.info(entry)
      if (metrics) attempt(log, () => metrics.record(entry))
    },
    error: (error, requestId) => log.error({ requestId, err: error }, 'failed'),
  }
}

/** Starts the admin port; when it cannot listen, the service is stopped as well. */
async function startAdmin(
  address: ListenAddress,
  service: HttpServer,
  { log, store, metrics, now }: { log: Log; store: ServedStore; metrics: Metrics; now(): number },
) {
  const isStoreReady = readinessOf(store)
  const handler = adminHandler({ metrics, isReady: async () => !service.isDraining && (await isStoreReady()) })
  const { error } = accessLogOf(log, undefined)
  const http = new HttpServer(handler, { limits: adminLimits, tls: undefined, log: { record: () => undefined, error }, now })
  try {
    return { http, address: addressOf(address, await listen(http.server, address), '', false) }
  } catch (reason) {
    service.abort()
    throw reason
  }
}

/** Whether a plant could be created now. Each call resolves within a second; calls that come meanwhile share the result. */
function readinessOf(store: ServedStore): () => Promise<boolean> {
  let checking: Promise<boolean> | undefined
  const check = async () => {
    try {
      await store.check()
      return true
    } catch {
      return false
    } finally {
      checking = undefined
    }
  }
  return () => {
    checking ??= check()
    return Promise.race([checking, new Promise<false>((resolve) => setTimeout(resolve, 1000, false).unref())])
  }
}

function addressOf(listenAddress: ListenAddress, port: number, basePath: string, isSecure: boolean): string {
  if ('path' in listenAddress) return `unix:${listenAddress.path}${basePath && `:${basePath}`}`
  // All addresses of this machine are no address to connect to.
  const known = { '0.0.0.0': '127.0.0.1', '::': '::1' }[listenAddress.host] ?? listenAddress.host
  const host = known.includes(':') ? `[${known}]` : known
  return `${isSecure ? 'https' : 'http'}://${host}:${port}${basePath}`
}
