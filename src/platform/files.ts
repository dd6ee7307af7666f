import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
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

/** Throws the system error that would keep this user from creating a file, and the folders that it needs. */
export function assertCreatable(path: string): void {
  let folder = dirname(path)
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  assertWritableDirectory(folder)
}

/** Throws the system error that would keep this user from creating a file in it. */
export function assertWritableDirectory(folder: string): void {
  if (!statSync(folder).isDirectory())
    throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
  accessSync(folder, constants.W_OK | constants.X_OK) // on Windows, also for a file
}

export function makeFolderHint(folder: string): string {
  return `Make it with: ${isWindows ? 'mkdir' : 'mkdir -p'} ${shellWord(folder)}`
}

/** What to do about a file that is as large as this process may make one; undefined for any other error. */
export function sizeLimitHint(error: unknown): string | undefined {
  if (systemCode(error) !== 'EFBIG') return undefined
  maxFileSize ??= readMaxFileSize()
  return maxFileSize === Infinity ? undefined : raiseSizeLimit // otherwise, the limit is that of the file system
}

export const raiseSizeLimit = 'Raise the limit, then try again: ulimit -f unlimited'

/** Whether one of the files has become as large as this process may make a file, less what is written at once. */
export function isAtSizeLimit(paths: readonly string[]): boolean {
  maxFileSize ??= readMaxFileSize()
  const sizes = paths.map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  return Math.max(...sizes) > maxFileSize - 65_536
}

let maxFileSize: number | undefined

/** Of https://nodejs.org/api/report.html */
interface Limits {
  userLimits?: { file_size_blocks?: { soft: number | 'unlimited' } }
}

/** In bytes: RLIMIT_FSIZE, which Windows does not have. */
function readMaxFileSize(): number {
  Object.assign(process.report, { excludeNetwork: true }) // otherwise Node looks up the names of connected hosts
  const { userLimits } = process.report.getReport() as Limits
  const limit = userLimits?.file_size_blocks?.soft
  return typeof limit === 'number' ? limit : Infinity
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

/** Whether both paths name one file, which exists. A file system that gives no identities, such as of a network, says 0. */
export function isSameFile(path: string, other: string): boolean {
  const [one, two] = [path, other].map((each) =>
    unlessSystemError(() => statSync(each, { bigint: true })),
  )
  return (
    one !== undefined &&
    two !== undefined &&
    one.ino !== 0n &&
    one.ino === two.ino &&
    one.dev === two.dev
  )
}

/**
 * A path in the case of the names on the disk, where the file system ignores case: shells of Windows begin it with `c:` or
 * `C:`. The file need not exist, and links are kept.
 */
export function inCaseOfDisk(path: string): string {
  const directory = dirname(path)
  const real =
    unlessSystemError(() => realpathSync.native(path)) ??
    unlessSystemError(() => join(realpathSync.native(directory), relative(directory, path)))
  return real?.toLowerCase() === path.toLowerCase() ? real : path
}

/** The limit of open files of this process, if the system says it (proc(5)). Node.js has raised it to the hard one. */
export function maxOpenFiles(): number {
  try {
    const [, limit] =
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? []
    return limit === undefined ? Infinity : parseInt(limit, 10)
  } catch {
    return Infinity
  }
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

/** The file that a path resolves to, which need not exist. */
export function targetOf(path: string): string {
  let target = path
  for (let links = 0; lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink(); links += 1) {
    if (links === 40) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
    target = resolve(realpathSync(dirname(target)), readlinkSync(target))
  }
  return target
}
