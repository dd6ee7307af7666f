import { existsSync } from 'node:fs'
import { shellWord } from '../../platform/errors.js'
import { connect, type Database, retryWhileBusy, type Statement, uriOf, type Waiting } from '../../platform/sqlite.js'
import type { OpenOptions } from '../common/store.js'
import { changedWhileRead, explainFailure, lockedError, notOurs, replacedStore } from './errors.js'
import {
  assertNoJournal,
  assertSafeToOpen,
  bytesAt,
  claimLog,
  fileHasContent,
  fileVersion,
  identityOf,
  isExposed,
  logVersion,
  type OpenMode,
  readMode,
} from './file.js'
import { prepareStore, prepareToRead } from './schema.js'

type Opening = Waiting & Pick<OpenOptions, 'trusts'>

/** A connection to the file of a store, with its prepared statements. */
export class Connection {
  readonly db: Database
  readonly path: string
  readonly uri: string
  /** `identityOf` the file before it was opened */
  readonly identity: string
  readonly #opening: Opening
  /** for an `immutable` file */
  readonly #fileVersion: string | undefined
  /** for an exposed store: that another user's log takes the place of the one that was checked must be noticed */
  readonly #logVersion: string | undefined
  readonly #statements = new Map<string, Statement>()

  constructor(path: string, mode: OpenMode, opening: Opening) {
    assertSafeToOpen(path, opening)
    const hasLog = mode !== 'immutable'
    this.path = path
    this.uri = uriOf(path, mode === 'immutable' ? 'mode=ro&immutable=1' : `mode=${mode}`)
    this.identity = identityOf(path)
    this.#opening = opening
    this.#fileVersion = hasLog ? undefined : fileVersion(path)
    this.#logVersion = hasLog && isExposed(path, opening) ? claimLog(path, opening) : undefined
    this.db = connect(this.uri, { readOnly: mode !== 'rw' })
  }

  prepare(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known) return known
    const statement = this.db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  retry<T>(call: () => T): Promise<T> {
    return retryWhileBusy(call, this.#opening, () => lockedError(this.path, this.#opening.timeout))
  }

  /** The same as `retry`, but throws a `PlantsError` with a hint, also when `checkUnchanged` does. */
  async run<T>(call: () => T): Promise<T> {
    try {
      return await this.retry(call)
    } catch (error) {
      throw explainFailure(error, this.path)
    } finally {
      this.checkUnchanged()
    }
  }

  /**
   * Throws `unavailable` when an `immutable` file has changed since it was opened: what was read may be inconsistent.
   * Also when a file beside an exposed store has been replaced: what was read may be another user's.
   */
  checkUnchanged(): void {
    if (this.isLogReplaced()) throw replacedStore(this.path)
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    throw changedWhileRead(this.path)
  }

  /**
   * Whether the log of an exposed store is not the file that was checked: the last process to close a store removes it.
   */
  isLogReplaced(): boolean {
    return this.#logVersion !== undefined && this.#logVersion !== logVersion(this.path, this.#opening)
  }

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
export async function openToWrite(path: string, opening: Opening): Promise<Connection> {
  const openNow = async () => (await open(path, 'rw', opening, (db) => prepareStore(db, path))).connection
  if (!isExposed(path, opening)) return openNow()
  const tooLate = () => lockedError(path, opening.timeout)
  await retryWhileBusy(() => turnOnWal(path, opening), opening, tooLate)
  assertWal(path)
  assertNoJournal(path, opening)
  // Another user can still put a journal beside the store, which SQLite rolls back before its first read, and with
  // which it deletes the file that the journal names. It needs an exclusive lock for that, which nobody gets while this
  // connection reads, and never does it in WAL mode.
  const begin = (db: Database) => db.exec(db.isTransaction ? firstRead : `BEGIN; ${firstRead}`)
  const { connection: guard } = await open(path, 'ro', opening, begin)
  return guard.use(openNow)
}

const firstRead = 'SELECT 1 FROM sqlite_schema LIMIT 1'

/**
 * Makes an empty file an empty database in WAL mode, without a journal on the disk, and without looking for one again.
 * Throws when busy.
 */
function turnOnWal(path: string, opening: Opening): void {
  if (fileHasContent(path)) return
  const { db } = new Connection(path, 'rw', opening)
  try {
    const guard = new Connection(path, 'ro', opening)
    try {
      guard.db.exec(`BEGIN; ${firstRead}`)
      db.exec(`PRAGMA locking_mode=EXCLUSIVE; ${firstRead}`) // keeps its lock from now on
    } finally {
      guard.close()
    }
    if (!fileHasContent(path)) db.exec(`${durable}; PRAGMA journal_mode=MEMORY; PRAGMA journal_mode=WAL`)
  } finally {
    db.close()
  }
}

/**
 * Throws unless a file is in WAL mode (https://sqlite.org/fileformat2.html, 1.3): in any other, SQLite looks for a
 * journal again and again.
 */
function assertWal(path: string): void {
  if (bytesAt(path, 18, 1)[0] === 2) return
  const why = 'is not in WAL mode, like a backup, and is not written where other users can create files'
  throw notOurs(path, why, `Make a store of it elsewhere: plants restore ${shellWord(path)} --store PATH`)
}

/**
 * Opens an existing file for reading, even without write permission.
 *
 * @param isSnapshot whether it shows the store as it is now until it is closed
 * @returns undefined when it is not a store yet
 */
export async function openToRead(path: string, opening: Opening, isSnapshot = false): Promise<Connection | undefined> {
  const mode = readMode(path, opening)
  const { connection, result } = await open(path, mode, opening, (db) => {
    if (isSnapshot && !db.isTransaction) db.exec('BEGIN')
    const version = prepareToRead(db, path) // the first read of a transaction determines its snapshot
    if (isSnapshot) db.exec('PRAGMA query_only=1')
    return version
  })
  if (result !== undefined) return connection
  connection.close()
  return undefined
}

export async function openSnapshot(path: string, opening: Opening): Promise<Connection | undefined> {
  return fileHasContent(path) ? openToRead(path, opening, true) : undefined
}

/** Reads an existing file without creating files: in any other mode, SQLite would create a missing -wal file. */
export async function look<T>(path: string, opening: Opening, read: (connection: Connection) => Promise<T>): Promise<T> {
  return new Connection(path, existsSync(`${path}-wal`) ? 'ro' : 'immutable', opening).use(read)
}

/**
 * Opens a file, makes its commits durable, and runs a first action. In WAL mode, synchronous=EXTRA is the same as FULL. In rollback-journal
 * mode, it also syncs the folder after the journal is deleted.
 */
async function open<T>(
  path: string,
  mode: OpenMode,
  opening: Opening,
  first: (db: Database) => T,
  attempt = 1,
): Promise<{ connection: Connection; result: T }> {
  const connection = new Connection(path, mode, opening)
  try {
    const { db } = connection
    await connection.run(() => db.exec(durable))
    return { connection, result: await connection.run(() => first(db)) }
  } catch (error) {
    connection.close()
    if (!connection.isLogReplaced() || attempt === maxAttempts) throw error
    return open(path, mode, opening, first, attempt + 1)
  }
}

/** how often the log of an exposed store may be replaced while it is opened */
const maxAttempts = 50

const durable = 'PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1'
