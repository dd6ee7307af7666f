import { closeSync, existsSync, openSync } from 'node:fs'
import { PlantsError } from './errors.js'
import type { Runtime } from './runtime.js'
import { connect, type Database, isBusy, isSqliteError, retryWhileBusy, uriOf } from './sqlite.js'

/**
 * Waits for SQLite's lock on an empty file, which stays. The system releases it when the process ends, however it ends.
 * Returns what releases it. Throws `unavailable` after the timeout, and `unwritable` if SQLite cannot lock the file.
 */
export async function acquireLock(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<() => void> {
  // An existing file is not opened here: closing it would release a lock that this process has on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  let db: Database | undefined
  const release = () => {
    if (db?.isTransaction) db.exec('ROLLBACK') // a driver may keep the file open after `close`
    db?.close()
  }
  try {
    const opened = connect(uriOf(path, 'mode=rw'), { readOnly: false })
    db = opened
    // Neither statement writes to the disk.
    const lock = () => opened.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    await retryWhileBusy(lock, { base: 2, max: 200 }, timeoutMs, runtime)
    return release
  } catch (error) {
    release()
    if (isBusy(error)) {
      const message = `Another process held ${path} for ${timeoutMs / 1000} s`
      const hint = 'Try again. If it stays locked, end a suspended plants process'
      throw new PlantsError('unavailable', message, { hint })
    }
    if (!isSqliteError(error)) throw error
    const message = `Could not lock ${path}: ${error.message}`
    const hint = 'Choose a directory on a local disk'
    throw new PlantsError('unwritable', message, { hint, cause: error })
  }
}
