/*
 * A file that is there as a whole or not at all, whatever ends the program or the machine.
 *
 * It is written under a temporary name beside its target, because a rename is atomic within one
 * file system only. Its bytes are synced before the rename, and the directory after it: otherwise a
 * power failure can leave an empty file, or the old one. What must replace nothing gets its name by
 * a hard link, which fails where there is a file.
 */
import {
  closeSync,
  existsSync,
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
  isWindows,
  PlantsError,
  systemCode,
  systemReason,
  toDescriptorsHint,
  usageError,
} from '../errors.js'
import { isThisUser, makeFolderHint, syncFolder } from './files.js'

/** Call `discard` last, also after `commit` and `create`. */
export class AtomicFile {
  readonly fd: number
  /** Of the temporary file. */
  readonly path: string
  readonly #target: string
  #isOpen = true

  /**
   * The target is absolute; a symbolic link is replaced, not followed. By default, the mode is
   * 0600.
   *
   * @param options.path a name that can be found again after a kill, for who holds a lock
   */
  constructor(
    target: string,
    {
      followsUmask = false,
      path = join(dirname(target), `.plants-${crypto.randomUUID()}.tmp`),
    } = {},
  ) {
    this.#target = target
    this.path = path
    this.fd = openSync(this.path, 'wx', followsUmask ? 0o666 : 0o600)
  }

  /** @param replaced whose mode the file gets; without it, it keeps its own */
  commit(replaced?: Stats): void {
    if (replaced) fchmodSync(this.fd, replaced.mode & 0o777)
    this.#finish()
    replaceFile(this.path, this.#target)
  }

  /** Throws EEXIST if the target exists. */
  create(): void {
    this.#finish()
    createFile(this.path, this.#target)
  }

  discard(): void {
    this.#close()
    rmSync(this.path, { force: true })
  }

  /** Windows renames no open file. */
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
 * Renames durably. Windows replaces no file that a program, such as a virus scanner, has open:
 * tries for a second.
 */
export function replaceFile(file: string, target: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(file, target)
      break
    } catch (error) {
      const isOpen = isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(systemCode(error) ?? '')
      if (!isOpen || attempt === 20) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50) // milliseconds
    }
  }
  syncFolder(dirname(target))
}

/** Gives a file the name durably. Throws EEXIST if the target exists. */
function createFile(file: string, target: string): void {
  let isLinked = true
  try {
    linkSync(file, target)
  } catch (error) {
    if (systemCode(error) === 'EEXIST') throw error
    closeSync(openSync(target, 'wx')) // the file system has no hard links
    isLinked = false
  }
  try {
    if (isLinked) syncFolder(dirname(target))
    else replaceFile(file, target)
  } catch (error) {
    rmSync(target, { force: true }) // so that a failure leaves nothing
    throw error
  }
}

/**
 * Returns an error that is not the system's unchanged.
 *
 * @param hint unless the directory is missing
 */
export function unwritable(what: string, target: string, cause: unknown, hint: string): unknown {
  const reason = systemReason(cause)
  if (reason === undefined) return cause
  const folder = dirname(target)
  const isMissing = systemCode(cause) === 'ENOENT' && !existsSync(folder)
  const missingHint = isMissing ? makeFolderHint(folder) : undefined
  return new PlantsError('unwritable', `${what} could not be written: ${reason}`, {
    hint: toDescriptorsHint(systemCode(cause)) ?? missingHint ?? hint,
    cause,
  })
}

/** Throws `usage` for a file of another user. */
export function assertOwnFile(path: string, { uid }: Stats, hint: string): void {
  if (!isThisUser(uid)) throw usageError(`${path} belongs to another user (uid ${uid})`, hint)
}

/** Whether this is a device, a pipe, or a file that the shell has opened. */
export function isWrittenInPlace(path: string, stats: Stats | undefined): boolean {
  if (stats === undefined || stats.isDirectory()) return false
  return !stats.isFile() || findDescriptor(path, stats) !== undefined
}

/**
 * Of a file that the shell has opened, such as /dev/stdout: opened again, it would be written over
 * from its start.
 */
export function findDescriptor(path: string, stats: Stats | undefined): number | undefined {
  const name = /^\/(?:dev|dev\/fd|proc\/self\/fd)\/(?<name>stdout|stderr|\d+)$/.exec(path)
    ?.groups?.['name']
  if (name === undefined || !stats?.isFile()) return undefined
  return { stdout: 1, stderr: 2 }[name] ?? parseInt(name, 10)
}
