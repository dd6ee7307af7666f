/**
 * Writes to a SQLite store with group commit.
 *
 * A commit costs an fsync, which takes far longer than the inserts themselves. So writes that
 * arrive in the same burst, or while the lock of another program is waited for, share one
 * transaction: fifty concurrent creates share one fsync.
 *
 * A store has one connection, and SQLite allows one transaction on it at a time. Transactions
 * therefore run one after the other: see `#runExclusive`.
 *
 * SQLite does not notice when another program deletes or replaces its files: it would go on writing
 * to a file that nobody can open any more. So the writer checks that the files still have their
 * names, twice: when a transaction has begun, which then fails without having stored anything, and
 * after a commit, whose outcome is then unknown.
 *
 * docs/design/group-commit.md says why groups need no timer, and what may fail.
 */

import { PlantsError } from '../../errors.js'
import { findPrimaryCode, SQLITE_IOERR } from '../../platform/sqlite.js'
import { type Change, createUnknownOutcomeError, type Outcome } from '../change.js'
import { SqliteChangeApplier } from './apply.js'
import type { Connection } from './connection.js'
import { createClosedError, explainSqliteError } from './explain.js'
import { assertVersion } from './schema.js'
import { createFileNameCheck } from './store-file.js'

/** The changes of one call of `write`, and the functions that settle its promise. */
interface PendingWrite {
  changes: readonly Change[]
  resolve(outcomes: Outcome[]): void
  reject(error: unknown): void
}

/** A group waits for further writes no longer than this. */
const maxIterationsToWait = 100

export class Writer {
  readonly #applier: SqliteChangeApplier
  readonly #filesHaveTheirNames: () => boolean
  #isWal = false
  /** In a service, the limits of connections and of bodies bound these. */
  #pendingWrites: PendingWrite[] = []
  /** Settles when the latest transaction has ended. It never rejects. */
  #previousTransaction: Promise<unknown> = Promise.resolve()

  constructor(private readonly connection: Connection) {
    this.#applier = new SqliteChangeApplier(connection)
    this.#filesHaveTheirNames = createFileNameCheck(connection.path)
  }

  /**
   * Resolves when the changes are on disk, in a transaction that they may share with other calls.
   */
  write(changes: readonly Change[]): Promise<Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#pendingWrites.push({ changes, resolve, reject })
      const isFirstOfGroup = this.#pendingWrites.length === 1
      if (isFirstOfGroup) void this.#runExclusive(() => this.#commitPendingWrites())
    })
  }

  /**
   * Runs `work` in a transaction of its own, which is rolled back if `work` throws, or if
   * `shouldCommit` returns false. Until it ends, no other write may use the connection.
   */
  transaction<T>(
    work: (applier: SqliteChangeApplier) => Promise<T>,
    shouldCommit: (result: T) => boolean = () => true,
  ): Promise<T> {
    const workAndCommit = async () => {
      const result = await work(this.#applier)
      if (shouldCommit(result)) this.#commit()
      return result
    }
    return this.#runExclusive(() => this.#runInTransaction(workAndCommit))
  }

  /**
   * Rejects if the store cannot be read now. Unlike a transaction, it waits for no other writer.
   */
  async checkReading(): Promise<void> {
    this.#assertFilesHaveTheirNames()
    await this.connection.retryWhileLocked(() => this.#assertVersion())
  }

  /**
   * Closes the connection. Changes that wait for a lock of another program fail at once instead of
   * waiting on.
   */
  close(): void {
    this.connection.close()
    const error = createClosedError(this.connection.path)
    for (const { reject } of this.#pendingWrites.splice(0)) reject(error)
  }

  #runExclusive<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#previousTransaction.then(work)
    this.#previousTransaction = result.catch(() => undefined)
    return result
  }

  async #commitPendingWrites(): Promise<void> {
    await this.#waitForBurstToEnd()
    // The group is taken only when the transaction has begun, so that it includes the writes that
    // arrive while this waits for the lock of another program.
    let group: PendingWrite[] | undefined
    const commitGroup = () => {
      group = this.#pendingWrites.splice(0)
      this.#applyAndCommit(group)
    }
    try {
      await this.#runInTransaction(commitGroup, { enablesWal: true })
    } catch (error) {
      // If the transaction could not begin, all writes that wait for it fail.
      await this.#handleFailedGroup(group ?? this.#pendingWrites.splice(0), error)
    }
  }

  /**
   * Node.js accepts one connection in each iteration of the event loop, and has its request in the
   * next one. So the writes of a burst of clients arrive in successive iterations: this waits until
   * two of them have brought no further write.
   */
  async #waitForBurstToEnd(): Promise<void> {
    let knownCount = 0
    for (let iterations = 0; iterations < maxIterationsToWait; iterations += 2) {
      const hasGrown = this.#pendingWrites.length > knownCount
      if (!hasGrown) return
      knownCount = this.#pendingWrites.length
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
  }

  /**
   * Applies the changes of a group and commits them. It is synchronous, so that no other call on
   * this connection can read changes that are not committed yet.
   */
  #applyAndCommit(group: PendingWrite[]): void {
    // For the thousands of changes of an import, `flatMap` would take a tenth of the time.
    const noChanges: Change[] = []
    const allChanges = noChanges.concat(...group.map(({ changes }) => changes))
    const outcomes = this.#applier.apply(allChanges)
    this.#commit()
    for (const { changes, resolve } of group) resolve(outcomes.splice(0, changes.length))
  }

  /**
   * A constraint that rejects one change is an outcome of that change, not an error. The exception
   * is a trigger that calls RAISE(ROLLBACK): it rolls back the whole group, and nothing tells which
   * change it rejected. So each write is tried again by itself.
   */
  async #handleFailedGroup(group: PendingWrite[], error: unknown): Promise<void> {
    const wasRolledBackByTrigger = error instanceof PlantsError && error.kind === 'constraint'
    for (const write of group) {
      if (!wasRolledBackByTrigger) write.reject(error)
      else {
        const applyAlone = () => this.#applyAndCommit([write])
        await this.#runInTransaction(applyAlone, { enablesWal: true }).catch(write.reject)
      }
    }
  }

  /**
   * Begins a transaction, and rolls it back unless `work` commits it.
   *
   * @param options.enablesWal whether a backup that was opened as a store first gets a write-ahead
   *   log. Without a log, its commits would wait for readers. `transaction` adds none, because it
   *   may be a dry run or a check, which must leave the file as it is.
   */
  async #runInTransaction<T>(work: () => T | Promise<T>, { enablesWal = false } = {}): Promise<T> {
    const connection = this.connection
    const { db, path, prepare } = connection
    await connection.retryWhileLocked(() => {
      if (enablesWal) this.#isWal ||= prepare('PRAGMA journal_mode = WAL').get()[0] === 'wal'
      prepare('BEGIN IMMEDIATE').run()
    })
    try {
      this.#assertFilesHaveTheirNames()
      this.#assertVersion()
      return await work()
    } catch (error) {
      throw explainSqliteError(error, path)
    } finally {
      // If the rollback fails, closing the connection rolls back, too.
      if (connection.isInTransaction)
        await connection.retryWhileLocked(() => db.exec('ROLLBACK')).catch(() => undefined)
    }
  }

  #assertFilesHaveTheirNames(): void {
    if (this.#filesHaveTheirNames()) return
    const message = describeMissingFiles(this.connection.path)
    throw new PlantsError('unavailable', message, { hint: 'Try again' })
  }

  /** Another program may have changed the store to another version since it was opened. */
  #assertVersion(): void {
    const { path, prepare } = this.connection
    const [version]: [bigint] = prepare('PRAGMA user_version').get()
    assertVersion(version, path)
  }

  #commit(): void {
    const { path, prepare } = this.connection
    try {
      prepare('COMMIT').run()
    } catch (error) {
      if (findPrimaryCode(error) !== SQLITE_IOERR) throw error
      // If only the fsync of the commit failed, the log may have the commit, and a later process
      // may still see the changes.
      throw createUnknownOutcomeError(`The disk failed under ${path} during a commit`, error)
    }
    if (this.#filesHaveTheirNames()) return
    throw createUnknownOutcomeError(`${describeMissingFiles(path)} during a commit`)
  }
}

function describeMissingFiles(path: string): string {
  return `${path} or its log was deleted or replaced`
}
