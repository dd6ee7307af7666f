import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { isLoopback } from '../platform/network.js'
import { InFlight } from './body.js'
import { busy, HttpError } from './http-error.js'
import type { AccessLog, AccessLogEntry } from './log.js'
import { type HttpAnswer, respond } from './respond.js'
import { type Handler, HttpServer, type Limits } from './server.js'

const limits: Limits = { requestTimeout: 5000, connectionLimit: 64, replacesIdle: true }

interface AdminOptions {
  metrics: Metrics
  host: string
  isReady(): Promise<boolean>
  error: AccessLog['error']
  /** milliseconds, monotonic */
  now(): number
}

/** Needs no token. Logs errors, but no requests. */
export function adminServer({ metrics, host, isReady, error, now }: AdminOptions): HttpServer {
  const answers = new Map<string | undefined, () => HttpAnswer | Promise<HttpAnswer>>([
    ['/live', () => ({ status: 200, body: '{"live":true}' })],
    ['/ready', async () => ((await isReady()) ? { status: 200, body: '{"ready":true}' } : notReady)],
    ['/metrics', () => metrics.text()],
  ])
  const handler: Handler = async ({ url, method = '', headers }, response) => {
    if (!isAddressed(headers.host, host))
      return respond(response, new HttpError(421, 'The admin port is not at this Host'))
    const path = url?.replace(/\?.*/s, '')
    const answer = answers.get(path)
    if (!answer) respond(response, new HttpError(404, 'Only /live, /ready and /metrics are here'))
    else if (method === 'GET' || method === 'HEAD') respond(response, await answer())
    else respond(response, new HttpError(405, `${path} allows only GET and HEAD`, ['Allow', 'GET, HEAD']))
  }
  const log = { error, record: () => undefined }
  return new HttpServer(handler, { limits, tls: undefined, log, inFlight: new InFlight(0), now })
}

/**
 * A page of any site can have its own name resolved to 127.0.0.1, and a browser then lets it read the responses (DNS
 * rebinding). A server for other machines has names that it does not know.
 */
function isAddressed(named: string | undefined, host: string): boolean {
  return named === undefined || !isLoopback(host) || isLoopback(named.replace(/:\d*$/, ''))
}

const notReady = busy('The service is not ready')

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
    return { status: 200, contentType: this.#registry.contentType, body: await this.#registry.metrics() }
  }
}
