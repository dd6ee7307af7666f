import {
  type BigIntStats,
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { isWindows, systemCode, unlessSystemError } from './errors.js'
import { shellWord } from './shell.js'

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

export function makeFolderHint(folder: string): string {
  return `Make it with: ${isWindows ? 'mkdir' : 'mkdir -p'} ${shellWord(folder)}`
}

/** Makes the entries of a folder durable, where the file system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // Windows and some file systems cannot sync a folder
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? ''))
      throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Windows neither replaces a file that another process has open, nor creates one again before it is closed. */
export function isOpenElsewhere(error: unknown): boolean {
  return isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(systemCode(error) ?? '')
}

/** Whether both paths name one file, which exists. A file system without identities, such as of a network, says 0. */
export function isSameFile(path: string, other: string): boolean {
  const one = statsOf(path)
  const two = statsOf(other)
  if (one === undefined || two === undefined || one.ino === 0n) return false
  return one.ino === two.ino && one.dev === two.dev
}

function statsOf(path: string): BigIntStats | undefined {
  return unlessSystemError(() => statSync(path, { bigint: true }))
}

/**
 * A path in the case of the names on the disk, where the file system ignores case: shells of Windows begin it with `c:` or
 * `C:`. The file need not exist, and links are kept.
 */
export function inCaseOfDisk(path: string): string {
  const known = existsSync(path) ? path : dirname(path)
  const real = unlessSystemError(() => join(realpathSync.native(known), relative(known, path)))
  return real?.toLowerCase() === path.toLowerCase() ? real : path
}

/** Such as `(mode 644)`. */
export function octal(mode: number): string {
  return `(mode ${(mode & 0o1777).toString(8)})`
}

// Trusted are root, this user, and the directories that plants is told to use. Windows has no user ids and no modes.

export function isTrusted(uid: number): boolean {
  return isThisUser(uid) || uid === 0
}

export function isThisUser(uid: number): boolean {
  return uid === (process.geteuid?.() ?? uid)
}

/**
 * Why others can change a file or a directory; undefined when only this user and root can. A group counts as others,
 * unless it has the number of the owner: many systems give each user such a group.
 */
export function whyOthersCanWrite({ uid, gid, mode }: Stats): string | undefined {
  if (isWindows) return undefined
  if (!isTrusted(uid)) return `belongs to another user (uid ${uid})`
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid)
  return isWritable ? `can be changed by others ${octal(mode)}` : undefined
}

/** What a symbolic link names; any other path as it is. Throws the system error of a link to nothing. */
export function targetOf(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  return isLink ? realpathSync(path) : path
}
