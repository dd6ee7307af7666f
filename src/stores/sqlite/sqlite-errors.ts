import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname } from 'node:path'
import {
  type Explanation,
  explainedBy,
  PlantsError,
  shellWord,
  systemCode,
  systemReasons,
  unlessSystemError,
} from '../../platform/errors.js'
import { detectFileCompression } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'

/** Explains an error of SQLite or the file system. Returns any other error, a defect, unchanged. */
export function explainFailure(error: unknown, path: string): unknown {
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const text = systemReasons[code] ?? (error instanceof Error ? error.message : '')
  const isCrafted = (code === 1 || code === 19) && craftedError.test(text)
  const explanation = error instanceof DamageError || isCrafted ? damaged : explanationOf(code, path)
  return explanation ? explainedBy(explanation, path, text, error) : error
}

export async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/**
 * What a crafted file can cause, the last three when a table is migrated or filled; any other error in our SQL is a
 * defect.
 */
const craftedError =
  /^(no such (table|column)|unsupported file format|JSON cannot hold BLOB|NOT NULL constraint failed|type mismatch on DEFAULT|cannot store )/

/** The file holds what only a failed disk, or another program, can have written. */
export class DamageError extends Error {}

export function notOurs(path: string, why: string, hint = elsewhere, retryable = false): PlantsError {
  return new PlantsError('unavailable', `${path} ${why}`, { hint, retryable })
}

export function replacedStore(path: string): PlantsError {
  return notOurs(path, 'was deleted or replaced', 'Try again', true)
}

export function changedWhileRead(path: string): PlantsError {
  return notOurs(path, 'was changed while it was read', 'Try again', true)
}

export function lockedError(path: string, timeout: number): PlantsError {
  const message = `The store ${path} was in use by ${findHolder(path) ?? 'another process'} for ${timeout / 1000} s`
  const hint = 'Try again, or wait longer with --timeout 2m'
  return new PlantsError('unavailable', message, { hint, retryable: true })
}

/** Such as "process 4242 (sqlite3)"; undefined outside Linux. */
function findHolder(path: string): string | undefined {
  return unlessSystemError(() => {
    const files = [path, `${path}-shm`].flatMap((file) => statSync(file, { throwIfNoEntry: false }) ?? [])
    const isOpenAs = (link: string) => {
      const stats = statSync(link, { throwIfNoEntry: false })
      return files.some(({ dev, ino }) => dev === stats?.dev && ino === stats.ino)
    }
    const writeLocks = /POSIX +\w+ +WRITE (\d+) [\da-f]+:[\da-f]+:(\d+) /g
    for (const [, pid, inode] of readFileSync('/proc/locks', 'utf8').matchAll(writeLocks)) {
      const isLocked = files.some(({ ino }) => ino === Number(inode))
      if (isLocked && readdirSync(`/proc/${pid}/fd`).some((fd) => isOpenAs(`/proc/${pid}/fd/${fd}`)))
        return `process ${pid} (${basename(readlinkSync(`/proc/${pid}/exe`))})`
    }
    return undefined
  })
}

export function unchanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.type, `${error.message}, nothing was changed`, { cause: error })
}

const elsewhere = 'Choose another file with --store PATH'

/** What SQLite says (https://sqlite.org/rescode.html) is often a consequence: its causes are looked for first. */
function explanationOf(code: number | string, path: string): Explanation<string> | undefined {
  if ((code === 14 || code === 'ENOENT') && !existsSync(dirname(path))) return noFolder
  if ((code === 8 || code === 14) && !(isReadable(path) && isWritable(path))) return forbidden
  if ((code === 8 || code === 10) && isFull(path)) return full // no space for the wal-index is an I/O error, too
  return explanations[code] ?? (code in systemReasons ? unopened : undefined)
}

const unopened: Explanation<string> = {
  sentence: (path, reason) => `The store ${path} could not be opened: ${reason}`,
  hint: elsewhere,
}

const noFolder: Explanation<string> = {
  sentence: (path) => `There is no directory ${dirname(path)} for the store ${path}`,
  hint: (path) => `Make it with: mkdir -p ${shellWord(dirname(path))}`,
}

const damaged: Explanation<string> = {
  sentence: (path, reason) => `The store ${path} is damaged: ${reason}`,
  hint: (path) =>
    `Move the file aside, then restore a backup, or recover what is readable: sqlite3 ${shellWord(path)} .recover`,
}

const full: Explanation<string> = {
  sentence: (path) => `No space left on the disk of ${path}`,
  hint: 'Free some space, then try again',
  retryable: true,
}

const unusable: Explanation<string> = {
  sentence: (path, reason) => `The store ${path} could not be used: ${reason}`,
  hint: 'Try again',
  retryable: true,
}

const failedDisk: Explanation<string> = {
  sentence: (path, reason) => `The disk failed under ${path}: ${reason}`,
  hint: 'Look at the disk and its logs, then try again',
  retryable: true,
}

const noDatabase: Explanation<string> = {
  sentence: (path) => {
    const compression = detectFileCompression(path)
    return `${path} is not a store: it is ${compression ? `compressed with ${compression}` : 'not an SQLite file'}`
  },
  hint: (path) =>
    detectFileCompression(path)
      ? 'For a compressed backup: plants help restore. For compressed plants: plants help import'
      : elsewhere,
}

/** Also for a store whose folder is read-only. */
export const forbidden: Explanation<string> = {
  sentence: (path) => `The store ${path} cannot be ${isReadable(path) ? 'written' : 'read'} by this user`,
  hint: 'Change the permissions of the file and its directory, or choose another file with --store PATH',
}

/** By SQLite's primary result code, or by system error code. */
const explanations: Readonly<Record<number | string, Explanation<string>>> = {
  ...{ 3: forbidden, 7: unusable, 8: unusable, 10: failedDisk, 11: damaged, 13: full, 14: unusable, 18: unusable },
  ...{ 26: noDatabase },
  ...{ EACCES: forbidden, EPERM: forbidden, EDQUOT: full, ENOSPC: full, EMFILE: unusable, ENFILE: unusable },
}

/** False when that is unknown. */
export function isFull(path: string): boolean {
  const stats = unlessSystemError(() => statfsSync(dirname(path)))
  return stats !== undefined && stats.bavail * stats.bsize < 1_048_576
}

/** Also true for a missing store. */
function isReadable(path: string): boolean {
  return ['', '-wal', '-shm'].every((suffix) => accessCode(path + suffix, constants.R_OK) !== 'EACCES')
}

export function isWritable(path: string): boolean {
  return mayWrite(path) && mayWrite(dirname(path))
}

/** False for a missing file. */
export function mayWrite(path: string): boolean {
  return accessCode(path, constants.W_OK) === undefined
}

/** `EACCES` also for a file in a folder that is closed to this user. */
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
