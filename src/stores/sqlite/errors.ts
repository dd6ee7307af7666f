/**
 * Explains why a store, or another file that SQLite uses, could not be used.
 *
 * SQLite's codes (https://sqlite.org/rescode.html) are coarse: CANTOPEN may be a missing permission
 * or a want of file descriptors, IOERR a full disk or a broken one, and CORRUPT a disk that refuses
 * to be read. So the system's code behind them is asked for, where the driver gives it, and then the
 * permissions.
 */
import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import {
  type ErrorKind,
  isOutOfDescriptors,
  PlantsError,
  reasonOf,
  reasonOfCode,
  systemCode,
  toDescriptorsHint,
} from '../../errors.js'
import { extendedCode, primaryCode, systemCodeBehind } from '../../platform/sqlite.js'
import { constraintHint } from '../change.js'

/** Of what only a failed disk, or another program, can have written. */
export class StoreDamageError extends Error {}

const anotherFile = 'Choose another file'

export function unusableStore(path: string, why: string, hint = anotherFile): PlantsError {
  return new PlantsError('inaccessible', `${path} ${why}`, { hint })
}

/** Of what had not begun when the store was closed: nothing of it was stored. */
export function createClosedError(path: string): PlantsError {
  return new PlantsError('unavailable', `The store ${path} was closed`, { hint: 'Try again' })
}

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

/** The index of the log could not grow: the driver of Node.js gives no code of the system. */
const IOERR_SHMSIZE = 4874

/** What failed, of which file. */
interface Failed {
  error: unknown
  path: string
  /** As messages begin: "The store ./a.db". */
  what: string
}

/** By SQLite's code or the system's. Returns any other error unchanged. */
export function explained(error: unknown, path: string, what = `The store ${path}`): unknown {
  const failed = { error, path, what }
  const code = error instanceof StoreDamageError ? CORRUPT : primaryCode(error)
  if (code !== undefined) return explainSqlite(failed, code)
  const systemName = systemCode(error)
  if (systemName === undefined || reasonOfCode(systemName) === undefined) return error
  return explainFailedCall(failed, systemName)
}

function explainSqlite(failed: Failed, code: number): PlantsError {
  const { error, what } = failed
  const reason = reasonOf(error)
  switch (code) {
    case BUSY:
    case LOCKED:
    case PROTOCOL:
      return toError(
        failed,
        'unavailable',
        reason,
        waitHint,
        `${what} is in use by another process`,
      )
    case CORRUPT: {
      // SQLite reports a page that the disk refuses to read as this, too.
      const message = `${what} is damaged, or its disk cannot be read`
      return toError(failed, 'inaccessible', reason, damageHint, message)
    }
    case FULL:
      return toError(failed, 'unavailable', reason, fullDiskHint)
    case IOERR: {
      const guess = extendedCode(error) === IOERR_SHMSIZE ? 'ENOSPC' : 'EIO'
      return explainFailedCall(failed, systemCodeBehind(error) ?? guess)
    }
    case CANTOPEN: {
      const guess = isOutOfDescriptors() ? 'EMFILE' : 'EACCES'
      return explainFailedCall(failed, systemCodeBehind(error) ?? guess)
    }
    case READONLY:
      return explainDeniedAccess(failed, reason)
    case CONSTRAINT:
      // A service sends it, so it does not name the file.
      return new PlantsError('constraint', `The store does not accept this: ${reason}`, {
        hint: constraintHint,
      })
    case NOTADB:
      return toError(failed, 'inaccessible', reason, anotherFile)
    default:
      return toError(failed, 'unavailable', reason, 'Try again')
  }
}

/** Where the driver does not tell the code of the system, it is guessed. */
function explainFailedCall(failed: Failed, code: string): PlantsError {
  const reason = reasonOfCode(code) ?? reasonOf(failed.error)
  const descriptorsHint = toDescriptorsHint(code)
  if (descriptorsHint !== undefined) return toError(failed, 'unavailable', reason, descriptorsHint)
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return toError(failed, 'unavailable', reason, fullDiskHint)
  const isOfDisk = code === 'EIO' || primaryCode(failed.error) === IOERR
  if (isOfDisk) return toError(failed, 'unavailable', reason, diskHint)
  return explainDeniedAccess(failed, reason)
}

function explainDeniedAccess(failed: Failed, reason: string): PlantsError {
  const missing = findMissingPermission(failed.path)
  if (missing === undefined) return toError(failed, 'inaccessible', reason, anotherFile)
  return toError(failed, 'inaccessible', missing.reason, missing.hint)
}

/** Undefined if this user has what a store needs, or a file is missing. */
function findMissingPermission(path: string): { reason: string; hint: string } | undefined {
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
    // SQLite keeps a log beside a store, and an index of the log.
    { target: folder, mode: W_OK, what: `write to the directory ${folder}` },
    ...['-wal', '-shm'].map((end) => ({
      target: path + end,
      mode: R_OK | W_OK,
      what: `read and write ${path}${end}`,
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

/** From the top. */
function listFoldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [...listFoldersAbove(folder), folder]
}

/** Nothing is opened: closing a store would end the locks that this process has on it. */
function findAccessError(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return systemCode(error)
  }
}

function toError(
  { error, what }: Failed,
  kind: ErrorKind,
  reason: string,
  hint: string,
  message = `${what} could not be used`,
): PlantsError {
  return new PlantsError(kind, `${message}: ${reason}`, { hint, cause: error })
}

const waitHint = 'Try again, or wait longer with --timeout 2m'
const fullDiskHint = 'Free some space, or set SQLITE_TMPDIR to a directory on another disk'
const diskHint = 'Check the disk, or move the store to a local disk'
const damageHint =
  'Check the disk first. If it is sound, restore a backup, or see Rescue in docs/export-and-backup.md'
const readOnlyDiskHint = 'Choose a file on another disk, or mount this one for writing'
const permissionHint = 'Give this permission with chmod or chown, or choose another file'
