import { backoff, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { isBusy, isSqliteError, primaryCode } from '../../platform/sqlite.js'
import type { FileOptions } from '../common/store.js'
import type { Connection } from './sqlite-connection.js'
import { explainFailure, lockedError, notOurs, replacedStore, unchanged } from './sqlite-errors.js'
import { identify, isLatest, migrate, versionsOf } from './sqlite-schema.js'
import { identityOf } from './store-file.js'

interface Job {
  deadline: number
  creates: number
  /** may yield to the event loop, so that no other job may share its transaction */
  isAlone: boolean
  perform(): unknown
  settle(): void
  reject(error: unknown): void
}

/** the most jobs in a transaction, about 10 ms; other processes can write between transactions */
const batchSize = 1000

/** Group commit: jobs that wait at the same time share one transaction and one fsync. */
export class SqliteWriter {
  readonly #connection: Connection
  readonly #options: FileOptions
  /** An array, because a set that changes with every write delays the garbage collection of removed jobs. */
  #jobs: Job[] = []
  #isRunning = false
  /** transactions take long, so that other processes must get a chance in between */
  isBulk = false
  /** the identity of the -wal file, which does not change while a connection is open */
  #log: string | undefined

  constructor(connection: Connection, options: FileOptions) {
    this.#connection = connection
    this.#options = options
  }

  /**
   * A `PlantsError` rejects only this call, so `work` must throw it before it changes anything. Any other error rolls
   * back the transaction and rejects all calls that share it.
   */
  write<T>(work: () => T, creates = 0): Promise<T> {
    return this.#add(work, creates, false)
  }

  /** `work` may yield to the event loop. Nothing else may use the connection meanwhile. */
  transact(work: () => Promise<void>): Promise<void> {
    return this.#add(work, 0, true)
  }

  #add<T>(work: () => T | Promise<T>, creates: number, isAlone: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const perform = () => {
        try {
          const value = work()
          job.settle = () => resolve(value)
          return value
        } catch (error) {
          if (!(error instanceof PlantsError)) throw error
          job.settle = () => reject(error)
          return undefined
        }
      }
      const deadline = this.#options.clock.now() + this.#options.timeout
      const job: Job = { deadline, creates, isAlone, perform, settle: () => undefined, reject }
      this.#jobs.push(job)
      // In the next turn of the event loop, so that simultaneous calls share a transaction.
      if (!this.#isRunning) setImmediate(() => this.#run())
      this.#isRunning = true
    })
  }

  /** Never rejects: a defect rejects the jobs that it concerns, and must not end the loop. */
  async #run(): Promise<void> {
    for (let tries = 0; this.#jobs.length > 0; tries += 1) {
      let jobs = this.#jobs
      try {
        if (this.#begin()) {
          jobs = this.#next()
          tries = 0
          await this.#commit(jobs)
          if (this.#jobs.length > 0) await new Promise(setImmediate)
        } else await this.#wait(tries)
      } catch (error) {
        rejectAll(jobs, error)
        this.#jobs = this.#jobs.filter((job) => !jobs.includes(job))
      }
    }
    this.#isRunning = false
  }

  #next(): Job[] {
    const alone = this.#jobs.findIndex(({ isAlone }) => isAlone)
    return this.#jobs.splice(0, alone === -1 ? batchSize : Math.max(1, Math.min(batchSize, alone)))
  }

  #begin(): boolean {
    let hasBegun = false
    try {
      this.#connection.db.exec('BEGIN IMMEDIATE')
      hasBegun = true
      this.#check()
      return true
    } catch (error) {
      if (hasBegun) this.#rollBack() // otherwise the connection may be closed
      const failure = isBusy(error) ? undefined : explainFailure(error, this.#connection.path)
      if (failure) rejectAll(this.#jobs.splice(0), failure)
      return false
    }
  }

  /**
   * Identifies and migrates a changed schema again: SQLite caches a schema until `schema_version` changes
   * (https://sqlite.org/fileformat2.html, 1.3.9).
   */
  #check(): void {
    const { db, path, versions } = this.#connection
    if (!this.#isInPlace()) throw replacedStore(path)
    const current = versionsOf(this.#connection)
    if (versions && isLatest(versions) && versions.schema === current.schema && versions.user === current.user) return
    const found = identify(db, path)
    if (!found) throw notOurs(path, 'contains no store')
    migrate(db, found) // a store that was opened for reading
    this.#connection.versions = versionsOf(this.#connection) // a rollback undoes a migration
  }

  async #wait(tries: number): Promise<void> {
    const { clock, timeout } = this.#options
    const now = clock.now()
    const late = this.#jobs.filter(({ deadline }) => deadline <= now)
    this.#jobs = this.#jobs.filter(({ deadline }) => deadline > now)
    if (late.length > 0) rejectAll(late, lockedError(this.#connection.path, timeout))
    if (this.#jobs.length > 0) {
      // short writes go first
      const milliseconds = backoff(tries, { base: 2, max: this.isBulk ? 32 : 8, random: clock.random })
      await wait(milliseconds, [clock.signal]).catch((reason: unknown) =>
        rejectAll(this.#jobs.splice(0), unchanged(reason, clock.signal)),
      )
    }
  }

  async #commit(jobs: Job[]): Promise<void> {
    const { db, path } = this.#connection
    let isDone = false
    try {
      for (const job of jobs) {
        const work = job.perform()
        if (job.isAlone) await work
      }
      isDone = true
      db.exec('COMMIT')
    } catch (error) {
      this.#rollBack()
      // On an I/O error, SQLite has written the commit, but could not confirm that it is durable.
      const isUndone = !isDone || primaryCode(error) !== 10 || this.#overwrite()
      rejectAll(jobs, isUndone ? explainFailure(error, path) : outcomeUnknown(`The disk failed under ${path}`, error))
      return
    }
    const creates = jobs.reduce((sum, job) => sum + job.creates, 0)
    if (creates > 0) this.#options.onCommit?.(creates)
    if (this.#isInPlace()) for (const job of jobs) job.settle()
    else rejectAll(jobs, outcomeUnknown(`${path} was deleted or replaced`))
  }

  /** Overwrites a failed commit in the WAL file, where recovery after a crash could find it. */
  #overwrite(): boolean {
    try {
      this.#connection.db.exec('BEGIN IMMEDIATE')
      this.#connection.db.exec(`PRAGMA user_version=${versionsOf(this.#connection).user}; COMMIT`)
      return true
    } catch (error) {
      if (!isSqliteError(error)) throw error
      this.#rollBack()
      return false
    }
  }

  /** Writes to a moved or deleted file, or -wal file, would be lost. */
  #isInPlace(): boolean {
    const log = identityOf(`${this.#connection.path}-wal`)
    if (log.includes(':') || log === 'none') this.#log ??= log
    return log === this.#log && identityOf(this.#connection.path) === this.#connection.identity
  }

  /** Ignores errors: closing the connection rolls back as well. */
  #rollBack(): void {
    try {
      if (this.#connection.db.isTransaction) this.#connection.db.exec('ROLLBACK')
    } catch (error) {
      if (!isSqliteError(error)) throw error
    }
  }
}

function rejectAll(jobs: Job[], error: unknown): void {
  for (const job of jobs) job.reject(error)
}

/** A crash may undo the commit. */
function outcomeUnknown(why: string, cause?: unknown): PlantsError {
  const hint = 'Check the disk first, then what is in the store: plants list'
  return new PlantsError('unknownOutcome', `${why} during a commit: whether it is stored is unknown`, { hint, cause })
}
