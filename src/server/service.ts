import { randomBytes } from 'node:crypto'
import type { Output } from '../platform/io.js'
import type { OpenOptions, ServedStore, TokenStore } from '../stores/store.js'
import { adminHandler, adminLimits, Metrics } from './admin.js'
import type { Witness } from './answers.js'
import { buildApp } from './app.js'
import type { Load } from './body.js'
import type { FindToken } from './guard.js'
import { isOnlyHere, listen, type Place } from './listen.js'
import { type Log, openLog } from './log.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  /** @param watch is told how many creates a commit held, and how things are with the store */
  openStore(watch: Pick<OpenOptions, 'onCommit' | 'onAway'>): Promise<ServedStore>
  /** @param complain tells who runs the service that something is wrong */
  findCallers(tokens: TokenStore, complain: (message: string) => void): Promise<FindToken>
  place: Place
  /** "" or "/v1" */
  basePath: string
  tls: Tls | undefined
  /** where `/live`, `/ready` and `/metrics` are; nowhere when undefined */
  admin: Place | undefined
  limits: Limits & { bodyLimit: number; queueLimit: number }
  log: { output: Output; level: string }
  /** milliseconds, never going back */
  now(): number
}

/** A store behind the specification's HTTP operation. */
export interface Service {
  /** the base_url, as `--store` takes it */
  address: string
  /** Answers what was received, then closes; what is not done in so many milliseconds is cut off. */
  drain(milliseconds: number): Promise<void>
}

/** @throws {PlantsError} when the store cannot be opened, nobody could come in, or it cannot listen there */
export async function startService(options: ServiceOptions): Promise<Service> {
  const load = { creates: 0, bytes: 0 }
  const metrics = options.admin && new Metrics(() => load.creates)
  const log = openLog(options.log.output, options.log.level)
  const store = await options.openStore({
    onCommit: (count) => attempt(log, () => metrics?.recordCommit(count)),
    onAway: (failure) => (failure ? log.warn(`${failure.message}. Creates wait for it`) : log.info('The store is back')),
  })
  try {
    return await start(options, { store, load, metrics, log })
  } catch (error) {
    await store.close()
    throw error
  }
}

interface Parts {
  log: Log
  store: ServedStore
  load: Load
  metrics: Metrics | undefined
}

async function start(options: ServiceOptions, parts: Parts): Promise<Service> {
  const { place, tls, admin, basePath } = options
  const { log } = parts
  const findToken = await options.findCallers(parts.store.tokens, (message) => log.warn(message))
  const http = await serverOf(options, parts, findToken)
  const watch = parts.metrics && watchOf(http, { ...parts, metrics: parts.metrics }, options.now)
  const port = await listen(http.server, place)
  const adminPort = watch && admin && (await listen(watch.server, admin).catch((error: unknown) => abort(http, error)))
  const address = addressOf(place, port, basePath, tls !== undefined)
  log.info({ address, admin: admin && adminPort && addressOf(admin, adminPort, '', false) }, 'listening')
  if (!isOnlyHere(place) && !tls) log.warn('Others can reach this address, and without TLS can read tokens and plants on their way')
  if (admin && !isOnlyHere(admin)) log.warn('Others can reach the admin port, which answers without a token')
  return {
    address,
    drain: async (milliseconds) => {
      log.info('draining')
      await http.drain(milliseconds)
      watch?.abort()
      await parts.store.close()
      log.info('stopped')
    },
  }
}

async function serverOf(options: ServiceOptions, parts: Parts, findToken: FindToken): Promise<HttpServer> {
  const { limits, tls, now } = options
  const { log, metrics } = parts
  const witness: Witness = {
    now,
    record: (exchange) => {
      log.info(exchange)
      attempt(log, () => metrics?.record(exchange))
    },
    complain: (requestId, error) => log.error({ requestId, err: error }, 'failed'),
  }
  const http = new HttpServer((request, response) => app.routing(request, response), limits, tls, witness)
  const runId = randomBytes(4).toString('hex')
  const app = buildApp({ ...parts, ...witness, ...limits, basePath: options.basePath, findToken, runId, server: http.server })
  await app.ready()
  return http
}

/** What only watches the service does not fail the request that it watches. */
function attempt(log: Log, watch: () => void): void {
  try {
    watch()
  } catch (error) {
    log.error({ err: error }, 'failed')
  }
}

function watchOf(http: HttpServer, { log, metrics, store }: Parts & { metrics: Metrics }, now: () => number): HttpServer {
  const canCreate = readiness(store)
  const handler = adminHandler({ metrics, isReady: async () => !http.isDraining && (await canCreate()) })
  const complain = (_: string, error: unknown) => log.error({ err: error }, 'failed')
  return new HttpServer(handler, adminLimits, undefined, { now, record: () => undefined, complain })
}

function abort(http: HttpServer, reason: unknown): never {
  http.abort()
  throw reason
}

/** Whether a plant could be created now. Who asks gets an answer within a second; all who ask meanwhile get the same. */
function readiness(store: ServedStore): () => Promise<boolean> {
  let asked: Promise<boolean> | undefined
  const ask = () =>
    store
      .check()
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        asked = undefined
      })
  return () => {
    asked ??= ask()
    return Promise.race([asked, new Promise<false>((resolve) => setTimeout(resolve, 1000, false).unref())])
  }
}

function addressOf(place: Place, port: number, basePath: string, isSecure: boolean): string {
  if ('path' in place) return `unix:${place.path}${basePath && `:${basePath}`}`
  // All addresses of this machine are no address to connect to.
  const known = { '0.0.0.0': '127.0.0.1', '::': '::1' }[place.host] ?? place.host
  const host = known.includes(':') ? `[${known}]` : known
  return `${isSecure ? 'https' : 'http'}://${host}:${port}${basePath}`
}
