import { createServer, type IncomingMessage, type Server } from 'node:http'
import { collectDefaultMetrics, Histogram, Registry } from 'prom-client'
import { busy, type HttpAnswer, HttpError, respond } from './answer.js'
import type { AccessLogEntry, Log } from './log.js'
import type { Readiness } from './readiness.js'

interface AdminOptions {
  metrics: Metrics
  readiness: Pick<Readiness, 'explain'>
  log: Pick<Log, 'error'>
  redact(text: string): string
}

/** Needs no token. */
export function createAdminServer(options: AdminOptions): Server {
  const server = createServer({ requestTimeout: 5000 }, async (request, response) => {
    try {
      respond(response, await answer(request, options))
    } catch (failure) {
      options.log.error(failure)
      respond(response, new HttpError(500, 'Internal error'))
    }
  })
  server.maxConnections = 64
  return server
}

async function answer(
  { url }: IncomingMessage,
  { metrics, readiness, redact }: AdminOptions,
): Promise<HttpAnswer> {
  if (url === '/metrics') return metrics.text()
  if (url === '/live') return { status: 200, body: '{"live":true}' }
  if (url !== '/ready') return new HttpError(404, 'Only /live, /ready and /metrics are here')
  const reason = await readiness.explain()
  if (reason === undefined) return { status: 200, body: '{"ready":true}' }
  const { status, body, headers } = busy(reason)
  // The reason may be a sentence of the store's server.
  return { status, body: redact(body), headers }
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #seconds = new Histogram({
    name: 'plants_request_duration_seconds',
    help: 'Time from the headers of a request to its response; 0 if none was handled',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })

  constructor() {
    collectDefaultMetrics({ register: this.#registry })
  }

  record({ outcome, milliseconds = 0 }: AccessLogEntry): void {
    this.#seconds.observe({ outcome }, milliseconds / 1000)
  }

  async text() {
    const body = await this.#registry.metrics()
    return { status: 200, contentType: this.#registry.contentType, body }
  }
}
