/**
 * Opens the file of a store, and runs statements on it. It makes the settings that a store needs.
 * `store-file.ts` prepares the file, and chooses how it is opened.
 */
import { statSync } from 'node:fs'
import { fileInFolderHint } from '../../errors.js'
import { foldString } from '../../plant/folding.js'
import { resolveRealPath, statIfExists } from '../../platform/files.js'
import {
  buildUri,
  connect,
  type Database,
  retryWhileBusy,
  type Statement,
} from '../../platform/sqlite.js'
import type { OpenContext, Purpose } from '../store-kind.js'
import { createClosedError, createUnusableStoreError, explainSqliteError } from './explain.js'
import { assertOrdinaryTables, isStore, prepareTables } from './schema.js'
import {
  assertNoSuperJournal,
  chooseMode,
  createChangedFileError,
  createFileIfMissing,
  explainExposure,
  findUnmergedFile,
  mayCreate,
  type OpenMode,
  readFingerprint,
  readMode,
  restrictToOwner,
  writeMode,
} from './store-file.js'

type FileContext = Pick<OpenContext, 'timeoutMs' | 'runtime' | 'onCreated' | 'onExposed'>

export interface SqliteOptions extends FileContext {
  /** Messages call the file this, such as "The backup". The default is "The store". */
  noun?: string
}

interface FileAddress {
  /** The path of the file. */
  name: string
  /** Whether its folder is created if it is missing. */
  isDefault?: boolean
}

interface NamedFile {
  path: string
  /** The message of an error about the file begins with this, such as "The store /srv/a.db". */
  subject: string
}

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

export class Connection {
  readonly db: Database
  readonly #statements = new Map<string, Statement>()
  readonly isReadOnly: boolean
  /** Whether the file was created when it was opened. */
  isNew = false
  #isOpen = true

  private constructor(
    /**
     * If the address is a link, this is the target of the link, because SQLite keeps its log next to
     * the target.
     */
    readonly path: string,
    private readonly options: SqliteOptions,
    private readonly mode: OpenMode,
  ) {
    this.isReadOnly = mode.parameters !== writeMode
    this.db = connect(buildUri(path, mode.parameters), { readOnly: this.isReadOnly })
    addFoldFunction(this.db)
  }

  /**
   * Opens the file of a store. To `write` and to `init`, it creates what is missing: its folder, if
   * it is the default store, the file, and the tables.
   *
   * @returns undefined for a missing file, and for one without a store, such as an empty one
   * @throws {PlantsError} `accessDenied` to `write` without the permission, and to `serve` a store
   *   of which a service would see one state for ever
   */
  static async open(
    { name, isDefault = false }: FileAddress,
    purpose: Purpose,
    options: SqliteOptions,
  ): Promise<Connection | undefined> {
    const isNew = mayCreate(purpose) && createFileIfMissing(name, isDefault)
    const connection = await Connection.#open(name, purpose, options)
    if (!isNew || !connection) return connection
    connection.isNew = true
    const { path } = connection
    if (!isDefault || purpose === 'init') await options.onCreated?.(path)
    const exposure = explainExposure(path)
    if (exposure) await options.onExposed?.(exposure)
    return connection
  }

  /** @param hasLostLog whether an earlier call has found no log that it could read */
  static async #open(
    name: string,
    purpose: Purpose,
    options: SqliteOptions,
    hasLostLog = false,
  ): Promise<Connection | undefined> {
    let connection: Connection | undefined
    try {
      const path = resolveRealPath(name)
      const stats = mayCreate(purpose) ? statSync(path) : statIfExists(path)
      if (stats?.isDirectory())
        throw createUnusableStoreError(path, 'is a directory', fileInFolderHint)
      if (stats && !stats.isFile()) throw createUnusableStoreError(path, 'is not a file')
      if (!stats || (stats.size === 0 && !mayCreate(purpose))) return undefined
      if (stats.size === 0) restrictToOwner(path, stats)
      assertNoSuperJournal(path)
      connection = new Connection(path, options, chooseMode(path, purpose, hasLostLog))
      const { db, isReadOnly } = connection
      const hasStore = await connection.retryWhileLocked(() => {
        db.exec(pragmas)
        if (purpose !== 'read')
          prepareTables(db, path, { isReadOnly, mayCreate: mayCreate(purpose) })
        const isFilled = isStore(db, path)
        if (isFilled) assertOrdinaryTables(db, path, 'main')
        return isFilled
      })
      if (hasStore) return connection
      connection.close()
      return undefined
    } catch (error) {
      connection?.close()
      if (purpose === 'read' && connection?.hasLostLog())
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
    const { runtime, timeoutMs } = this.options
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
    return this.mode.parameters === readMode && findUnmergedFile(this.path) === undefined
  }

  /**
   * SQLite does not notice that an immutable file changes, as when its owner writes to it for the
   * first time. What it reads then is a mixture of old and new pages.
   */
  #assertUnchanged(): void {
    const { fingerprint } = this.mode
    if (fingerprint !== undefined && fingerprint !== readFingerprint(this.path))
      throw createChangedFileError(describeFile(this.path, this.options))
  }

  #nameStore(): NamedFile {
    return { path: this.path, subject: describeFile(this.path, this.options) }
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

function describeFile(path: string, { noun = 'The store' }: SqliteOptions): string {
  return `${noun} ${path}`
}
