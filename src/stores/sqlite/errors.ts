import { accessSync, constants, existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { PlantsError, reasonOf, reasonOfCode, systemCode } from '../../platform/errors.js'
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
  const store = `The store ${path}`
  const failure = (kind: 'inaccessible' | 'unavailable', message: string, hint: string) =>
    new PlantsError(kind, message, { hint, cause: error })
  const isFileMissing = code === 14 || code === 'ENOENT' // CANTOPEN
  if (isFileMissing && !existsSync(dirname(path))) {
    const message = `There is no directory ${dirname(path)} for the store ${path}`
    return failure('inaccessible', message, makeFolderHint(dirname(path)))
  }
  // What SQLite reports of a file that may not be read or written differs from one place of it to the next.
  const isClosed = code === 8 || code === 14 // READONLY
  if (isClosed && !isReadable(path))
    return failure('inaccessible', `${store} cannot be read by this user`, permissionHint)
  if (isClosed && !isWritable(path))
    return failure('inaccessible', `${store} cannot be written by this user`, permissionHint)
  switch (code) {
    case 3: // PERM
    case 'EACCES':
    case 'EPERM': {
      const what = isReadable(path) ? 'written' : 'read'
      return failure('inaccessible', `${store} cannot be ${what} by this user`, permissionHint)
    }
    case 11: // CORRUPT
      return failure('inaccessible', `${store} is damaged: ${reason}`, damageHint)
    case 13: // FULL
    case 'ENOSPC':
    case 'EDQUOT': {
      const message = `No space left on the disk of ${path}`
      return failure('unavailable', message, 'Free some space, then try again')
    }
    case 19: {
      // CONSTRAINT
      const message = `${store} does not accept this: ${reason}`
      return new PlantsError('constraint', message, { hint: constraintHint, cause: error })
    }
    case 26: // NOTADB
      return unusableStore(path, 'is not a store: it is not an SQLite file')
    case 1: // ERROR: the statements of this program are correct, so it is about what somebody added
    case 18: // TOOBIG
      return failure('inaccessible', `${store} could not be used: ${reason}`, additionHint)
    case 10: // IOERR
    case 'EIO':
      return failure('unavailable', `${store} could not be used: ${reason}`, diskHint)
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return unusableStore(path, `could not be opened: ${reason}`)
    default:
      return failure('unavailable', `${store} could not be used: ${reason}`, 'Try again')
  }
}

const damageHint = 'Restore a backup, or see Rescue in docs/export-and-backup.md'
const additionHint = 'Look for an index or a trigger that somebody added to it'
const diskHint = 'Check the disk and its free space, then try again'

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
