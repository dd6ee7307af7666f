import { existsSync } from 'node:fs'
import { backoff, wait } from '../../platform/clock.js'
import { shellWord } from '../../platform/errors.js'
import { connect, type Database, isBusy, type Statement, uriOf } from '../../platform/sqlite.js'
import type { FileOptions } from '../common/store.js'
import { changedWhileRead, explainFailure, lockedError, notOurs, replacedStore } from './sqlite-errors.js'
import { prepareStore, prepareToRead, type SchemaVersions } from './sqlite-schema.js'
import {
  assertNoJournal,
  assertSafeToOpen,
  claimLog,
  fileHasContent,
  fileVersion,
  identityOf,
  isExposed,
  isInWalMode,
  logVersion,
  type OpenMode,
  readMode,
} from './store-file.js'

type Opening = Pick<FileOptions, 'clock' | 'timeout' | 'trusts'>

export class Connection {
  readonly db: Database
  readonly path: string
  readonly uri: string
  /** before it was opened */
  readonly identity: string
  readonly #opening: Opening
  /** undefined for an empty file */
  versions: SchemaVersions | undefined
  /** for an `immutable` file */
  readonly #fileVersion: string | undefined
  /** for an exposed store, where another user's log can take the place of the one that was checked */
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
    return retryWhileBusy(this.path, this.#opening, call)
  }

  async run<T>(call: () => T): Promise<T> {
    try {
      return await this.retry(call)
    } catch (error) {
      throw explainFailure(error, this.path)
    } finally {
      this.checkUnchanged()
    }
  }

  /** What was read from a changed `immutable` file may be inconsistent; a replaced log may be another user's. */
  checkUnchanged(): void {
    if (this.isLogReplaced()) throw replacedStore(this.path)
    if (this.#fileVersion === undefined || this.#fileVersion === fileVersion(this.path)) return
    throw changedWhileRead(this.path)
  }

  /** Also when the last other process has closed the store, which removes its log. */
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
      // otherwise it would last until its statements are garbage-collected
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
    } finally {
      this.db.close()
    }
  }
}

async function retryWhileBusy<T>(path: string, { clock, timeout }: Opening, call: () => T): Promise<T> {
  const start = clock.now()
  for (let tries = 0; ; tries += 1) {
    try {
      return call()
    } catch (error) {
      if (!isBusy(error)) throw error
    }
    if (clock.now() - start >= timeout) throw lockedError(path, timeout)
    await wait(backoff(tries, { base: 2, max: 8, random: clock.random }), [clock.signal])
  }
}

/** The file exists; an empty one becomes a store. */
export async function openToWrite(path: string, opening: Opening): Promise<Connection> {
  const openNow = () => open(path, 'rw', opening, (db) => prepareStore(db, path))
  if (!isExposed(path, opening)) return openNow()
  await retryWhileBusy(path, opening, () => turnOnWal(path, opening))
  assertWal(path)
  assertNoJournal(path, opening)
  // Before its first read, SQLite would roll back a journal that another user puts beside the store, and delete the
  // file that the journal names. That needs an exclusive lock, which nobody gets while this connection reads, and never
  // happens in WAL mode.
  const guard = await open(
    path,
    'ro',
    opening,
    (db) => void db.exec(db.isTransaction ? firstRead : `BEGIN; ${firstRead}`),
  )
  return guard.use(openNow)
}

const firstRead = 'SELECT 1 FROM sqlite_schema LIMIT 1'

/** Makes an empty file a database in WAL mode, without a journal on the disk, and without looking for one again. */
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

/** In any other mode, SQLite looks for a journal again and again. */
function assertWal(path: string): void {
  if (isInWalMode(path)) return
  const why = 'is not in WAL mode, like a backup, and is not written where other users can create files'
  throw notOurs(path, why, `Make a store of it elsewhere: plants restore ${shellWord(path)} --store PATH`)
}

/** Needs no write permission. Returns undefined when the file is not a store yet. */
export async function openToRead(path: string, opening: Opening, isSnapshot = false): Promise<Connection | undefined> {
  const connection = await open(path, readMode(path, opening), opening, (db) => {
    if (isSnapshot && !db.isTransaction) db.exec('BEGIN')
    const versions = prepareToRead(db, path) // the first read of a transaction determines its snapshot
    if (isSnapshot) db.exec('PRAGMA query_only=1')
    return versions
  })
  if (connection.versions) return connection
  connection.close()
  return undefined
}

export async function openSnapshot(path: string, opening: Opening): Promise<Connection | undefined> {
  return fileHasContent(path) ? openToRead(path, opening, true) : undefined
}

/** Creates no files: in any other mode, SQLite would create a missing -wal file. */
export async function look<T>(
  path: string,
  opening: Opening,
  read: (connection: Connection) => Promise<T>,
): Promise<T> {
  return new Connection(path, existsSync(`${path}-wal`) ? 'ro' : 'immutable', opening).use(read)
}

async function open(
  path: string,
  mode: OpenMode,
  opening: Opening,
  prepare: (db: Database) => SchemaVersions | undefined,
  attempt = 1,
): Promise<Connection> {
  const connection = new Connection(path, mode, opening)
  try {
    await connection.run(() => connection.db.exec(durable))
    connection.versions = await connection.run(() => prepare(connection.db))
    return connection
  } catch (error) {
    connection.close()
    if (!connection.isLogReplaced() || attempt === maxAttempts) throw error
    return open(path, mode, opening, prepare, attempt + 1)
  }
}

/** how often the log of an exposed store may be replaced while it is opened */
const maxAttempts = 50

/** EXTRA is FULL in WAL mode. With a rollback journal, it also syncs the folder after deleting the journal. */
const durable = 'PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1'
