/**
 * Opens the file of a store, and runs statements on it. It makes the settings that a store needs,
 * and does not use files that another user may have put next to the store as a trap.
 */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import {
  assertDefined,
  fileInFolderHint,
  getSystemCode,
  ignoreSystemError,
  PlantsError,
} from '../../errors.js'
import { foldString } from '../../plant/folding.js'
import {
  explainWriteAccess,
  ignoreMissingFile,
  isSameFile,
  isThisUser,
  isWritableFile,
  makeFolder,
  readBytes,
  resolveRealPath,
  statIfExists,
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
import { createClosedError, createUnusableStoreError, explainSqliteError } from './explain.js'
import { assertOrdinaryTables, createTablesIfMissing, isStore } from './schema.js'

export interface SqliteOptions {
  /** Messages call the file this, such as "The backup". The default is "The store". */
  noun?: string
  /** A call waits for a lock of another program no longer than this. */
  timeoutMs: number
  runtime: Runtime
  /** This is called for a new store that is not the default one. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** This is called for a new store that other users can change. */
  onExposed?: (warning: string) => Promise<void>
}

interface NamedFile {
  path: string
  /** The message of an error about the file begins with this, such as "The store /srv/a.db". */
  subject: string
}

const writeMode = 'mode=rw'
/** With this parameter, SQLite also reads the log, and creates its files if they are missing. */
const readMode = 'mode=ro'
/** With these parameters of a URI, SQLite takes no locks, and looks for no log or journal. */
export const immutableParameters = 'mode=ro&immutable=1'

/**
 * A commit must return only when it is on the disk. A store with a log needs FULL for that. A
 * backup that is opened as a store has a rollback journal, and only EXTRA syncs its directory. On
 * macOS, only F_FULLFSYNC reaches the disk. The cache has 8 MiB, room for a chunk of an import.
 */
const pragmas = `
  PRAGMA synchronous = EXTRA;
  PRAGMA fullfsync = 1;
  PRAGMA checkpoint_fullfsync = 1;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA cache_size = -8192`

/** Another writer usually holds the lock for some milliseconds, so the pauses are short. */
const backoff = { firstMs: 2, longestMs: 8 }

export const foldFunction = 'plants_fold'

/**
 * What a store is opened for:
 *
 * - `read`: a missing store is not created, although the store may be changed if this user may.
 * - `write`: a missing store is created, and this user must be able to change it.
 * - `serve`: a missing store is created, and this process must see what others commit, such as a
 *   revoked token. It may only be able to read the store.
 */
type Purpose = 'read' | 'write' | 'serve'

export class Connection {
  readonly db: Database
  /**
   * If the address is a link, this is the target of the link, because SQLite keeps its log next to
   * the target.
   */
  readonly path: string
  readonly #options: SqliteOptions
  readonly #statements = new Map<string, Statement>()
  readonly isReadOnly: boolean
  readonly #mode: OpenMode
  #isOpen = true

  private constructor(path: string, options: SqliteOptions, mode: OpenMode) {
    this.path = path
    this.isReadOnly = mode.parameters !== writeMode
    this.#options = options
    this.#mode = mode
    this.db = connect(buildUri(path, mode.parameters), { readOnly: this.isReadOnly })
    addFoldFunction(this.db)
  }

  /**
   * Opens the file of a store, and creates what is missing: its folder, if it is the default store,
   * the file, and the tables.
   *
   * @throws {PlantsError} `accessDenied` to `write` without the permission, and to `serve` a store
   *   of which a service would see one state for ever
   * @returns whether this call has created the file, as `isNew`
   */
  static async openOrCreate(
    { name, isDefault }: SqliteAddress,
    purpose: 'write' | 'serve',
    options: SqliteOptions,
  ) {
    const isNew = createFileIfMissing(name, isDefault, options)
    const connection = assertDefined(await Connection.#open(name, purpose, options))
    const { path } = connection
    if (isNew && !isDefault) await options.onCreated?.(path)
    const exposure = isNew && explainExposure(path)
    if (exposure) await options.onExposed?.(exposure)
    return { connection, isNew }
  }

  /** @returns undefined for a missing file, and for one without a store, such as an empty one */
  static openExisting(name: string, options: SqliteOptions): Promise<Connection | undefined> {
    return Connection.#open(name, 'read', options)
  }

  /** @param hasLostLog whether an earlier call has found no log that it could read */
  static async #open(
    name: string,
    purpose: Purpose,
    options: SqliteOptions,
    hasLostLog = false,
  ): Promise<Connection | undefined> {
    const mayCreate = purpose !== 'read'
    let connection: Connection | undefined
    try {
      const path = resolveRealPath(name)
      const stats = mayCreate ? statSync(path) : statIfExists(path)
      if (stats?.isDirectory())
        throw createUnusableStoreError(path, 'is a directory', fileInFolderHint)
      if (stats && !stats.isFile()) throw createUnusableStoreError(path, 'is not a file')
      if (!stats || (stats.size === 0 && !mayCreate)) return undefined
      if (stats.size === 0) restrictToOwner(path, stats)
      assertNoSuperJournal(path)
      connection = new Connection(path, options, chooseMode(path, purpose, hasLostLog))
      const { db, isReadOnly } = connection
      const hasStore = await connection.retryWhileLocked(() => {
        db.exec(pragmas)
        if (mayCreate) createTablesIfMissing(db, path, { isReadOnly })
        const isFilled = isStore(db, path)
        if (isFilled) assertOrdinaryTables(db, path, 'main')
        return isFilled
      })
      if (hasStore) return connection
      connection.close()
      return undefined
    } catch (error) {
      connection?.close()
      if (!mayCreate && connection?.hasLostLog())
        return Connection.#open(name, purpose, options, true)
      throw explainSqliteError(error, name, describeFile(name, options))
    }
  }

  readonly prepare = (sql: string): Statement => {
    this.#assertOpen()
    const cachedStatement = this.#statements.get(sql)
    if (cachedStatement) return cachedStatement
    const statement = this.db.prepare(sql)
    // To read rows as arrays takes two thirds of the time that objects take.
    statement.setReturnArrays(true)
    this.#statements.set(sql, statement)
    return statement
  }

  /**
   * Repeats a call while another program has locked the store.
   *
   * @param call must be safe to repeat: it may have read something before it found the lock
   * @param file the file that an error is about; by default, that is the store
   * @throws {PlantsError} an explained error: see `explainSqliteError`
   */
  async retryWhileLocked<T>(call: () => T, file: NamedFile = this.#nameStore()): Promise<T> {
    const { runtime, timeoutMs } = this.#options
    try {
      const callIfOpen = () => {
        this.#assertOpen()
        return call()
      }
      const result = await retryWhileBusy(callIfOpen, { backoff, timeoutMs, runtime })
      this.#assertUnchanged()
      return result
    } catch (error) {
      // A file that changes while it is read also looks damaged.
      this.#assertUnchanged()
      throw explainSqliteError(error, file.path, file.subject)
    }
  }

  /** Whether the log that was to be read is gone, because the last writer closed the store. */
  hasLostLog(): boolean {
    return this.#mode.parameters === readMode && findUnmergedFile(this.path) === undefined
  }

  /**
   * SQLite does not notice that an immutable file changes, as when its owner writes to it for the
   * first time. What it reads then is a mixture of old and new pages.
   */
  #assertUnchanged(): void {
    const { fingerprint } = this.#mode
    if (fingerprint !== undefined && fingerprint !== readFingerprint(this.path))
      throw createChangedFileError(describeFile(this.path, this.#options))
  }

  #nameStore(): NamedFile {
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
    // A statement that was not read to its end keeps the database open until the statement is
    // collected as garbage. Its read transaction would also stay, which keeps SQLite from emptying
    // the log.
    if (this.db.isTransaction) this.db.exec('ROLLBACK')
    this.db.close()
  }

  #assertOpen(): void {
    if (!this.#isOpen) throw createClosedError(this.path)
  }
}

function addFoldFunction(db: Database): void {
  const options = { deterministic: true, directOnly: true }
  db.function(foldFunction, options, (text: unknown) => foldString(String(text)))
}

interface OpenMode {
  /** The parameters of the URI. */
  parameters: string
  /** What an immutable file was before it was read. */
  fingerprint?: string | undefined
}

/**
 * With `mode=ro`, SQLite sees what others commit, but creates the log of the store and its index if
 * they are missing. A service needs that. A command that only reads must not do that: the owner of
 * the store could not write to files of another user. So where nobody has the store open, it reads
 * the file as one that never changes.
 *
 * @throws the error of the system if the file must be written to, and this user may not do that
 */
function chooseMode(path: string, purpose: Purpose, hasLostLog: boolean): OpenMode {
  if (purpose === 'write')
    for (const target of [dirname(path), path]) accessSync(target, constants.W_OK)
  if (isWritableFile(path)) return { parameters: writeMode }
  if (purpose === 'serve') {
    assertSeesCommits(path)
    return { parameters: readMode }
  }
  // The fingerprint is read before the log is looked for. So a file without a log is complete as
  // long as it has this fingerprint.
  const fingerprint = readFingerprint(path)
  const hasChanges = findUnmergedFile(path) !== undefined
  const isInUse = !hasLostLog && existsSync(`${path}-shm`)
  return hasChanges || isInUse
    ? { parameters: readMode }
    : { parameters: immutableParameters, fingerprint }
}

/**
 * If a store has a log, SQLite finds the commits of others in its index, to which readers write,
 * too. A service that may not write to the store may create this index if the owner of the
 * store can use it, as root can.
 */
function assertSeesCommits(path: string): void {
  if (!hasLogFormat(path)) return
  const { uid } = statSync(path)
  const ownerCanUseIndex = uid === 0 || isThisUser(uid)
  if (ownerCanUseIndex && isWritableFile(`${path}-shm`)) return
  throw createUnusableStoreError(
    path,
    'cannot be served: without write access to it and its directory, a service misses changes',
    'Give this user write access to the directory and the file, or serve a backup',
  )
}

/** Returns whether the header of a file says that it has a write-ahead log. */
export function hasLogFormat(path: string): boolean {
  return readBytes(path, 18, 1)[0] === 2
}

/**
 * @returns a string that changes when the file is written to or replaced; undefined for a file that
 *   is missing
 */
export function readFingerprint(path: string): string | undefined {
  const stats = ignoreSystemError(() => statSync(path, { bigint: true }))
  return stats && [stats.dev, stats.ino, stats.size, stats.mtimeNs].join()
}

/** @param subject such as "The store /srv/a.db" */
export function createChangedFileError(subject: string): PlantsError {
  const message = `${subject} was changed while it was read`
  return new PlantsError('unavailable', message, { hint: 'Try again' })
}

/** Finds the log or the journal of a store, if it holds changes that are not in the store yet. */
export function findUnmergedFile(name: string): string | undefined {
  const path = resolveRealPath(name)
  const files = [`${path}-wal`, `${path}-journal`]
  return files.find((file) => statSync(file, { throwIfNoEntry: false })?.size)
}

/**
 * Creates the file of a store if it is missing. SQLite would create a file that others can read.
 *
 * @returns true if the file was missing
 */
function createFileIfMissing(
  path: string,
  isInDefaultFolder: boolean,
  options: SqliteOptions,
): boolean {
  try {
    if (isInDefaultFolder) makeFolder(dirname(path))
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
    return true
  } catch (error) {
    if (getSystemCode(error) === 'EEXIST') return false
    throw explainSqliteError(error, path, describeFile(path, options))
  }
}

function describeFile(path: string, { noun = 'The store' }: SqliteOptions): string {
  return `${noun} ${path}`
}

/**
 * Removes the permissions of other users from an empty file that becomes a store. The log and its
 * index get the permissions of the store from SQLite.
 */
function restrictToOwner(path: string, { mode }: Stats): void {
  if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** A journal that contains the name of a super-journal ends with these bytes. */
const journalMagic = 'd9d505f920a163d7'

/**
 * A rollback journal can contain the name of a super-journal, which SQLite deletes when it rolls
 * back. SQLite does not check what kind of file this is. So somebody who can write next to the
 * store could make this user delete any file
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). This program never writes a journal
 * with a super-journal, so such a store is not opened.
 */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  // Another process may have finished its transaction, and so deleted the journal, in the meantime.
  const lastBytes = ignoreMissingFile(() => readBytes(journal, stats.size - 8, 8))
  if (lastBytes?.toString('hex') !== journalMagic) return
  throw createUnusableStoreError(
    path,
    `cannot be used: SQLite would delete a file that ${journal} names`,
  )
}

/**
 * Other users who can create files next to the store can put a log there, and SQLite would take the
 * contents of this log for changes of the store.
 *
 * @returns a warning, or undefined if nobody else can create files there
 */
export function explainExposure(path: string): string | undefined {
  const folder = dirname(resolveRealPath(path))
  const exposureReason = explainWriteAccess(statSync(folder))
  const sentence = `The store ${path} is exposed to other users: ${folder} ${exposureReason}`
  return exposureReason && `${sentence}. Move it to a directory that only you can write to`
}

/** Returns true for a path of the store, or of a file that SQLite may keep next to it. */
export function belongsToStore(store: string, path: string): boolean {
  const realStore = resolveRealPath(store)
  const realPath = join(resolveRealPath(dirname(path)), basename(path))
  return ['', '-wal', '-shm', '-journal'].some((suffix) => {
    const hasItsName = path === store + suffix || realPath === realStore + suffix
    return hasItsName || isSameFile(path, realStore + suffix)
  })
}
