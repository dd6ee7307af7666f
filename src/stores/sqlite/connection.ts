import { closeSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { must, systemCode, unlessSystemError } from '../../platform/errors.js'
import { isSameFile, makeFolder, syncFolder, whyOthersCanWrite } from '../../platform/files.js'
import type { Runtime } from '../../platform/runtime.js'
import {
  connect,
  type Database,
  retryWhileBusy,
  type Statement,
  uriOf,
} from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import { foldText } from '../common/search.js'
import { explained, isWritable, unusableStore } from './errors.js'
import { createStore, isStore } from './schema.js'

export interface SqliteOptions {
  /** Of a call, in milliseconds. */
  timeout: number
  runtime: Runtime
  /** Called when a store was created that is not the default one. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** Called when a store was created that other users can change. */
  onExposed?: ((warning: string, hint: string) => Promise<void>) | undefined
}

/** SQLite takes no locks on an immutable file, creates none beside it, and rolls nothing back. */
export const immutable = 'mode=ro&immutable=1'

const retryPolicyMs = { base: 2, max: 8 }

/**
 * A commit returns when it is on disk. EXTRA is FULL, and makes the end of a rollback journal durable, too, which a
 * backup has that is used as a store. Cache and log have room for a chunk of an import: each page is written once.
 */
const settings = `PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
  PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 4000`

/** The SQL functions that are `foldText`, and whether a text contains another, which is folded. */
export const foldFunction = 'plants_fold'
export const containsFunction = 'plants_contains'

/** An open file. Its statements return rows as arrays, which takes two thirds of the time of objects. */
export class Connection {
  readonly db: Database
  /** SQLite keeps its files beside the target of a link. */
  readonly path: string
  readonly #options: SqliteOptions
  readonly #statements = new Map<string, Statement>()

  private constructor(name: string, options: SqliteOptions) {
    this.path = realPathOf(name)
    if (!statSync(this.path).isFile()) throw unusableStore(this.path, 'is not a file')
    assertNoSuperJournal(this.path)
    this.#options = options
    const mode = modeOf(this.path)
    this.db = connect(uriOf(this.path, mode), { readOnly: mode !== 'mode=rw' })
    addFunctions(this.db)
  }

  /** Creates a missing store. Returns whether its file was missing. */
  static async create({ name, isDefault }: SqliteAddress, options: SqliteOptions) {
    const isNew = makeFile(name, isDefault)
    const connection = must(await Connection.open(name, options, true))
    const { path } = connection
    if (isNew && !isDefault) await options.onCreated?.(path)
    const exposure = isNew ? whyExposed(path) : undefined
    if (exposure !== undefined) await options.onExposed?.(exposure, exposureHint)
    return { connection, isNew }
  }

  /** Undefined for a missing or empty file, unless it may become a store. */
  static async open(
    name: string,
    options: SqliteOptions,
    mayCreate = false,
  ): Promise<Connection | undefined> {
    try {
      if (isEmpty(name) && !mayCreate) return undefined
      const connection = new Connection(name, options)
      return (await connection.#prepare(mayCreate)) ? connection : undefined
    } catch (error) {
      throw explained(error, name)
    }
  }

  /** Closes what is no store. */
  async #prepare(mayCreate: boolean): Promise<boolean> {
    let isPrepared = false
    try {
      isPrepared = await this.retry(() => {
        this.db.exec(settings)
        if (mayCreate) createStore(this.db, this.path)
        return isStore(this.db, this.path)
      })
      return isPrepared
    } finally {
      if (!isPrepared) this.close()
    }
  }

  readonly prepare = (sql: string): Statement => {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.db.prepare(sql)
    statement.setReturnArrays(true)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Calls again while another process has locked the store, until the timeout. Explains errors. */
  async retry<T>(call: () => T): Promise<T> {
    const { runtime, timeout } = this.#options
    try {
      return await retryWhileBusy(call, retryPolicyMs, timeout, runtime)
    } catch (error) {
      throw explained(error, this.path)
    }
  }

  close(): void {
    this.#statements.clear()
    try {
      // A read transaction would otherwise last until its statements are garbage-collected.
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
    } finally {
      this.db.close()
    }
  }
}

export function addFunctions(db: Database): void {
  const options = { deterministic: true, directOnly: true }
  db.function(foldFunction, options, (text: unknown) => foldText(String(text)))
  db.function(containsFunction, options, (text: unknown, folded: unknown) =>
    Number(foldText(String(text)).includes(String(folded))),
  )
}

/** Only `rw` can roll back a journal, and create the log of a store that nobody has open. */
function modeOf(path: string): string {
  if (isWritable(path)) return 'mode=rw'
  return unmergedChanges(path) === undefined ? immutable : 'mode=ro'
}

/** The file beside a store without which it is not complete. Undefined if there is none. */
export function unmergedChanges(name: string): string | undefined {
  const path = realPathOf(name)
  return [`${path}-wal`, `${path}-journal`].find((file) => !isEmpty(file))
}

function isEmpty(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats === undefined || (stats.isFile() && stats.size === 0)
}

function realPathOf(path: string): string {
  return unlessSystemError(() => realpathSync.native(path)) ?? path
}

/** Mode 0600: SQLite would create the file readable for others. Returns whether it was missing. */
function makeFile(path: string, isInDefaultFolder: boolean): boolean {
  try {
    if (isInDefaultFolder) makeFolder(dirname(path))
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw explained(error, path)
  }
}

/**
 * SQLite deletes the super-journal that a journal names at its end, when it rolls back
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). Transactions of a store have none: they change one file.
 */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  if (readBytes(journal, stats.size - 8, 8).toString('hex') !== 'd9d505f920a163d7') return
  const why = `is not a store of plants: ${journal} names another file, which SQLite would delete`
  throw unusableStore(path, why)
}

export function readBytes(path: string, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const fd = openSync(path, 'r')
  readSync(fd, bytes, 0, length, position)
  closeSync(fd)
  return bytes
}

export const exposureHint = 'Move it to a directory that only you can write to'

/** Why other users can create files beside a store, which become a part of it. Undefined if they cannot. */
export function whyExposed(path: string): string | undefined {
  const folder = dirname(path)
  const why = whyOthersCanWrite(statSync(folder))
  return why && `The store ${path} is exposed to other users: ${folder} ${why}`
}

/** Whether a path names the store, or a file that SQLite keeps beside it, which need not exist. */
export function isPartOf(store: string, path: string): boolean {
  return ['', '-wal', '-shm', '-journal'].some(
    (end) => path === store + end || isSameFile(path, realPathOf(store) + end),
  )
}
