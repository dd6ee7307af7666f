/**
 * Group commit. Transactions take turns on the one connection of a store. Changes that need no waiting share one: all
 * that have come when its turn begins are made in it, and share its fsync, which takes longer than all the rest.
 *
 * What was acknowledged must be found again, so the files of the store are looked up by their names: before a
 * transaction, which then stores nothing, and after its commit, whose outcome is then unknown. SQLite notices neither.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { PlantsError, unlessSystemError } from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'
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
  readonly #isInPlace: () => boolean
  #waiting: Job[] = []
  /** Ends with the transaction that was asked for last. */
  #lastTurn: Promise<unknown> = Promise.resolve()

  constructor(connection: Connection) {
    this.#connection = connection
    // The last two are missing where the store has a rollback journal.
    const checks = ['', '-wal', '-shm'].map((end) => placeCheckOf(connection.path + end))
    this.#isInPlace = () => checks.every((isInPlace) => isInPlace())
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
  transaction<T>(work: () => Promise<T>, commits: (result: T) => boolean = () => true): Promise<T> {
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
    try {
      const performAll = () => {
        for (const job of jobs) job.perform()
      }
      await this.#transact(performAll, () => true)
      for (const job of jobs) job.resolve()
    } catch (error) {
      for (const job of jobs) job.reject(error)
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
      // Another version of the program may have changed the store since it was opened.
      const [version]: [bigint] = prepare('PRAGMA user_version').get()
      assertVersion(version, path)
      const made = work()
      // Without an await where it can be left out: what reads meanwhile sees what is not committed yet.
      const result = made instanceof Promise ? await made : made
      isCommitting = commits(result)
      prepare(isCommitting ? 'COMMIT' : 'ROLLBACK').run()
      if (isCommitting && !this.#isInPlace()) throw unknownOutcome(gone)
      return result
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      // A commit whose fsync failed may be in the log, from where a crash would bring it back.
      const isUnknown = isCommitting && primaryCode(error) === 10 // IOERR
      throw isUnknown
        ? unknownOutcome(`The disk failed under ${path}`, error)
        : explained(error, path)
    }
  }
}

/**
 * Whether what SQLite has open still has this name, if it had it now. On Linux, the link of the descriptor tells, where
 * only one can be SQLite's. To look up the file itself asks for its times, which makes the next fsync of the log write
 * them, too, and lone commits a sixth slower.
 */
function placeCheckOf(path: string): () => boolean {
  const targetOf = (link: string) => unlessSystemError(() => readlinkSync(link))
  const descriptors = unlessSystemError(() => readdirSync('/proc/self/fd')) ?? []
  const links = descriptors.map((name) => `/proc/self/fd/${name}`)
  const [link, ...others] = links.filter((name) => targetOf(name) === path)
  if (link !== undefined && others.length === 0) return () => targetOf(link) === path
  const identityOf = () =>
    unlessSystemError(() => {
      const { dev, ino } = lstatSync(path, { bigint: true })
      return `${dev}:${ino}`
    })
  const identity = identityOf()
  return () => identity === undefined || identityOf() === identity
}

function unknownOutcome(why: string, cause?: unknown): PlantsError {
  const message = `${why} during a commit: whether it is stored is unknown`
  const hint = 'Check the disk first, then what is in the store: plants list'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
