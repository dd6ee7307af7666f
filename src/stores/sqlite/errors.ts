import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import {
  type ErrorKind,
  PlantsError,
  reasonOf,
  reasonOfCode,
  systemCode,
} from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'
import { constraintHint } from '../common/change.js'

/** Of what only a failed disk, or another program, can have written. */
export class StoreDamageError extends Error {}

const anotherFile = 'Choose another file'
export const permissionHint = 'Change the permissions of the file and its directory'

export function unusableStore(path: string, why: string, hint = anotherFile): PlantsError {
  return new PlantsError('inaccessible', `${path} ${why}`, { hint })
}

/** By SQLite's code (https://sqlite.org/rescode.html) or the system's. Returns any other error unchanged. */
export function explained(error: unknown, path: string): unknown {
  const code = error instanceof StoreDamageError ? 11 : (primaryCode(error) ?? systemCode(error))
  const reason = typeof code === 'string' ? reasonOfCode(code) : reasonOf(error)
  if (code === undefined || reason === undefined) return error
  const failure = (kind: ErrorKind, hint: string, why = 'could not be used') =>
    new PlantsError(kind, `The store ${path} ${why}: ${reason}`, { hint, cause: error })
  switch (code) {
    case 5: // BUSY
    case 6: // LOCKED
    case 15: // PROTOCOL
      return failure('unavailable', waitHint, 'is in use by another process')
    case 8: // READONLY
    case 14: // CANTOPEN
    case 'EACCES':
    case 'EPERM':
      return failure('inaccessible', permissionHint)
    case 10: // IOERR
    case 'EIO':
      return failure('unavailable', 'Check the disk and its free space, then try again')
    case 11: // CORRUPT
      return failure('inaccessible', damageHint, 'is damaged')
    case 13: // FULL
    case 'ENOSPC':
    case 'EDQUOT':
      return failure('unavailable', 'Free some space, then try again')
    case 19: // CONSTRAINT
      // It may leave through a service.
      return new PlantsError('constraint', `The store does not accept this: ${reason}`, {
        hint: constraintHint,
      })
    case 26: // NOTADB
      return failure('inaccessible', anotherFile)
  }
  if (typeof code === 'string') return failure('inaccessible', anotherFile)
  return failure('unavailable', 'Try again')
}

const waitHint = 'Try again, or wait longer with --timeout 2m'
const damageHint = 'Restore a backup, or see Rescue in docs/export-and-backup.md'

/** Also true where nothing is. */
export function isWritable(path: string): boolean {
  try {
    for (const each of [dirname(path), path]) accessSync(each, constants.W_OK)
    return true
  } catch (error) {
    return systemCode(error) === 'ENOENT'
  }
}
