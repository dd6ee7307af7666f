import { dirname } from 'node:path'
import { PlantsError } from '../../platform/errors.js'
import { syncFolder } from '../../platform/files.js'
import { isSqliteError, primaryCode } from '../../platform/sqlite.js'
import type { Connection, SqliteOptions } from './sqlite-connection.js'
import {
  explainFailure,
  isLimited,
  nothingChanged,
  notOurs,
  replacedStore,
} from './sqlite-errors.js'
import { dataVersion, isStore, schemaStamp } from './sqlite-schema.js'
import {
  type DirectoryVersion,
  directoryVersion,
  fileHasContent,
  identityOf,
  isSameVersion,
} from './store-file.js'

interface Job {
  creates: number
  /** May yield to the event loop. */
  isAlone: boolean
  /** Returns whether its transaction is committed. */
  perform(): boolean | Promise<boolean>
  settle(): void
  reject(error: unknown): void
}

/** The most jobs in a transaction, about 10 ms: other processes can write between transactions. */
const batchSize = 1000

/** In milliseconds: a commit that also merges the log into the file takes longer. */
const maxCommitTime = 20

/** In milliseconds, more than the steps in which a file system counts time: those of FAT are two seconds. */
const timeStep = 3000

/** In milliseconds. Some changes keep the version of a directory, such as a mount over a file in it. */
const trustTime = 1000

const suffixes = ['-wal', '-shm']
const missing = 'ENOENT'

/** Group commit: jobs that wait at the same time share one transaction and one fsync. */
export class SqliteWriter {
  readonly #connection: Connection
  readonly #options: SqliteOptions
  #jobs: Job[] = []
  #isRunning = false
  /** The identities of the files that SQLite keeps beside the store, which do not change while a connection is open. */
  readonly #beside: string[]
  /** Since when the store's directory has this version, and how long that means that the store is in its place. */
  #directory: { version?: DirectoryVersion | undefined; since: number; trustedUntil: number } = {
    since: 0,
    trustedUntil: 0,
  }
  /** Whether the name of the log is on disk. */
  #isLogNamed = false
  /** How long the last shared commit took, in milliseconds. */
  #commitTime = 0
  /** Of the schema that was checked last. */
  #checked: { version?: unknown; stamp?: string } = {}

  constructor(connection: Connection, options: SqliteOptions) {
    this.#connection = connection
    this.#options = options
    // The check that the file is a store has opened them, except for one with a rollback journal, such as a backup.
    this.#beside = suffixes.map((suffix) => identityOf(connection.path + suffix))
  }

  /** An error of `work` rolls back the transaction and rejects all calls that share it. */
  write<T>(work: () => T, creates = 0): Promise<T> {
    return this.#add(work, creates, false)
  }

  /** `work` may yield to the event loop. Nothing else may use the connection meanwhile. */
  transact<T>(work: () => Promise<T>, commits?: (result: T) => boolean): Promise<T> {
    return this.#add(work, 0, true, commits)
  }

  #add<T>(
    work: () => T | Promise<T>,
    creates: number,
    isAlone: boolean,
    commits: (result: T) => boolean = () => true,
  ) {
    return new Promise<T>((resolve, reject) => {
      let result: T | Promise<T>
      const perform = () => {
        result = work()
        return isAlone ? Promise.resolve(result).then(commits) : true
      }
      this.#jobs.push({ creates, isAlone, perform, settle: () => resolve(result), reject })
      if (this.#isRunning) return
      this.#isRunning = true
      // By default in the next turn of the event loop, so that simultaneous calls share a transaction.
      if (this.#options.isOnlyCaller?.()) void this.#run()
      else setImmediate(() => this.#run())
    })
  }

  /** Never rejects: an error, also a defect, rejects the jobs that it concerns, and must not end the loop. */
  async #run(): Promise<void> {
    while (this.#jobs.length > 0) {
      let jobs = this.#jobs
      try {
        await this.#gather()
        await this.#begin()
        jobs = this.#next()
        await this.#commit(jobs)
      } catch (error) {
        if (jobs === this.#jobs) this.#jobs = []
        for (const job of jobs) job.reject(explainFailure(error, this.#connection.path))
      }
    }
    this.#isRunning = false
  }

  /**
   * Lets the event loop turn while each turn brings another job, for at most two commits: a turn accepts one
   * connection, and without this, each new connection of a burst would wait for a commit of its own.
   */
  async #gather(): Promise<void> {
    const { runtime, isOnlyCaller } = this.#options
    const end = runtime.now() + 2 * this.#commitTime
    if (this.#jobs[0]?.isAlone || isOnlyCaller?.()) return
    for (let known = 0; known < this.#jobs.length && known < batchSize && runtime.now() < end; ) {
      known = this.#jobs.length
      await new Promise(setImmediate)
    }
  }

  #next(): Job[] {
    const alone = this.#jobs.findIndex(({ isAlone }) => isAlone)
    return this.#jobs.splice(0, alone === -1 ? batchSize : Math.max(1, Math.min(batchSize, alone)))
  }

  async #begin(): Promise<void> {
    const { prepare, path } = this.#connection
    try {
      await this.#connection.retry(() => prepare('BEGIN IMMEDIATE').run())
      if (!this.#isInPlace()) throw replacedStore(path)
      this.#nameLog()
      this.#checkSchema()
    } catch (error) {
      this.#rollBack()
      throw nothingChanged(error, this.#options.runtime.handleSignals())
    }
  }

  #checkSchema(): void {
    const version = dataVersion(this.#connection)
    if (version === this.#checked.version) return
    const stamp = schemaStamp(this.#connection)
    if (stamp !== this.#checked.stamp && !isStore(this.#connection))
      throw notOurs(this.#connection.path, 'contains no store')
    this.#checked = { version, stamp }
  }

  async #commit(jobs: Job[]): Promise<void> {
    const { prepare, path } = this.#connection
    const { now } = this.#options.runtime
    const start = now()
    let isDone = false
    try {
      let isCommitted = true
      for (const job of jobs) {
        const commits = job.perform()
        if (job.isAlone) isCommitted = await commits
      }
      isDone = isCommitted
      prepare(isCommitted ? 'COMMIT' : 'ROLLBACK').run()
      if (!jobs[0]?.isAlone) this.#commitTime = Math.min(now() - start, maxCommitTime)
    } catch (error) {
      this.#rollBack()
      // On an I/O error, such as of a sync, the commit may be in the log, from where a crash would bring it back.
      throw isDone && primaryCode(error) === 10 ? commitFailed(path, error) : error
    }
    const creates = jobs.reduce((sum, job) => sum + job.creates, 0)
    if (creates > 0) this.#options.onCommit?.(creates)
    if (!this.#isInPlace())
      throw outcomeUnknown(`${path} or its log was deleted or replaced`, checkDisk)
    for (const job of jobs) job.settle()
  }

  /**
   * Writes to a moved or deleted file, or -wal file, would be lost, and with another -shm file than theirs, processes
   * write over each other. To rename or delete a file changes the version of its directory. To read that takes less time
   * than to read those of three files, and does not slow down the next sync: on Linux, after a `stat` of the log, that
   * has to write its inode, too (multigrain timestamps). A version that is younger than a step of time may be that of
   * two changes.
   */
  #isInPlace(): boolean {
    const { path, identity } = this.#connection
    const now = this.#options.runtime.now()
    const version = directoryVersion(dirname(path))
    if (!isSameVersion(version, this.#directory.version))
      this.#directory = { version, since: now, trustedUntil: 0 }
    if (now < this.#directory.trustedUntil) return true
    const isBeside = (suffix: string, index: number) => {
      const found = identityOf(path + suffix)
      if (this.#beside[index] === missing) this.#beside[index] = found // another process may have begun a log
      return found === this.#beside[index] && (found === missing || found.includes(':'))
    }
    const isInPlace = identityOf(path) === identity && suffixes.every(isBeside)
    if (isInPlace && now - this.#directory.since > timeStep)
      this.#directory.trustedUntil = now + trustTime
    return isInPlace
  }

  /**
   * A power failure takes a log whose name is not on disk, with all that it holds. SQLite syncs the directory, too, but
   * ignores whether that succeeds. The process that wrote the first bytes of a log has named it.
   */
  #nameLog(): void {
    const { path } = this.#connection
    if (!this.#isLogNamed && !fileHasContent(`${path}-wal`)) syncFolder(dirname(path))
    this.#isLogNamed = true
  }

  /** Closing the connection rolls back as well. */
  #rollBack(): void {
    try {
      if (this.#connection.db.isTransaction) this.#connection.db.exec('ROLLBACK')
    } catch (error) {
      if (!isSqliteError(error)) throw error
    }
  }
}

function commitFailed(path: string, cause: unknown): PlantsError {
  return isLimited(path)
    ? outcomeUnknown(
        `A file of ${path} reached the size limit (ulimit -f)`,
        'Raise the limit first: ulimit -f unlimited',
        cause,
      )
    : outcomeUnknown(`The disk failed under ${path}`, checkDisk, cause)
}

const checkDisk = 'Check the disk first, then what is in the store: plants list'

function outcomeUnknown(why: string, hint: string, cause?: unknown): PlantsError {
  const message = `${why} during a commit: whether it is stored is unknown`
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
