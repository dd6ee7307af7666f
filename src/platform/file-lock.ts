import { closeSync, fchmodSync, lstatSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { PlantsError, systemCode } from './errors.js'
import { giveToOwner } from './files.js'
import { connect, type Database, isSqliteError, retryWhileBusy, uriOf, type Waiting } from './sqlite.js'

/**
 * Runs an action while this process alone holds a lock. It is SQLite's lock on an empty file: the system takes it back from a
 * process that dies, so nobody ever has to guess whether a lock is stale.
 *
 * @param path the file, which is made when it is not there, and stays
 * @param locking how long others may hold it, and whose file it may be besides the owner's of its folder
 * @throws {PlantsError} `unavailable` when they took longer, `unwritable` for a file that is no lock; what the action throws, and the system's errors
 */
export async function holdLock<T>(path: string, locking: Locking, action: () => Promise<T>): Promise<T> {
  makeLock(path, locking.trusts)
  const db = open(path)
  try {
    await take(db, path, locking)
    return await action()
  } finally {
    db.close()
  }
}

interface Locking extends Waiting {
  trusts(uid: number): boolean
}

/** Whatever is there already is not opened here: closing it again would drop a lock of this process. */
function makeLock(path: string, trusts: Locking['trusts']): void {
  try {
    const fd = openSync(path, 'wx', 0o600)
    fchmodSync(fd, 0o600) // whatever the umask takes away
    giveToOwner(fd, statSync(dirname(path)))
    closeSync(fd)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    checkLock(path, trusts)
  }
}

/** What others have put there may be another database, which taking the lock would change. */
function checkLock(path: string, trusts: Locking['trusts']): void {
  const stats = lstatSync(path)
  if (!stats.isFile()) throw noLock(path, 'it is no file')
  if (stats.nlink > 1) throw noLock(path, 'it has a second name (a hard link)')
  if (!trusts(stats.uid) && stats.uid !== statSync(dirname(path)).uid) throw noLock(path, 'it belongs to another user')
}

function open(path: string): Database {
  try {
    return connect(uriOf(path, 'mode=rw'), { readOnly: false }) // it is there, and SQLite would make one that others can read
  } catch (error) {
    throw unusable(error, path)
  }
}

async function take(db: Database, path: string, waiting: Waiting): Promise<void> {
  // Nothing is written, so nothing could have to be taken back.
  const begin = () => db.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
  try {
    await retryWhileBusy(begin, waiting, () => inUse(path, waiting.timeout))
  } catch (error) {
    throw unusable(error, path)
  }
}

function unusable(error: unknown, path: string): unknown {
  return isSqliteError(error) ? noLock(path, error.message, error) : error
}

function noLock(path: string, why: string, cause?: unknown): PlantsError {
  return new PlantsError('unwritable', `The lock ${path} could not be taken: ${why}`, {
    hint: cause === undefined ? 'Remove it when no plants is running' : 'Remove it, or change its permissions',
    cause,
  })
}

function inUse(path: string, timeout: number): PlantsError {
  const hint = 'Try again. If it stays so, look for a plants that was stopped, and end it'
  return new PlantsError('unavailable', `Another process held ${path} for ${timeout / 1000} s`, { hint, retryable: true })
}
