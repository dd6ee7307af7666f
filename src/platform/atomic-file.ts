import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PlantsError, systemCode, systemReason, usageError } from './errors.js'
import { isOpenElsewhere, isThisUser, makeFolderHint, sizeLimitHint, syncFolder } from './files.js'
import { wait } from './runtime.js'

/** Windows does not replace a file while a program, such as a virus scanner, has it open: tries again for a second. */
export function replaceFile(file: string, target: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(file, target)
      return
    } catch (error) {
      if (!isOpenElsewhere(error) || attempt === 20) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50) // milliseconds
    }
  }
}

/** Makes the name of a file durable that has just got it. Throws `unwritable`, which says that the file is there. */
export function syncName(file: string): void {
  try {
    syncFolder(dirname(file))
  } catch (cause) {
    const reason = systemReason(cause)
    if (reason === undefined) throw cause
    const message = `${file} was written, but a power failure may undo that: ${reason}`
    throw new PlantsError('unwritable', message, {
      hint: 'Check the disk, then repeat the command',
      cause,
    })
  }
}

/** Gives a file the name of its target, or this name, too. Throws EEXIST if the target exists. */
export function createFile(file: string, target: string): void {
  try {
    linkSync(file, target) // unlike a rename, it never replaces a file
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw error
    closeSync(openSync(target, 'wx')) // a file system without hard links
    replaceFile(file, target)
  }
}

/** `commit` or `create` gives the temporary file the name of its target. Call `discard` last, also after these. */
export class AtomicFile {
  readonly fd: number
  /** Of the temporary file. */
  readonly path: string
  readonly #target: string
  #isOpen = true

  /**
   * @param target absolute; a symbolic link is replaced, not followed: see `targetOf` in files.ts
   * @param options.followsUmask whether the mode is 0666 without the umask; otherwise it is 0600
   */
  constructor(target: string, { followsUmask = false } = {}) {
    this.#target = target
    this.path = join(dirname(target), `.plants-${crypto.randomUUID()}.tmp`)
    this.fd = openSync(this.path, 'wx', followsUmask ? 0o666 : 0o600)
    if (!followsUmask) fchmodSync(this.fd, 0o600) // independent of the umask
  }

  /** In a thread, so that `commit` of a large file does not block. */
  flush(): Promise<void> {
    return promisify(fsync)(this.fd)
  }

  /**
   * Replaces the target.
   *
   * @param old the replaced file: the new one gets its mode, and its owner if permitted
   */
  commit(old?: Stats): void {
    try {
      if (old) fchownSync(this.fd, old.uid, old.gid)
    } catch (error) {
      if (systemCode(error) !== 'EPERM') throw error
    }
    // A group that differs from the old one gets no permissions.
    if (old) fchmodSync(this.fd, old.mode & (fstatSync(this.fd).gid === old.gid ? 0o777 : 0o707))
    this.#finish()
    replaceFile(this.path, this.#target)
    syncName(this.#target)
  }

  /** Leaves nothing if it fails. Throws EEXIST if the target exists, even if it was created a moment ago. */
  create(): void {
    this.#finish()
    createFile(this.path, this.#target)
    try {
      syncFolder(dirname(this.#target))
    } catch (error) {
      rmSync(this.#target, { force: true })
      throw error
    }
  }

  #finish(): void {
    fsyncSync(this.fd)
    this.#close()
  }

  discard(): void {
    this.#close()
    rmSync(this.path, { force: true })
  }

  #close(): void {
    if (this.#isOpen) closeSync(this.fd)
    this.#isOpen = false
  }
}

/**
 * Returns any error that is not a system error unchanged.
 *
 * @param target the absolute path that was to be written
 * @param otherwise the hint where there is no better one for the cause
 */
export function unwritable(
  what: string,
  target: string,
  cause: unknown,
  otherwise: string,
): unknown {
  const reason = systemReason(cause)
  if (reason === undefined) return cause
  const folder = dirname(target)
  const isMissing = systemCode(cause) === 'ENOENT' && !existsSync(folder)
  const hint = isMissing ? makeFolderHint(folder) : (sizeLimitHint(cause) ?? otherwise)
  return new PlantsError('unwritable', `${what} could not be written: ${reason}`, { hint, cause })
}

/** Whether a path is written to as it is: a device, a pipe, or an open descriptor such as /dev/stdout. */
export function isWrittenInPlace(path: string, stats: Stats | undefined): boolean {
  if (stats === undefined || stats.isDirectory()) return false
  return !stats.isFile() || /^\/(dev\/(std(in|out|err)|fd\/\d+)|proc\/\w+\/fd\/\d+)$/.test(path)
}

/** Opens a device or a pipe for non-blocking writes. A pipe needs a reader: waits for it until the signal aborts. */
export async function openInPlace(path: string, signal: AbortSignal): Promise<number> {
  for (;;) {
    try {
      // Without O_NONBLOCK, opening a pipe cannot be interrupted.
      return openSync(path, constants.O_WRONLY | constants.O_APPEND | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (systemCode(error) !== 'ENXIO' || !statSync(path).isFIFO()) throw error
    }
    await wait(1, [signal])
  }
}

/** Of a file that the shell has opened, such as /dev/stdout: opened again, it would be written over from its start. */
export function descriptorOf(path: string, stats: Stats | undefined): number | undefined {
  const name = /^\/(?:dev|dev\/fd|proc\/self\/fd)\/(?<name>stdout|stderr|\d+)$/.exec(path)
    ?.groups?.['name']
  if (name === undefined || !stats?.isFile()) return undefined
  return { stdout: 1, stderr: 2 }[name] ?? parseInt(name, 10)
}

/** Throws `usage`, with the hint, for a file of another user, to which nothing is written. */
export function assertOwnFile(path: string, { uid }: Stats, hint: string): void {
  if (!isThisUser(uid)) throw usageError(`${path} belongs to another user (uid ${uid})`, hint)
}
