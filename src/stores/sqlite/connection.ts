import { chmodSync, closeSync, openSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { assertDefined, systemCode, unlessSystemError } from '../../errors.js'
import { foldText } from '../../plant/folding.js'
import {
  explainWriteAccess,
  isSameFile,
  isWritableFile,
  makeFolder,
  readBytes,
  syncFolder,
} from '../../platform/files.js'
import type { Runtime } from '../../platform/runtime.js'
import {
  buildUri,
  connect,
  type Database,
  retryWhileBusy,
  type Statement,
} from '../../platform/sqlite.js'
import type { SqliteAddress } from '../address.js'
import { createClosedError, createUnusableStoreError, explainSqliteError } from './errors.js'
import { isStore, makeStore } from './schema.js'

export interface SqliteOptions {
  /**
   * The noun that messages have for the file, such as "The journal". The default is "The store".
   */
  noun?: string
  /** How long a call waits for a lock of another program. */
  timeoutMs: number
  runtime: Runtime
  /** This is called for a new store that is not the default one. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** This is called for a new store that other users can change. */
  onExposed?: (warning: string) => Promise<void>
}

/** The file that an error of a call concerns, and how messages name it. */
interface UsedFile {
  path: string
  subject: string
}

/** With this, SQLite takes no locks, uses no other files and does not look for a log. */
export const immutable = 'mode=ro&immutable=1'

/**
 * A commit returns when it is on disk; EXTRA makes it so in a backup, too, which has no log. The
 * cache has room for a chunk of an import.
 */
const settings = `
  PRAGMA synchronous = EXTRA;
  PRAGMA fullfsync = 1;
  PRAGMA checkpoint_fullfsync = 1;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA cache_size = -8192`

/** Another writer has the lock for some milliseconds. */
const backoff = { firstMs: 2, longestMs: 8 }

export const foldFunction = 'plants_fold'

export class Connection {
  readonly db: Database
  /** The target of a link, because SQLite keeps its other files next to that. */
  readonly path: string
  readonly #options: SqliteOptions
  readonly #statements = new Map<string, Statement>()
  #isOpen = true

  private constructor(path: string, options: SqliteOptions) {
    const readOnly = !isWritableFile(path)
    this.path = path
    this.#options = options
    this.db = connect(buildUri(path, readOnly ? chooseReadMode(path) : 'mode=rw'), { readOnly })
    addFoldFunction(this.db)
  }

  static async create({ name, isDefault }: SqliteAddress, options: SqliteOptions) {
    const isNew = makeFile(name, isDefault, options)
    const connection = assertDefined(await Connection.open(name, options, true))
    const { path } = connection
    if (isNew && !isDefault) await options.onCreated?.(path)
    const exposure = isNew && explainExposure(path)
    if (exposure) await options.onExposed?.(exposure)
    return { connection, isNew }
  }

  /** Returns undefined for a missing or empty file, unless it may become a store. */
  static async open(name: string, options: SqliteOptions, mayCreate = false) {
    let connection: Connection | undefined
    try {
      const path = resolveRealPath(name)
      const stats = statSync(path, { throwIfNoEntry: mayCreate })
      if (!stats?.size && !mayCreate) return undefined
      if (!stats?.isFile()) throw createUnusableStoreError(path, 'is not a file')
      if (stats.size === 0) withdrawFromOthers(path, stats)
      assertNoSuperJournal(path)
      connection = new Connection(path, options)
      const { db } = connection
      const exists = await connection.retry(() => {
        db.exec(settings)
        if (mayCreate) makeStore(db, path)
        return isStore(db, path)
      })
      if (exists) return connection
      connection.close()
      return undefined
    } catch (error) {
      connection?.close()
      throw explainSqliteError(error, name, describeFile(name, options))
    }
  }

  readonly prepare = (sql: string): Statement => {
    this.#assertOpen()
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.db.prepare(sql)
    statement.setReturnArrays(true) // Arrays take two thirds of the time of objects.
    this.#statements.set(sql, statement)
    return statement
  }

  /** Repeats a call while another program has locked the store, and explains errors. */
  async retry<T>(call: () => T, file: UsedFile = this.#describe()): Promise<T> {
    const { runtime, timeoutMs } = this.#options
    try {
      const callIfOpen = () => {
        this.#assertOpen()
        return call()
      }
      return await retryWhileBusy(callIfOpen, { backoff, timeoutMs, runtime })
    } catch (error) {
      throw explainSqliteError(error, file.path, file.subject)
    }
  }

  #describe(): UsedFile {
    return { path: this.path, subject: describeFile(this.path, this.#options) }
  }

  get isInTransaction(): boolean {
    return this.#isOpen && this.db.isTransaction
  }

  /** Rolls back a transaction. Calls that have not begun fail as `unavailable`. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#statements.clear()
    // Without this, a read transaction would last until its statements are garbage-collected.
    if (this.db.isTransaction) this.db.exec('ROLLBACK')
    this.db.close()
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw createClosedError(this.path)
  }
}

function addFoldFunction(db: Database): void {
  const options = { deterministic: true, directOnly: true }
  db.function(foldFunction, options, (text: unknown) => foldText(String(text)))
}

/**
 * With `mode=ro`, SQLite can neither roll back a journal nor create the log of a store. So a store
 * that needs neither is read as a file that does not change.
 */
function chooseReadMode(path: string): string {
  return findUnmergedFile(path) === undefined ? immutable : 'mode=ro'
}

/** Finds the file next to a store that holds changes which are not in the store yet. */
export function findUnmergedFile(name: string): string | undefined {
  const path = resolveRealPath(name)
  const files = [`${path}-wal`, `${path}-journal`]
  return files.find((file) => statSync(file, { throwIfNoEntry: false })?.size)
}

function resolveRealPath(path: string): string {
  return unlessSystemError(() => realpathSync.native(path)) ?? path
}

/**
 * Creates the file of a store, which SQLite would create readable for others.
 *
 * @returns whether it was missing
 */
function makeFile(path: string, isInDefaultFolder: boolean, options: SqliteOptions): boolean {
  try {
    if (isInDefaultFolder) makeFolder(dirname(path))
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw explainSqliteError(error, path, describeFile(path, options))
  }
}

function describeFile(path: string, { noun = 'The store' }: SqliteOptions): string {
  return `${noun} ${path}`
}

/**
 * An empty file that becomes a store may be readable for others. SQLite gives the log and its index
 * the mode of the store.
 */
function withdrawFromOthers(path: string, { mode }: Stats): void {
  if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** A journal that names a super-journal ends with these bytes. */
const journalMagic = 'd9d505f920a163d7'

/**
 * A journal can name a super-journal, which SQLite deletes, whatever file that is
 * (https://sqlite.org/fileformat2.html#the_rollback_journal).
 */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  if (readBytes(journal, stats.size - 8, 8).toString('hex') !== journalMagic) return
  throw createUnusableStoreError(
    path,
    `cannot be used: SQLite would delete a file that ${journal} names`,
  )
}

/** Returns undefined unless others can create files next to the store. */
export function explainExposure(path: string): string | undefined {
  const folder = dirname(resolveRealPath(path))
  const why = explainWriteAccess(statSync(folder))
  const sentence = `The store ${path} is exposed to other users: ${folder} ${why}`
  return why && `${sentence}. Move it to a directory that only you can write to`
}

/** Whether a path is that of the store, or of a file that SQLite may keep next to it. */
export function belongsToStore(store: string, path: string): boolean {
  const realStore = resolveRealPath(store)
  const realPath = join(resolveRealPath(dirname(path)), basename(path))
  return ['', '-wal', '-shm', '-journal'].some((end) => {
    const hasItsName = path === store + end || realPath === realStore + end
    return hasItsName || isSameFile(path, realStore + end)
  })
}
