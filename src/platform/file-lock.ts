import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, systemCode, unlessSystemError } from './errors.js'
import { giveToOwner, prefixFor, removeFolder, tempFoldersBeside } from './files.js'
import { connect, type Database, isSqliteError, retryWhileBusy, uriOf, type Waiting } from './sqlite.js'

// A lock is SQLite's lock on an empty file: the operating system releases it when the process dies, so a lock is never stale.

interface LockOptions extends Waiting {
  /** whether an existing file may belong to this user, who is not the owner of its folder */
  trusts(uid: number): boolean
  /** whether to remove the file afterwards */
  isTemporary?: boolean
}

/**
 * Runs an action under an exclusive lock on a file, which is created if missing. Throws `unavailable` when the lock is not free before
 * the timeout, `unwritable` for a file that cannot be a lock, and system errors.
 */
export async function holdLock<T>(path: string, options: LockOptions, action: () => Promise<T>): Promise<T> {
  const lock = await acquire(path, options)
  try {
    return await action()
  } finally {
    const remove = () => options.isTemporary && fs.rmSync(path, { force: true })
    if (process.platform !== 'win32') remove()
    lock.close()
    if (process.platform === 'win32') unlessSystemError(remove) // an open file cannot be removed: not by this process, nor when another has it
  }
}

/** Acquires the lock. Starts again when the process that held it has removed the file. */
async function acquire(path: string, options: LockOptions): Promise<Database> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      createFile(path, options.trusts)
      const inode = inodeOf(path)
      const lock = await retryWhileBusy(
        () => lockNow(path, 'mode=rw'), // SQLite would create a file that others can read
        options,
        () => {
          const hint = 'Try again. If it stays locked, look for a suspended plants process, and end it'
          return new PlantsError('unavailable', `Another process held ${path} for ${options.timeout / 1000} s`, { hint, retryable: true })
        },
      )
      if (inodeOf(path) === inode) return lock
      lock.close()
    } catch (error) {
      const isRemoved = !fs.existsSync(path) && fs.existsSync(dirname(path))
      if (isRemoved && attempt < 50 && !options.clock.signal.aborted) continue
      throw isSqliteError(error) ? noLock(path, error.message, error) : error
    }
  }
}

function inodeOf(path: string): number | undefined {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.ino
}

/** Throws SQLite's error when another process holds the lock. Writes nothing, so a crash leaves nothing to roll back. */
function lockNow(path: string, query: 'mode=rw' | 'mode=rwc'): Database {
  const lock = connect(uriOf(path, query), { readOnly: false })
  try {
    lock.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Creates the file. Does not open an existing one: closing it would release a lock that this process holds on it. */
function createFile(path: string, trusts: LockOptions['trusts']): void {
  const folder = fs.statSync(dirname(path))
  try {
    const fd = fs.openSync(path, 'wx', 0o600)
    fs.fchmodSync(fd, 0o600) // independent of the umask
    giveToOwner(fd, folder)
    fs.closeSync(fd)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    // Another user's file may be a database, which locking would change.
    const stats = fs.lstatSync(path)
    if (!stats.isFile()) throw noLock(path, 'it is not a regular file')
    if (stats.nlink > 1) throw noLock(path, 'it has more than one hard link')
    if (!trusts(stats.uid) && stats.uid !== folder.uid) throw noLock(path, 'it belongs to another user')
  }
}

function noLock(path: string, why: string, cause?: unknown): PlantsError {
  const hint = cause === undefined ? 'Remove it when no plants process is running' : 'Remove it, or change its permissions'
  return new PlantsError('unwritable', `Could not acquire the lock ${path}: ${why}`, { hint, cause })
}

/**
 * Runs an action with the path of a file in a temporary folder beside `target`, with mode 0700. The folder is removed afterwards;
 * the next call removes those of killed processes. On Windows, where a folder with an open file can be neither renamed nor removed, it has
 * its name from the beginning.
 */
export async function withLockedTempDir<T>(target: string, name: string, action: (path: string) => Promise<T>): Promise<T> {
  const isWindows = process.platform === 'win32'
  const created = fs.mkdtempSync(join(dirname(target), `${prefixFor(target)}${isWindows ? '' : 'new-'}`))
  let folder = created
  let lock: Database | undefined
  try {
    const { uid } = fs.lstatSync(created)
    for (const other of tempFoldersBeside(target)) if (unlessSystemError(() => isAbandoned(other, name, uid))) removeFolder(other)
    fs.chmodSync(created, 0o700) // independent of the umask
    lock = lockNow(join(created, lockName), 'mode=rwc')
    folder = join(dirname(created), basename(created).replace(/new-(\w{6})$/, '$1')) // from now on others check its lock
    if (!isWindows) fs.renameSync(created, folder)
    return await action(join(folder, name))
  } finally {
    lock?.close()
    for (const place of new Set([created, folder])) removeFolder(place)
  }
}

const lockName = 'lock'

/**
 * Whether the process that made a folder has ended; throws an error with a code if it is in use, or belongs to another user. In a shared
 * folder, anybody can create this name: a folder counts only if it belongs to this user and nobody else can access it.
 */
function isAbandoned(folder: string, name: string, user: number): boolean {
  const { uid, mode } = fs.lstatSync(folder)
  if (uid !== user || (mode & (process.platform === 'win32' ? 0 : 0o077)) !== 0) return false
  const names = [lockName, name].flatMap((file) => ['', '-journal', '-wal', '-shm'].map((suffix) => file + suffix))
  if (!fs.readdirSync(folder).every((entry) => names.includes(entry))) return false
  const lock = fs.lstatSync(join(folder, lockName), { throwIfNoEntry: false })
  if (!lock) return process.platform !== 'win32' // elsewhere, a folder in use contains a lock as long as it has this name
  if (!lock.isFile() || lock.nlink > 1) return false
  lockNow(join(folder, lockName), 'mode=rw').close()
  return true
}
