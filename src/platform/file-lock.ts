/*
 * Locks between the processes of this machine, for settings and imports. Node.js cannot lock a
 * file. A lock that is the existence of a file would stay after a kill, and the next process would
 * have to guess how old it is. So this uses SQLite, which locks files with the locks of the system.
 * The system releases them when the process ends: see docs/design/decisions.md.
 */
import { closeSync, constants, existsSync, lstatSync, openSync, rmSync } from 'node:fs'
import { PlantsError } from '../errors.js'
import { findFileIdentity } from './files.js'
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

const { O_CREAT, O_WRONLY, O_NOFOLLOW = 0 } = constants
const createFlags = O_CREAT | O_WRONLY | O_NOFOLLOW

interface TransientLock {
  /** The path of the lock. Nobody else may use the name. */
  path: string
  timeoutMs: number
  runtime: Runtime
}

/**
 * Runs `work` while this process holds a lock on a file that is removed afterwards. If the process
 * is killed in between, the file stays, and the next process uses it.
 *
 * @throws {PlantsError} as `acquireLock`, and `unavailable` if the name belongs to something else
 */
export async function runWithTransientLock<T>(
  lock: TransientLock,
  work: () => Promise<T>,
): Promise<T> {
  const release = await acquireTransientLock(lock)
  try {
    return await work()
  } finally {
    rmSync(lock.path, { force: true })
    release()
  }
}

/**
 * Acquires the lock again if its last holder removed the file while this process waited: a lock on
 * a removed file excludes nobody.
 */
async function acquireTransientLock({ path, timeoutMs, runtime }: TransientLock) {
  const endMs = runtime.now() + timeoutMs
  for (;;) {
    assertIsLockFile(path)
    // The file must exist before its identity is read. A symbolic link is not followed.
    if (!existsSync(path)) closeSync(openSync(path, createFlags, 0o600))
    const identity = findFileIdentity(path)
    let release: () => void
    try {
      release = await acquireLock(path, Math.max(0, endMs - runtime.now()), runtime)
    } catch (error) {
      const wasRemoved = identity !== findFileIdentity(path)
      if (wasRemoved && runtime.now() < endMs) continue
      throw error
    }
    if (identity !== undefined && identity === findFileIdentity(path)) return release
    release()
  }
}

/** Makes sure that the file is empty: it is removed at the end, and must not be somebody's data. */
function assertIsLockFile(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined || (stats.isFile() && stats.size === 0)) return
  const hint = 'Move the file to another place'
  throw new PlantsError('accessDenied', `${path} exists, but is not a lock of plants`, { hint })
}
