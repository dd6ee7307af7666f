import { existsSync } from 'node:fs'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Database, retryWhileBusy, type Statement, uriOf, type Waiting } from '../../platform/sqlite.js'
import { explained, explainFailure, isWritable, lockedError } from './errors.js'
import { checkKind, fileHasContent, fileVersion, identityOf, isImmutable } from './file.js'
import { identify, prepareStore } from './schema.js'

/** How a file is opened. SQLite takes no lock of an `immutable` one, so others can change it while it is read, and leaves no trace. */
type Mode = 'rw' | 'ro' | 'immutable'

/** A connection to the file of a store, with its statements. */
export class Connection {
  readonly db: Database
  readonly path: string
  readonly uri: string
  /** `identityOf` the file, from before it was opened */
  readonly identity: string
  readonly #waiting: Waiting
  /** of an `immutable` file */
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

  /** Prepares a statement, once for each text. */
  prepare(sql: string): Statement {
    const statement = this.#statements.get(sql) ?? this.db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Runs what can be run again, until SQLite is not busy. */
  retry<T>(call: () => T): Promise<T> {
    return retryWhileBusy(call, this.#waiting, () => lockedError(this.path, this.#waiting.timeout))
  }

  /** Does the same, and checks that the file has not changed. Throws a `PlantsError` that says what to do. */
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

  /** Throws `unavailable` when others have changed an `immutable` file since it was opened: what was read is of no use. */
  checkUnchanged(cause?: unknown): void {
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    throw new PlantsError('unavailable', `${this.path} was changed while it was read`, { hint: 'Try again', retryable: true, cause })
  }

  close(): void {
    this.#statements.clear()
    try {
      if (this.db.isTransaction) this.db.exec('ROLLBACK') // else it would last until its statements are collected as garbage
    } finally {
      this.db.close()
    }
  }
}

/** Connects to an existing file to write to it. One that is empty becomes a store. */
export function openToWrite(path: string, waiting: Waiting): Promise<Connection> {
  return explained(path, async () => {
    const connection = new Connection(path, 'rw', waiting)
    await prepare(connection, () => prepareStore(connection.db, path))
    return connection
  })
}

/** Connects to an existing file to read it, which may be one that this user may not write; undefined when it is not a store yet. */
export function openToRead(path: string, waiting: Waiting): Promise<Connection | undefined> {
  return explained(path, async () => {
    const connection = new Connection(path, isImmutable(path) ? 'immutable' : isWritable(path) ? 'rw' : 'ro', waiting)
    if ((await prepare(connection, () => identify(connection.db, path))) !== undefined) return connection
    connection.close()
    return undefined
  })
}

/** Connects to a store and sees it as it is now until the connection is closed; undefined when there is no store in the file. */
export async function openSnapshot(path: string, waiting: Waiting): Promise<Connection | undefined> {
  const connection = fileHasContent(path) ? await openToRead(path, waiting) : undefined
  if (!connection) return undefined
  const { db } = connection
  try {
    await connection.run(() => {
      db.exec('PRAGMA query_only=1')
      if (!db.isTransaction) db.exec('BEGIN')
      identify(db, path) // the first that is read is the moment
    })
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Reads an existing file, and leaves no trace: where there is no log, SQLite would create one. */
export async function look<T>(path: string, waiting: Waiting, read: (connection: Connection) => Promise<T>): Promise<T> {
  const connection = new Connection(path, existsSync(`${path}-wal`) ? 'ro' : 'immutable', waiting)
  try {
    return await read(connection)
  } finally {
    connection.close()
  }
}

/** Makes a connection durable, and runs what has to come first. EXTRA is FULL, and holds also where somebody has turned the write-ahead log off. */
async function prepare<T>(connection: Connection, first: () => T): Promise<T> {
  try {
    await connection.run(() => connection.db.exec('PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1'))
    return await connection.run(first)
  } catch (error) {
    connection.close()
    throw error
  }
}
