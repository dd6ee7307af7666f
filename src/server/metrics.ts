import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Exchange } from './log.js'

/** What can be watched of a service, in the text format of Prometheus. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #requests = new Counter({
    name: 'plants_requests_total',
    help: 'Requests by outcome: created, described, aborted, or the error value of a refusal',
    labelNames: ['outcome'],
    registers: [this.#registry],
  })
  readonly #seconds = new Histogram({
    name: 'plants_request_duration_seconds',
    help: 'Time from the headers of a request to its answer',
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

  /** @param depth how many creates wait for the store now */
  constructor(depth: () => number) {
    collectDefaultMetrics({ register: this.#registry })
    new Gauge({
      name: 'plants_queue_depth',
      help: 'Creates that wait for the store',
      registers: [this.#registry],
      collect() {
        this.set(depth())
      },
    })
  }

  record({ outcome, milliseconds }: Exchange): void {
    this.#requests.inc({ outcome })
    if (milliseconds !== undefined) this.#seconds.observe({ outcome }, milliseconds / 1000)
  }

  recordCommit(count: number): void {
    this.#batches.observe(count)
  }

  async text(): Promise<{ type: string; body: string }> {
    return { type: this.#registry.contentType, body: await this.#registry.metrics() }
  }
}
