/**
 * Group commit. Transactions take turns on the one connection of a store. All changes that wait when a turn begins
 * share its transaction, and its fsync, which takes longest.
 *
 * SQLite does not notice that its files were deleted or replaced. So their names are checked before a transaction,
 * which then stores nothing, and after its commit, whose outcome is then unknown.
 */
import { readdirSync, readlinkSync } from 'node:fs'
import { PlantsError, unlessSystemError } from '../../errors.js'
import { identityOf } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'
import type { Change, Outcome } from '../change.js'
import { applyChanges } from './apply.js'
import type { Connection } from './connection.js'
import { createClosedError, explainSqliteError } from './errors.js'
import { assertVersion } from './schema.js'

interface Job {
  changes: readonly Change[]
  resolve(outcomes: Outcome[]): void
  reject(error: unknown): void
}

const maxWaits = 50

export class Writer {
  readonly #connection: Connection
  readonly #isInPlace: () => boolean
  #isWal = false
  #waiting: Job[] = []
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection) {
    this.#connection = connection
    const checks = placeChecksOf(connection.path)
    this.#isInPlace = () => checks.every((isInPlace) => isInPlace())
  }

  write(changes: readonly Change[]): Promise<Outcome[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ changes, resolve, reject })
      if (this.#waiting.length === 1) void this.#inTurn(() => this.#commitWaiting())
    })
  }

  /** Nothing else may use the connection meanwhile. It is rolled back unless the result `commits`. */
  transaction<T>(work: () => Promise<T>, commits: (result: T) => boolean = () => true): Promise<T> {
    const workAndCommit = async () => {
      const result = await work()
      if (commits(result)) this.#commit()
      return result
    }
    return this.#inTurn(() => this.#transact(workAndCommit))
  }

  /** Rejects if the store cannot be read now. Unlike a transaction, it waits for no other writer. */
  async checkReading(): Promise<void> {
    const { path, prepare } = this.#connection
    if (!this.#isInPlace())
      throw new PlantsError('unavailable', whyGone(path), { hint: 'Try again' })
    const readVersion = () => prepare('PRAGMA user_version').get()
    const [version]: [bigint] = await this.#connection.retry(readVersion)
    assertVersion(version, path)
  }

  /** Changes that wait for a lock of another program would go on waiting: they fail at once. */
  close(): void {
    this.#connection.close()
    const error = createClosedError(this.#connection.path)
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(work)
    this.#lastTurn = turn.catch(() => undefined)
    return turn
  }

  async #commitWaiting() {
    // A turn of the event loop accepts one connection, and the next one has its request: so a burst is waited for.
    for (let count = 0, waits = 0; count < this.#waiting.length && waits < maxWaits; waits += 1) {
      count = this.#waiting.length
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    let jobs: Job[] = []
    const commitAll = () => {
      jobs = this.#waiting.splice(0)
      this.#perform(jobs)
    }
    try {
      await this.#transact(commitAll, true)
    } catch (error) {
      if (jobs.length === 0) jobs = this.#waiting.splice(0)
      // Only RAISE(ROLLBACK) of a trigger throws one, and for all of them.
      const isOfOne = error instanceof PlantsError && error.kind === 'constraint'
      for (const job of jobs) {
        if (isOfOne) await this.#transact(() => this.#perform([job]), true).catch(job.reject)
        else job.reject(error)
      }
    }
  }

  /** In one turn of the event loop: nothing reads what is not committed. */
  #perform(jobs: Job[]): void {
    const outcomes = applyChanges(
      this.#connection,
      jobs.flatMap(({ changes }) => changes),
    )
    this.#commit()
    for (const { changes, resolve } of jobs) resolve(outcomes.splice(0, changes.length))
  }

  /** Rolls back what the work does not commit. A write gives a backup a log: its commits would wait for readers. */
  async #transact<T>(work: () => T | Promise<T>, isWrite = false): Promise<T> {
    const connection = this.#connection
    const { db, path, prepare } = connection
    await connection.retry(() => {
      if (isWrite) this.#isWal ||= prepare('PRAGMA journal_mode = WAL').get()[0] === 'wal'
      prepare('BEGIN IMMEDIATE').run()
    })
    try {
      if (!this.#isInPlace())
        throw new PlantsError('unavailable', whyGone(path), { hint: 'Try again' })
      const [version]: [bigint] = prepare('PRAGMA user_version').get()
      assertVersion(version, path)
      return await work()
    } catch (error) {
      throw explainSqliteError(error, path)
    } finally {
      // Closing rolls back, too.
      if (connection.isInTransaction)
        await connection.retry(() => db.exec('ROLLBACK')).catch(() => undefined)
    }
  }

  #commit(): void {
    const { path, prepare } = this.#connection
    try {
      prepare('COMMIT').run()
    } catch (error) {
      // If its fsync failed, it may be in the log, and come back after a crash.
      if (primaryCode(error) !== 10) throw error
      throw unknownOutcome(`The disk failed under ${path}`, error)
    }
    if (!this.#isInPlace()) throw unknownOutcome(whyGone(path))
  }
}

/**
 * Whether what SQLite has open still has its names. On Linux, the link of a descriptor tells, if there is one. To look
 * up a file asks for its times, which the next fsync then writes, too: a sixth of a lone commit.
 */
function placeChecksOf(store: string): (() => boolean)[] {
  const targetOf = (link: string) => unlessSystemError(() => readlinkSync(link))
  const descriptors = unlessSystemError(() => readdirSync('/proc/self/fd')) ?? []
  const links = descriptors.map((name) => `/proc/self/fd/${name}`)
  const opened = links.map((link) => ({ link, target: targetOf(link) }))
  return [store, `${store}-wal`, `${store}-shm`].map((path) => {
    const [file, ...others] = opened.filter(({ target }) => target === path)
    if (file && others.length === 0) return () => targetOf(file.link) === path
    let identity = identityOf(path)
    return () => {
      const present = identityOf(path)
      identity ??= present
      return present === identity
    }
  })
}

function whyGone(path: string): string {
  return `${path} or its log was deleted or replaced`
}

function unknownOutcome(why: string, cause?: unknown): PlantsError {
  const message = `${why} during a commit: whether it is stored is unknown`
  const hint = 'Check the disk first, then what is in the store: plants list'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
