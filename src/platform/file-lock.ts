import { closeSync, existsSync, openSync, rmSync } from 'node:fs'
import { PlantsError } from '../errors.js'
import { identityOf } from './files.js'
import type { Runtime } from './runtime.js'
import { connect, type Database, isBusy, isSqliteError, retryWhileBusy, uriOf } from './sqlite.js'

/**
 * Waits for SQLite's lock on an empty file, which stays. The system releases it when the process
 * ends, however it ends. Returns what releases it. Throws `unavailable` after the timeout, and
 * `unwritable` if SQLite cannot lock the file.
 */
export async function acquireLock(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<() => void> {
  // An existing file is not opened here: closing it would release a lock that this process has on
  // it.
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

/**
 * Runs `work` while this process holds a lock on a file that is gone afterwards, unless the process
 * is killed meanwhile: then the next one uses that file. Throws as `acquireLock`.
 */
export async function withTransientLock<T>(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
  work: () => Promise<T>,
): Promise<T> {
  const release = await acquireNamedLock(path, runtime.now() + timeoutMs, runtime)
  try {
    return await work()
  } finally {
    rmSync(path, { force: true })
    release()
  }
}

/**
 * Who held the lock before has removed the file: a lock on a file without a name locks out nobody.
 */
async function acquireNamedLock(path: string, end: number, runtime: Runtime): Promise<() => void> {
  for (;;) {
    // The file must be there before its identity is read.
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
    const identity = identityOf(path)
    let release: () => void
    try {
      release = await acquireLock(path, Math.max(0, end - runtime.now()), runtime)
    } catch (error) {
      const wasRemoved = identity !== identityOf(path)
      if (wasRemoved && runtime.now() < end) continue
      throw error
    }
    if (identity !== undefined && identity === identityOf(path)) return release
    release()
  }
}
