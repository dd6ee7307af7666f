import { equalPlants, type NewPlant, type Plant, plantOf, textLength } from '../../plant/plant.js'
import { delayOf } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { idExists, keyConflict } from '../common/conflict.js'
import type { CreateOptions } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import type { Client } from './postgres-client.js'
import { isTransient, leftOut } from './postgres-errors.js'
import { barrier, type Entry, findStatement, insertStatement, newAttempt, pinned, type Row, toPlant } from './sql.js'

type CreateResult = 'created' | PlantsError

interface CreateJob extends Entry {
  deadline: number
  resolve(result: CreateResult): void
  /** it was not stored, unless the error is `LostCommit` */
  reject(error: unknown): void
  /** rejects it at its deadline, while it is in the queue */
  timer: NodeJS.Timeout
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
  readonly #last = new Map<bigint | string, Promise<Plant>>()
  #isStarting = false
  /** calls of `#sendNext` that wait for a connection */
  #waiting = 0
  #inFlight = 0
  /** of the last create; counted from a random one, which is faster than a random one for each */
  #attempt = newAttempt()

  constructor(connections: ConnectionPool) {
    this.#connections = connections
  }

  create(plant: NewPlant, { idempotencyKey: key }: CreateOptions = {}): Promise<Plant> {
    const names = key === undefined ? [plant.id] : [plant.id, key]
    const earlier = names.flatMap((name) => this.#last.get(name) ?? [])
    this.#attempt = BigInt.asIntN(64, this.#attempt + 1n)
    const created = this.#createAfter(earlier, { plant, key, attempt: this.#attempt }).finally(() => {
      for (const name of names) if (this.#last.get(name) === created) this.#last.delete(name)
    })
    for (const name of names) this.#last.set(name, created)
    return created
  }

  async #createAfter(earlier: Promise<Plant>[], entry: Entry): Promise<Plant> {
    const { options } = this.#connections
    const deadline = options.clock.now() + options.timeout
    if (earlier.length > 0) await Promise.allSettled(earlier)
    const result = await this.#connections
      .retry({ deadline }, () => this.#send(entry, deadline))
      .catch((error: unknown) => {
        // the login was valid before: nothing was stored
        if (!(error instanceof PlantsError) || error.type !== 'unauthorized') throw error
        throw new PlantsError('unavailable', error.message, { hint: error.hint, cause: error })
      })
    if (result === 'created') return plantOf(entry.plant)
    throw result
  }

  #send(entry: Entry, deadline: number): Promise<CreateResult> {
    const left = deadline - this.#connections.options.clock.now()
    if (left <= 0) return Promise.reject(this.#connections.late())
    return new Promise((resolve, reject) => {
      const expire = () => {
        this.#queue.delete(job)
        reject(this.#connections.late())
      }
      const timer = setTimeout(expire, delayOf(left))
      const job = { ...entry, deadline, resolve, reject, timer }
      this.#queue.add(job)
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

  /** A connection that is still being established does not delay other calls. */
  async #sendNext(): Promise<void> {
    this.#waiting += 1
    const client = await this.#connections.lease({ deadline: Infinity }).catch((error: unknown) => {
      const isRefused = !isTransient(error) && this.#inFlight === 0 // other connections still work
      while (isRefused && this.#queue.size > 0) for (const { reject } of this.#take()) reject(error)
    })
    this.#waiting -= 1
    if (client) {
      const jobs = this.#take()
      if (this.#queue.size > 0) this.#start()
      this.#inFlight += 1
      await this.#sendBatch(jobs, client).catch((error: unknown) => {
        for (const { reject } of jobs) reject(error)
      })
      this.#inFlight -= 1
      this.#connections.release(client)
    }
    if (this.#queue.size > 0) this.#start()
  }

  /** In order of arrival. Each job has its own id and key. */
  #take(): CreateJob[] {
    const taken: CreateJob[] = []
    let characters = 0
    for (const job of this.#queue) {
      if (taken.length >= batchSize || characters > batchCharacters) break
      this.#queue.delete(job)
      clearTimeout(job.timer)
      taken.push(job)
      characters += textLength(job.plant)
    }
    return taken
  }

  async #sendBatch(jobs: CreateJob[], client: Client): Promise<void> {
    if (jobs.length === 0) return
    this.#connections.setDeadline(client, Math.min(...jobs.map(({ deadline }) => deadline)))
    jobs.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1))
    const created = new Set((await client.commit(insertStatement(jobs))).map(([id]) => id))
    if (created.size > 0) this.#connections.options.onCommit?.(created.size)
    const others = jobs.filter(({ plant }) => !created.has(String(plant.id)))
    for (const job of jobs) if (created.has(String(job.plant.id))) job.resolve('created')
    if (others.length === 0) return
    const results = resolveConflicts(others, await client.ask(findStatement(others)))
    // The plant is visible, but possibly not on the standbys yet. A later commit waits until it is.
    if ([...results.values()].includes('created')) await client.ask(pinned(barrier))
    for (const job of others) {
      const result = results.get(job)
      if (result) job.resolve(result)
      // Another writer may have created and deleted the id between the statements.
      else job.reject(leftOut(this.#connections.account.address, true))
    }
  }
}

/** The result of each plant that conflicts with a row: `created` if the row is the plant itself, else the error. */
export function resolveConflicts<E extends Entry>(entries: E[], rows: Row[]): Map<E, CreateResult> {
  const byKey = new Map(rows.map((row) => [row.at(-1), toPlant(row)]))
  const attempts = new Map(rows.map((row) => [row[0], row.at(-2)]))
  const results = new Map<E, CreateResult>()
  for (const entry of entries) {
    const { plant, key, attempt } = entry
    const repeated = key === undefined ? undefined : byKey.get(key)
    const other = attempts.get(String(plant.id))
    if (repeated) results.set(entry, equalPlants(repeated, plant) ? 'created' : keyConflict(repeated.id))
    else if (other !== undefined)
      results.set(entry, key === undefined && other === String(attempt) ? 'created' : idExists(plant.id))
  }
  return results
}
