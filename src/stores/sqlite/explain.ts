/**
 * Explains why a store, or another file that SQLite uses, could not be used. An error has a result
 * code of SQLite (https://sqlite.org/rescode.html) or a code of the system, and the table below has
 * what each code means.
 */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  createExplainedError,
  describeCode,
  describeReason,
  descriptorExplanations,
  type Explanation,
  fullDisk,
  getSystemCode,
  PlantsError,
  spaceExplanations,
} from '../../errors.js'
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

/**
 * The error of a store with content that only a failed disk, or another program, can have written.
 */
export class StoreDamageError extends Error {}

const anotherFileHint = 'Choose another file'
const permissionHint = 'Give this user access to the file and its directory'
const inUse: Explanation = {
  kind: 'unavailable',
  message: '{subject} is in use by another process: {reason}',
  hint: 'Wait longer with --timeout 2m',
}
const brokenDisk: Explanation = {
  kind: 'unavailable',
  hint: 'Move the store to another disk of this machine',
}
const denied: Explanation = { kind: 'accessDenied', hint: permissionHint }

/** SQLite could not enlarge the index of the log. */
const IOERR_SHMSIZE = 4874

/** This stands for ENOENT if the directory of the file is missing. */
const missingFolder = 'missing folder'

const explanations: Readonly<Record<string | number, Explanation>> = {
  [SQLITE_BUSY]: inUse,
  [SQLITE_LOCKED]: inUse,
  [SQLITE_PROTOCOL]: inUse,
  [SQLITE_FULL]: fullDisk,
  [SQLITE_IOERR]: brokenDisk,
  [IOERR_SHMSIZE]: fullDisk,
  [SQLITE_CANTOPEN]: denied,
  [SQLITE_READONLY]: denied,
  // SQLite also uses this code for a page that the disk fails to read.
  [SQLITE_CORRUPT]: {
    kind: 'accessDenied',
    message: '{subject} is damaged, or its disk cannot be read: {reason}',
    hint: 'Check the disk, then restore a backup: plants restore --help',
  },
  // The statements of this program are correct, so another program has removed or changed a table.
  [SQLITE_ERROR]: {
    kind: 'accessDenied',
    hint: 'Another program has changed the tables: restore a backup',
  },
  // A service sends this message to its clients, so it does not name the file.
  [SQLITE_CONSTRAINT]: {
    kind: 'constraint',
    message: 'The store does not accept this: {reason}',
    hint: constraintHint,
  },
  [SQLITE_NOTADB]: {
    kind: 'accessDenied',
    reason: 'it is not a SQLite database',
    hint: anotherFileHint,
  },
  ...spaceExplanations,
  ...descriptorExplanations,
  EIO: brokenDisk,
  EACCES: denied,
  EPERM: denied,
  EROFS: { kind: 'accessDenied', hint: 'Choose a file on another disk' },
  [missingFolder]: {
    kind: 'accessDenied',
    reason: 'its directory does not exist',
    hint: 'Create the directory',
  },
}
const otherResult: Explanation = { kind: 'unavailable', hint: 'Try again' }
const otherSystemError: Explanation = { kind: 'accessDenied', hint: anotherFileHint }

/**
 * Explains an error that has a code of SQLite or of the system. Returns any other error unchanged.
 *
 * @param path the error concerns this file
 * @param subject the message begins with this, and so names the file
 */
export function explainSqliteError(
  error: unknown,
  path: string,
  subject = `The store ${path}`,
): unknown {
  const code = findCode(error, path)
  if (code === undefined) return error
  const other = typeof code === 'number' ? otherResult : otherSystemError
  const message = '{subject} could not be used: {reason}'
  const explanation = { message, ...(explanations[code] ?? other) }
  const reason = describeCode(String(code)) ?? describeReason(error)
  return createExplainedError(explanation, { subject, reason }, error)
}

/**
 * Returns a result code of SQLite, or the code of the system where it says more: SQLITE_IOERR may
 * mean a full disk, and SQLITE_CANTOPEN too many open files. The driver of Node.js does not report
 * the code of the system.
 */
function findCode(error: unknown, path: string): number | string | undefined {
  if (error instanceof StoreDamageError) return SQLITE_CORRUPT
  const resultCode = findPrimaryCode(error)
  if (resultCode !== undefined) {
    const systemCode = findSystemCode(error) ?? ''
    const kind = explanations[systemCode]?.kind
    const saysMore =
      (resultCode === SQLITE_CANTOPEN && kind !== undefined) ||
      (resultCode === SQLITE_IOERR && kind === 'unavailable')
    if (saysMore) return systemCode
    return findExtendedCode(error) === IOERR_SHMSIZE ? IOERR_SHMSIZE : resultCode
  }
  const systemCode = getSystemCode(error)
  if (systemCode === undefined || describeCode(systemCode) === undefined) return undefined
  return systemCode === 'ENOENT' && !existsSync(dirname(path)) ? missingFolder : systemCode
}

/** Creates the error of a file that is not a store of this program, or not one it can use. */
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
