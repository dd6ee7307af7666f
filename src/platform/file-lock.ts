import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, systemCode } from './errors.js'
import { giveToOwner, prefixFor, removeFolder, tempFoldersBeside } from './files.js'
import { connect, type Database, isBusy, isSqliteError, retryWhileBusy, uriOf, type Waiting } from './sqlite.js'

// A lock is SQLite's lock on an empty file: the system releases it when a process dies, so nobody has to guess whether a lock is stale.

interface LockOptions extends Waiting {
  /** whose file it may be, besides the owner's of its folder */
  trusts(uid: number): boolean
  /** whether the file is removed afterwards */
  isTemporary?: boolean
}

/**
 * Runs an action while this process alone holds a lock on a file, which is created. Throws `unavailable` when others held it for too
 * long, `unwritable` for a file that is no lock, and the system's errors.
 */
export async function holdLock<T>(path: string, options: LockOptions, action: () => Promise<T>): Promise<T> {
  const lock = await acquire(path, options)
  try {
    return await action()
  } finally {
    if (options.isTemporary) fs.rmSync(path, { force: true })
    lock.close()
  }
}

/** Starts again when the process that held the lock has removed its file. */
async function acquire(path: string, options: LockOptions): Promise<Database> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      createFile(path, options.trusts)
      const inode = inodeOf(path)
      const lock = await retryWhileBusy(
        () => lockNow(path, 'mode=rw'), // SQLite would create one that others can read
        options,
        () => {
          const hint = 'Try again. If it stays so, look for a plants that was stopped, and end it'
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

/** Throws SQLite's error when another process holds the lock. Nothing is written, so nothing could have to be rolled back. */
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

/** What is there already is not opened here: to close it would release a lock of this process. */
function createFile(path: string, trusts: LockOptions['trusts']): void {
  const folder = fs.statSync(dirname(path))
  try {
    const fd = fs.openSync(path, 'wx', 0o600)
    fs.fchmodSync(fd, 0o600) // whatever the umask takes away
    giveToOwner(fd, folder)
    fs.closeSync(fd)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    // What others have put there may be another database, which taking the lock would change.
    const stats = fs.lstatSync(path)
    if (!stats.isFile()) throw noLock(path, 'it is no file')
    if (stats.nlink > 1) throw noLock(path, 'it has a second name (a hard link)')
    if (!trusts(stats.uid) && stats.uid !== folder.uid) throw noLock(path, 'it belongs to another user')
  }
}

function noLock(path: string, why: string, cause?: unknown): PlantsError {
  const hint = cause === undefined ? 'Remove it when no plants is running' : 'Remove it, or change its permissions'
  return new PlantsError('unwritable', `The lock ${path} could not be taken: ${why}`, { hint, cause })
}

/**
 * Runs an action with a place for a file in a temporary folder beside a target, for their owner alone. The folder is removed afterwards;
 * one that a killed process has left is removed by the next call.
 */
export async function withLockedTempDir<T>(target: string, name: string, action: (path: string) => Promise<T>): Promise<T> {
  const created = fs.mkdtempSync(join(dirname(target), `${prefixFor(target)}new-`))
  let folder = created
  let lock: Database | undefined
  try {
    const { uid } = fs.lstatSync(created)
    for (const other of tempFoldersBeside(target)) if (isAbandoned(other, name, uid)) removeFolder(other)
    fs.chmodSync(created, 0o700) // whatever the umask takes away
    lock = lockNow(join(created, lockName), 'mode=rwc')
    folder = join(dirname(created), basename(created).replace(/new-(\w{6})$/, '$1')) // only now may others look whether it is locked
    fs.renameSync(created, folder)
    return await action(join(folder, name))
  } finally {
    lock?.close()
    for (const place of new Set([created, folder])) removeFolder(place)
  }
}

const lockName = 'lock'

/** In a shared folder, others can give anything this name: only what this user has created, for nobody else, counts. */
function isAbandoned(folder: string, name: string, user: number): boolean {
  try {
    const { uid, mode } = fs.lstatSync(folder)
    if (uid !== user || (mode & (process.platform === 'win32' ? 0 : 0o077)) !== 0) return false
    const names = [lockName, name].flatMap((file) => ['', '-journal', '-wal', '-shm'].map((suffix) => file + suffix))
    if (!fs.readdirSync(folder).every((entry) => names.includes(entry))) return false
    const lock = fs.lstatSync(join(folder, lockName), { throwIfNoEntry: false })
    if (!lock) return true // it has a lock from its first moment under this name until it is removed
    if (!lock.isFile() || lock.nlink > 1) return false
    lockNow(join(folder, lockName), 'mode=rw').close()
    return true
  } catch (error) {
    if (!isBusy(error) && systemCode(error) === undefined) throw error
    return false // it is in use, or belongs to another user
  }
}
