import {
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, systemCode, unlessSystemError } from '../../platform/errors.js'
import { isSameFile, makeFolder, syncFolder, whyOthersCanWrite } from '../../platform/files.js'
import type { Runtime } from '../../platform/runtime.js'
import {
  connect,
  type Database,
  isBusy,
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

/** Of an immutable file, SQLite takes no locks, creates no file beside it, and rolls nothing back. */
export const immutable = 'mode=ro&immutable=1'
type OpenMode = 'mode=rw' | 'mode=ro' | typeof immutable

/** In milliseconds. */
const retryPolicy = { base: 2, max: 8 }

/**
 * A commit returns when it is on disk. EXTRA is FULL, and makes the end of a rollback journal durable, too, which a
 * backup has that is used as a store. Cache and log have room for a chunk of an import: each page is written once.
 */
const settings = `PRAGMA synchronous = EXTRA; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
  PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 4000`

/** The SQL function that is `foldText`. */
export const foldFunction = 'plants_fold'

/** An open file. Its statements return rows as arrays, which takes two thirds of the time of objects. */
export class Connection {
  readonly db: Database
  readonly path: string
  readonly #options: SqliteOptions
  readonly #statements = new Map<string, Statement>()
  #placeChecks: (() => boolean)[] = []

  private constructor(name: string, mode: OpenMode, options: SqliteOptions) {
    this.path = realPathOf(name)
    if (!statSync(this.path).isFile()) throw unusableStore(this.path, 'is not a file')
    assertNoSuperJournal(this.path)
    this.#options = options
    this.db = connect(uriOf(this.path, mode), { readOnly: mode !== 'mode=rw' })
    addFoldFunction(this.db)
  }

  /** Creates a missing store. Returns whether it was missing. */
  static async create({ name, isDefault }: SqliteAddress, options: SqliteOptions) {
    try {
      makeFile(name, isDefault)
      const mode = isEmpty(name) ? 'mode=rw' : modeOf(name)
      const connection = new Connection(name, mode, options)
      const prepare = mode === 'mode=rw' ? createStore : isStore
      const isNew = (await connection.#prepare(prepare)) && mode === 'mode=rw'
      return { connection, isNew }
    } catch (error) {
      throw explained(error, name)
    }
  }

  /** Undefined for a missing or empty file. @param mode by default as the permissions allow */
  static async open(
    name: string,
    options: SqliteOptions,
    mode?: OpenMode,
  ): Promise<Connection | undefined> {
    try {
      if (isEmpty(name)) return undefined
      const connection = new Connection(name, mode ?? modeOf(name), options)
      if (await connection.#prepare(isStore)) return connection
      connection.close()
      return undefined
    } catch (error) {
      throw explained(error, name)
    }
  }

  async #prepare(action: (db: Database, path: string) => boolean): Promise<boolean> {
    try {
      return await this.retry(() => {
        this.db.exec(settings)
        const result = action(this.db, this.path)
        // The last two are missing where the store has a rollback journal.
        this.#placeChecks = placeChecksOf(['', '-wal', '-shm'].map((end) => this.path + end))
        return result
      })
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Whether the store and its log still have their names: what is written to others is lost. */
  isInPlace(): boolean {
    return this.#placeChecks.every((isInPlace) => isInPlace())
  }

  prepare(sql: string): Statement {
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
      return await retryWhileBusy(call, retryPolicy, timeout, runtime)
    } catch (error) {
      if (!isBusy(error)) throw explained(error, this.path)
      const message = `The store ${this.path} was in use by another process for ${timeout / 1000} s`
      const hint = 'Try again, or wait longer with --timeout 2m'
      throw new PlantsError('unavailable', message, { hint, cause: error })
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

export function addFoldFunction(db: Database): void {
  const options = { deterministic: true, directOnly: true }
  db.function(foldFunction, options, (text: unknown) => foldText(String(text)))
}

/** Only `rw` can roll back a journal, and create the log of a store that nobody has open. */
function modeOf(path: string): OpenMode {
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

/**
 * For each path, a function that returns whether what SQLite has open there still has this name. On Linux, the link of
 * the descriptor tells, where only one can be SQLite's. To look up the file itself asks for its times, which makes the
 * next fsync of the log write them, too, and lone commits a sixth slower.
 */
function placeChecksOf(paths: string[]): (() => boolean)[] {
  const folder = '/proc/self/fd'
  const descriptors = unlessSystemError(() => readdirSync(folder)) ?? []
  const links = descriptors.map((name) => join(folder, name))
  const targetOf = (link: string) => unlessSystemError(() => readlinkSync(link))
  const targets = links.map(targetOf)
  return paths.map((path) => {
    const [link, ...others] = links.filter((_, index) => targets[index] === path)
    if (link !== undefined && others.length === 0) return () => targetOf(link) === path
    const identityOf = () => {
      const stats = unlessSystemError(() => lstatSync(path, { bigint: true }))
      return stats && `${stats.dev}:${stats.ino}`
    }
    const identity = identityOf()
    return () => identity === undefined || identityOf() === identity
  })
}

/** SQLite keeps its files beside the target of a link. A missing file has the path that it is given. */
function realPathOf(path: string): string {
  return unlessSystemError(() => realpathSync.native(path)) ?? path
}

/**
 * Mode 0600: SQLite would create the file readable for others. An existing file is not opened: to close it would drop
 * the locks that SQLite has on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 */
function makeFile(path: string, isInDefaultFolder: boolean): void {
  if (isInDefaultFolder) makeFolder(dirname(path))
  try {
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/**
 * A journal can end with the name of a super-journal, which SQLite deletes when it rolls back
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). No transaction of a store has one: it changes one file.
 */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  if (!statSync(journal, { throwIfNoEntry: false })?.isFile()) return
  const end = Buffer.alloc(8)
  const fd = openSync(journal, 'r')
  readSync(fd, end, 0, end.length, Math.max(0, fstatSync(fd).size - end.length))
  closeSync(fd)
  if (end.toString('hex') !== 'd9d505f920a163d7') return
  const why = `is not a store of plants: ${journal} names another file, which SQLite would delete`
  throw unusableStore(path, why)
}

export const exposureHint = 'Move it to a directory that only you can write to'

/** Why other users can create files beside a store, which become a part of it. Undefined if they cannot. */
export function whyExposed(path: string): string | undefined {
  const directory = dirname(path)
  const why = whyOthersCanWrite(statSync(directory))
  return why && `The store ${path} is exposed to other users: ${directory} ${why}`
}

/** Whether a path names the store, or a file that SQLite keeps beside it, which need not exist. */
export function isPartOf(store: string, path: string): boolean {
  const names = [path, join(realPathOf(dirname(path)), basename(path))]
  return [store, realPathOf(store)].some((file) =>
    ['', '-wal', '-shm', '-journal'].some(
      (end) => names.includes(file + end) || isSameFile(path, file + end),
    ),
  )
}
