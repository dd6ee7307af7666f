import { existsSync } from 'node:fs'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Database, retryWhileBusy, type Statement, uriOf, type Waiting } from '../../platform/sqlite.js'
import { explainFailure, lockedError } from './errors.js'
import { checkKind, fileHasContent, fileVersion, identityOf, type OpenMode, readMode } from './file.js'
import { prepareStore, prepareToRead } from './schema.js'

/** A connection to the file of a store, with its prepared statements. */
export class Connection {
  readonly db: Database
  readonly path: string
  readonly uri: string
  /** `identityOf` the file before it was opened */
  readonly identity: string
  readonly #waiting: Waiting
  /** for an `immutable` file */
  readonly #fileVersion: string | undefined
  readonly #statements = new Map<string, Statement>()

  constructor(path: string, mode: OpenMode, waiting: Waiting) {
    checkKind(path)
    this.path = path
    this.uri = uriOf(path, mode === 'immutable' ? 'mode=ro&immutable=1' : `mode=${mode}`)
    this.identity = identityOf(path)
    this.#waiting = waiting
    this.#fileVersion = mode === 'immutable' ? fileVersion(path) : undefined
    this.db = connect(this.uri, { readOnly: mode !== 'rw' })
  }

  /** Prepares a statement; returns the same one for the same text. */
  prepare(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Runs an idempotent call, and retries it while SQLite is busy. */
  retry<T>(call: () => T): Promise<T> {
    return retryWhileBusy(call, this.#waiting, () => lockedError(this.path, this.#waiting.timeout))
  }

  /** The same as `retry`, but throws a `PlantsError` with a hint, also when an `immutable` file has changed. */
  async run<T>(call: () => T): Promise<T> {
    try {
      return await this.retry(call)
    } catch (error) {
      throw explainFailure(error, this.path)
    } finally {
      this.checkUnchanged()
    }
  }

  /** Throws `unavailable` when an `immutable` file has changed since it was opened: what was read may be inconsistent. */
  checkUnchanged(): void {
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    throw new PlantsError('unavailable', `${this.path} was changed while it was read`, { hint: 'Try again', retryable: true })
  }

  /** Runs an action, then closes the connection. */
  async use<T>(action: (connection: this) => Promise<T>): Promise<T> {
    try {
      return await action(this)
    } finally {
      this.close()
    }
  }

  close(): void {
    this.#statements.clear()
    try {
      if (this.db.isTransaction) this.db.exec('ROLLBACK') // otherwise it would last until its statements are garbage-collected
    } finally {
      this.db.close()
    }
  }
}

/** Opens an existing file for writing. An empty file becomes a store. */
export async function openToWrite(path: string, waiting: Waiting): Promise<Connection> {
  const { connection } = await open(path, 'rw', waiting, (db) => prepareStore(db, path))
  return connection
}

/**
 * Opens an existing file for reading, even without write permission.
 *
 * @param isSnapshot whether it shows the store as it is now until it is closed
 * @returns undefined when it is not a store yet
 */
export async function openToRead(path: string, waiting: Waiting, isSnapshot = false): Promise<Connection | undefined> {
  const { connection, result } = await open(path, readMode(path), waiting, (db) => {
    if (isSnapshot && !db.isTransaction) db.exec('BEGIN')
    const version = prepareToRead(db, path) // the first read of a transaction determines its snapshot
    if (isSnapshot) db.exec('PRAGMA query_only=1')
    return version
  })
  if (result !== undefined) return connection
  connection.close()
  return undefined
}

/** Opens a consistent snapshot of a store; undefined when the file does not exist, or contains no store. */
export async function openSnapshot(path: string, waiting: Waiting): Promise<Connection | undefined> {
  return fileHasContent(path) ? openToRead(path, waiting, true) : undefined
}

/** Reads an existing file without creating files: in any other mode, SQLite would create a missing -wal file. */
export async function look<T>(path: string, waiting: Waiting, read: (connection: Connection) => Promise<T>): Promise<T> {
  return new Connection(path, existsSync(`${path}-wal`) ? 'ro' : 'immutable', waiting).use(read)
}

/**
 * Opens a file, makes its commits durable, and runs a first action. In WAL mode, synchronous=EXTRA is the same as FULL. In rollback-journal
 * mode, it also syncs the folder after the journal is deleted.
 */
async function open<T>(
  path: string,
  mode: OpenMode,
  waiting: Waiting,
  first: (db: Database) => T,
): Promise<{ connection: Connection; result: T }> {
  const connection = new Connection(path, mode, waiting)
  try {
    const { db } = connection
    await connection.run(() => db.exec('PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1'))
    return { connection, result: await connection.run(() => first(db)) }
  } catch (error) {
    connection.close()
    throw error
  }
}
