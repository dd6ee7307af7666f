import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'

/** Turns a failure of SQLite or of the file system into an error that says what to do about it. Returns any other, a defect, as it is. */
export function explainFailure(error: unknown, path: string): unknown {
  if (error instanceof BadRowError) return new DamagedStoreError(path, error.message, error)
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const text = error instanceof Error ? error.message : ''
  // A file that claims to be ours can be the reason for these errors in our SQL; any other is a defect.
  const isOfFile = code === 1 && /^(no such (table|column)|unsupported file format|JSON cannot hold BLOB)/.test(text)
  if (isOfFile || code === 11) return new DamagedStoreError(path, text, error)
  const [explain] = explanations.find(([, codes]) => codes.includes(code)) ?? []
  if (!explain) return error
  try {
    const { message, hint, retryable = false } = explain(path, text)
    return new PlantsError('unavailable', message, { hint, retryable, cause: error })
  } catch (reason) {
    if (systemCode(reason) === undefined) throw reason
    const hint = 'Look at the disk and its logs, then try again' // looking for the reason has failed, perhaps for the same reason
    return new PlantsError('unavailable', `The store ${path} could not be used: ${text}`, { hint, retryable: true, cause: error })
  }
}

/** Runs an action on a store, and explains what it throws. */
export async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** A row that only another program can have written. */
export class BadRowError extends Error {}

/** What is in the file contradicts itself. */
export class DamagedStoreError extends PlantsError {
  readonly path: string

  constructor(path: string, why: string, cause?: unknown) {
    const hint = `Copy the file aside, then bring back a backup, or what can be read: sqlite3 ${shellWord(path)} .recover`
    super('unavailable', `The store ${path} is damaged: ${why}`, { hint, cause })
    this.path = path
  }
}

export function notOurs(path: string, why: string, hint = elsewhere): PlantsError {
  return new PlantsError('unavailable', `${path} ${why}`, { hint })
}

export function unwritableStore(path: string): PlantsError {
  const { message, hint } = forbidden(path)
  return new PlantsError('unavailable', message, { hint })
}

/** Whether a COMMIT that failed like this may still be found on the disk: its bytes were written, but not known to be safe. */
export function isCommitOutcomeUnknown(error: unknown): boolean {
  return primaryCode(error) === 10
}

/** The error for a commit that a crash may undo. */
export function commitOutcomeUnknown(
  reason: string,
  { done, hint }: { done: 'stored' | 'restored'; hint: string },
  cause?: unknown,
): PlantsError {
  return new PlantsError('unknownOutcome', `${reason} in the middle of a commit: whether it is ${done} is not known`, { hint, cause })
}

export function replacedStore(path: string): PlantsError {
  return new PlantsError('unavailable', `${path} was deleted or replaced`, { hint: 'Try again', retryable: true })
}

/** Adds to the reason of a signal that nothing was changed. */
export function unchanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
}

interface Explanation {
  message: string
  hint: string
  retryable?: boolean
}

const elsewhere = 'Choose another file with --store PATH'

/** What explains which errors, by SQLite's primary result codes and the codes of system calls. */
const explanations: [explain: (path: string, message: string) => Explanation, codes: (number | string)[]][] = [
  [forbidden, [3, 8, 'EACCES', 'EPERM', 'EROFS']],
  [full, [13, 'ENOSPC', 'EDQUOT']],
  [failing, [10, 'EIO']],
  [tooLarge, [7, 18]],
  [unopened, [14, 'EEXIST', 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']],
  [tooManyFiles, ['EMFILE', 'ENFILE']],
  [(path) => ({ message: `${path} is not a store: it is no SQLite file`, hint: elsewhere }), [26]],
  [(path) => ({ message: `The path of the store is too long: ${path}`, hint: elsewhere }), ['ENAMETOOLONG']],
]

function full(path: string): Explanation {
  return { message: `No space left on the disk of ${path}`, hint: 'Free some space, then try again', retryable: true }
}

/** SQLite calls it an I/O error as well when there is no room for the shared memory of its log. */
function failing(path: string, message: string): Explanation {
  if (isFull(path)) return full(path)
  return { message: `The disk failed under ${path}: ${message}`, hint: 'Look at the disk and its logs, then try again', retryable: true }
}

function tooLarge(path: string, message: string): Explanation {
  const hint = 'Read a part of it with plants list --after ID'
  return { message: `The store ${path} holds more than this machine can take: ${message}`, hint }
}

/** Whether less than 1 MiB is left where a file is; false when that is not known. */
export function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize < 1_048_576
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false
  }
}

function tooManyFiles(path: string): Explanation {
  return { message: `Too many open files to open ${path}`, hint: 'Close some, or raise the limit: ulimit -n', retryable: true }
}

/** Nothing about the file or its folder says why. */
function unready(path: string): Explanation {
  return {
    message: `The store ${path} could not be opened`,
    hint: 'Try again, or raise the limit of open files: ulimit -n',
    retryable: true,
  }
}

function forbidden(path: string): Explanation {
  const hint = 'Change the permissions, or choose another file with --store PATH'
  if (existsSync(path) && !allows(path, constants.R_OK)) return { message: `The store ${path} may not be read by this user`, hint }
  if (isWritable(path)) return isFull(path) ? full(path) : unready(path)
  const what = allows(path, constants.W_OK) || !existsSync(path) ? `its folder, ${dirname(path)},` : 'its file'
  return { message: `The store ${path} cannot be written: ${what} is read-only for this user`, hint }
}

function unopened(path: string): Explanation {
  const folder = dirname(path)
  if (existsSync(path) && statSync(path).isDirectory())
    return { message: `${path} is a folder, not a store`, hint: `Name a file in it: --store ${shellWord(join(path, 'plants.db'))}` }
  if (!existsSync(folder))
    return { message: `There is no folder ${folder} for the store ${path}`, hint: `Make it with: mkdir -p ${shellWord(folder)}` }
  if (!statSync(folder).isDirectory())
    return { message: `There is no place for the store ${path}: ${folder} is not a folder`, hint: elsewhere }
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(path))
    return { message: `${path} is a link to a file that is not there`, hint: elsewhere }
  return allows(folder, constants.W_OK) && allows(path, constants.R_OK) ? unready(path) : forbidden(path)
}

/** Whether this user may write to a file and beside it. */
export function isWritable(path: string): boolean {
  return allows(path, constants.W_OK) && allows(dirname(path), constants.W_OK)
}

/** Whether this user may do something with a file or a folder; false when it is not there. */
export function allows(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false
  }
}

/** The error for a call that had no turn within its time. */
export function lockedError(path: string, timeout: number): PlantsError {
  const message = `The store ${path} was in use by ${findHolder(path) ?? 'another process'} for ${timeout / 1000} s`
  return new PlantsError('unavailable', message, { hint: 'Try again, or wait longer with --timeout 2m', retryable: true })
}

/** The process that holds a lock on the file or its log, such as "process 4242 (sqlite3)"; known on Linux only. */
function findHolder(path: string): string | undefined {
  try {
    const files = [path, `${path}-shm`].flatMap((file) => statSync(file, { throwIfNoEntry: false }) ?? [])
    const isOpenAs = (link: string) => {
      const stats = statSync(link, { throwIfNoEntry: false })
      return files.some(({ dev, ino }) => dev === stats?.dev && ino === stats.ino)
    }
    for (const [, pid, inode] of readFileSync('/proc/locks', 'utf8').matchAll(/POSIX +\w+ +WRITE (\d+) [\da-f]+:[\da-f]+:(\d+) /g)) {
      const isLocked = files.some(({ ino }) => ino === Number(inode))
      if (isLocked && readdirSync(`/proc/${pid}/fd`).some((fd) => isOpenAs(`/proc/${pid}/fd/${fd}`)))
        return `process ${pid} (${basename(readlinkSync(`/proc/${pid}/exe`))})`
    }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
  return undefined
}
