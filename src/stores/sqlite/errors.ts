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
const permissionHint = 'Make the file, its directory and its disk writable'

export function unusableStore(path: string, why: string, hint = anotherFile): PlantsError {
  return new PlantsError('inaccessible', `${path} ${why}`, { hint })
}

/** Of what had not begun when the store was closed: nothing of it was stored. */
export function createClosedError(path: string): PlantsError {
  return new PlantsError('unavailable', `The store ${path} was closed`, { hint: 'Try again' })
}

/** By SQLite's code (https://sqlite.org/rescode.html) or the system's. Returns any other error unchanged. */
export function explained(error: unknown, path: string, what = `The store ${path}`): unknown {
  const code = error instanceof StoreDamageError ? 11 : (primaryCode(error) ?? systemCode(error))
  const reason = typeof code === 'string' ? reasonOfCode(code) : reasonOf(error)
  if (code === undefined || reason === undefined) return error
  const failure = (kind: ErrorKind, hint: string, problem = `${what} could not be used`) =>
    new PlantsError(kind, `${problem}: ${reason}`, { hint, cause: error })
  switch (code) {
    case 5: // BUSY
    case 6: // LOCKED
    case 15: // PROTOCOL
      return failure('unavailable', waitHint, `The store ${path} is in use by another process`)
    case 8: // READONLY
    case 14: // CANTOPEN
    case 'EACCES':
    case 'EPERM':
      return failure('inaccessible', permissionHint)
    case 11: // CORRUPT
      return failure('inaccessible', damageHint, `The store ${path} is damaged`)
    case 10: // IOERR
    case 13: // FULL
    case 'ENOSPC':
    case 'EDQUOT':
      return failure('unavailable', diskHint)
    case 19: // CONSTRAINT
      // A service sends it, so it does not name the file.
      return new PlantsError('constraint', `The store does not accept this: ${reason}`, {
        hint: constraintHint,
      })
  }
  const isOfSystem = typeof code === 'string' && code !== 'EMFILE'
  if (isOfSystem || code === 26 /* NOTADB */) return failure('inaccessible', anotherFile)
  return failure('unavailable', 'Try again')
}

const waitHint = 'Try again, or wait longer with --timeout 2m'
const diskHint =
  'Free some space, set SQLITE_TMPDIR to another directory, or move the store to a local disk'
const damageHint = 'Restore a backup, or see Rescue in docs/export-and-backup.md'
