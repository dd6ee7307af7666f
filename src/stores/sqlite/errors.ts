/**
 * Explains why a store, or another file that SQLite uses, could not be used.
 *
 * A result code of SQLite (https://sqlite.org/rescode.html) can have several causes. For example,
 * SQLITE_CANTOPEN may mean a missing permission, or too many open files, and SQLITE_IOERR may mean
 * a full disk, or a broken disk. So this module uses the error code of the system, if the driver
 * gives it. After a denied access, it checks each permission that a store needs, to name the
 * missing one.
 */
import { closeSync, existsSync, openSync, statfsSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'
import {
  describeCode,
  describeReason,
  type ErrorKind,
  fullDiskHint,
  getSystemCode,
  PlantsError,
  toDescriptorsHint,
  toSpaceHint,
} from '../../errors.js'
import {
  describeMissingFolder,
  explainImpossiblePath,
  makeFolderHint,
} from '../../platform/files.js'
import {
  findExtendedCode,
  findPrimaryCode,
  findSystemCode,
  SQLITE_BUSY,
  SQLITE_CANTOPEN,
  SQLITE_CONSTRAINT,
  SQLITE_CORRUPT,
  SQLITE_ERROR,
  SQLITE_FULL,
  SQLITE_IOERR,
  SQLITE_LOCKED,
  SQLITE_NOTADB,
  SQLITE_PROTOCOL,
  SQLITE_READONLY,
} from '../../platform/sqlite.js'
import { constraintHint } from '../change.js'
import { anotherFolderHint, findMissingPermission } from './permissions.js'

/**
 * The error of a store with content that only a failed disk, or another program, can have written.
 */
export class StoreDamageError extends Error {
  /** Says what to do. By default, the hint is `damageHint`. */
  readonly hint?: string | undefined

  constructor(
    message: string | undefined,
    { hint, ...options }: ErrorOptions & { hint?: string } = {},
  ) {
    super(message, options)
    this.hint = hint
  }
}

const anotherFileHint = 'Choose another file'

export function createUnusableStoreError(
  path: string,
  problem: string,
  hint = anotherFileHint,
): PlantsError {
  return new PlantsError('accessDenied', `${path} ${problem}`, { hint })
}

/**
 * Creates the error of a call that had not begun when the store was closed, and so has stored
 * nothing.
 */
export function createClosedError(path: string): PlantsError {
  return new PlantsError('unavailable', `The store ${path} was closed`, { hint: 'Try again' })
}

/**
 * SQLite could not enlarge the index of the log. The driver of Node.js gives no system code for
 * this.
 */
const IOERR_SHMSIZE = 4874

interface FileFailure {
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
  const code = error instanceof StoreDamageError ? SQLITE_CORRUPT : findPrimaryCode(error)
  if (code !== undefined) return explainResultCode(failure, code)
  const systemName = getSystemCode(error)
  if (systemName === undefined || describeCode(systemName) === undefined) return error
  return explainSystemCode(failure, systemName)
}

function explainResultCode(failure: FileFailure, code: number): PlantsError {
  const { error, subject } = failure
  const reason = describeReason(error)
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: {
      const message = `${subject} is in use by another process`
      return createFileError(failure, 'unavailable', { message, reason, hint: waitHint })
    }
    case SQLITE_CORRUPT: {
      // SQLite also uses this code for a page that the disk fails to read.
      const message = `${subject} is damaged, or its disk cannot be read`
      const ownHint = error instanceof StoreDamageError ? error.hint : undefined
      const hint = ownHint ?? damageHint
      return createFileError(failure, 'accessDenied', { message, reason, hint })
    }
    case SQLITE_ERROR:
      // The statements of this program are correct, so another program has removed or changed a
      // table.
      return createFileError(failure, 'accessDenied', { reason, hint: changedTablesHint })
    case SQLITE_FULL:
      return createFileError(failure, 'unavailable', { reason, hint: chooseSpaceHint(failure) })
    case SQLITE_IOERR: {
      const assumedCode = findExtendedCode(error) === IOERR_SHMSIZE ? 'ENOSPC' : 'EIO'
      return explainSystemCode(failure, findSystemCode(error) ?? assumedCode)
    }
    case SQLITE_CANTOPEN: {
      const assumedCode = isOutOfDescriptors() ? 'EMFILE' : 'EACCES'
      return explainSystemCode(failure, findSystemCode(error) ?? assumedCode)
    }
    case SQLITE_READONLY:
      return createAccessError(failure, reason)
    case SQLITE_CONSTRAINT: {
      // A service sends this message to its clients, so it does not name the file.
      const message = `The store does not accept this: ${reason}`
      return new PlantsError('constraint', message, { hint: constraintHint })
    }
    case SQLITE_NOTADB: {
      const notDatabaseReason = 'it is not a SQLite database'
      return createFileError(failure, 'accessDenied', {
        reason: notDatabaseReason,
        hint: 'Choose a file that plants has created. To import a list: plants import FILE',
      })
    }
    default:
      return createFileError(failure, 'unavailable', { reason, hint: 'Try again' })
  }
}

/**
 * @param code a code of the system, such as `ENOSPC`. If the driver gives none, this is the most
 *   likely code.
 */
function explainSystemCode(failure: FileFailure, code: string): PlantsError {
  const reason = describeCode(code) ?? describeReason(failure.error)
  const descriptorsHint = toDescriptorsHint(code)
  if (descriptorsHint !== undefined)
    return createFileError(failure, 'unavailable', { reason, hint: descriptorsHint })
  if (code === 'ENOSPC')
    return createFileError(failure, 'unavailable', { reason, hint: chooseSpaceHint(failure) })
  const spaceHint = toSpaceHint(code)
  if (spaceHint !== undefined)
    return createFileError(failure, 'unavailable', { reason, hint: spaceHint })
  const folder = dirname(failure.path)
  const impossibility = explainImpossiblePath(failure.error, failure.path)
  if (impossibility !== undefined)
    return createFileError(failure, 'accessDenied', {
      reason: impossibility,
      hint: anotherFolderHint,
    })
  if (code === 'ENOENT' && !existsSync(folder))
    return createFileError(failure, 'accessDenied', {
      reason: describeMissingFolder(folder),
      hint: makeFolderHint(folder),
    })
  const isDiskFailure = code === 'EIO' || findPrimaryCode(failure.error) === SQLITE_IOERR
  if (isDiskFailure) return createFileError(failure, 'unavailable', { reason, hint: diskHint })
  return createAccessError(failure, reason)
}

/**
 * Chooses the hint for a full disk. SQLite may write to two disks: the disk of the store, and the
 * disk of its temporary files, which it needs for a sort that exceeds the memory. Its error does
 * not say which disk is full. But after a failed write to the store, the log keeps the space that
 * it has used, so the disk of the store is still full. After a failed write to a temporary file,
 * SQLite deletes the file, so its disk has space again.
 */
function chooseSpaceHint({ path }: FileFailure): string {
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
 * SQLite writes one page at a time, and its log grows in small steps. So after a failed write, the
 * full disk has less free space than this.
 */
const enoughSpaceBytes = 1_048_576

function createAccessError(failure: FileFailure, reason: string): PlantsError {
  const missingPermission = findMissingPermission(failure.path)
  // Some directories, such as /sys, accept no file although the permissions are there.
  const isDenied = ['EACCES', 'EPERM'].includes(getSystemCode(failure.error) ?? '')
  const hint = isDenied ? anotherFolderHint : anotherFileHint
  return createFileError(failure, 'accessDenied', missingPermission ?? { reason, hint })
}

/** By default, the message says that the file could not be used. */
interface Explanation {
  message?: string
  reason: string
  hint: string
}

function createFileError(
  { error, subject }: FileFailure,
  kind: ErrorKind,
  { message = `${subject} could not be used`, reason, hint }: Explanation,
): PlantsError {
  return new PlantsError(kind, `${message}: ${reason}`, { hint, cause: error })
}

const waitHint = 'Wait longer with --timeout 2m'
const noMoreFilesHint = 'Delete some files on its disk, which can hold no more of them'
const temporarySpaceHint =
  'Sorting needs temporary files: set SQLITE_TMPDIR to a directory on a disk with more space'
const diskHint = 'Move the store to another disk of this machine'
const damageHint =
  'Check the disk first. If it is sound, restore an older backup. Without one: plants restore --help'
const changedTablesHint = 'Another program has changed the tables: restore a backup'

/**
 * SQLite may have as many files open when it fails, and has closed them by the time that it reports
 * the failure.
 */
const descriptorsOfSqlite = 8

/** Whether this process lacks the descriptors that a call of SQLite may need. */
function isOutOfDescriptors(): boolean {
  const opened: number[] = []
  try {
    while (opened.length < descriptorsOfSqlite) opened.push(openSync(devNull, 'r'))
    return false
  } catch (error) {
    return toDescriptorsHint(getSystemCode(error)) !== undefined
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
