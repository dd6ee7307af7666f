/** The HTTP service around a store, and its admin port. */
import { unwatchFile, watchFile } from 'node:fs'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import type { PlantsError } from '../platform/errors.js'
import { isLoopback } from '../platform/urls.js'
import type { OwnStore } from '../stores/common/store.js'
import type { Right, TokenStore } from '../stores/common/token-store.js'
import { adminServer, Metrics } from './admin.js'
import type { TokenSource } from './authenticator.js'
import { requestHandler } from './handler.js'
import { type ListenAddress, listen, type TcpAddress } from './listen.js'
import { Log, type LogOptions } from './log.js'
import { Memory } from './memory.js'
import { plantHandlers } from './plants.js'
import { openApi } from './routes.js'
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
  /** The rights that are offered, as far as the store's own credentials have them. */
  allow: readonly Right[]
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
  const store = await options.openStore({
    onCreated: async (path) => log.info(`Created store ${path}`),
    onAway: (failure) =>
      failure ? warn(`${failure.message}. Requests wait for it`) : log.info('The store is back'),
  })
  let stop = () => store.close()
  try {
    const rights = (await store.rights()).filter((right) => allow.includes(right))
    const handler = requestHandler({
      handlers: plantHandlers(store),
      description: openApi(basePath),
      basePath,
      rights,
      cors,
      findToken: await options.openTokenSource(store.tokens, warn),
      memory: new Memory(memoryPerTokenBytes, timeoutMs),
      log,
      bodyLimitBytes: limits.bodyLimitBytes,
    })
    const server = new HttpServer(handler, { limits, tls: pair, log })
    const isReady = () => {
      const isUsable = store.check(allow).then(
        () => !server.isDraining,
        () => false,
      )
      return Promise.race([isUsable, wait(1000, false, { ref: false })])
    }
    const admin = metrics && adminServer(metrics, isReady, log)
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
    log.info('listening', { address, admin: adminAddress, rights })
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
