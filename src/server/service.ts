/** The HTTP service around a store: routes, authentication, limits, drain, access log, metrics and admin port. */
import type { OpenOptions, OwnStore, Right, TokenStore } from '../stores/common/store.js'
import { adminServer, Metrics } from './admin.js'
import { authenticator, type TokenSource } from './authenticator.js'
import { InFlight } from './body.js'
import { Cors } from './cors.js'
import { isLocal, type ListenAddress, listen } from './listen.js'
import { type AccessLog, Log, type LogOptions } from './log.js'
import { plantRoutes } from './plants.js'
import { Router } from './router.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  /** @param watch `onCommit` gets the number of creates; `onAway`, undefined when the store is available again */
  openStore(watch: Pick<OpenOptions, 'onAway' | 'onCommit' | 'onCreated'>): Promise<OwnStore>
  openTokenSource(tokens: TokenStore, warn: (message: string) => void): Promise<TokenSource>
  listen: ListenAddress
  /** "" or "/v1" */
  basePath: string
  /** the rights whose operations are offered, as far as the store's own credentials permit them */
  allow: readonly Right[]
  /** whose pages may use the service: origins, or `*` */
  cors: readonly string[]
  tls: Tls | undefined
  admin: Exclude<ListenAddress, { path: string }> | undefined
  limits: Limits & { bodyLimit: number }
  /** milliseconds; 10 minutes by default */
  streamTimeout?: number
  log: LogOptions
  /** Escapes a text, and hides the secrets that the program knows. */
  printable(text: string): string
  /** milliseconds, monotonic */
  now(): number
}

export interface Service {
  address: string
  /** Answers every received request, then closes. Destroys the connections that are left after `milliseconds`. */
  drain(milliseconds: number): Promise<void>
}

/** @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address cannot be used */
export async function startService(options: ServiceOptions): Promise<Service> {
  const log = new Log(options.log)
  const warn = (message: string) => log.warn(message)
  const inFlight = new InFlight(options.limits.bodyLimit)
  const metrics = options.admin && new Metrics(() => inFlight.requests)
  const store = await options.openStore({
    onCommit: (count) => metrics?.recordCommit(count),
    onCreated: async (path) => log.info(`Created store ${path}`),
    onAway: (failure) => (failure ? warn(`${failure.message}. Requests wait for it`) : log.info('The store is back')),
  })
  const servers: HttpServer[] = []
  const stop = async () => {
    for (const server of servers) server.abort()
    await store.close()
  }
  try {
    const { basePath, allow, tls, limits, now } = options
    const rights = (await store.rights()).filter((right) => allow.includes(right))
    const accessLog: AccessLog = {
      error: (error, requestId) => log.error(error, requestId),
      record(entry) {
        log.record(entry)
        metrics?.record(entry)
      },
    }
    const authenticate = authenticator(await options.openTokenSource(store.tokens, warn), now)
    const cors = options.cors.length > 0 ? new Cors(options.cors) : undefined
    const router = new Router(plantRoutes(store, rights, basePath), {
      ...options,
      cors,
      log: accessLog,
      authenticate,
      inFlight,
    })
    const http = new HttpServer(router.handle, { limits, tls, log: accessLog, inFlight, cors, now })
    servers.push(http)
    const address = await listen(http.server, options.listen, { basePath, isSecure: tls !== undefined })
    const isReady = readinessOf(store, options.allow, http)
    const { host = '' } = options.admin ?? {}
    const admin = metrics && adminServer({ metrics, host, isReady, error: accessLog.error, now })
    if (admin) servers.push(admin)
    const adminAddress = options.admin && admin && (await listen(admin.server, options.admin))
    log.info('listening', { address, admin: adminAddress })
    if (!isLocal(options.listen) && !tls)
      warn('Other machines can reach this address. Without TLS, tokens and plants can be read on the network')
    if (options.admin && !isLocal(options.admin)) warn('Other machines can reach the admin port, which needs no token')
    return {
      address,
      drain: async (milliseconds) => {
        log.info('draining')
        await http.drain(milliseconds)
        await stop()
        log.info('stopped')
        log.flush()
      },
    }
  } catch (error) {
    await stop()
    log.flush()
    throw error
  }
}

/** Resolves within a second. */
function readinessOf(store: OwnStore, allow: readonly Right[], http: HttpServer): () => Promise<boolean> {
  const isUsable = () =>
    store.check(allow).then(
      () => !http.isDraining,
      () => false,
    )
  return () => Promise.race([isUsable(), new Promise<false>((resolve) => setTimeout(resolve, 1000, false).unref())])
}
