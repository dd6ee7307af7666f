import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { systemCode } from '../../errors.js'
import type { Address } from '../store.js'
import { connect, type Database } from './driver.js'
import { canWrite, notOurs } from './failure.js'
import { migrations } from './schema.js'

/** "plnt": the application id in the header of every file that is a store. */
const applicationId = 0x706c6e74n

/**
 * Makes the file of a store, empty and for its owner alone, unless it is there. The file is made before SQLite sees it,
 * because SQLite would make it readable for others. It is never opened here once it exists: closing it again would
 * drop the locks that SQLite holds on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function makeFile({ path, isDefault }: Address): void {
  if (isDefault) mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Whether there is a store to read: a file that is more than an empty one. */
export function fileHasContent(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** Connects to an existing file to write to it. */
export function openToWrite(path: string): Database {
  checkKind(path)
  return connect(uriOf(path, 'mode=rw'), { readOnly: false })
}

/** Connects to an existing file; where nothing may be written, for reading alone. */
export function openToRead(path: string): Database {
  if (canWrite(path) && canWrite(dirname(path))) return openToWrite(path)
  checkKind(path)
  // Without a write-ahead log the file is all there is; "immutable" then spares SQLite the index that it could not make.
  const hasLog = fileHasContent(`${path}-wal`)
  if (hasLog && !fileHasContent(`${path}-shm`)) {
    const why = `was not closed: its last changes are in ${path}-wal, and reading them takes a folder that can be written`
    throw notOurs(path, why, 'Copy both files to such a folder')
  }
  return connect(uriOf(path, hasLog ? 'mode=ro' : 'mode=ro&immutable=1'), { readOnly: true })
}

function uriOf(path: string, query: string): string {
  const uri = pathToFileURL(path)
  uri.search = query
  return uri.href
}

function checkKind(path: string): void {
  const stats = statSync(path)
  if (!stats.isFile() && !stats.isDirectory()) throw notOurs(path, 'is a device or a pipe, not a store')
}

/**
 * Makes a connection durable and wary of what is in the file. It can be called again when SQLite was busy.
 * EXTRA is FULL, and holds also where somebody has turned the write-ahead log off.
 */
export function secure(db: Database): void {
  db.exec('PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1; PRAGMA trusted_schema=0; PRAGMA cell_size_check=1')
}

/**
 * Finds out what a connection leads to. It can be called again when SQLite was busy.
 *
 * @returns the version of the schema, 0 for a file that is still empty
 * @throws {PlantsError} when the file belongs to another program, or to a newer version of this one
 */
export function identify(db: Database, path: string): number {
  // One statement, so one moment: another process may be making the store right now.
  const { application_id: application, user_version: version, is_empty: isEmpty } = db.prepare(identity).get() as Identity
  if (application === applicationId && version > migrations.length) {
    throw notOurs(
      path,
      `was written by a newer version of plants (schema ${version}, this one knows ${migrations.length})`,
      'Update plants',
    )
  }
  if (application === applicationId && version > 0n) return Number(version)
  if (application !== 0n || version !== 0n || isEmpty === 0n) throw notOurs(path, 'is an SQLite file of another program, not a store')
  return 0
}

const identity = `SELECT application_id, user_version, NOT EXISTS (SELECT 1 FROM sqlite_schema) AS is_empty
  FROM pragma_application_id, pragma_user_version`
type Identity = Record<'application_id' | 'user_version' | 'is_empty', bigint>

/**
 * Brings a file to the newest schema, in one transaction. It can be called again when SQLite was busy.
 *
 * @throws {PlantsError} when the place cannot hold a write-ahead log
 */
export function migrate(db: Database, path: string): void {
  if (identify(db, path) === migrations.length && isWal(db)) return
  db.exec('PRAGMA journal_mode=WAL')
  if (!isWal(db)) throw notOurs(path, 'cannot be a store: SQLite needs shared memory beside it', 'Put it on a local disk: --store PATH')
  db.exec('BEGIN IMMEDIATE')
  try {
    const steps = migrations.slice(identify(db, path))
    if (steps.length > 0) syncFolders(path)
    for (const step of steps) db.exec(step)
    db.exec(`PRAGMA application_id=${applicationId}; PRAGMA user_version=${migrations.length}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function isWal(db: Database): boolean {
  return db.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal'
}

/**
 * Makes the names of a new file and of its folders durable. Any of them may just have been made, by this process or by
 * one that has not come to this line yet, so all of them are synced; a folder that this user may not open was not made by this user.
 */
function syncFolders(path: string): void {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    syncFolder(folder)
    if (folder === dirname(folder)) return
  }
}

function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // EINVAL, ENOTSUP, EISDIR: a file system, or Windows, that syncs no folders
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
