/**
 * Group commit. Transactions take turns on the one connection of a store. Changes that need no waiting share one: all
 * that have come when its turn begins are made in it, and share its fsync, which takes longer than all the rest.
 *
 * What was acknowledged must be found again, so the files of the store are looked up by their names: before a
 * transaction, which then stores nothing, and after its commit, whose outcome is then unknown. SQLite notices neither.
 */
import { PlantsError } from '../../platform/errors.js'
import { isSqliteError, primaryCode } from '../../platform/sqlite.js'
import type { Connection } from './connection.js'
import { explained } from './errors.js'
import { assertVersion } from './schema.js'

interface Job {
  perform(): void
  resolve(): void
  reject(error: unknown): void
}

export class Writer {
  readonly #connection: Connection
  #waiting: Job[] = []
  /** Ends with the transaction that was asked for last. */
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** An error of `work` rolls back the transaction, and rejects all calls that share it. */
  write<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      let result: T
      const perform = () => {
        result = work()
      }
      this.#waiting.push({ perform, resolve: () => resolve(result), reject })
      if (this.#waiting.length === 1) void this.#inTurn(() => this.#commitWaiting())
    })
  }

  /** Nothing else may use the connection meanwhile. It is rolled back unless the result `commits`. */
  transaction<T>(work: () => Promise<T>, commits: (result: T) => boolean = () => true) {
    return this.#inTurn(() => this.#transact(work, commits))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(work)
    this.#lastTurn = turn.catch(() => undefined)
    return turn
  }

  async #commitWaiting(): Promise<void> {
    // The event loop accepts one connection a turn, so the clients of a burst come in turns, too.
    for (let count = 0; count < this.#waiting.length; ) {
      count = this.#waiting.length
      await new Promise(setImmediate)
    }
    const jobs = this.#waiting
    this.#waiting = []
    await this.#commit(jobs)
  }

  async #commit(jobs: Job[]): Promise<void> {
    try {
      await this.#transact(() => {
        for (const job of jobs) job.perform()
      })
      for (const job of jobs) job.resolve()
    } catch (error) {
      // RAISE(ROLLBACK) of a trigger has ended the transaction of all because of one.
      const isOfOne = error instanceof PlantsError && error.kind === 'constraint'
      if (isOfOne && jobs.length > 1) for (const job of jobs) await this.#commit([job])
      else for (const job of jobs) job.reject(error)
    }
  }

  async #transact<T>(
    work: () => T | Promise<T>,
    commits: (result: T) => boolean = () => true,
  ): Promise<T> {
    const connection = this.#connection
    const { db, path } = connection
    const goneText = `${path} or its log was deleted or replaced`
    await connection.retry(() => connection.prepare('BEGIN IMMEDIATE').run())
    let isCommitting = false
    try {
      if (!connection.isInPlace())
        throw new PlantsError('unavailable', goneText, { hint: 'Try again' })
      // Another version of the program may have changed the store since it was opened.
      const [version]: [bigint] = connection.prepare('PRAGMA user_version').get()
      assertVersion(version, path)
      const made = work()
      // Without an await where it can be left out: what reads meanwhile sees what is not committed yet.
      const result = made instanceof Promise ? await made : made
      isCommitting = commits(result)
      connection.prepare(isCommitting ? 'COMMIT' : 'ROLLBACK').run()
      if (isCommitting && !connection.isInPlace()) throw unknownOutcome(goneText)
      return result
    } catch (error) {
      try {
        if (db.isTransaction) db.exec('ROLLBACK')
      } catch (other) {
        if (!isSqliteError(other)) throw other // to close the connection rolls back, too
      }
      // A commit whose fsync failed may be in the log, from where a crash would bring it back.
      const isUnknown = isCommitting && primaryCode(error) === 10 // IOERR
      throw isUnknown
        ? unknownOutcome(`The disk failed under ${path}`, error)
        : explained(error, path)
    }
  }
}

function unknownOutcome(why: string, cause?: unknown): PlantsError {
  const message = `${why} during a commit: whether it is stored is unknown`
  const hint = 'Check the disk first, then what is in the store: plants list'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
