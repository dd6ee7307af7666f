/**
 * Group commit. Transactions take turns on the one connection of a store. Changes that need no waiting share one: all
 * that have come when its turn begins are made in it, and share its fsync, which takes longer than all the rest.
 *
 * SQLite does not notice that its files were deleted or replaced. They are looked up by their names before a
 * transaction, which then stores nothing, and after its commit, whose outcome is then unknown.
 */
import { readdirSync, readlinkSync } from 'node:fs'
import { PlantsError, unlessSystemError } from '../../platform/errors.js'
import { identityOf } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'
import type { Connection } from './connection.js'
import { explained } from './errors.js'
import { assertVersion } from './schema.js'

interface Job {
  /** Returns what resolves the call, once the transaction is committed. */
  perform(): () => void
  reject(error: unknown): void
}

export class Writer {
  readonly #connection: Connection
  readonly #isInPlace: () => boolean
  #waiting: Job[] = []
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection) {
    this.#connection = connection
    const checks = ['', '-wal', '-shm'].map((end) => placeCheckOf(connection.path + end))
    this.#isInPlace = () => checks.every((isInPlace) => isInPlace())
  }

  /** An error of `work` is one of all that share the transaction. */
  write<T>(work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const perform = () => {
        const result = work()
        return () => resolve(result)
      }
      this.#waiting.push({ perform, reject })
      if (this.#waiting.length === 1) void this.#inTurn(() => this.#commitWaiting())
    })
  }

  /** Nothing else may use the connection meanwhile. It is rolled back unless the result `commits`. */
  transaction<T>(work: () => Promise<T>, commits: (result: T) => boolean = () => true): Promise<T> {
    return this.#inTurn(() => this.#transact(work, commits))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(work)
    this.#lastTurn = turn.catch(() => undefined)
    return turn
  }

  async #commitWaiting() {
    // The event loop accepts one connection a turn, so a burst comes in turns, each of which is handled in the next.
    for (let count = 0; count < this.#waiting.length; ) {
      count = this.#waiting.length
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const jobs = this.#waiting
    this.#waiting = []
    await this.#commit(jobs)
  }

  async #commit(jobs: Job[]): Promise<void> {
    try {
      const performAll = () => jobs.map((job) => job.perform())
      for (const resolve of await this.#transact(performAll, () => true)) resolve()
    } catch (error) {
      // RAISE(ROLLBACK) of a trigger has ended the transaction of all because of one.
      const isOfOne = error instanceof PlantsError && error.kind === 'constraint'
      if (isOfOne && jobs.length > 1) for (const job of jobs) await this.#commit([job])
      else for (const job of jobs) job.reject(error)
    }
  }

  async #transact<T>(work: () => T | Promise<T>, commits: (result: T) => boolean): Promise<T> {
    const connection = this.#connection
    const { db, path, prepare } = connection
    const gone = `${path} or its log was deleted or replaced`
    await connection.retry(() => prepare('BEGIN IMMEDIATE').run())
    let isCommitting = false
    try {
      if (!this.#isInPlace()) throw new PlantsError('unavailable', gone, { hint: 'Try again' })
      const [version]: [bigint] = prepare('PRAGMA user_version').get()
      assertVersion(version, path)
      const made = work()
      // Without an await if possible: what reads meanwhile sees what is not committed yet.
      const result = made instanceof Promise ? await made : made
      isCommitting = commits(result)
      prepare(isCommitting ? 'COMMIT' : 'ROLLBACK').run()
      if (isCommitting && !this.#isInPlace()) throw unknownOutcome(gone)
      return result
    } catch (error) {
      // To close the connection rolls back, too.
      if (db.isTransaction) await connection.retry(() => db.exec('ROLLBACK')).catch(() => undefined)
      // A commit whose fsync failed may be in the log, from where a crash would bring it back.
      if (isCommitting && primaryCode(error) === 10)
        throw unknownOutcome(`The disk failed under ${path}`, error)
      throw explained(error, path)
    }
  }
}

/**
 * Whether what SQLite has open still has this name. On Linux, the link of its descriptor tells, if there is one. To look
 * up the file asks for its times, which makes the next fsync write them, too: a sixth of a lone commit.
 */
function placeCheckOf(path: string): () => boolean {
  const targetOf = (link: string) => unlessSystemError(() => readlinkSync(link))
  const descriptors = unlessSystemError(() => readdirSync('/proc/self/fd')) ?? []
  const links = descriptors.map((name) => `/proc/self/fd/${name}`)
  const [link, ...others] = links.filter((name) => targetOf(name) === path)
  if (link !== undefined && others.length === 0) return () => targetOf(link) === path
  const identity = identityOf(path)
  return () => identity === undefined || identityOf(path) === identity
}

function unknownOutcome(why: string, cause?: unknown): PlantsError {
  const message = `${why} during a commit: whether it is stored is unknown`
  const hint = 'Check the disk first, then what is in the store: plants list'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
