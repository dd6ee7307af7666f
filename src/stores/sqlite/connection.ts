import { chmodSync, closeSync, openSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { must, systemCode, unlessSystemError } from '../../errors.js'
import { foldText } from '../../plant/folding.js'
import {
  isSameFile,
  isWritableFile,
  makeFolder,
  readBytes,
  syncFolder,
  whyOthersCanWrite,
} from '../../platform/files.js'
import type { Runtime } from '../../platform/runtime.js'
import {
  connect,
  type Database,
  retryWhileBusy,
  type Statement,
  uriOf,
} from '../../platform/sqlite.js'
import type { SqliteAddress } from '../address.js'
import { createClosedError, createUnusableStoreError, explainSqliteError } from './errors.js'
import { isStore, makeStore } from './schema.js'

export interface SqliteOptions {
  /** As messages name the file, such as "The journal": by default "The store". */
  noun?: string
  /** Milliseconds of a call. */
  timeout: number
  runtime: Runtime
  /** Called for a new store that is not the default one. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** Called for one that other users can change. */
  onExposed?: (warning: string) => Promise<void>
}

/** Without locks, other files and a look at its log. */
export const immutable = 'mode=ro&immutable=1'

/** A commit is on disk, by EXTRA also where there is no log. The cache has room for a chunk of an import. */
const settings = `PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
  PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8192`

export const foldFunction = 'plants_fold'

export class Connection {
  readonly db: Database
  /** SQLite keeps its files beside the target of a link. */
  readonly path: string
  readonly #options: SqliteOptions
  readonly #statements = new Map<string, Statement>()
  #isOpen = true

  private constructor(path: string, options: SqliteOptions) {
    // Only `rw` can roll back a journal, and create the log of a store.
    const readMode = unmergedChanges(path) === undefined ? immutable : 'mode=ro'
    const readOnly = !isWritableFile(path)
    this.path = path
    this.#options = options
    this.db = connect(uriOf(path, readOnly ? readMode : 'mode=rw'), { readOnly })
    addFoldFunction(this.db)
  }

  static async create({ name, isDefault }: SqliteAddress, options: SqliteOptions) {
    const isNew = makeFile(name, isDefault, options)
    const connection = must(await Connection.open(name, options, true))
    const { path } = connection
    if (isNew && !isDefault) await options.onCreated?.(path)
    const exposure = isNew && whyExposed(path)
    if (exposure) await options.onExposed?.(exposure)
    return { connection, isNew }
  }

  /** Undefined for a missing or empty file, unless it may become a store. */
  static async open(name: string, options: SqliteOptions, mayCreate = false) {
    let connection: Connection | undefined
    try {
      const path = realPathOf(name)
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
    statement.setReturnArrays(true) // two thirds of the time of objects
    this.#statements.set(sql, statement)
    return statement
  }

  /** Calls again while the store is locked, and explains errors. */
  async retry<T>(call: () => T, what = describeFile(this.path, this.#options)): Promise<T> {
    const { runtime, timeout } = this.#options
    try {
      const callIfOpen = () => {
        this.#assertOpen()
        return call()
      }
      return await retryWhileBusy(callIfOpen, { base: 2, max: 8 }, timeout, runtime)
    } catch (error) {
      throw explainSqliteError(error, this.path, what)
    }
  }

  get isInTransaction(): boolean {
    return this.#isOpen && this.db.isTransaction
  }

  /** What has not begun fails as `unavailable`, and a transaction is rolled back. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#statements.clear()
    // Else a read transaction would last until its statements are garbage-collected.
    if (this.db.isTransaction) this.db.exec('ROLLBACK')
    this.db.close()
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw createClosedError(this.path)
  }
}

export function addFoldFunction(db: Database): void {
  const options = { deterministic: true, directOnly: true }
  db.function(foldFunction, options, (text: unknown) => foldText(String(text)))
}

/** The file beside a store without which it is not complete. */
export function unmergedChanges(name: string): string | undefined {
  const path = realPathOf(name)
  const files = [`${path}-wal`, `${path}-journal`]
  return files.find((file) => statSync(file, { throwIfNoEntry: false })?.size)
}

function realPathOf(path: string): string {
  return unlessSystemError(() => realpathSync.native(path)) ?? path
}

/** SQLite would create it readable for others. Says whether it was missing. */
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

/** An empty file that becomes a store may be readable for others. SQLite gives its other files the same mode. */
function withdrawFromOthers(path: string, { mode }: Stats): void {
  if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** A journal can name a file that SQLite deletes (https://sqlite.org/fileformat2.html#the_rollback_journal). */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  if (readBytes(journal, stats.size - 8, 8).toString('hex') !== 'd9d505f920a163d7') return
  throw createUnusableStoreError(
    path,
    `cannot be used: SQLite would delete a file that ${journal} names`,
  )
}

/** Undefined unless others can create files beside it. */
export function whyExposed(path: string): string | undefined {
  const folder = dirname(realPathOf(path))
  const why = whyOthersCanWrite(statSync(folder))
  const sentence = `The store ${path} is exposed to other users: ${folder} ${why}`
  return why && `${sentence}. Move it to a directory that only you can write to`
}

/** Or of what SQLite may keep beside it. */
export function isPartOf(store: string, path: string): boolean {
  const [real, realStore] = [join(realPathOf(dirname(path)), basename(path)), realPathOf(store)]
  return ['', '-wal', '-shm', '-journal'].some(
    (end) => path === store + end || real === realStore + end || isSameFile(path, realStore + end),
  )
}
