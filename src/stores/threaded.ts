import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { PlantsError } from '../errors.js'
import { type NewPlant, type Plant, plantOf } from '../plant.js'
import type { Failure, Order, Report, Task } from './sqlite/thread.js'
import type { CreateOptions, FileAddress, OpenOptions, PlantStore } from './store.js'

interface Job {
  work: Order['works'][number]
  done(): void
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
  #hasWorked = false

  private constructor(address: FileAddress, { timeout, batchLimit, onCommit }: OpenOptions) {
    const task: Task = { address, options: { timeout, ...(batchLimit !== undefined && { batchLimit }) } }
    this.#onCommit = onCommit ?? (() => undefined)
    this.#worker = new Worker(join(dirname(fileURLToPath(import.meta.url)), 'thread.js'), { workerData: task })
    this.#worker.on('message', (report: Report) => this.#settle(report)).on('error', (error) => this.#break(error))
  }

  /** Starts the thread, which opens the file. Throws what that throws. */
  static async open(address: FileAddress, options: OpenOptions): Promise<ThreadedStore> {
    const store = new ThreadedStore(address, options)
    try {
      await store.check()
      return store
    } catch (error) {
      await store.close()
      throw error
    }
  }

  create(plant: NewPlant, { idempotencyKey }: CreateOptions = {}): Promise<Plant> {
    const { id, name, tag } = plant
    return new Promise((resolve, reject) => {
      this.#add({ work: [id, name, tag, idempotencyKey], done: () => resolve(plantOf(plant)), reject })
    })
  }

  /** Resolves when a plant could be created now; rejects with why it could not. */
  check(): Promise<void> {
    return new Promise((resolve, reject) => this.#add({ work: undefined, done: resolve, reject }))
  }

  /** Ends the thread, once it has done what it was sent. */
  async close(): Promise<void> {
    if (this.#broken) return
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.postMessage({ number: this.#count++, works: [] } satisfies Order)
    await ended
  }

  #add(job: Job): void {
    if (this.#broken) {
      job.reject(this.#broken)
      return
    }
    if (this.#next.length === 0) setImmediate(() => this.#send())
    this.#next.push(job)
  }

  #send(): void {
    const jobs = this.#next
    this.#next = []
    const number = this.#count++
    this.#orders.set(number, jobs)
    this.#worker.postMessage({ number, works: jobs.map(({ work }) => work) } satisfies Order)
  }

  #settle({ number, failures, commits }: Report): void {
    this.#hasWorked = true
    for (const count of commits) this.#onCommit(count)
    const jobs = this.#orders.get(number) ?? []
    this.#orders.delete(number)
    for (const [index, failure] of failures) jobs[index]?.reject(toError(failure))
    for (const { done } of jobs) done() // what was rejected stays so
  }

  /** Without its thread the process is of no use: whoever watches over it starts another one. */
  #break(error: Error): void {
    this.#broken = error
    if (this.#hasWorked) setImmediate(() => this.#throw(error))
    const failure = this.#hasWorked ? ended(error) : unstarted(error)
    for (const { reject } of [...this.#orders.values(), this.#next].flat()) reject(failure)
  }

  #throw(error: Error): never {
    throw error
  }
}

function ended(cause: Error): PlantsError {
  return new PlantsError('unknownOutcome', 'The thread of the store ended in the middle of its work', { cause })
}

function unstarted(cause: Error): PlantsError {
  const hint = 'Raise the limits of the system for open files and threads: ulimit -a'
  return new PlantsError('unavailable', `The thread of the store could not be started: ${cause.message}`, { hint, cause })
}

function toError(failure: Failure): Error {
  if (failure instanceof Error) return failure
  const { kind, message, hint, retryable } = failure
  return new PlantsError(kind, message, { hint, retryable })
}
