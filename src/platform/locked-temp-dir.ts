import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isWindows, unlessSystemError } from './errors.js'
import { prefixFor, removeFolder, tempFoldersBeside } from './files.js'
import { connect, type Database, uriOf } from './sqlite.js'

// SQLite locks the empty file `lock` in the folder, and the operating system releases that when the process dies. There
// is no heartbeat, because one call of SQLite may take longer.

/**
 * Runs an action with the path of a file in a temporary folder beside `target`. The next call removes the folders of
 * killed processes. On Windows, where a folder with an open file can be neither renamed nor removed, it has its name
 * from the beginning.
 */
export async function withLockedTempDir<T>(
  target: string,
  name: string,
  action: (path: string) => Promise<T>,
): Promise<T> {
  const created = fs.mkdtempSync(join(dirname(target), `${prefixFor(target)}${isWindows ? '' : 'new-'}`))
  let folder = created
  let lock: Database | undefined
  try {
    const { uid } = fs.lstatSync(created)
    for (const other of tempFoldersBeside(target))
      if (unlessSystemError(() => isAbandoned(other, name, uid))) removeFolder(other)
    fs.chmodSync(created, 0o700) // independent of the umask
    // SQLite would create a file that others can read
    fs.writeFileSync(join(created, lockName), '', { mode: 0o600, flag: 'wx' })
    lock = lockNow(join(created, lockName))
    // from now on others check its lock
    folder = join(dirname(created), basename(created).replace(/new-(\w{6})$/, '$1'))
    if (!isWindows) fs.renameSync(created, folder)
    return await action(join(folder, name))
  } finally {
    lock?.close()
    for (const place of new Set([created, folder])) removeFolder(place)
  }
}

const lockName = 'lock'

/**
 * Throws an error with a code if the folder is in use. In a shared folder, anybody can create this name: a folder
 * counts only if it belongs to this user and nobody else can access it.
 */
function isAbandoned(folder: string, name: string, user: number): boolean {
  const { uid, mode } = fs.lstatSync(folder)
  if (uid !== user || (mode & (isWindows ? 0 : 0o077)) !== 0) return false
  const names = [lockName, name].flatMap((file) => ['', '-journal', '-wal', '-shm'].map((suffix) => file + suffix))
  if (!fs.readdirSync(folder).every((entry) => names.includes(entry))) return false
  const lock = fs.lstatSync(join(folder, lockName), { throwIfNoEntry: false })
  // elsewhere, a folder in use contains a lock as long as it has this name
  if (!lock) return !isWindows
  if (!lock.isFile() || lock.nlink > 1) return false
  lockNow(join(folder, lockName)).close()
  return true
}

/**
 * Throws SQLite's error when another process holds the lock. Writes nothing, so a crash leaves nothing to roll back.
 */
function lockNow(path: string): Database {
  const lock = connect(uriOf(path, 'mode=rw'), { readOnly: false })
  try {
    lock.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    throw error
  }
}
