import { randomBytes } from 'node:crypto'
import type { Output } from '../io.js'
import type { ServedStore, TokenStore } from '../stores/store.js'
import { adminServer } from './admin.js'
import { buildApp } from './app.js'
import type { Load } from './body.js'
import type { FindToken } from './guard.js'
import { isLoopback, listen, type Place } from './listen.js'
import { type Exchange, openLog } from './log.js'
import { Metrics } from './metrics.js'
import { answerParserError } from './parser-errors.js'
import { HttpServer, type Limits, type Tls } from './server.js'

export interface ServiceOptions {
  /** @param onCommit told how many creates a commit held */
  openStore(onCommit: (count: number) => void): Promise<ServedStore>
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
  const store = await options.openStore((count) => metrics?.recordCommit(count))
  try {
    return await start(options, { store, load, metrics })
  } catch (error) {
    await store.close()
    throw error
  }
}

interface Parts {
  store: ServedStore
  load: Load
  metrics: Metrics | undefined
}

async function start(options: ServiceOptions, { store, load, metrics }: Parts): Promise<Service> {
  const { place, limits, tls, admin, basePath, now } = options
  const log = openLog(options.log.output, options.log.level)
  const record = (exchange: Exchange) => {
    log.info(exchange)
    metrics?.record(exchange)
  }
  const complain = (requestId: string, error: unknown) => log.error({ requestId, err: error }, 'failed')
  const findToken = await options.findCallers(store.tokens, (message) => log.warn(message))
  const http = new HttpServer((request, response) => app.routing(request, response), limits, tls, { now, record, complain })
  const app = buildApp({
    ...{ store, load, findToken, basePath, now, record, complain },
    ...limits,
    server: http.server,
    runId: randomBytes(4).toString('hex'),
  })
  await app.ready()
  const isReady = async () => !http.isDraining && (await canCreate())
  const canCreate = readiness(store)
  const watch = metrics && adminServer({ metrics, isReady })
  watch?.on('clientError', (error, socket) => answerParserError(error, socket, []))
  const port = await listen(http.server, place)
  const adminPort =
    watch &&
    admin &&
    (await listen(watch, admin).catch((error: unknown) => {
      http.abort()
      throw error
    }))
  const address = addressOf(place, port, basePath, tls !== undefined)
  log.info({ address, admin: admin && adminPort && addressOf(admin, adminPort, '', false) }, 'listening')
  if (!isLoopback(place) && !tls) log.warn('Others can reach this address, and without TLS can read tokens and plants on their way')
  return {
    address,
    drain: async (milliseconds) => {
      log.info('draining')
      await http.drain(milliseconds)
      watch?.close().closeAllConnections()
      await store.close()
      log.info('stopped')
    },
  }
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
