/**
 * Prepares the file of a store, and does not use files that another user may have put next to it as
 * a trap.
 */
import { chmodSync, closeSync, openSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { getSystemCode } from '../../errors.js'
import {
  explainWriteAccess,
  ignoreMissingFile,
  isSameFile,
  makeFolder,
  readBytes,
  resolveRealPath,
  syncFolder,
} from '../../platform/files.js'
import { createUnusableStoreError, explainSqliteError } from './explain.js'

/**
 * Creates the file of a store if it is missing. SQLite would create a file that others can read.
 *
 * @returns true if the file was missing
 */
export function createFileIfMissing(path: string, isInDefaultFolder: boolean): boolean {
  try {
    if (isInDefaultFolder) makeFolder(dirname(path))
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
    return true
  } catch (error) {
    if (getSystemCode(error) === 'EEXIST') return false
    throw explainSqliteError(error, path)
  }
}

/**
 * Removes the permissions of other users from an empty file that becomes a store. The log and its
 * index get the permissions of the store from SQLite.
 */
export function restrictToOwner(path: string, { mode }: Stats): void {
  if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** A journal that contains the name of a super-journal ends with these bytes. */
const journalMagic = 'd9d505f920a163d7'

/**
 * A rollback journal can contain the name of a super-journal, which SQLite deletes when it rolls
 * back. SQLite does not check what kind of file this is. So somebody who can write next to the
 * store could make this user delete any file
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). This program never writes a journal
 * with a super-journal, so such a store is not opened.
 */
export function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  // Another process may have finished its transaction, and so deleted the journal, in the meantime.
  const lastBytes = ignoreMissingFile(() => readBytes(journal, stats.size - 8, 8))
  if (lastBytes?.toString('hex') !== journalMagic) return
  throw createUnusableStoreError(
    path,
    `cannot be used: SQLite would delete a file that ${journal} names`,
  )
}

/**
 * Other users who can create files next to the store can put a log there, and SQLite would take the
 * contents of this log for changes of the store.
 *
 * @returns a warning, or undefined if nobody else can create files there
 */
export function explainExposure(path: string): string | undefined {
  const folder = dirname(resolveRealPath(path))
  const exposureReason = explainWriteAccess(statSync(folder))
  const sentence = `The store ${path} is exposed to other users: ${folder} ${exposureReason}`
  return exposureReason && `${sentence}. Move it to a directory that only you can write to`
}

/** Returns true for a path of the store, or of a file that SQLite may keep next to it. */
export function belongsToStore(store: string, path: string): boolean {
  const realStore = resolveRealPath(store)
  const realPath = join(resolveRealPath(dirname(path)), basename(path))
  return ['', '-wal', '-shm', '-journal'].some((suffix) => {
    const hasItsName = path === store + suffix || realPath === realStore + suffix
    return hasItsName || isSameFile(path, realStore + suffix)
  })
}
