import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { isWindows, octal, systemCode } from './errors.js'

/** Durable, also for missing parents. `mkdirSync` with `recursive` never returns in /proc. */
export function makeFolder(folder: string): void {
  if (existsSync(folder) || dirname(folder) === folder) return // Windows has drives that do not exist
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
    chmodSync(folder, 0o700) // independent of the umask
    syncFolder(dirname(folder))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Makes the entries of a folder durable, where the file system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // Windows and some file systems cannot sync a folder
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

// Trusted are root, this user, and the directories that plants is told to use. Windows has no user ids and no modes.

export function isTrusted(uid: number): boolean {
  return isOwn(uid) || uid === 0
}

export function isOwn(uid: number): boolean {
  return uid === (process.geteuid?.() ?? uid)
}

/** Why others can change a file; undefined when only this user and root can. */
export function whyOthersCanWrite(stats: Stats): string | undefined {
  if (isWindows) return undefined
  if (!isTrusted(stats.uid)) return `belongs to another user (uid ${stats.uid})`
  return isWritableByOthers(stats) ? `can be changed by others ${octal(stats.mode)}` : undefined
}

/** Why others can create files in a directory; undefined when only this user and root can. */
export function exposureOf(directory: string): string | undefined {
  if (isWindows) return undefined
  const stats = statSync(directory)
  if (!isTrusted(stats.uid)) return `${directory} belongs to another user (uid ${stats.uid})`
  return isWritableByOthers(stats) ? `${directory} can be written by other users ${octal(stats.mode)}` : undefined
}

/** A group counts as others, unless it has the number of the owner: many systems give each user such a group. */
function isWritableByOthers({ uid, gid, mode }: Stats): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid)
}
