import { backoff, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { isBusy, isSqliteError } from '../../platform/sqlite.js'
import type { OpenOptions } from '../common/store.js'
import type { Connection } from './connection.js'
import { commitOutcomeUnknown, explainFailure, isCommitOutcomeUnknown, lockedError, notOurs, replacedStore, unchanged } from './errors.js'
import { identityOf } from './file.js'
import { identify, migrate } from './schema.js'

/** A unit of work that waits for its transaction, and then for the commit to be on disk. */
interface Job {
  deadline: number
  creates: number
  /** whether it may yield to the event loop, so that no other job may share its transaction */
  isAlone: boolean
  perform(): void | Promise<void>
  settle(): void
  reject(error: unknown): void
}

/** the maximum number of jobs in a transaction, about 10 ms; other processes can write between transactions */
const batchSize = 1000

/**
 * Group commit: jobs that wait at the same time share one transaction and one fsync. Each caller gets its own result once the commit is on
 * disk.
 */
export class SqliteWriter {
  readonly #connection: Connection
  readonly #options: OpenOptions
  /** In order of arrival. An array, because a set that changes with every write delays the garbage collection of removed jobs. */
  #jobs: Job[] = []
  #isRunning = false
  /** whether each transaction takes long, so that other processes must get a chance in between */
  isBulk = false
  /** `schema_version` and `user_version` of the schema that was last identified as that of a store */
  #identified: { schema?: unknown; user?: unknown } = {}
  /** the identity of the -wal file, which is constant as long as a connection is open */
  #log: string | undefined

  constructor(connection: Connection, options: OpenOptions) {
    this.#connection = connection
    this.#options = options
  }

  /**
   * Runs `work` in a transaction. A `PlantsError` rejects only this call, so `work` must throw it before it changes anything. Any other
   * error rolls back the transaction and rejects all calls that share it.
   *
   * @param creates the number of creates in `work`, for `onCommit`
   */
  write<T>(work: () => T, creates = 0): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const perform = () => {
        try {
          const value = work()
          job.settle = () => resolve(value)
        } catch (error) {
          if (!(error instanceof PlantsError)) throw error
          job.settle = () => reject(error)
        }
      }
      const job: Job = { deadline: this.#deadline(), creates, isAlone: false, perform, settle: () => undefined, reject }
      this.#add(job)
    })
  }

  /**
   * Runs `work`, which may yield to the event loop, in a transaction of its own. Any error rolls it back. Other writes
   * wait until it is done, and nothing else may use the connection meanwhile.
   */
  transact(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#add({ deadline: this.#deadline(), creates: 0, isAlone: true, perform: work, settle: resolve, reject })
    })
  }

  #deadline(): number {
    return this.#options.clock.now() + this.#options.timeout
  }

  #add(job: Job): void {
    this.#jobs.push(job)
    // In the next turn of the event loop, so that simultaneous calls share a transaction.
    if (!this.#isRunning) setImmediate(() => this.#run())
    this.#isRunning = true
  }

  async #run(): Promise<void> {
    for (let tries = 0; this.#jobs.length > 0; tries += 1) {
      if (this.#begin()) {
        const jobs = this.#next()
        try {
          await this.#commit(jobs)
        } catch (error) {
          rejectAll(jobs, error) // a defect, which must not end the loop
        }
        tries = 0
        if (this.#jobs.length > 0) await new Promise(setImmediate) // yields to the rest of the process
      } else await this.#wait(tries)
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
      if (!isBusy(error)) rejectAll(this.#jobs.splice(0), explainFailure(error, this.#connection.path))
      return false
    }
  }

  /**
   * Throws when the file has been replaced, or is no longer a store. Checks and migrates the schema in the first transaction, and whenever it has
   * changed: SQLite caches a schema until `schema_version` changes (https://sqlite.org/fileformat2.html, 1.3.9).
   */
  #check(): void {
    const { db, path } = this.#connection
    if (!this.#isInPlace()) throw replacedStore(path)
    const schema = this.#version('schema_version')
    if (this.#identified.schema === schema && this.#identified.user === this.#version('user_version')) return
    const user = identify(db, path)
    if (user === undefined) throw notOurs(path, 'contains no store')
    migrate(db, user) // a store that was opened for reading
    this.#identified = { schema: this.#version('schema_version'), user: this.#version('user_version') } // a rollback undoes a migration
  }

  #version(pragma: 'schema_version' | 'user_version'): unknown {
    return this.#connection.prepare(`PRAGMA ${pragma}`).get()?.[pragma]
  }

  async #wait(tries: number): Promise<void> {
    const { clock, timeout } = this.#options
    const now = clock.now()
    const late = this.#jobs.filter(({ deadline }) => deadline <= now)
    this.#jobs = this.#jobs.filter(({ deadline }) => deadline > now)
    if (late.length > 0) rejectAll(late, lockedError(this.#connection.path, timeout))
    if (this.#jobs.length > 0) {
      const milliseconds = backoff(tries, { base: 2, max: this.isBulk ? 32 : 8, random: clock.random }) // short writes go first
      await wait(milliseconds, [clock.signal]).catch((reason: unknown) => rejectAll(this.#jobs.splice(0), unchanged(reason, clock.signal)))
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
      const isUndone = !isDone || !isCommitOutcomeUnknown(error) || this.#overwrite()
      rejectAll(jobs, isUndone ? explainFailure(error, path) : commitOutcomeUnknown(path, 'stored', checkDisk, error))
      return
    }
    const creates = jobs.reduce((sum, job) => sum + job.creates, 0)
    if (creates > 0) this.#options.onCommit?.(creates)
    if (this.#isInPlace()) for (const job of jobs) job.settle()
    else rejectAll(jobs, commitOutcomeUnknown(path, 'stored', checkDisk))
  }

  /** Overwrites a failed commit in the WAL file: recovery after a crash could find it there. Returns whether that succeeded. */
  #overwrite(): boolean {
    try {
      this.#connection.db.exec('BEGIN IMMEDIATE')
      this.#connection.db.exec(`PRAGMA user_version=${this.#version('user_version')}; COMMIT`)
      return true
    } catch (error) {
      if (!isSqliteError(error)) throw error
      this.#rollBack()
      return false
    }
  }

  /** Whether the file and its -wal file are still at their paths: writes to a moved or deleted file would be lost. */
  #isInPlace(): boolean {
    const log = identityOf(`${this.#connection.path}-wal`)
    if (log.includes(':') || log === 'none') this.#log ??= log
    return log === this.#log && identityOf(this.#connection.path) === this.#connection.identity
  }

  /** Ignores errors: closing the connection rolls back as well, and the first error is reported. */
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

const checkDisk = 'Check the disk first. Then plants get shows whether the plant is stored'
