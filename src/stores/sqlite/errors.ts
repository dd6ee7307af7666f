import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'

/** Turns a failure of SQLite or of the file system into an error that says what to do about it. Returns any other, a defect, as it is. */
export function explainFailure(error: unknown, path: string): unknown {
  if (error instanceof BadRowError) return new DamagedStoreError(path, error.message, error)
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const text = messageOf(error)
  // A file that claims to be ours can be the reason for these errors in our SQL; any other is a defect.
  const isOfFile = code === 1 && /^(no such (table|column)|unsupported file format|JSON cannot hold BLOB)/.test(text)
  if (isOfFile || code === 11) return new DamagedStoreError(path, text, error)
  const [explain] = explanations.find(([, codes]) => codes.includes(code)) ?? []
  try {
    return explain ? explain(path, error) : error
  } catch (reason) {
    if (systemCode(reason) === undefined) throw reason
    // Looking for the reason has failed, perhaps for the same reason.
    return unavailable(`The store ${path} could not be used: ${text}`, lookAtDisk, { retryable: true, cause: error })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
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
  return new PlantsError('unknownOutcome', `${reason} during a commit: whether it is ${done} is unknown`, { hint, cause })
}

export function replacedStore(path: string): PlantsError {
  return new PlantsError('unavailable', `${path} was deleted or replaced`, { hint: 'Try again', retryable: true })
}

/** Adds to the reason of a signal that nothing was changed. */
export function unchanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
}

const lookAtDisk = 'Look at the disk and its logs, then try again'
const elsewhere = 'Choose another file with --store PATH'

/** What explains which errors, by SQLite's primary result codes and the codes of system calls. */
const explanations: [explain: (path: string, cause: unknown) => PlantsError, codes: (number | string)[]][] = [
  [forbidden, [3, 8, 'EACCES', 'EPERM', 'EROFS']],
  [full, [13, 'ENOSPC', 'EDQUOT']],
  [failing, [10, 'EIO']],
  [tooLarge, [7, 18]],
  [unopened, [14, 'EEXIST', 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']],
  [tooManyFiles, ['EMFILE', 'ENFILE']],
  [(path, cause) => unavailable(`${path} is not a store: it is no SQLite file`, elsewhere, { cause }), [26]],
  [(path, cause) => unavailable(`The path of the store is too long: ${path}`, elsewhere, { cause }), ['ENAMETOOLONG']],
]

function unavailable(message: string, hint: string, details: { cause: unknown; retryable?: boolean }): PlantsError {
  return new PlantsError('unavailable', message, { hint, ...details })
}

function full(path: string, cause: unknown): PlantsError {
  return unavailable(`No space left on the disk of ${path}`, 'Free some space, then try again', { retryable: true, cause })
}

/** SQLite calls it an I/O error as well when there is no room for the shared memory of its log. */
function failing(path: string, cause: unknown): PlantsError {
  if (isFull(path)) return full(path, cause)
  return unavailable(`The disk failed under ${path}: ${messageOf(cause)}`, lookAtDisk, { retryable: true, cause })
}

function tooLarge(path: string, cause: unknown): PlantsError {
  const message = `The store ${path} holds more than this machine can take: ${messageOf(cause)}`
  return unavailable(message, 'Read a part of it with plants list --after ID', { cause })
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

function tooManyFiles(path: string, cause: unknown): PlantsError {
  return unavailable(`Too many open files to open ${path}`, 'Close some, or raise the limit: ulimit -n', { retryable: true, cause })
}

/** Nothing about the file or its folder says why. */
function unready(path: string, cause: unknown): PlantsError {
  const hint = 'Try again, or raise the limit of open files: ulimit -n'
  return unavailable(`The store ${path} could not be opened`, hint, { retryable: true, cause })
}

/** This user may not read a store, or not write to it or beside it. */
export function forbidden(path: string, cause?: unknown): PlantsError {
  const hint = 'Change the permissions, or choose another file with --store PATH'
  if (['', '-wal', '-shm'].some((suffix) => accessCode(path + suffix, constants.R_OK) === 'EACCES'))
    return unavailable(`The store ${path} may not be read by this user`, hint, { cause })
  if (isWritable(path)) return isFull(path) ? full(path, cause) : unready(path, cause)
  const what = allows(path, constants.W_OK) || !existsSync(path) ? `its folder, ${dirname(path)},` : 'its file'
  return unavailable(`The store ${path} cannot be written: ${what} is read-only for this user`, hint, { cause })
}

function unopened(path: string, cause: unknown): PlantsError {
  const folder = dirname(path)
  if (existsSync(path) && statSync(path).isDirectory())
    return unavailable(`${path} is a folder, not a store`, `Name a file in it: --store ${shellWord(join(path, 'plants.db'))}`, { cause })
  if (!existsSync(folder))
    return unavailable(`There is no folder ${folder} for the store ${path}`, `Make it with: mkdir -p ${shellWord(folder)}`, { cause })
  if (!statSync(folder).isDirectory())
    return unavailable(`There is no place for the store ${path}: ${folder} is not a folder`, elsewhere, { cause })
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(path))
    return unavailable(`${path} is a link to a file that is not there`, elsewhere, { cause })
  return allows(folder, constants.W_OK) && allows(path, constants.R_OK) ? unready(path, cause) : forbidden(path, cause)
}

/** Whether this user may write to a file and beside it. */
export function isWritable(path: string): boolean {
  return allows(path, constants.W_OK) && allows(dirname(path), constants.W_OK)
}

/** Whether this user may do something with a file or a folder; false when it is not there. */
export function allows(path: string, mode: number): boolean {
  return accessCode(path, mode) === undefined
}

/** The code of the error with which the system refuses this user a file: `EACCES` also for one in a folder that is closed to this user. */
function accessCode(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    return code
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
