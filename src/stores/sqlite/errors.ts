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

/** The errors of SQLite (https://sqlite.org/rescode.html) and of the file system. Returns any other unchanged. */
export function explained(error: unknown, path: string): unknown {
  const code = error instanceof StoreDamageError ? 11 : (primaryCode(error) ?? systemCode(error))
  const reason = typeof code === 'string' ? reasonOfCode(code) : reasonOf(error)
  if (code === undefined || reason === undefined) return error
  const failure = (kind: ErrorKind, message: string, hint: string) =>
    new PlantsError(kind, message, { hint, cause: error })
  const store = `The store ${path}`
  const folder = dirname(path)

  if ((code === 14 || code === 'ENOENT') && !existsSync(folder)) {
    const message = `There is no directory ${folder} for the store ${path}`
    return failure('inaccessible', message, makeFolderHint(folder))
  }
  switch (code) {
    case 5: // BUSY
    case 6: // LOCKED
    case 15: {
      // PROTOCOL
      const hint = 'Try again, or wait longer with --timeout 2m'
      return failure('unavailable', `${store} is in use by another process`, hint)
    }
    case 8: // READONLY
    case 14: // CANTOPEN
    case 'EACCES':
    case 'EPERM':
      return failure('inaccessible', `${store} could not be used: ${reason}`, permissionHint)
    case 10: // IOERR
    case 'EIO': {
      const hint = 'Check the disk and its free space, then try again'
      return failure('unavailable', `${store} could not be used: ${reason}`, hint)
    }
    case 11: {
      const hint = 'Restore a backup, or see Rescue in docs/export-and-backup.md'
      return failure('inaccessible', `${store} is damaged: ${reason}`, hint)
    }
    case 13: // FULL
    case 'ENOSPC':
    case 'EDQUOT': {
      const hint = 'Free some space, then try again'
      return failure('unavailable', `No space left on the disk of ${path}`, hint)
    }
    case 19:
      return failure('constraint', `${store} does not accept this: ${reason}`, constraintHint)
    case 26:
      return unusableStore(path, 'is not a store: it is not an SQLite file')
  }
  if (typeof code === 'string') return unusableStore(path, `could not be opened: ${reason}`)
  return failure('unavailable', `${store} could not be used: ${reason}`, 'Try again')
}

/** Also true for a store that can be created. */
export function isWritable(path: string): boolean {
  return mayAccess(path, constants.W_OK) && mayAccess(dirname(path), constants.W_OK)
}

function mayAccess(path: string, mode: number): boolean {
  try {
    accessSync(path, mode)
    return true
  } catch (error) {
    return systemCode(error) === 'ENOENT'
  }
}
