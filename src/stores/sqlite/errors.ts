/**
 * Explains why a store, or another file that SQLite uses, could not be used.
 *
 * SQLite's codes (https://sqlite.org/rescode.html) are coarse. CANTOPEN may be a missing
 * permission, or too many open files; IOERR a full disk, or a broken one; CORRUPT a disk that
 * cannot be read. So this module looks at the code of the system behind them, if the driver gives
 * it. For an access that was denied, it tries the permissions one by one, to name the missing one.
 */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  describeCode,
  describeReason,
  type ErrorKind,
  getSystemCode,
  isOutOfDescriptors,
  PlantsError,
  toDescriptorsHint,
} from '../../errors.js'
import { explainImpossiblePath, makeFolderHint } from '../../platform/files.js'
import { findExtendedCode, findPrimaryCode, findSystemCode } from '../../platform/sqlite.js'
import { constraintHint } from '../change.js'

/** Thrown when the store contains what only a failed disk, or another program, can have written. */
export class StoreDamageError extends Error {
  /** What to do, if that is not the hint for all damaged stores. */
  readonly hint?: string | undefined

  constructor(
    message: string | undefined,
    { hint, ...options }: ErrorOptions & { hint?: string } = {},
  ) {
    super(message, options)
    this.hint = hint
  }
}

const anotherFile = 'Choose another file'
const anotherFolder = 'Choose a file in another directory'

export function createUnusableStoreError(
  path: string,
  why: string,
  hint = anotherFile,
): PlantsError {
  return new PlantsError('accessDenied', `${path} ${why}`, { hint })
}

/** A call gets this error if it had not begun when the store was closed. It has stored nothing. */
export function createClosedError(path: string): PlantsError {
  return new PlantsError('unavailable', `The store ${path} was closed`, { hint: 'Try again' })
}

const ERROR = 1
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const PROTOCOL = 15
const CONSTRAINT = 19
const NOTADB = 26

/** The index of the log could not grow. The driver of Node.js gives no system code with it. */
const IOERR_SHMSIZE = 4874

interface Failure {
  error: unknown
  /** The error concerns this file. */
  path: string
  /** Messages call the file this, such as "The store ./a.db". */
  subject: string
}

/**
 * Explains an error that has a code of SQLite or of the system. Returns any other error unchanged.
 *
 * @param subject the message begins with this, and so names the file
 */
export function explainSqliteError(
  error: unknown,
  path: string,
  subject = `The store ${path}`,
): unknown {
  const failure = { error, path, subject }
  const code = error instanceof StoreDamageError ? CORRUPT : findPrimaryCode(error)
  if (code !== undefined) return explainCode(failure, code)
  const systemName = getSystemCode(error)
  if (systemName === undefined || describeCode(systemName) === undefined) return error
  return explainFailedCall(failure, systemName)
}

function explainCode(failure: Failure, code: number): PlantsError {
  const { error, subject } = failure
  const reason = describeReason(error)
  switch (code) {
    case BUSY:
    case LOCKED:
    case PROTOCOL: {
      const message = `${subject} is in use by another process`
      return toStoreError(failure, 'unavailable', { message, reason, hint: waitHint })
    }
    case CORRUPT: {
      // SQLite also reports a page that the disk fails to read like this.
      const message = `${subject} is damaged, or its disk cannot be read`
      const ownHint = error instanceof StoreDamageError ? error.hint : undefined
      const hint = ownHint ?? damageHint
      return toStoreError(failure, 'accessDenied', { message, reason, hint })
    }
    case ERROR:
      // The statements of this program are right, so a table is missing, or another one.
      return toStoreError(failure, 'accessDenied', { reason, hint: changedTablesHint })
    case FULL:
      return toStoreError(failure, 'unavailable', { reason, hint: chooseSpaceHint(failure) })
    case IOERR: {
      const guess = findExtendedCode(error) === IOERR_SHMSIZE ? 'ENOSPC' : 'EIO'
      return explainFailedCall(failure, findSystemCode(error) ?? guess)
    }
    case CANTOPEN: {
      const guess = isOutOfDescriptors() ? 'EMFILE' : 'EACCES'
      return explainFailedCall(failure, findSystemCode(error) ?? guess)
    }
    case READONLY:
      return explainDeniedAccess(failure, reason)
    case CONSTRAINT: {
      // A service sends this message to its clients, so it does not name the file.
      const message = `The store does not accept this: ${reason}`
      return new PlantsError('constraint', message, { hint: constraintHint })
    }
    case NOTADB: {
      const notDatabase = 'it is not a SQLite database'
      return toStoreError(failure, 'accessDenied', { reason: notDatabase, hint: anotherFile })
    }
    default:
      return toStoreError(failure, 'unavailable', { reason, hint: 'Try again' })
  }
}

/** @param code a code of the system, such as `ENOSPC`. It is a guess if the driver gives none. */
function explainFailedCall(failure: Failure, code: string): PlantsError {
  const reason = describeCode(code) ?? describeReason(failure.error)
  const descriptorsHint = toDescriptorsHint(code)
  if (descriptorsHint !== undefined)
    return toStoreError(failure, 'unavailable', { reason, hint: descriptorsHint })
  if (code === 'ENOSPC')
    return toStoreError(failure, 'unavailable', { reason, hint: chooseSpaceHint(failure) })
  if (code === 'EFBIG') return toStoreError(failure, 'unavailable', { reason, hint: fileSizeHint })
  if (code === 'EDQUOT') return toStoreError(failure, 'unavailable', { reason, hint: quotaHint })
  const folder = dirname(failure.path)
  const impossibility = explainImpossiblePath(failure.error, failure.path)
  if (impossibility !== undefined)
    return toStoreError(failure, 'accessDenied', { reason: impossibility, hint: anotherFolder })
  if (code === 'ENOENT' && !existsSync(folder))
    return toStoreError(failure, 'accessDenied', { reason, hint: makeFolderHint(folder) })
  const isFailureOfDisk = code === 'EIO' || findPrimaryCode(failure.error) === IOERR
  if (isFailureOfDisk) return toStoreError(failure, 'unavailable', { reason, hint: diskHint })
  return explainDeniedAccess(failure, reason)
}

/**
 * SQLite may write to two disks: that of the store, and that of its temporary files, which it needs
 * to sort what is too large for the memory. It does not tell which one is full. But what a failed
 * write has used on the disk of the store stays in the log, so that this disk is still full now.
 * Temporary files are deleted, so that their disk has space again.
 */
function chooseSpaceHint({ path }: Failure): string {
  try {
    const { bavail, bsize, ffree } = statfsSync(dirname(path))
    if (ffree === 0) return noMoreFilesHint
    return bavail * bsize < enoughSpaceBytes ? fullDiskHint : temporarySpaceHint
  } catch (error) {
    if (getSystemCode(error) === undefined) throw error
    return fullDiskHint
  }
}

/**
 * SQLite writes a page at a time, and its log grows in small steps. So a disk on which a write has
 * failed has less space left than this.
 */
const enoughSpaceBytes = 1_048_576

function explainDeniedAccess(failure: Failure, reason: string): PlantsError {
  const missing = findMissingPermission(failure.path)
  // Some directories, such as /sys, accept no file although the permissions are there.
  const hint = getSystemCode(failure.error) === 'EACCES' ? anotherFolder : anotherFile
  return toStoreError(failure, 'accessDenied', missing ?? { reason, hint })
}

/** @returns undefined if this user has all permissions that a store needs */
function findMissingPermission(path: string): Explanation | undefined {
  const { X_OK, R_OK, W_OK } = constants
  const folder = dirname(path)
  const needs = [
    ...listFoldersAbove(path).map((name) => ({
      target: name,
      mode: X_OK,
      what: `enter the directory ${name}`,
    })),
    { target: path, mode: R_OK, what: 'read it' },
    { target: path, mode: W_OK, what: 'write to it' },
    // SQLite keeps a log next to a store, and an index of the log.
    { target: folder, mode: W_OK, what: `write to the directory ${folder}` },
    ...['-wal', '-shm'].map((suffix) => ({
      target: path + suffix,
      mode: R_OK | W_OK,
      what: `read and write ${path}${suffix}`,
    })),
  ]
  for (const { target, mode, what } of needs) {
    const code = findAccessError(target, mode)
    if (code === 'EROFS')
      return { reason: `its disk is read-only: nobody may ${what}`, hint: readOnlyDiskHint }
    if (code === 'EACCES' || code === 'EPERM')
      return { reason: `this user may not ${what}`, hint: permissionHint }
  }
  return undefined
}

/** Lists the folders that lead to a file, from the root of the file system downwards. */
function listFoldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [...listFoldersAbove(folder), folder]
}

/**
 * Asks the system without opening the file. When a process closes any descriptor of a file, POSIX
 * ends all its locks on that file, and with them those of SQLite.
 */
function findAccessError(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return getSystemCode(error)
  }
}

/** Without a message, it is that the file could not be used. */
interface Explanation {
  message?: string
  reason: string
  hint: string
}

function toStoreError(
  { error, subject }: Failure,
  kind: ErrorKind,
  { message = `${subject} could not be used`, reason, hint }: Explanation,
): PlantsError {
  return new PlantsError(kind, `${message}: ${reason}`, { hint, cause: error })
}

const waitHint = 'Try again, or wait longer with --timeout 2m'
const fullDiskHint = 'Free some space on its disk'
const noMoreFilesHint = 'Delete some files on its disk, which can hold no more of them'
const temporarySpaceHint =
  'Sorting needs temporary files: set SQLITE_TMPDIR to a directory on a disk with more space'
const quotaHint = 'Delete some files of this user, or ask for a larger quota'
const diskHint = 'Check the disk, or move the store to a local disk'
const damageHint =
  'Check the disk first. If it is sound, restore an older backup. Without one: plants restore --help'
const changedTablesHint = 'Another program has changed the tables: restore a backup'
const fileSizeHint = 'Raise the limit of file sizes, which ulimit -f shows'
const readOnlyDiskHint = 'Choose a file on another disk, or remount this one for writing'
const permissionHint = 'Grant this permission with chmod or chown, or choose another file'
