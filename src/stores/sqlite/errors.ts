import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { detectFileCompression } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'

/** Turns an error of SQLite or the file system into a `PlantsError` with a hint. Returns any other error, a defect, unchanged. */
export function explainFailure(error: unknown, path: string): unknown {
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const text = error instanceof Error ? error.message : ''
  const isOfFile = (code === 1 && craftedError.test(text)) || (code === 19 && text.startsWith('cannot store '))
  const [explain] = explanations.find(([, codes]) => codes.includes(code)) ?? []
  try {
    if (isOfFile || error instanceof DamageError) return unavailable(damaged(path, text), error)
    return explain ? unavailable(explain(path, text), error) : error
  } catch (reason) {
    if (systemCode(reason) === undefined) throw reason
    // The search for the reason has failed, perhaps because of the same problem.
    return unavailable({ message: `The store ${path} could not be used: ${text}`, hint: lookAtDisk, retryable: true }, error)
  }
}

export async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** What a crafted file can cause, the last two when a table is migrated; any other error in our SQL is a defect. */
const craftedError =
  /^(no such (table|column)|unsupported file format|JSON cannot hold BLOB|NOT NULL constraint failed|type mismatch on DEFAULT)/

/** The file holds what only a failed disk, or another program, can have written. */
export class DamageError extends Error {}

interface Diagnosis {
  message: string
  hint: string
  retryable?: boolean
}

export function unavailable({ message, ...details }: Diagnosis, cause?: unknown): PlantsError {
  return new PlantsError('unavailable', message, { ...details, cause })
}

export function notOurs(path: string, why: string, hint = elsewhere): PlantsError {
  return unavailable({ message: `${path} ${why}`, hint })
}

export function replacedStore(path: string): PlantsError {
  return unavailable({ message: `${path} was deleted or replaced`, hint: 'Try again', retryable: true })
}

export function changedWhileRead(path: string): PlantsError {
  return unavailable({ message: `${path} was changed while it was read`, hint: 'Try again', retryable: true })
}

/** Whether a failed COMMIT may still be on disk: SQLite has written it, but could not confirm that it is durable. */
export function isCommitOutcomeUnknown(error: unknown): boolean {
  return primaryCode(error) === 10
}

/** The error for a commit that a crash may undo: it has failed because of `cause`, or its file is no longer at its path. */
export function commitOutcomeUnknown(path: string, done: 'stored' | 'restored', hint: string, cause?: unknown): PlantsError {
  const reason = cause === undefined ? `${path} was deleted or replaced` : `The disk failed under ${path}`
  return new PlantsError('unknownOutcome', `${reason} during a commit: whether it is ${done} is unknown`, { hint, cause })
}

export function unchanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.type, `${error.message}, nothing was changed`, { cause: error })
}

const lookAtDisk = 'Look at the disk and its logs, then try again'
const elsewhere = 'Choose another file with --store PATH'

const explanations: [explain: (path: string, text: string) => Diagnosis, codes: (number | string)[]][] = [
  [forbidden, [3, 8, 'EACCES', 'EPERM', 'EROFS']],
  [full, [13, 'ENOSPC', 'EDQUOT']],
  [failing, [10, 'EIO']],
  [tooLarge, [7, 18]],
  [damaged, [11]],
  [unopened, [14, 'EEXIST', 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']],
  [unready, ['EMFILE', 'ENFILE']],
  [notSqlite, [26]],
  [(path) => ({ message: `The path of the store is too long: ${path}`, hint: elsewhere }), ['ENAMETOOLONG']],
]

function damaged(path: string, why: string): Diagnosis {
  const hint = `Move the file aside, then restore a backup, or recover what is readable: sqlite3 ${shellWord(path)} .recover`
  return { message: `The store ${path} is damaged: ${why}`, hint }
}

function notSqlite(path: string): Diagnosis {
  const compression = detectFileCompression(path)
  if (!compression) return { message: `${path} is not a store: it is not an SQLite file`, hint: elsewhere }
  const hint = 'For a compressed backup: plants help restore. For compressed plants: plants help import'
  return { message: `${path} is not a store: it is compressed with ${compression}`, hint }
}

function full(path: string): Diagnosis {
  return { message: `No space left on the disk of ${path}`, hint: 'Free some space, then try again', retryable: true }
}

/** SQLite also reports an I/O error when there is no space for the wal-index, the -shm file. */
function failing(path: string, text: string): Diagnosis {
  return isFull(path) ? full(path) : { message: `The disk failed under ${path}: ${text}`, hint: lookAtDisk, retryable: true }
}

function tooLarge(path: string, text: string): Diagnosis {
  const hint = 'Read a part of it with plants list --after ID'
  return { message: `The store ${path} contains more than fits in memory: ${text}`, hint }
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

/** Neither the file nor its folder explains the error. */
function unready(path: string): Diagnosis {
  const hint = 'Try again, or raise the limit of open files: ulimit -n'
  return { message: `The store ${path} could not be opened`, hint, retryable: true }
}

/** For a store that this user cannot read, or cannot write, or whose folder is read-only. */
export function forbidden(path: string): Diagnosis {
  const hint = 'Change the permissions, or choose another file with --store PATH'
  if (accessCode(path, constants.F_OK) === 'EACCES')
    return { message: `The store ${path} cannot be accessed: this user may not search ${closedFolder(path)}`, hint }
  if (isClosed(path)) return { message: `The store ${path} may not be read by this user`, hint }
  if (isWritable(path)) return isFull(path) ? full(path) : unready(path)
  const what = allows(path, constants.W_OK) || !existsSync(path) ? `its directory, ${dirname(path)},` : 'its file'
  return { message: `The store ${path} cannot be written: ${what} is read-only for this user`, hint }
}

function unopened(path: string): Diagnosis {
  const folder = dirname(path)
  if (existsSync(path) && statSync(path).isDirectory())
    return { message: `${path} is a directory, not a store`, hint: 'Name a file in it with --store PATH' }
  if (!existsSync(folder))
    return { message: `There is no directory ${folder} for the store ${path}`, hint: `Make it with: mkdir -p ${shellWord(folder)}` }
  if (!statSync(folder).isDirectory())
    return { message: `The store ${path} cannot be created: ${folder} is not a directory`, hint: elsewhere }
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() && !existsSync(path))
    return { message: `${path} is a link to a file that does not exist`, hint: elsewhere }
  return allows(folder, constants.W_OK) && allows(path, constants.R_OK) && !isClosed(path) ? unready(path) : forbidden(path)
}

function closedFolder(path: string): string {
  const folder = dirname(path)
  return folder !== path && accessCode(folder, constants.F_OK) === 'EACCES' ? closedFolder(folder) : folder
}

function isClosed(path: string): boolean {
  return ['', '-wal', '-shm'].some((suffix) => accessCode(path + suffix, constants.R_OK) === 'EACCES')
}

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

export function lockedError(path: string, timeout: number): PlantsError {
  const message = `The store ${path} was in use by ${findHolder(path) ?? 'another process'} for ${timeout / 1000} s`
  return unavailable({ message, hint: 'Try again, or wait longer with --timeout 2m', retryable: true })
}

/** The process that holds a lock on the file or its -shm file, such as "process 4242 (sqlite3)"; undefined outside Linux. */
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
