import { backoff, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { isBusy, isSqliteError } from '../../platform/sqlite.js'
import type { OpenOptions } from '../store.js'
import type { Connection } from './connection.js'
import { commitOutcomeUnknown, explainFailure, isCommitOutcomeUnknown, lockedError, notOurs, replacedStore, unchanged } from './errors.js'
import { identityOf } from './file.js'
import { identify } from './schema.js'

/** What waits for its turn, and then for its transaction to be on the disk. */
interface Job {
  deadline: number
  /** how many creates it is */
  creates: number
  /** ends the wait for its turn; the job stays in the queue until then */
  signal: AbortSignal | undefined
  perform(): void
  /** gives the caller what came of the work */
  settle(): void
  reject(error: unknown): void
}

/** jobs in a transaction, about 10 ms: then others get a turn */
const defaultBatch = 1000

/**
 * Group commit: what waits at the same moment goes into one transaction and one fsync, and each caller gets its own result once that is
 * on the disk.
 */
export class Writer {
  readonly #connection: Connection
  readonly #options: OpenOptions
  /** In the order in which they came. An array, because a set that every write changes keeps dead ones from the garbage collector for long. */
  #jobs: Job[] = []
  #isRunning = false
  /** whether each transaction takes long, so that others are to be let in between */
  isBulk = false
  /** SQLite's version of the schema that was identified as that of a store, and ours */
  #identified: { schema?: unknown; user?: unknown } = {}
  /** which file the log is; it stays the same for as long as somebody has it open */
  #log: string | undefined

  constructor(connection: Connection, options: OpenOptions) {
    this.#connection = connection
    this.#options = options
  }

  /**
   * Runs `work` in a transaction. A `PlantsError` from it is this caller's answer and leaves the others alone, so it must
   * be thrown before anything is changed; any other error undoes the transaction for all who share it.
   *
   * @param signal ends the wait for a turn; work that has begun is finished
   * @param creates how many creates it is, for `onCommit`
   */
  write<T>(work: () => T, signal?: AbortSignal, creates = 0): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted()
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      const deadline = this.#options.clock.now() + this.#options.timeout
      const job: Job = {
        deadline,
        creates,
        signal,
        perform() {
          signal?.removeEventListener('abort', abort)
          try {
            const value = work()
            job.settle = () => resolve(value)
          } catch (error) {
            if (!(error instanceof PlantsError)) throw error
            job.settle = () => reject(error)
          }
        },
        settle() {},
        reject(error) {
          signal?.removeEventListener('abort', abort)
          reject(error)
        },
      }
      this.#jobs.push(job)
      // The next turn of the loop: calls that came in together then share a transaction.
      if (!this.#isRunning) setImmediate(() => this.#run())
      this.#isRunning = true
    })
  }

  async #run(): Promise<void> {
    for (let tries = 0; this.#jobs.length > 0; tries += 1) {
      if (this.#begin()) {
        this.#commit(this.#jobs.splice(0, this.#options.batchLimit ?? defaultBatch).filter(isWanted))
        tries = 0
        if (this.#jobs.length > 0) await new Promise(setImmediate) // whatever else the process has to do gets its turn
      } else await this.#wait(tries)
    }
    this.#isRunning = false
  }

  #begin(): boolean {
    let hasBegun = false
    try {
      this.#connection.db.exec('BEGIN IMMEDIATE')
      hasBegun = true
      this.#check()
      return true
    } catch (error) {
      if (hasBegun) this.#rollBack() // else the connection may be closed
      if (!isBusy(error)) rejectAll(this.#jobs.splice(0), explainFailure(error, this.#connection.path))
      return false
    }
  }

  /**
   * Throws when the file is no longer the one to write to. Its schema is compared in the first transaction, and in each after somebody
   * has changed it: SQLite goes by what it has read of a schema until `schema_version` is another (https://sqlite.org/fileformat2.html, 1.3.9).
   */
  #check(): void {
    const { db, path } = this.#connection
    if (!this.#isInPlace()) throw replacedStore(path)
    const schema = this.#version('schema_version')
    if (this.#identified.schema === schema && this.#identified.user === this.#version('user_version')) return
    const user = identify(db, path)
    if (user === undefined) throw notOurs(path, 'holds no store')
    this.#identified = { schema, user }
  }

  #version(pragma: 'schema_version' | 'user_version'): unknown {
    return this.#connection.prepare(`PRAGMA ${pragma}`).get()?.[pragma]
  }

  async #wait(tries: number): Promise<void> {
    const { clock, timeout } = this.#options
    const now = clock.now()
    const waiting = this.#jobs.filter(isWanted)
    const late = waiting.filter(({ deadline }) => deadline <= now)
    this.#jobs = waiting.filter(({ deadline }) => deadline > now)
    if (late.length > 0) rejectAll(late, lockedError(this.#connection.path, timeout))
    if (this.#jobs.length > 0) {
      const milliseconds = backoff(tries, { base: 2, max: this.isBulk ? 32 : 8, random: clock.random }) // what is short goes first
      await wait(milliseconds, [clock.signal]).catch((reason: unknown) => rejectAll(this.#jobs.splice(0), unchanged(reason, clock.signal)))
    }
  }

  #commit(jobs: Job[]): void {
    const { db, path } = this.#connection
    let isDone = false
    try {
      for (const job of jobs) job.perform()
      isDone = true
      db.exec('COMMIT')
    } catch (error) {
      this.#rollBack()
      const isUndone = !isDone || !isCommitOutcomeUnknown(error) || this.#overwrite()
      rejectAll(jobs, isUndone ? explainFailure(error, path) : commitOutcomeUnknown(`The disk failed under ${path}`, storedHint, error))
      return
    }
    if (this.#isInPlace()) for (const job of jobs) job.settle()
    else rejectAll(jobs, commitOutcomeUnknown(`${path} was deleted or replaced`, storedHint))
    const creates = jobs.reduce((sum, job) => sum + job.creates, 0)
    if (creates > 0) this.#options.onCommit?.(creates)
  }

  /** Takes the place of a failed commit in the log, from which a crash could bring it back. Returns whether that worked. */
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

  /** A file, or a log, that was moved away or deleted takes what is written with it. */
  #isInPlace(): boolean {
    const log = identityOf(`${this.#connection.path}-wal`)
    if (log.includes(':') || log === 'none') this.#log ??= log
    return log === this.#log && identityOf(this.#connection.path) === this.#connection.identity
  }

  /** What cannot be rolled back now is when the connection closes; the first failure is the one that is reported. */
  #rollBack(): void {
    try {
      if (this.#connection.db.isTransaction) this.#connection.db.exec('ROLLBACK')
    } catch (error) {
      if (!isSqliteError(error)) throw error
    }
  }
}

function isWanted({ signal }: Job): boolean {
  return !signal?.aborted
}

function rejectAll(jobs: Job[], error: unknown): void {
  for (const job of jobs) job.reject(error)
}

const storedHint = { done: 'stored', hint: 'Look at the disk first. Then plants get shows whether the plant is there' } as const
