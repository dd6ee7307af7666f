import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode, systemReasons } from '../../platform/errors.js'
import { holdLock, type Lock } from '../../platform/file-lock.js'
import { assertNotRedirected, makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'

export interface ImportLock extends Lock {
  /** the same for the same store and inputs on one machine */
  name: string
  /** its path */
  journal: string
}

/** Throws `unavailable` while another process imports the same inputs into the same store. */
export async function whileAlone<T>(store: string, inputs: string[], io: Io, action: (lock: ImportLock) => Promise<T>): Promise<T> {
  const key = JSON.stringify([hostname(), store, inputs])
  const name = createHash('sha256').update(key).digest('hex').slice(0, 32)
  const directory = io.env['PLANTS_STATE_DIR'] ? io.resolvePath(io.env['PLANTS_STATE_DIR']) : await io.stateFolder()
  const path = join(directory, 'imports', name)
  let hasBegun = false
  try {
    makeFolder(dirname(path))
    assertNotRedirected(dirname(path), io.trusts)
    return await holdLock(`${path}.lock`, { timeout: 0, clock: io, trusts: io.trusts }, (lock) => {
      hasBegun = true
      return action({ ...lock, name, journal: `${path}.json` })
    })
  } catch (error) {
    if (hasBegun) throw error
    if (!(error instanceof PlantsError)) throw unwritable(`The lock of this import in ${dirname(path)}`, error, hint)
    if (!error.retryable) throw error
    const message = 'Another plants process is importing the same inputs into this store'
    throw new PlantsError('unavailable', message, { hint: 'Wait for it', retryable: true, cause: error })
  }
}

/** @throws {PlantsError} `unwritable` */
export function writeJournal({ journal, directory, assertHeld }: ImportLock, text: string): void {
  let file: AtomicFile | undefined
  try {
    file = new AtomicFile(journal, directory)
    writeFileSync(file.fd, `${text}\n`)
    file.commit()
  } catch (error) {
    assertHeld()
    throw unwritable(`The journal ${journal}`, error, hint)
  } finally {
    file?.discard()
  }
}

const hint = 'Free some space, or choose another directory with the variable PLANTS_STATE_DIR'

/** Throws `malformed` for anything but a regular file of a trusted user. */
export function readJournal({ journal }: ImportLock, trusts: Io['trusts']): string | undefined {
  let fd: number | undefined
  try {
    fd = openSync(journal, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe would otherwise wait for a writer
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw invalidJournal(journal, 'is not a regular file')
    if (!trusts(stats.uid)) throw invalidJournal(journal, `belongs to another user (uid ${stats.uid})`)
    return readFileSync(fd, 'utf8')
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return undefined
    throw code === undefined ? error : invalidJournal(journal, `could not be read: ${systemReasons[code] ?? `system error ${code}`}`, error)
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

function invalidJournal(path: string, why: string, cause?: unknown): PlantsError {
  return malformed(`The journal ${path} ${why}`, 'Start again with --restart', cause)
}
