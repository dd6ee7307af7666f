import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { isWindows, PlantsError, systemCode, systemReason } from './errors.js'
import { syncFolder } from './files.js'

/** Windows does not replace a file while a program, such as a virus scanner, has it open: tries again for a second. */
export function replaceFile(file: string, target: string): void {
  for (let attempt = 1; ; attempt += 1) {
    try {
      renameSync(file, target)
      return
    } catch (error) {
      const isOpen = isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(systemCode(error) ?? '')
      if (!isOpen || attempt === 20) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50) // milliseconds
    }
  }
}

/** `commit` renames the temporary file to its target. Call `discard` last, also after `commit`. */
export class AtomicFile {
  readonly fd: number
  /** of the temporary file */
  readonly path: string
  readonly #target: string
  #isOpen = true

  /** @param target absolute; a symbolic link is replaced, not followed: see `targetOf` */
  constructor(target: string) {
    this.#target = target
    this.path = join(dirname(target), `.plants-${crypto.randomUUID()}.tmp`)
    this.fd = openSync(this.path, 'wx', 0o600)
  }

  /** In a thread, so that `commit` of a large file does not block. */
  flush(): Promise<void> {
    return promisify(fsync)(this.fd)
  }

  /**
   * @param old the replaced file: the new one gets its mode, and its owner if permitted. Without it, the mode is 0600.
   */
  commit(old?: Stats): void {
    try {
      if (old) fchownSync(this.fd, old.uid, old.gid)
    } catch (error) {
      if (systemCode(error) !== 'EPERM') throw error
    }
    // Independent of the umask. A group that differs from the old one gets no permissions.
    fchmodSync(this.fd, old ? old.mode & (fstatSync(this.fd).gid === old.gid ? 0o777 : 0o707) : 0o600)
    fsyncSync(this.fd)
    this.#close()
    replaceFile(this.path, this.#target)
    syncFolder(dirname(this.#target))
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

/** Returns any error that is not a system error unchanged. */
export function unwritable(what: string, cause: unknown, hint: string): unknown {
  const reason = systemReason(cause, { ENOENT: 'there is no such directory' })
  return reason === undefined
    ? cause
    : new PlantsError('unwritable', `${what} could not be written: ${reason}`, { hint, cause })
}
