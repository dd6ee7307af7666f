/*
 * A file that is there as a whole or not at all, whatever ends the program or the machine.
 *
 * It is written under a temporary name beside its target, because a rename is atomic within one file system only. Its
 * bytes are synced before the rename, and the directory after it: otherwise a power failure can leave an empty file, or
 * the old one. What must not replace anything gets its name by a hard link, which fails where a rename would replace
 * what another program has just made. What has no whole, such as a pipe, is written to as it is.
 */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PlantsError, systemCode, systemReason, usageError } from './errors.js'
import { isOpenElsewhere, isThisUser, makeFolderHint, syncFolder } from './files.js'

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
  }

  /** In a thread, so that `commit` of a large file does not block. */
  flush(): Promise<void> {
    return promisify(fsync)(this.fd)
  }

  /** @param old the replaced file, whose mode the new one gets */
  commit(old?: Stats): void {
    if (old) fchmodSync(this.fd, old.mode & 0o777)
    this.#finish()
    replaceFile(this.path, this.#target)
  }

  /** Throws EEXIST if the target exists, even if it was created a moment ago. */
  create(): void {
    this.#finish()
    createFile(this.path, this.#target)
  }

  discard(): void {
    this.#close()
    rmSync(this.path, { force: true })
  }

  #finish(): void {
    fsyncSync(this.fd)
    this.#close()
  }

  /** Before a rename: Windows renames no open file. */
  #close(): void {
    if (this.#isOpen) closeSync(this.fd)
    this.#isOpen = false
  }
}

/**
 * Renames a file, and makes its new name durable. Windows does not replace a file while a program, such as a virus
 * scanner, has it open: tries again for a second.
 */
export function replaceFile(file: string, target: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(file, target)
      break
    } catch (error) {
      if (!isOpenElsewhere(error) || attempt === 20) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50) // milliseconds
    }
  }
  syncFolder(dirname(target))
}

/** Gives a file the name of its target, or this name, too, and makes it durable. Throws EEXIST if the target exists. */
export function createFile(file: string, target: string): void {
  try {
    linkSync(file, target)
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw error
    closeSync(openSync(target, 'wx')) // the file system has no hard links
    replaceFile(file, target)
    return
  }
  syncFolder(dirname(target))
}

/**
 * Returns an error that is not the system's unchanged.
 *
 * @param target the absolute path that was to be written
 * @param hint unless its directory is missing
 */
export function unwritable(what: string, target: string, cause: unknown, hint: string): unknown {
  const reason = systemReason(cause)
  if (reason === undefined) return cause
  const folder = dirname(target)
  const isMissing = systemCode(cause) === 'ENOENT' && !existsSync(folder)
  return new PlantsError('unwritable', `${what} could not be written: ${reason}`, {
    hint: isMissing ? makeFolderHint(folder) : hint,
    cause,
  })
}

/** Throws `usage`, with the hint, for a file of another user, to which nothing is written. */
export function assertOwnFile(path: string, { uid }: Stats, hint: string): void {
  if (!isThisUser(uid)) throw usageError(`${path} belongs to another user (uid ${uid})`, hint)
}

/** Whether a path is written to as it is: a device, a pipe, or a file that the shell has opened. */
export function isWrittenInPlace(path: string, stats: Stats | undefined): boolean {
  if (stats === undefined || stats.isDirectory()) return false
  return !stats.isFile() || descriptorOf(path, stats) !== undefined
}

/** Of a file that the shell has opened, such as /dev/stdout: opened again, it would be written over from its start. */
export function descriptorOf(path: string, stats: Stats | undefined): number | undefined {
  const name = /^\/(?:dev|dev\/fd|proc\/self\/fd)\/(?<name>stdout|stderr|\d+)$/.exec(path)
    ?.groups?.['name']
  if (name === undefined || !stats?.isFile()) return undefined
  return { stdout: 1, stderr: 2 }[name] ?? parseInt(name, 10)
}
