import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { detectFileCompression } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'

/** Turns an error of SQLite or the file system into a `PlantsError` with a hint. Returns any other error, a defect, unchanged. */
export function explainFailure(error: unknown, path: string): unknown {
  if (error instanceof BadRowError) return new DamagedStoreError(path, error.message, error)
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const text = messageOf(error)
  // A crafted file can cause these errors; any other error in our SQL is a defect.
  const isOfFile = code === 1 && /^(no such (table|column)|unsupported file format|JSON cannot hold BLOB)/.test(text)
  if (isOfFile || code === 11) return new DamagedStoreError(path, text, error)
  const [explain] = explanations.find(([, codes]) => codes.includes(code)) ?? []
  try {
    return explain ? explain(path, error) : error
  } catch (reason) {
    if (systemCode(reason) === undefined) throw reason
    // The search for the reason has failed, perhaps because of the same problem.
    return unavailable(`The store ${path} could not be used: ${text}`, lookAtDisk, { retryable: true, cause: error })
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : ''
}

/** Runs an action on a store, and explains its errors. */
export async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** A row with values that only another program can have written. */
export class BadRowError extends Error {}

/** The content of the file is inconsistent. */
export class DamagedStoreError extends PlantsError {
  readonly path: string

  constructor(path: string, why: string, cause?: unknown) {
    const hint = `Copy the file, then restore a backup, or recover what is readable: sqlite3 ${shellWord(path)} .recover`
    super('unavailable', `The store ${path} is damaged: ${why}`, { hint, cause })
    this.path = path
  }
}

export function notOurs(path: string, why: string, hint = elsewhere): PlantsError {
  return new PlantsError('unavailable', `${path} ${why}`, { hint })
}

/** Whether a failed COMMIT may still be on disk: SQLite has written it, but could not confirm that it is durable. */
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

/** Adds "nothing was changed" to the reason of a signal. */
export function unchanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
}

const lookAtDisk = 'Look at the disk and its logs, then try again'
const elsewhere = 'Choose another file with --store PATH'

/** The explanation for each error, by SQLite's primary result codes and system error codes. */
const explanations: [explain: (path: string, cause: unknown) => PlantsError, codes: (number | string)[]][] = [
  [forbidden, [3, 8, 'EACCES', 'EPERM', 'EROFS']],
  [full, [13, 'ENOSPC', 'EDQUOT']],
  [failing, [10, 'EIO']],
  [tooLarge, [7, 18]],
  [unopened, [14, 'EEXIST', 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']],
  [tooManyFiles, ['EMFILE', 'ENFILE']],
  [notSqlite, [26]],
  [(path, cause) => unavailable(`The path of the store is too long: ${path}`, elsewhere, { cause }), ['ENAMETOOLONG']],
]

function unavailable(message: string, hint: string, details: { cause: unknown; retryable?: boolean }): PlantsError {
  return new PlantsError('unavailable', message, { hint, ...details })
}

function notSqlite(path: string, cause: unknown): PlantsError {
  const compression = detectFileCompression(path)
  if (!compression) return unavailable(`${path} is not a store: it is not an SQLite file`, elsewhere, { cause })
  const store = shellWord(/\.(gz|zst)$/.test(path) ? path.replace(/\.\w+$/, '') : `${path}.db`)
  const hint = `If it is a backup: ${compression} -dc ${shellWord(path)} | plants restore - --store ${store}. Else: plants import ${shellWord(path)}`
  return unavailable(`${path} is not a store: it is compressed with ${compression}`, hint, { cause })
}

function full(path: string, cause: unknown): PlantsError {
  return unavailable(`No space left on the disk of ${path}`, 'Free some space, then try again', { retryable: true, cause })
}

/** SQLite also reports an I/O error when there is no space for the shared memory of its log. */
function failing(path: string, cause: unknown): PlantsError {
  if (isFull(path)) return full(path, cause)
  return unavailable(`The disk failed under ${path}: ${messageOf(cause)}`, lookAtDisk, { retryable: true, cause })
}

function tooLarge(path: string, cause: unknown): PlantsError {
  const message = `The store ${path} contains more than fits in memory: ${messageOf(cause)}`
  return unavailable(message, 'Read a part of it with plants list --after ID', { cause })
}

/** Whether less than 1 MiB is free on the file system of a file; false when that is unknown. */
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

/** Neither the file nor its folder explains the error. */
function unready(path: string, cause: unknown): PlantsError {
  const hint = 'Try again, or raise the limit of open files: ulimit -n'
  return unavailable(`The store ${path} could not be opened`, hint, { retryable: true, cause })
}

/** The error for a store that this user cannot read, or cannot write, or whose folder is read-only. */
export function forbidden(path: string, cause?: unknown): PlantsError {
  const hint = 'Change the permissions, or choose another file with --store PATH'
  if (isClosed(path)) return unavailable(`The store ${path} may not be read by this user`, hint, { cause })
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
    return unavailable(`The store ${path} cannot be created: ${folder} is not a folder`, elsewhere, { cause })
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(path))
    return unavailable(`${path} is a link to a file that does not exist`, elsewhere, { cause })
  return allows(folder, constants.W_OK) && allows(path, constants.R_OK) && !isClosed(path) ? unready(path, cause) : forbidden(path, cause)
}

/** Whether this user may not read a file, or its log. */
function isClosed(path: string): boolean {
  return ['', '-wal', '-shm'].some((suffix) => accessCode(path + suffix, constants.R_OK) === 'EACCES')
}

/** Whether this user can write to a file and to its folder. */
export function isWritable(path: string): boolean {
  return allows(path, constants.W_OK) && allows(dirname(path), constants.W_OK)
}

/** Whether this user has a permission (a mode of `access`) on a file or a folder; false when it does not exist. */
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

/** The error for a call that did not get the lock before its timeout. */
export function lockedError(path: string, timeout: number): PlantsError {
  const message = `The store ${path} was in use by ${findHolder(path) ?? 'another process'} for ${timeout / 1000} s`
  return new PlantsError('unavailable', message, { hint: 'Try again, or wait longer with --timeout 2m', retryable: true })
}

/** The process that holds a lock on the file or its log, such as "process 4242 (sqlite3)"; undefined outside Linux. */
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
