import { setMaxListeners } from 'node:events'
import { type NewPlant, type Plant, plantOf, textLength } from '../../plant/plant.js'
import { maxTimer } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { CreateOptions } from '../common/store.js'
import { type Creation, sendBatch } from './batch.js'
import type { Client } from './client.js'
import { explainDatabase, isTransient, LeftOutError, lostCommit, maxIneffective } from './errors.js'
import type { ConnectionPool } from './pool.js'

interface CreateJob extends Creation {
  deadline: number
  resolve(plant: Plant): void
  reject(error: unknown): void
  /** rejects it at its deadline, while it is in the queue */
  timer: NodeJS.Timeout | undefined
  /** the error of the last try */
  failure: unknown
  /** how often it was sent without effect, although no other plant had its id or key */
  ineffective: number
}

/** the maximum number of creates in one statement, and of the characters of their texts */
const usualBatch = 1000
const batchCharacters = 4_000_000

/** milliseconds after which a batch no longer counts as running */
const slowBatch = 100

/**
 * Creates plants with group commit: creates that wait at the same time share one statement and one commit. Several batches run
 * concurrently. Each caller gets its own result once the commit is on disk. Creates with the same id or key run in order of arrival.
 */
export class PostgresWriter {
  readonly #connections: ConnectionPool
  /** those that wait, in order */
  #jobs = new Set<CreateJob>()
  /** the ids and keys of creates in flight */
  readonly #busy = new Set<bigint | string>()
  /** batches that are in flight, except slow ones, or wait for a connection */
  #running = 0
  #isStarting = false
  /** consecutive failed batches */
  #failures = 0
  /** aborts when the queue is empty: then no connection is needed */
  #waiting = newController()

  constructor(connections: ConnectionPool) {
    this.#connections = connections
  }

  create(plant: NewPlant, { idempotencyKey }: CreateOptions = {}): Promise<Plant> {
    return new Promise((resolve, reject) => {
      const { deadline } = this.#connections.limits()
      const asked = { plant, key: idempotencyKey, deadline, resolve, reject }
      const job: CreateJob = { ...asked, timer: undefined, writeIds: [], answer: undefined, failure: undefined, ineffective: 0 }
      this.#await(job)
      this.#jobs.add(job)
      this.#start()
    })
  }

  /** Starts the timer of a job in the queue. */
  #await(job: CreateJob): void {
    const expire = () => {
      this.#removeFromQueue([job])
      this.#refuse(job, job.failure ?? this.#connections.late())
    }
    job.timer = setTimeout(expire, Math.min(maxTimer, job.deadline - this.#connections.options.clock.now()))
  }

  #removeFromQueue(jobs: CreateJob[]): void {
    for (const job of jobs) {
      this.#jobs.delete(job)
      clearTimeout(job.timer)
    }
    if (this.#jobs.size > 0) return
    this.#waiting.abort()
    this.#waiting = newController()
  }

  #start(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    // In the next turn of the event loop, so that simultaneous calls share a statement.
    setImmediate(() => {
      this.#isStarting = false
      const most = Math.min(this.#connections.size, this.#jobs.size)
      while (this.#running < most) void this.#run()
    })
  }

  /** Sends waiting jobs as soon as there is a connection. */
  async #run(): Promise<void> {
    this.#running += 1
    const { signal } = this.#waiting
    let jobs: CreateJob[] = []
    let isIdle = false
    let isCounted = true
    try {
      if (this.#failures > 0) await this.#connections.pause(this.#failures, signal)
      if (this.#jobs.size > 0)
        await this.#connections.use({ deadline: Infinity, signal }, async (client) => {
          jobs = this.#take()
          isIdle = jobs.length === 0 // all jobs wait for others in flight, whose end starts the next run
          if (isIdle) return
          const slow = setTimeout(() => {
            isCounted = false // it may wait for a lock: others must not wait for it
            this.#running -= 1
            this.#start()
          }, slowBatch)
          await this.#send(jobs, client).finally(() => clearTimeout(slow))
        })
    } catch (error) {
      if (jobs.length > 0 || !signal.aborted) this.#noteFailure(error, jobs)
    }
    this.#settle(jobs)
    if (isCounted) this.#running -= 1
    if (!isIdle && this.#jobs.size > 0) this.#start()
  }

  /** @param jobs the jobs of the failed batch; none if there was no connection */
  #noteFailure(error: unknown, jobs: CreateJob[]): void {
    if (jobs.length > 0) this.#failures += 1
    for (const job of jobs) job.failure = error
    if (jobs.length > 0 || isTransient(error)) return
    const refused = [...this.#jobs]
    this.#removeFromQueue(refused)
    for (const job of refused) this.#refuse(job, error)
  }

  /** Removes jobs from the queue in order, and sorts them by id. Skips jobs whose id or key is in flight, or in an earlier skipped job. */
  #take(): CreateJob[] {
    const limit = this.#connections.options.batchLimit ?? usualBatch
    const taken: CreateJob[] = []
    const awaited = new Set<bigint | string>()
    let characters = 0
    for (const job of this.#jobs) {
      if (taken.length >= limit || characters > batchCharacters) break
      const keys = keysOf(job)
      const mustWait = keys.some((key) => this.#busy.has(key) || awaited.has(key))
      for (const key of keys) (mustWait ? awaited : this.#busy).add(key)
      if (mustWait) continue
      taken.push(job)
      characters += textLength(job.plant)
    }
    this.#removeFromQueue(taken)
    return taken.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1))
  }

  async #send(jobs: CreateJob[], client: Client): Promise<void> {
    const { account, options } = this.#connections
    const deadline = jobs.reduce((first, job) => Math.min(first, job.deadline), Infinity)
    const end = this.#connections.destroyAt(deadline, client)
    try {
      const created = await sendBatch(jobs, { client, account, options })
      this.#failures = 0
      if (created > 0) options.onCommit?.(created)
    } finally {
      end()
    }
  }

  /** Settles the jobs of a batch. Queues those again, before all others, that were not stored but may be stored later. */
  #settle(jobs: CreateJob[]): void {
    for (const job of jobs) for (const key of keysOf(job)) this.#busy.delete(key)
    const open = jobs.filter((job) => !this.#answer(job))
    if (open.length > 0) this.#jobs = new Set([...open, ...this.#jobs])
    for (const job of open) this.#await(job)
  }

  /** Settles a job. Returns false for a job to send again. */
  #answer(job: CreateJob): boolean {
    const { account, options } = this.#connections
    if (job.answer === 'created') job.resolve(plantOf(job.plant))
    else if (job.answer) job.reject(job.answer)
    else {
      if (job.failure === undefined) job.ineffective += 1
      if (job.ineffective === maxIneffective) job.reject(new LeftOutError(account.address))
      else if (job.deadline > options.clock.now() && (job.failure === undefined || isTransient(job.failure))) return false
      else this.#refuse(job, job.failure ?? this.#connections.late())
    }
    return true
  }

  /** Rejects a creation; with an unknown outcome if it may have been stored. */
  #refuse(job: CreateJob, error: unknown): void {
    const explained = explainDatabase(error, this.#connections.account)
    if (job.writeIds.length > 0) job.reject(lostCommit(this.#connections.account.address, error))
    else if (!(explained instanceof PlantsError)) job.reject(explained)
    else {
      const { message, hint, retryable } = explained
      job.reject(new PlantsError('unavailable', message, { hint, retryable, cause: error }))
    }
  }
}

/** A controller without a limit of listeners: each batch that waits for a connection adds one. */
function newController(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

/** The id and the key, of which no two creations in flight may have one in common. */
function keysOf({ plant, key }: CreateJob): (bigint | string)[] {
  return key === undefined ? [plant.id] : [plant.id, key]
}
