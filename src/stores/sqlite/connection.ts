import { existsSync } from 'node:fs'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Database, retryWhileBusy, type Statement, uriOf, type Waiting } from '../../platform/sqlite.js'
import { explained, explainFailure, isWritable, lockedError } from './errors.js'
import { checkKind, fileVersion, identityOf, isImmutable } from './file.js'
import { identify, prepareStore } from './schema.js'

/** A connection to the file of a store, with its statements. */
export class Connection {
  readonly db: Database
  readonly path: string
  /** `identityOf` the file, from before it was opened */
  readonly identity: string
  readonly #waiting: Waiting
  /** of a file that is read without a lock */
  readonly #fileVersion: string | undefined
  readonly #statements = new Map<string, Statement>()

  /** @param isLocked false when SQLite takes no lock, so that others can change the file while it is read */
  constructor(path: string, { uri, readOnly, isLocked }: { uri: string; readOnly: boolean; isLocked: boolean }, waiting: Waiting) {
    this.path = path
    this.identity = identityOf(path)
    this.#waiting = waiting
    this.#fileVersion = isLocked ? undefined : fileVersion(path)
    this.db = connect(uri, { readOnly })
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

  /** Throws `unavailable` when what was read without a lock is of no use, because others have changed the file since it was opened. */
  checkUnchanged(cause?: unknown): void {
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    const details = { hint: 'Try again', retryable: true, cause }
    throw new PlantsError('unavailable', `${this.path} was changed while it was read`, details)
  }

  close(): void {
    this.#statements.clear()
    this.db.close()
  }
}

/** Connects to an existing file to write to it. One that is empty becomes a store. */
export function openToWrite(path: string, waiting: Waiting): Promise<Connection> {
  return explained(path, async () => {
    checkKind(path)
    const connection = new Connection(path, { uri: uriOf(path, 'mode=rw'), readOnly: false, isLocked: true }, waiting)
    await prepare(connection, () => prepareStore(connection.db, path))
    return connection
  })
}

/** Connects to an existing file to read it, which may be one that this user may not write; undefined when it is not a store yet. */
export function openToRead(path: string, waiting: Waiting): Promise<Connection | undefined> {
  return explained(path, async () => {
    const isAlone = isImmutable(path) // asked once, because a log may come or go at any moment
    checkKind(path)
    const mode = isAlone ? 'mode=ro&immutable=1' : isWritable(path) ? 'mode=rw' : 'mode=ro'
    const connection = new Connection(path, { uri: uriOf(path, mode), readOnly: mode !== 'mode=rw', isLocked: !isAlone }, waiting)
    if (await prepare(connection, () => identify(connection.db, path))) return connection
    connection.close()
    return undefined
  })
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

/** Connects to an existing file for a look that leaves no trace. */
export function openReadOnly(path: string, waiting: Waiting): Connection {
  checkKind(path)
  const isLocked = hasLog(path)
  return new Connection(path, { uri: readOnlyUri(path, isLocked), readOnly: true, isLocked }, waiting)
}

/** The URI of a file to be read without a trace: where there is no log, SQLite would create one. */
export function readOnlyUri(path: string, isLocked = hasLog(path)): string {
  return uriOf(path, isLocked ? 'mode=ro' : 'mode=ro&immutable=1')
}

function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`)
}
