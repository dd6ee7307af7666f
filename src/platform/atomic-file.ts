/*
 * Writes a file completely or not at all, even if the program is killed or the power fails.
 *
 * The file is written under a temporary name next to its target, because a rename is atomic only
 * within one file system. The bytes of the file are synced before the rename, and the directory is
 * synced after the rename. Otherwise a power failure could leave an empty file, or the old file. A
 * file that must not replace another one gets its name by a hard link, which fails if the name
 * exists.
 */
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import {
  createUsageError,
  describeSystemError,
  descriptorExplanations,
  getSystemCode,
  isWindows,
  PlantsError,
  spaceExplanations,
} from '../errors.js'
import {
  createSystemError,
  describeMissingFolder,
  explainImpossiblePath,
  isThisUser,
  isTrusted,
  makeFolderHint,
  syncFolder,
} from './files.js'

/**
 * A file under a temporary name. `discard` must be called last, also after `commit` and
 * `commitNew`.
 */
export class AtomicFile {
  readonly fd: number
  /** The path of the temporary file. */
  readonly path: string
  #isOpen = true

  /**
   * Creates the temporary file, with mode 0600 by default.
   *
   * @param target an absolute path; a symbolic link there is replaced and not followed
   * @param options.followsUmask whether the file gets the mode 0666 without the bits of the umask,
   * like a file that a shell creates
   */
  constructor(
    private readonly target: string,
    { followsUmask = false } = {},
  ) {
    this.path = join(dirname(target), `.plants-${crypto.randomUUID()}.tmp`)
    this.fd = openSync(this.path, 'wx', followsUmask ? 0o666 : 0o600)
  }

  /**
   * Replaces the target, if it exists.
   *
   * @param replacedStats the status of the target, whose mode the file gets; by default, the file
   * keeps its own mode
   */
  commit(replacedStats?: Stats): void {
    if (replacedStats) fchmodSync(this.fd, replacedStats.mode & 0o777)
    this.#finish()
    replaceFile(this.path, this.target)
  }

  /** @throws EEXIST if the target exists */
  commitNew(): void {
    this.#finish()
    createFile(this.path, this.target)
  }

  discard(): void {
    this.#close()
    rmSync(this.path, { force: true })
  }

  /** Closes the file before its rename, because Windows renames no open file. */
  #finish(): void {
    fsyncSync(this.fd)
    this.#close()
  }

  #close(): void {
    if (this.#isOpen) closeSync(this.fd)
    this.#isOpen = false
  }
}

/**
 * Renames a file durably. Windows replaces no file that another program, such as a virus scanner,
 * has open, so the rename is tried for a second.
 */
export function replaceFile(file: string, target: string): void {
  const pauseMs = 50
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(file, target)
      break
    } catch (error) {
      const mayBeOpen =
        isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(getSystemCode(error) ?? '')
      if (!mayBeOpen) throw error
      if (attempt === 20) throw createSystemError('EBUSY')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs)
    }
  }
  syncFolder(dirname(target))
}

/** Returns the path of a temporary file that no other process of this machine uses. */
export function buildTemporaryPath(path: string): string {
  return `${path}.${process.pid}.tmp`
}

/** Whether `buildTemporaryPath` has built the file of a path in a process that has ended. */
export function isAbandoned(file: string, path: string): boolean {
  const [, pid] = /^\.(\d+)\.tmp$/.exec(file.slice(path.length)) ?? []
  try {
    // Signal 0 only looks for the process.
    return pid !== undefined && !process.kill(Number(pid), 0)
  } catch (error) {
    return getSystemCode(error) === 'ESRCH'
  }
}

/**
 * Gives a file the name of its target durably.
 *
 * @throws EEXIST if the target exists
 */
export function createFile(file: string, target: string): void {
  let isLinked = true
  try {
    linkSync(file, target)
  } catch (error) {
    if (getSystemCode(error) === 'EEXIST') throw error
    closeSync(openSync(target, 'wx')) // The file system has no hard links.
    isLinked = false
  }
  try {
    if (isLinked) syncFolder(dirname(target))
    else replaceFile(file, target)
  } catch (error) {
    rmSync(target, { force: true }) // A failure must not leave an empty file.
    throw error
  }
}

/**
 * Converts the error of a system call to the error for a file that could not be written. It returns
 * any other error as it is.
 *
 * @param subject the beginning of the message, such as `The rejects file /tmp/list.csv`
 * @param hint what to do, unless the directory is missing, the file cannot grow, or the process has
 * too many open files
 */
export function toWriteError(
  subject: string,
  target: string,
  cause: unknown,
  hint: string,
): unknown {
  const systemReason = describeSystemError(cause)
  if (systemReason === undefined) return cause
  const folder = dirname(target)
  const impossibility = explainImpossiblePath(cause, target)
  const isMissing = getSystemCode(cause) === 'ENOENT' && impossibility === undefined
  const reason = isMissing ? describeMissingFolder(folder) : (impossibility ?? systemReason)
  const missingHint = isMissing ? makeFolderHint(folder) : undefined
  const code = getSystemCode(cause) ?? ''
  const lack = descriptorExplanations[code] ?? spaceExplanations[code]
  return new PlantsError('unwritable', `${subject} could not be written: ${reason}`, {
    hint: lack?.hint ?? missingHint ?? hint,
    cause,
  })
}

/**
 * Makes sure that output goes to this user. Devices, such as /dev/null, and pipes may be root's.
 *
 * @throws {PlantsError} `usage` for what belongs to another user
 */
export function assertOwnFile(path: string, stats: Stats, hint: string): void {
  const { uid } = stats
  const isAccepted = stats.isFile() ? isThisUser(uid) : isTrusted(uid)
  if (!isAccepted) throw createUsageError(`${path} belongs to another user (uid ${uid})`, hint)
}

/** Whether output must be written to what is at a path, a device or a pipe, and cannot replace it. */
export function isWrittenInPlace(stats: Stats | undefined): boolean {
  return stats !== undefined && !stats.isDirectory() && !stats.isFile()
}
