/** The admin port of a service: its health and its metrics, for which nobody needs a token. */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { isLoopback } from '../platform/urls.js'
import { createUnavailableError, HttpError } from './http-error.js'
import { Connections } from './limit.js'
import type { AccessLogEntry, Log } from './log.js'
import type { Readiness } from './readiness.js'
import { respond, type ServiceResponse } from './respond.js'

interface AdminOptions {
  metrics: Metrics
  readiness: Pick<Readiness, 'explain'>
  /** The server will listen on this host. */
  host: string
  log: Pick<Log, 'warn' | 'error'>
  redact(text: string): string
}

/**
 * A probe has a connection for a moment, so this is enough for many probes. At the limit, silent
 * connections give way: a load balancer that is locked out would take the service for dead.
 */
const maxConnections = 64

/**
 * A request must arrive within this time, and its client must then read the response within the
 * same time.
 */
const timeoutMs = 5000

export function createAdminServer(options: AdminOptions): Server {
  const timeouts = { requestTimeout: timeoutMs, connectionsCheckingInterval: 1000 }
  const connections = new Connections(maxConnections, options.log)
  const server = createServer(timeouts, async ({ socket }, response) => {
    // A connection has only one request: thousands of pipelined requests would block the service,
    // which runs in the same process.
    const connection = connections.find(socket)
    if (!connection || connection.hasAcceptedToken) return
    // Nobody needs a token here. At the limit, who has sent no request is closed before others.
    connection.setCaller({ isAccepted: () => true })
    response.shouldKeepAlive = false
    const adminResponse = await buildResponse(response.req, options).catch((failure: unknown) => {
      if (failure instanceof HttpError) return failure.response
      options.log.error(failure)
      return new HttpError(500, 'Internal error').response
    })
    respond(response, adminResponse)
  })
  server.on('connection', (socket: Socket) => connections.accept(socket, true))
  server.setTimeout(timeoutMs)
  return server
}

async function buildResponse(
  { url, headers }: IncomingMessage,
  { metrics, readiness, host, redact }: AdminOptions,
): Promise<ServiceResponse> {
  assertHost(headers.host, host)
  if (url === '/metrics') return metrics.format()
  if (url === '/live') return { status: 200, body: '{"live":true}' }
  if (url !== '/ready') throw new HttpError(404, 'This port serves only /live, /ready and /metrics')
  const reason = await readiness.explain()
  if (reason === undefined) return { status: 200, body: '{"ready":true}' }
  const { response } = createUnavailableError(reason)
  // The reason may be a sentence of the server of a database, which may quote a secret.
  return { ...response, body: redact(response.body) }
}

/**
 * This prevents DNS rebinding: the owner of a web site can let its name lead to a loopback address,
 * so that a browser on this machine lets the page read the responses of this port. The requests of
 * that page have the name of the site as Host. On an address that others can reach anyway, any name
 * is accepted, because it may be the name of a service in a cluster.
 *
 * @param name the header Host. It is undefined only in HTTP/1.0, which no browser sends.
 * @throws {HttpError} 421
 */
function assertHost(name: string | undefined, listenHost: string): void {
  if (name === undefined || !isLoopback(listenHost)) return
  const hostName = name.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1')
  if (hostName.toLowerCase() === 'localhost' || isIP(hostName) !== 0) return
  const rule = 'An admin port on a loopback address answers only requests whose Host is localhost'
  throw new HttpError(421, `${rule} or an IP address`)
}

/** The metrics are in the text format of Prometheus. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #durationSeconds = new Histogram({
    name: 'plants_request_duration_seconds',
    help: 'Time from the headers of a request to its response; 0 if none was handled',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
  }

  record({ outcome, milliseconds = 0 }: AccessLogEntry): void {
    this.#durationSeconds.observe({ outcome }, milliseconds / 1000)
  }

  async format(): Promise<ServiceResponse> {
    const body = await this.#registry.metrics()
    return { status: 200, contentType: this.#registry.contentType, body }
  }
}
