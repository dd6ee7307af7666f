import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  type ErrorKind,
  PlantsError,
  reasonOf,
  reasonOfCode,
  systemCode,
} from '../../platform/errors.js'
import { makeFolderHint } from '../../platform/files.js'
import { primaryCode } from '../../platform/sqlite.js'
import { constraintHint } from '../common/change.js'

/** The file holds what only a failed disk, or another program, can have written. */
export class StoreDamageError extends Error {}

export function unusableStore(
  path: string,
  why: string,
  hint = 'Choose another file with --store PATH',
): PlantsError {
  return new PlantsError('inaccessible', `${path} ${why}`, { hint })
}

export const permissionHint =
  'Change the permissions of the file and its directory, or choose another file with --store PATH'

/**
 * What SQLite (https://sqlite.org/rescode.html) or the file system reported, as an error of the store. Returns anything
 * else unchanged, such as a defect.
 */
export function explained(error: unknown, path: string): unknown {
  const code = error instanceof StoreDamageError ? 11 : (primaryCode(error) ?? systemCode(error))
  const systemWords = typeof code === 'string' ? reasonOfCode(code) : undefined
  if (typeof code !== 'number' && systemWords === undefined) return error
  const reason = systemWords ?? reasonOf(error)
  const failure = (kind: ErrorKind, why: string, hint: string) =>
    new PlantsError(kind, `The store ${path} ${why}`, { hint, cause: error })

  const isFileMissing = code === 14 || code === 'ENOENT'
  if (isFileMissing && !existsSync(dirname(path))) {
    const message = `There is no directory ${dirname(path)} for the store ${path}`
    const hint = makeFolderHint(dirname(path))
    return new PlantsError('inaccessible', message, { hint, cause: error })
  }
  // What SQLite reports of a file that may not be read or written differs from one place of it to the next.
  if (code === 8 || code === 14 || code === 'EACCES' || code === 'EPERM') {
    if (!isReadable(path))
      return failure('inaccessible', 'cannot be read by this user', permissionHint)
    if (!isWritable(path))
      return failure('inaccessible', 'cannot be written by this user', permissionHint)
  }
  switch (code) {
    case 1: // ERROR: the statements of this program are correct, so it is about what somebody added
    case 18: // TOOBIG
      return failure('inaccessible', `could not be used: ${reason}`, additionHint)
    case 10: // IOERR
    case 'EIO':
      return failure('unavailable', `could not be used: ${reason}`, diskHint)
    case 11: // CORRUPT
      return failure('inaccessible', `is damaged: ${reason}`, damageHint)
    case 13: // FULL
    case 'ENOSPC':
    case 'EDQUOT': {
      const hint = 'Free some space, then try again'
      return new PlantsError('unavailable', `No space left on the disk of ${path}`, {
        hint,
        cause: error,
      })
    }
    case 19: // CONSTRAINT
      return failure('constraint', `does not accept this: ${reason}`, constraintHint)
    case 26: // NOTADB
      return unusableStore(path, 'is not a store: it is not an SQLite file')
    case 'EACCES':
    case 'EPERM':
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return unusableStore(path, `could not be opened: ${reason}`)
    default:
      return failure('unavailable', `could not be used: ${reason}`, 'Try again')
  }
}

const additionHint = 'Look for an index or a trigger that somebody added to it'
const diskHint = 'Check the disk and its free space, then try again'
const damageHint = 'Restore a backup, or see Rescue in docs/export-and-backup.md'

/** Also true for a store that can be created. */
export function isWritable(path: string): boolean {
  return mayAccess(path, constants.W_OK) && mayAccess(dirname(path), constants.W_OK)
}

/** Also true for a store that does not exist. A store in use has all of these files. */
function isReadable(path: string): boolean {
  return ['', '-wal', '-shm'].every((suffix) => mayAccess(path + suffix, constants.R_OK))
}

function mayAccess(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    return systemCode(error) === 'ENOENT'
  }
}
