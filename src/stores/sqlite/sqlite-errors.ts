import { accessSync, constants, existsSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  type ErrorKind,
  PlantsError,
  reasonOfCode,
  systemCode,
  unlessSystemError,
} from '../../platform/errors.js'
import { isAtSizeLimit, makeFolderHint, raiseSizeLimit } from '../../platform/files.js'
import { shellWord } from '../../platform/shell.js'
import { primaryCode } from '../../platform/sqlite.js'
import { constraintHint } from '../common/change.js'
import { headerSql } from './sqlite-format.js'

/** What a code means; `reason` is the text that came with it. */
interface Cause {
  sentence(path: string, reason: string): string
  hint: string | ((path: string) => string)
  /** By default `inaccessible`. */
  kind?: ErrorKind
}

/** Returns an error that is not of SQLite or the file system, a defect, unchanged. */
export function explainFailure(error: unknown, path: string): unknown {
  const code = primaryCode(error) ?? systemCode(error) ?? ''
  const reason = reasonOfCode(String(code)) ?? (error instanceof Error ? error.message : '')
  const explanation = error instanceof StoreDamageError ? damaged : explanationOf(code, path)
  if (!explanation) return error
  const { sentence, hint, kind = 'inaccessible' } = explanation
  const advice = typeof hint === 'function' ? hint(path) : hint
  return new PlantsError(kind, sentence(path, reason), { hint: advice, cause: error })
}

export async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** The file holds what only a failed disk, or another program, can have written. */
export class StoreDamageError extends Error {}

export function notOurs(path: string, why: string, hint: string = elsewhere): PlantsError {
  return new PlantsError('inaccessible', `${path} ${why}`, { hint })
}

export function replacedStore(path: string): PlantsError {
  return new PlantsError('unavailable', `${path} or its log was deleted or replaced`, {
    hint: 'Try again',
  })
}

/** The error. Where the signal stopped a change before it was made, it says that nothing was changed. */
export function nothingChanged(error: unknown, signal: AbortSignal): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
}

const elsewhere = 'Choose another file with --store PATH'

/** What SQLite says (https://sqlite.org/rescode.html) is often a consequence: its causes are looked for first. */
function explanationOf(code: number | string, path: string): Cause | undefined {
  if ((code === 14 || code === 'ENOENT') && !existsSync(dirname(path))) return noFolder
  if ((code === 8 || code === 14) && !(isReadable(path) && isWritable(path))) return forbidden
  if ((code === 10 || code === 13) && isLimited(path)) return limited
  if ((code === 8 || code === 10) && isFull(path)) return full // no space for the wal-index is an I/O error, too
  return explanations[code] ?? (reasonOfCode(String(code)) ? unopened : undefined)
}

const noFolder: Cause = {
  sentence: (path) => `There is no directory ${dirname(path)} for the store ${path}`,
  hint: (path) => makeFolderHint(dirname(path)),
}

/** Covers a store whose directory is read-only, too. */
const forbidden: Cause = {
  sentence: (path) =>
    `The store ${path} cannot be ${isReadable(path) ? 'written' : 'read'} by this user`,
  hint: 'Change the permissions of the file and its directory, or choose another file with --store PATH',
}

const full: Cause = {
  sentence: (path) => `No space left on the disk of ${path}`,
  hint: 'Free some space, then try again',
  kind: 'unavailable',
}

const limited: Cause = {
  sentence: (path) => `The store ${path} could not be used: ${reasonOfCode('EFBIG')}`,
  hint: raiseSizeLimit,
}

const unopened: Cause = {
  sentence: (path, reason) => `The store ${path} could not be opened: ${reason}`,
  hint: elsewhere,
}

const unusable: Cause = {
  sentence: (path, reason) => `The store ${path} could not be used: ${reason}`,
  hint: 'Try again',
  kind: 'unavailable',
}

const damaged: Cause = {
  sentence: (path, reason) => `The store ${path} is damaged: ${reason}`,
  hint: (path) =>
    `Restore a backup, or copy what is readable to ${rescued}: ${sqlite3(path, `.clone ${rescued}`, `.open ${rescued}`, headerSql)}`,
}

const rescued = 'plants-rescued.db'

/** By SQLite's primary result code, or by system error code. */
const explanations: Readonly<Record<number | string, Cause>> = {
  // Our own statements are correct: the cause is in the schema of the file.
  1: {
    sentence: unusable.sentence,
    hint: (path) =>
      `Look for an index that somebody added to it: ${sqlite3(path, '.schema plants')}`,
  },
  3: forbidden,
  7: unusable,
  8: unusable,
  10: unusable,
  11: damaged,
  13: full,
  14: unusable,
  18: {
    sentence: unusable.sentence,
    hint: (path) =>
      `Look for a plant of more than 64 MiB, or an index that makes such a text: ${sqlite3(path, '.schema plants')}`,
  },
  19: {
    kind: 'constraint',
    sentence: (path, reason) => `The store ${path} does not accept this: ${reason}`,
    hint: constraintHint,
  },
  26: { sentence: (path) => `${path} is not a store: it is not an SQLite file`, hint: elsewhere },
  ...{
    EACCES: forbidden,
    EPERM: forbidden,
    EDQUOT: full,
    ENOSPC: full,
    EIO: unusable,
    EMFILE: unusable,
    ENFILE: unusable,
  },
}

function sqlite3(path: string, ...statements: string[]): string {
  return `sqlite3 ${[path, ...statements].map((word) => shellWord(word)).join(' ')}`
}

export function isFull(path: string): boolean {
  const stats = unlessSystemError(() => statfsSync(dirname(path)))
  return stats !== undefined && stats.bavail * stats.bsize < 1_048_576
}

/** Whether a file of the store is as large as this process may make one. */
export function isLimited(path: string): boolean {
  return isAtSizeLimit(filesOf(path))
}

/** Those that a store in use has. */
function filesOf(path: string): string[] {
  return ['', '-wal', '-shm'].map((suffix) => path + suffix)
}

/** Also true for a store that does not exist yet. */
function isReadable(path: string): boolean {
  return filesOf(path).every((file) => mayAccess(file, constants.R_OK))
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
