/*
 * Locks between the processes of this machine, for the settings. Node.js cannot lock a file. A lock
 * that is the existence of a file would stay after a kill, and the next process would have to guess
 * how old it is. So this uses SQLite, which locks files with the locks of the system. The system
 * releases them when the process ends: see docs/design/decisions.md.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { PlantsError } from '../errors.js'
import type { Runtime } from './runtime.js'
import {
  buildUri,
  connect,
  type Database,
  isBusy,
  isSqliteError,
  retryWhileBusy,
} from './sqlite.js'

/**
 * Waits for SQLite's lock on an empty file, which stays where it is. The system releases the lock
 * when the process ends, however it ends.
 *
 * @returns a function that releases the lock
 * @throws {PlantsError} `unavailable` after the timeout, and `unwritable` if SQLite cannot lock the
 * file
 */
export async function acquireLock(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<() => void> {
  // An existing file is not opened here, because closing it would release every lock that this
  // process has on it (POSIX).
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  let db: Database | undefined
  const release = () => {
    // The driver may keep the file open after `close`, and with it the lock.
    if (db?.isTransaction) db.exec('ROLLBACK')
    db?.close()
  }
  try {
    const lockDatabase = connect(buildUri(path, 'mode=rw'), { readOnly: false })
    db = lockDatabase
    // Neither statement writes to the disk, so the file stays empty.
    const lock = () => lockDatabase.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    const backoff = { firstMs: 2, longestMs: 200 }
    await retryWhileBusy(lock, { backoff, timeoutMs, runtime })
    return release
  } catch (error) {
    release()
    if (isBusy(error)) {
      const message = `Another process has held ${path} for ${timeoutMs / 1000} s`
      const hint = 'Wait for the end of the other plants process, which may be suspended'
      throw new PlantsError('unavailable', message, { hint })
    }
    if (!isSqliteError(error)) throw error
    const message = `${path} could not be locked: ${error.message}`
    const hint = 'Choose a directory on a local disk'
    throw new PlantsError('unwritable', message, { hint, cause: error })
  }
}
