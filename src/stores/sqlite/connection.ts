import { existsSync } from 'node:fs'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Database, retryWhileBusy, type Statement, uriOf, type Waiting } from '../../platform/sqlite.js'
import { explained, explainFailure, isWritable, lockedError } from './errors.js'
import { checkKind, fileHasContent, fileVersion, identityOf, isImmutable } from './file.js'
import { identify, prepareStore } from './schema.js'

/** How to open a file. SQLite does not lock an `immutable` file, so others can change it during a read, and creates no files beside it. */
type Mode = 'rw' | 'ro' | 'immutable'

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

  constructor(path: string, mode: Mode, waiting: Waiting) {
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
    const statement = this.#statements.get(sql) ?? this.db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Runs an idempotent call, and retries it while SQLite is busy. */
  retry<T>(call: () => T): Promise<T> {
    return retryWhileBusy(call, this.#waiting, () => lockedError(this.path, this.#waiting.timeout))
  }

  /** The same as `retry`, but also checks that an `immutable` file has not changed, and throws a `PlantsError` with a hint. */
  async run<T>(call: () => T): Promise<T> {
    try {
      const result = await this.retry(call)
      this.checkUnchanged()
      return result
    } catch (error) {
      this.checkUnchanged(error)
      throw explainFailure(error, this.path)
    }
  }

  /** Throws `unavailable` when an `immutable` file has changed since it was opened: what was read may be inconsistent. */
  checkUnchanged(cause?: unknown): void {
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    throw new PlantsError('unavailable', `${this.path} was changed while it was read`, { hint: 'Try again', retryable: true, cause })
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
export function openToWrite(path: string, waiting: Waiting): Promise<Connection> {
  return explained(path, async () => {
    const connection = new Connection(path, 'rw', waiting)
    await prepare(connection, () => prepareStore(connection.db, path))
    return connection
  })
}

/** Opens an existing file for reading, even without write permission; undefined when it is not a store yet. */
export function openToRead(path: string, waiting: Waiting): Promise<Connection | undefined> {
  return explained(path, async () => {
    const connection = new Connection(path, isImmutable(path) ? 'immutable' : isWritable(path) ? 'rw' : 'ro', waiting)
    if ((await prepare(connection, () => identify(connection.db, path))) !== undefined) return connection
    connection.close()
    return undefined
  })
}

/** Opens a consistent snapshot of a store, which lasts until the connection is closed; undefined when the file contains no store. */
export async function openSnapshot(path: string, waiting: Waiting): Promise<Connection | undefined> {
  const connection = fileHasContent(path) ? await openToRead(path, waiting) : undefined
  if (!connection) return undefined
  const { db } = connection
  try {
    await connection.run(() => {
      db.exec('PRAGMA query_only=1')
      if (!db.isTransaction) db.exec('BEGIN')
      identify(db, path) // the first read determines the snapshot
    })
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Reads an existing file without creating files: in any other mode, SQLite would create a missing log. */
export async function look<T>(path: string, waiting: Waiting, read: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = new Connection(path, existsSync(`${path}-wal`) ? 'ro' : 'immutable', waiting)
  try {
    return await read(connection)
  } finally {
    connection.close()
  }
}

/** Makes commits durable, and runs a first action. In WAL mode, EXTRA equals FULL; it is also durable if somebody has turned WAL off. */
async function prepare<T>(connection: Connection, first: () => T): Promise<T> {
  try {
    await connection.run(() => connection.db.exec('PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1'))
    return await connection.run(first)
  } catch (error) {
    connection.close()
    throw error
  }
}
