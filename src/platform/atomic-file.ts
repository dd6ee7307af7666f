import { closeSync, fchmodSync, fchownSync, fstatSync, fsync, fsyncSync, openSync, renameSync, rmSync, type Stats } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { PlantsError, systemCode, systemReasons } from './errors.js'
import { syncFolder } from './files.js'

/** Puts a file in the place of another one in the same file system, durably. The file itself must be on the disk. */
export function moveIntoPlace(file: string, target: string): void {
  renameSync(file, target)
  syncFolder(dirname(target))
}

/** Replaces a file atomically: it is written beside its target, and takes its place in `commit`. End with `discard`, also after a commit. */
export class AtomicFile {
  readonly fd: number
  readonly #path: string
  readonly #target: string
  #isOpen = true

  /** @param target absolute; a link there is replaced, see `targetOf` */
  constructor(target: string) {
    this.#target = target
    this.#path = join(dirname(target), `.plants-${crypto.randomUUID()}.tmp`)
    this.fd = openSync(this.#path, 'wx', 0o600)
  }

  /** Writes to the disk, in a thread. A large file takes long, and `commit` then does not. */
  flush(): Promise<void> {
    return promisify(fsync)(this.fd)
  }

  /** @param old the file that is replaced: the new one gets its owner and mode, as far as this user may. Without it, only this user may read it. */
  commit(old?: Stats): void {
    try {
      if (old) fchownSync(this.fd, old.uid, old.gid)
    } catch (error) {
      if (systemCode(error) !== 'EPERM') throw error
    }
    // Whatever the umask has taken away. Another group gets no rights.
    fchmodSync(this.fd, old ? old.mode & (fstatSync(this.fd).gid === old.gid ? 0o777 : 0o707) : 0o600)
    fsyncSync(this.fd)
    this.#close()
    moveIntoPlace(this.#path, this.#target)
  }

  discard(): void {
    this.#close()
    rmSync(this.#path, { force: true })
  }

  #close(): void {
    if (this.#isOpen) closeSync(this.fd)
    this.#isOpen = false
  }
}

/** `systemReasons` of a file that is written: what is not there is its folder. */
export const unwritableReasons: Readonly<Record<string, string>> = { ...systemReasons, ENOENT: 'there is no such folder' }

/** The error for a file that the system does not let be written; any other error is given back. */
export function unwritable(what: string, cause: unknown, hint: string): unknown {
  const code = systemCode(cause)
  if (cause instanceof PlantsError || code === undefined) return cause
  const reason = unwritableReasons[code] ?? `the system says ${code}`
  return new PlantsError('unwritable', `${what} could not be written: ${reason}`, { hint, cause })
}
