import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { PlantsError } from '../errors.js'
import { type NewPlant, type Plant, plantOf } from '../plant.js'
import type { Failure, Order, Report, Task } from './sqlite/thread.js'
import type { CreateOptions, FileAddress, OpenOptions, PlantStore } from './store.js'

interface Job {
  plant: NewPlant
  key: string | undefined
  resolve(plant: Plant): void
  reject(error: unknown): void
}

/**
 * Creates plants in a file by a thread of its own: while the disk is flushed, which takes longer than all else, this one
 * goes on. The thread takes what came together as one order.
 */
export class ThreadedStore implements PlantStore {
  readonly #worker: Worker
  readonly #onCommit: (count: number) => void
  readonly #orders = new Map<number, Job[]>()
  #count = 0
  #next: Job[] = []
  #broken: Error | undefined

  constructor(address: FileAddress, { timeout, batchLimit, onCommit }: OpenOptions) {
    const task: Task = { address, options: { timeout, ...(batchLimit !== undefined && { batchLimit }) } }
    this.#onCommit = onCommit ?? (() => undefined)
    this.#worker = new Worker(join(dirname(fileURLToPath(import.meta.url)), 'thread.js'), { workerData: task })
    this.#worker.on('message', (report: Report) => this.#settle(report)).on('error', (error) => this.#break(error))
  }

  create(plant: NewPlant, { idempotencyKey: key }: CreateOptions = {}): Promise<Plant> {
    return new Promise((resolve, reject) => {
      if (this.#broken) return reject(this.#broken)
      if (this.#next.length === 0) setImmediate(() => this.#send())
      this.#next.push({ plant, key, resolve, reject })
    })
  }

  /** Ends the thread, once it has done what it was sent. */
  async close(): Promise<void> {
    if (this.#broken) return
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.postMessage('close' satisfies Order)
    await ended
  }

  #send(): void {
    const jobs = this.#next
    this.#next = []
    const number = this.#count++
    this.#orders.set(number, jobs)
    const order: Order = { number, creates: jobs.map(({ plant: { id, name, tag }, key }) => [id, name, tag, key]) }
    this.#worker.postMessage(order)
  }

  #settle({ number, failures, commits }: Report): void {
    for (const count of commits) this.#onCommit(count)
    const jobs = this.#orders.get(number) ?? []
    this.#orders.delete(number)
    for (const [index, failure] of failures) jobs[index]?.reject(toError(failure))
    for (const { plant, resolve } of jobs) resolve(plantOf(plant)) // a promise that is settled stays as it is
  }

  /** Without its thread the process is of no use: whoever watches over it starts another one. */
  #break(error: Error): void {
    this.#broken = error
    setImmediate(() => {
      throw error
    })
    const unknown = new PlantsError('unknownOutcome', 'The thread of the store ended in the middle of its work', { cause: error })
    for (const { reject } of [...this.#orders.values(), this.#next].flat()) reject(unknown)
  }
}

function toError(failure: Failure): Error {
  if (failure instanceof Error) return failure
  const { kind, message, hint, retryable } = failure
  return new PlantsError(kind, message, { hint, retryable })
}
