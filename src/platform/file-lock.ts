import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { PlantsError, systemCode } from './errors.js'
import type { Runtime } from './runtime.js'
import {
  connect,
  type Database,
  isBusy,
  isSqliteError,
  primaryCode,
  retryWhileBusy,
  uriOf,
} from './sqlite.js'

/**
 * Waits for SQLite's lock on an empty file, which stays. The system releases it when the process ends, however it ends.
 *
 * @returns what releases it
 * @throws {PlantsError} `unavailable` when another process keeps it until the timeout; `unwritable` if it is not a lock
 */
export async function acquireLock(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<() => void> {
  createLockFile(path)
  const db = connect(uriOf(path, 'mode=rw'), { readOnly: false })
  const release = () => {
    if (db.isTransaction) db.exec('ROLLBACK') // a driver may keep the file open after `close`
    db.close()
  }
  try {
    await retryWhileBusy(() => lock(db, path), policy, timeoutMs, runtime)
    return release
  } catch (error) {
    release()
    if (isBusy(error)) {
      const hint =
        'Try again. If it stays locked, end a suspended plants process, or use a local disk'
      const message = `Another process held ${path} for ${timeoutMs / 1000} s`
      throw new PlantsError('unavailable', message, { hint })
    }
    if (primaryCode(error) === notADatabase) throw unusable(path, 'it is not a lock', error)
    if (!isSqliteError(error)) throw error
    throw unusable(
      path,
      'its file system may not support locks',
      error,
      'Choose a directory on a local disk',
    )
  }
}

const policy = { base: 2, max: 200 }

const notADatabase = 26

/** What an earlier version has written: the name of its process, a count, and a UUID. */
const oldLock = /^[^\n]+\n\d+\n[\da-f-]{36}\n$/

function lock(db: Database, path: string): void {
  try {
    db.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE') // neither writes to the disk
  } catch (error) {
    const isOld = primaryCode(error) === notADatabase && statSync(path).size < 1000
    if (!isOld || !oldLock.test(readFileSync(path, 'utf8'))) throw error
    truncateSync(path)
    lock(db, path)
  }
}

/** An existing file is not opened: closing it would release a lock that this process has on it. */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    if (!lstatSync(path).isFile()) throw unusable(path, 'it is not a regular file', error)
    accessSync(path, constants.W_OK) // throws why
  }
}

function unusable(
  path: string,
  why: string,
  cause: unknown,
  hint = 'Remove it when no plants process is running',
) {
  return new PlantsError('unwritable', `Could not acquire the lock ${path}: ${why}`, {
    hint,
    cause,
  })
}
