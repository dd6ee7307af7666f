import { chmodSync, lstatSync, mkdtempSync, readdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../../platform/errors.js'
import { prefixFor, removeFolder } from '../../platform/files.js'
import { connect, type Database, isBusy, uriOf } from '../../platform/sqlite.js'

/**
 * Runs an action with a folder beside a file, for its owner alone, in which can be made what takes the place of the file. The folder is
 * gone afterwards; one that a killed process has left goes with the next that is made there.
 *
 * @throws what the action throws, and the errors of SQLite and of the system
 */
export async function inWorkplace<T>(target: string, action: (folder: string) => Promise<T>): Promise<T> {
  const made = mkdtempSync(join(dirname(target), `${prefixFor(target)}new-`))
  let folder = made
  let lock: Database | undefined
  try {
    removeAbandoned(target, lstatSync(made).uid)
    chmodSync(made, 0o700) // whatever the umask takes away
    lock = takeLock(made)
    folder = join(dirname(made), basename(made).replace(/new-(\w{6})$/, '$1')) // only now may others look whether it is locked
    renameSync(made, folder)
    return await action(folder)
  } finally {
    lock?.close()
    for (const place of new Set([made, folder])) removeFolder(place)
  }
}

/** SQLite's lock on an empty file: the system takes it back from a process that dies. Nothing is written, so nothing would have to be taken back. */
function takeLock(folder: string): Database {
  const db = connect(uriOf(join(folder, lockName), 'mode=rwc'), { readOnly: false })
  try {
    db.exec('PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE')
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

const lockName = 'lock'

function removeAbandoned(target: string, user: number): void {
  const prefix = prefixFor(target)
  const left = readdirSync(dirname(target), { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && entry.name.startsWith(prefix) && /^\w{6}$/.test(entry.name.slice(prefix.length)),
  )
  for (const { name } of left) {
    const folder = join(dirname(target), name)
    if (isAbandoned(folder, user)) removeFolder(folder)
  }
}

function isAbandoned(folder: string, user: number): boolean {
  try {
    if (!isOurs(folder, user)) return false
    const lock = lstatSync(join(folder, lockName), { throwIfNoEntry: false })
    if (!lock) return true // it has one from its first moment under this name until it is removed
    if (!lock.isFile() || lock.nlink > 1) return false
    takeLock(folder).close()
    return true
  } catch (error) {
    if (!isBusy(error) && systemCode(error) === undefined) throw error
    return false // somebody is at work there, or it belongs to somebody else
  }
}

/** Whether this user has made a folder here, for nobody else: in a shared folder, others can give anything this name. */
function isOurs(folder: string, user: number): boolean {
  const { uid, mode } = lstatSync(folder)
  if (uid !== user || (mode & (process.platform === 'win32' ? 0 : 0o077)) !== 0) return false
  return readdirSync(folder).every((name) => /^(lock|copy\.db)(-journal|-wal|-shm)?$/.test(name))
}
