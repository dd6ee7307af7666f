import { textLength } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import type { Change, Outcome } from '../common/change.js'
import type { Commit, ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { isForeignConstraint, isTransient } from './postgres-errors.js'
import { compareIds, writeAll } from './postgres-write.js'
import { areStored, insertStatement } from './sql.js'

type Create = Extract<Change, { type: 'create' }>

interface CreateJob {
  change: Create
  resolve(outcome: Outcome): void
  /** it was not stored, unless the error is `unknownOutcome` */
  reject(error: unknown): void
}

/** maxima of one statement: creates, and characters of their texts */
const batchSize = 1000
const batchCharacters = 4_000_000

/**
 * Group commit: creates that wait for a connection share one statement and one commit. Several batches run
 * concurrently. A caller gets its result once the commit is on disk. Creates with the same id or key run in turn.
 */
export class PostgresWriter {
  readonly #connections: ConnectionPool
  readonly #queue = new Set<CreateJob>()
  /** the last create with an id or a key, for which the next one waits */
  readonly #last = new Map<bigint | string, Promise<Outcome>>()
  #isStarting = false
  /** calls of `#sendNext` that wait for a connection, and that have one */
  #waiting = 0
  #inFlight = 0

  constructor(connections: ConnectionPool) {
    this.#connections = connections
  }

  write(change: Create): Promise<Outcome> {
    const { plant, key } = change
    const names = key === undefined ? [plant.id] : [plant.id, key]
    const earlier = names.flatMap((name) => this.#last.get(name) ?? [])
    const created = this.#createAfter(earlier, change).finally(() => {
      for (const name of names) if (this.#last.get(name) === created) this.#last.delete(name)
    })
    for (const name of names) this.#last.set(name, created)
    return created
  }

  async #createAfter(earlier: Promise<unknown>[], change: Create): Promise<Outcome> {
    const limits = this.#connections.limits()
    if (earlier.length > 0) await Promise.allSettled(earlier)
    try {
      if (limits.deadline <= this.#connections.options.clock.now()) throw this.#connections.late()
      return await this.#connections.retry(limits, () => this.#send(change))
    } catch (error) {
      // the login was valid before: nothing was stored
      if (!(error instanceof PlantsError) || error.type !== 'unauthorized') throw error
      throw new PlantsError('unavailable', error.message, { hint: error.hint, cause: error })
    }
  }

  #send(change: Create): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#queue.add({ change, resolve, reject })
      this.#start()
    })
  }

  /** Waits for the next turn of the event loop, so that simultaneous creates share a statement. */
  #start(): void {
    if (this.#isStarting || this.#waiting === this.#connections.size) return
    this.#isStarting = true
    setImmediate(() => {
      this.#isStarting = false
      void this.#sendNext()
    })
  }

  /** Takes jobs when it has a connection, so that one that is still being established does not delay them. */
  async #sendNext(): Promise<void> {
    this.#waiting += 1
    const connection = await this.#connections.lease(this.#connections.limits()).catch((error: unknown) => {
      const isWaiting = this.#inFlight > 0 && !isTransient(error) // for a connection that still works
      while (!isWaiting && this.#queue.size > 0) for (const { reject } of this.#take()) reject(error)
    })
    this.#waiting -= 1
    if (!connection) return
    const jobs = this.#take()
    if (this.#queue.size > 0) this.#start()
    this.#inFlight += 1
    await this.#sendBatch(jobs, connection).catch((error: unknown) => {
      for (const { reject } of jobs) reject(error)
    })
    this.#inFlight -= 1
    if (this.#queue.size > 0) this.#start()
  }

  /** In order of arrival. Each job has its own id and key. */
  #take(): CreateJob[] {
    const taken: CreateJob[] = []
    let characters = 0
    for (const job of this.#queue) {
      if (taken.length >= batchSize || characters > batchCharacters) break
      this.#queue.delete(job)
      taken.push(job)
      characters += textLength(job.change.plant)
    }
    return taken
  }

  async #sendBatch(jobs: CreateJob[], connection: Connection): Promise<void> {
    const created = await this.#create(jobs, connection)
    if (created.size > 0) this.#connections.options.onCommit?.(created.size)
    const others: CreateJob[] = []
    for (const job of jobs) {
      const { plant } = job.change
      if (created.has(String(plant.id))) job.resolve({ type: 'created', plant })
      else others.push(job)
    }
    if (others.length === 0) return
    const changes = others.map(({ change }) => change)
    const outcomes = await writeAll(this.#connections, changes)
    for (const [index, { resolve }] of others.entries()) resolve(must(outcomes[index]))
  }

  /** Returns the ids of those that conflict with nothing; none if one violates a constraint of somebody else. */
  async #create(jobs: CreateJob[], connection: Connection): Promise<Set<string>> {
    const created = jobs.map(({ change }) => change).toSorted((one, other) => compareIds(one.plant, other.plant))
    let commit: Commit<Set<string>>
    try {
      commit = await this.#connections.attempt(connection, async (transaction) => {
        if (created.length === 0) return new Set()
        const ids = new Set((await transaction.ask(insertStatement(created))).map(String))
        const stored = created.filter(({ plant }) => ids.has(String(plant.id)))
        transaction.evidence.push(() => areStored(stored, []))
        return ids
      })
    } catch (error) {
      if (isForeignConstraint(error)) return new Set()
      throw error
    } finally {
      this.#connections.release(connection)
    }
    return this.#connections.settle(commit)
  }
}
