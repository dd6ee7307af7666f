import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { describeCode, getSystemCode, ignoreSystemError, isWindows } from '../errors.js'
import { quoteWord } from './shell.js'

/**
 * Creates a directory and its missing parents durably, for this user only. `mkdirSync` with
 * `recursive` is not used because it never returns in /proc.
 */
export function makeFolder(folder: string): void {
  // The root is tested, too, because Windows has drives that do not exist.
  if (existsSync(folder) || dirname(folder) === folder) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
    syncFolder(dirname(folder))
  } catch (error) {
    if (getSystemCode(error) !== 'EEXIST') throw error
  }
}

/**
 * Explains why no file can be created at a path, if the message of the system does not say so.
 *
 * @param path an absolute path
 * @returns undefined for a missing directory, which somebody can create, and for any other error
 */
export function explainImpossiblePath(error: unknown, path: string): string | undefined {
  const code = getSystemCode(error)
  const folder = dirname(path)
  if (code === 'ENOTDIR') return `${findExistingPath(folder)} is not a directory`
  if (code !== 'ENOENT') return undefined
  // A directory such as /proc exists, but creates no files: the system then says "no such file".
  const { syscall, path: missingFolder } = error as NodeJS.ErrnoException
  if (syscall === 'mkdir') return `the directory ${missingFolder} could not be created`
  if (!existsSync(folder)) return undefined
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  if (isLink) return 'it is a symbolic link to a file that does not exist'
  return `the directory ${folder} cannot contain other files`
}

/**
 * Returns the status of a file, or undefined for a missing file. `throwIfNoEntry` is not used: in
 * Node.js 24, it also hides the error for a path below a file.
 */
export function statIfExists(path: string): Stats | undefined {
  return ignoreMissingFile(() => statSync(path))
}

/** Returns undefined if the call fails because a file does not exist. */
export function ignoreMissingFile<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch (error) {
    if (getSystemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Returns the path if it exists, or else the nearest folder above it that exists. */
function findExistingPath(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : findExistingPath(dirname(path))
}

export function describeMissingFolder(folder: string): string {
  return `the directory ${folder} does not exist`
}

export function makeFolderHint(folder: string): string {
  return `Create it with: ${isWindows ? 'mkdir' : 'mkdir -p'} ${quoteWord(folder)}`
}

/**
 * Syncs a directory, so that names that were added or renamed in it survive a power failure. Where
 * the system cannot sync a directory, nothing happens.
 */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // Windows and some file systems cannot sync a directory.
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(getSystemCode(error) ?? ''))
      throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Whether both paths name one existing file. */
export function isSameFile(path: string, otherPath: string): boolean {
  const identity = findFileIdentity(path)
  return identity !== undefined && identity === findFileIdentity(otherPath)
}

/**
 * Returns the device and the inode of a file, such as `2049:131`. They are equal for two paths of
 * the same file.
 *
 * @returns undefined for a missing file, and on a file system without inodes, as of some networks
 */
export function findFileIdentity(path: string): string | undefined {
  const stats = ignoreSystemError(() => statSync(path, { bigint: true }))
  return stats?.ino ? `${stats.dev}:${stats.ino}` : undefined
}

/** Writes the mode of a file as `(mode 640)`. */
export function formatMode(mode: number): string {
  return `(mode ${(mode & 0o1777).toString(8)})`
}

export function isTrusted(uid: number): boolean {
  return isThisUser(uid) || uid === 0
}

/** Whether this is the user of the process. It is always true on Windows, which has no user ids. */
export function isThisUser(uid: number): boolean {
  return uid === (process.geteuid?.() ?? uid)
}

/**
 * Explains why users other than this user and root can change a file. A group that may write counts
 * as other users, unless it has the number of the owner: many systems give each user a group of
 * their own with the same number.
 *
 * @returns undefined if no other user can change the file
 */
export function explainWriteAccess({ uid, gid, mode }: Stats): string | undefined {
  if (isWindows) return undefined
  if (!isTrusted(uid)) return `belongs to another user (uid ${uid})`
  const isWritable = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid)
  return isWritable ? `can be changed by other users ${formatMode(mode)}` : undefined
}

/**
 * Returns the path of a file without symbolic links, and on Windows with the case of its names.
 * For a file that does not exist, the path is returned as it is.
 */
export function resolveRealPath(path: string): string {
  return ignoreSystemError(() => realpathSync.native(path)) ?? path
}

/**
 * Returns the path to which a symbolic link leads, or any other path as it is.
 *
 * @throws the system error of a link to nothing
 */
export function resolveLink(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  return isLink ? realpathSync(path) : path
}

/** Settings, certificates and keys have some kilobytes, so a larger file is a mistake. */
const maxSmallFileBytes = 16 * 1_048_576

/**
 * Reads a file with its status. Both come from one descriptor, so nobody can replace the file
 * between the two. A pipe or a device is not read, because it may have no end.
 *
 * @throws a system error: EFTYPE for anything but a regular file, EFBIG for a file above 16 MiB
 */
export function readSmallFile(path: string): { bytes: Buffer; stats: Stats } {
  // Without O_NONBLOCK, which Windows does not have, this waits until somebody writes to a pipe.
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = fstatSync(fd)
    if (stats.isDirectory()) throw createSystemError('EISDIR')
    if (!stats.isFile()) throw createSystemError('EFTYPE')
    if (stats.size > maxSmallFileBytes) throw createSystemError('EFBIG')
    return { bytes: readFileSync(fd), stats }
  } finally {
    closeSync(fd)
  }
}

export function createSystemError(code: string): Error {
  return Object.assign(new Error(describeCode(code) ?? code), { code })
}

export function readBytes(path: string, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const fd = openSync(path, 'r')
  try {
    readSync(fd, bytes, 0, length, position)
    return bytes
  } finally {
    closeSync(fd)
  }
}

/**
 * Whether this user can write a file and its directory. It is also true for a file that does not
 * exist.
 */
export function isWritableFile(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK)
    accessSync(path, constants.W_OK)
    return true
  } catch (error) {
    return getSystemCode(error) === 'ENOENT'
  }
}
