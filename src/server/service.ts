/** The HTTP service around a store: routes, authentication, limits, drain, access log, metrics and admin port. */
import { setTimeout as wait } from 'node:timers/promises'
import type { OpenOptions, OwnStore, Right, TokenStore } from '../stores/common/store.js'
import { adminServer, Metrics } from './admin.js'
import type { TokenSource } from './authenticator.js'
import { nothingInFlight } from './client-connection.js'
import { Cors } from './cors.js'
import { isLocal, type ListenAddress, listen } from './listen.js'
import { Log, type LogOptions } from './log.js'
import { plantHandlers } from './plants.js'
import { routerOf } from './router.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
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
  /** Escapes, and hides secrets. */
  printable(text: string): string
  /** milliseconds, monotonic */
  now(): number
}

export interface Service {
  address: string
  /** Answers what was received, then closes. Destroys the connections that are left after `milliseconds`. */
  drain(milliseconds: number): Promise<void>
}

/** @throws {PlantsError} when the store cannot be opened, no token would be accepted, or the address cannot be used */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { allow, basePath, limits, tls } = options
  const inFlight = nothingInFlight(limits.bodyLimit)
  const metrics = options.admin && new Metrics(() => inFlight.requests)
  const log = new Log({ ...options.log, onRequest: (entry) => metrics?.record(entry) })
  const warn = (message: string) => log.warn(message)
  const store = await options.openStore({
    onCommit: (count) => metrics?.recordCommit(count),
    onCreated: async (path) => log.info(`Created store ${path}`),
    onAway: (failure) => (failure ? warn(`${failure.message}. Requests wait for it`) : log.info('The store is back')),
  })
  let stop = () => store.close()
  try {
    const rights = (await store.rights()).filter((right) => allow.includes(right))
    const findToken = await options.openTokenSource(store.tokens, warn)
    const shared = { log, inFlight }
    const cors = new Cors(options.cors)
    const handler = routerOf(plantHandlers(store), { ...options, ...shared, rights, cors, findToken })
    const http = new HttpServer(handler, { limits, tls, ...shared })
    const { host = '' } = options.admin ?? {}
    const isReady = async () => {
      const checked = store.check(allow).then(
        () => !http.isDraining,
        () => false,
      )
      return Promise.race([checked, wait(1000, false, { ref: false })])
    }
    const admin = metrics && adminServer({ metrics, host, isReady, error: (error) => log.error(error) })
    stop = async () => {
      http.abort()
      admin?.close().closeAllConnections()
      await store.close()
    }
    const address = await listen(http.server, options.listen, { basePath, isSecure: tls !== undefined })
    const adminAddress = options.admin && admin && (await listen(admin, options.admin))
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
        await log.flush()
      },
    }
  } catch (error) {
    await stop()
    await log.flush()
    throw error
  }
}
