import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { isLoopback } from '../platform/urls.js'
import { busy, type HttpAnswer, HttpError, respond } from './answer.js'
import type { AccessLogEntry } from './log.js'

interface AdminOptions {
  metrics: Metrics
  host: string
  isReady(): Promise<boolean>
  error(error: unknown): void
}

/** Needs no token. Logs errors, but no requests. */
export function adminServer({ metrics, host, isReady, error }: AdminOptions): Server {
  const answerTo = async ({
    url = '',
    method = '',
    headers,
  }: IncomingMessage): Promise<HttpAnswer> => {
    if (!isAddressed(headers.host, host))
      return new HttpError(421, 'This Host is not that of the admin port')
    const path = url.replace(/\?.*/s, '')
    if (!['/live', '/ready', '/metrics'].includes(path))
      return new HttpError(404, 'Only /live, /ready and /metrics are here')
    if (method !== 'GET' && method !== 'HEAD')
      return new HttpError(405, `${path} allows only GET and HEAD`, ['Allow', 'GET, HEAD'])
    if (path === '/metrics') return metrics.text()
    if (path === '/live') return { status: 200, body: '{"live":true}' }
    return (await isReady())
      ? { status: 200, body: '{"ready":true}' }
      : busy('The service is not ready')
  }
  const server = createServer(
    { headersTimeout: 5000, requestTimeout: 5000 },
    async (request, response) => {
      try {
        respond(response, await answerTo(request))
      } catch (failure) {
        error(failure)
        respond(response, new HttpError(500, 'Internal error'))
      }
    },
  )
  server.maxConnections = 64
  return server
}

/**
 * A page of any site can have its own name resolved to 127.0.0.1, and a browser then lets it read the responses (DNS
 * rebinding). A server for other machines has names that it does not know.
 */
function isAddressed(named: string | undefined, host: string): boolean {
  return named === undefined || !isLoopback(host) || isLoopback(named.replace(/:\d*$/, ''))
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = new Counter({
    name: 'plants_requests_total',
    help: 'Requests by outcome: created, read, updated, deleted, described, preflight, aborted, closed, or an error value',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })
  readonly #seconds = new Histogram({
    name: 'plants_request_duration_seconds',
    help: 'Time from the headers of a request to its response',
    labelNames: ['outcome'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [this.#registry],
  })
  readonly #batches = new Histogram({
    name: 'plants_batch_size',
    help: 'Creates that shared a commit',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000],
    registers: [this.#registry],
  })

  /** @param depth the number of requests that wait for the store */
  constructor(depth: () => number) {
    collectDefaultMetrics({ register: this.#registry })
    new Gauge({
      name: 'plants_queue_depth',
      help: 'Requests that wait for the store',
      registers: [this.#registry],
      collect() {
        this.set(depth())
      },
    })
  }

  record({ outcome, milliseconds }: AccessLogEntry): void {
    this.#requests.inc({ outcome })
    if (milliseconds !== undefined) this.#seconds.observe({ outcome }, milliseconds / 1000)
  }

  recordCommit(count: number): void {
    this.#batches.observe(count)
  }

  async text(): Promise<HttpAnswer> {
    return {
      status: 200,
      contentType: this.#registry.contentType,
      body: await this.#registry.metrics(),
    }
  }
}
