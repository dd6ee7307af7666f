import { closeSync, fsyncSync, openSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../../platform/atomic-file.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { assertNotRedirected, targetOf } from '../../platform/files.js'
import { withLockedTempDir } from '../../platform/locked-temp-dir.js'
import { connect, copyDatabase, type Database, primaryCode, uriOf } from '../../platform/sqlite.js'
import type { FileAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { type Connection, openSnapshot } from './connection.js'
import { DamageError, explainFailure, isFull, notOurs, unchanged } from './errors.js'
import { bytesAt, fileHasContent, identityOf, isPartOf, makeFile, realPathOf, reportOwner } from './file.js'
import { holdsStore } from './inspect.js'
import { countPlants, identify } from './schema.js'

/**
 * Copies a store, as it is at this moment, into a file that can be used as a store itself; others may use the store meanwhile.
 *
 * @param file absolute; a store that is there already, and that nobody uses, is replaced, as a whole or not at all. A link of a user who is
 * not trusted is not followed
 * @returns undefined when there is no store yet
 */
export async function backUp(address: FileAddress, file: string, options: OpenOptions) {
  const path = realPathOf(address.name)
  const target = realTargetOf(file, path, options)
  if (isPartOf(path, target)) throw notReplaced(target, 'is the store itself, or belongs to it', 'Choose another file for the backup')
  try {
    await reportOwner(address, options)
    const opened = await openSnapshot(path, options)
    return await opened?.use(async (snapshot) => {
      await checkTarget(target, options)
      return copyStore(snapshot, target, options)
    })
  } catch (error) {
    throw explainFailure(unchanged(error, options.clock.signal), path)
  }
}

/** The real path of the file to replace: a link that is created there later is not followed. */
function realTargetOf(file: string, store: string, options: OpenOptions): string {
  try {
    const target = targetOf(file, options)
    return join(realPathOf(dirname(target)), basename(target))
  } catch (error) {
    throw explainCopy(error, file, store)
  }
}

/** Throws unless the target does not exist, is empty, or is a backup: a store that nobody uses. */
async function checkTarget(target: string, options: OpenOptions): Promise<void> {
  const identity = identityOf(target)
  if (!identity.includes(':') && identity !== 'none') return // the system error will recur when the copy is written
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats?.isDirectory()) throw notReplaced(target, 'is a directory', 'Name a file in it')
  if (stats && !stats.isFile()) throw notReplaced(target, 'is a device or a pipe', 'Choose another file for the backup')
  // SQLite would apply an existing write-ahead log or journal to the backup.
  if (['-wal', '-journal'].some((suffix) => fileHasContent(target + suffix)))
    throw notReplaced(target, 'is in use, or was not closed: it has a write-ahead log or a journal', 'Choose another file for the backup')
  if (!stats?.size) return
  const hint = 'Choose another file for the backup, or delete this one first'
  const isStore = await holdsStore(target, options).catch((error: unknown) => {
    throw asMalformed(error, target, 'A backup would replace a file that is not a backup', hint)
  })
  if (!isStore) throw notReplaced(target, 'contains no store', hint)
  // In WAL mode (https://sqlite.org/fileformat2.html, 1.3), as a store that has been written to; a backup is not.
  if (bytesAt(target, 18, 1)[0] === 2) throw notReplaced(target, 'is a store in use, not a backup', hint)
}

export function asMalformed(error: unknown, path: string, what: string, hint: string): unknown {
  const explained = explainFailure(error, path)
  if (!(explained instanceof PlantsError) || explained.retryable || explained.type !== 'unavailable') return explained
  return malformed(`${what}: ${explained.message}`, hint, error)
}

function notReplaced(target: string, why: string, hint: string): PlantsError {
  return malformed(`${target} cannot be replaced by a backup: it ${why}`, hint)
}

/**
 * Copies a store to a new file with mode 0600, which replaces `target` once it is complete, checked and on disk.
 *
 * @param beside the file in the same folder after which the temporary folder is named
 * @throws {PlantsError} `unwritable` when the copy cannot be written, `unavailable` when the store cannot be read or is damaged, or
 * the reason of the signal. `target` is unchanged then.
 */
export async function copyStore(snapshot: Connection, target: string, options: OpenOptions, beside = target) {
  const {
    clock: { signal },
    onProgress,
    trusts,
  } = options
  try {
    assertNotRedirected(dirname(beside), trusts)
    return await withLockedTempDir(beside, 'copy.db', async (copy) => {
      makeFile(copy)
      await copyDatabase(snapshot.db, copy, ({ totalPages, remainingPages }) => {
        onProgress?.({ part: 1 - remainingPages / totalPages })
        signal.throwIfAborted()
      })
      await checkSignal(signal)
      const plants = finishCopy(copy, snapshot.path)
      await checkSignal(signal)
      snapshot.checkUnchanged()
      moveIntoPlace(copy, target)
      return { plants, bytes: statSync(target).size }
    })
  } catch (error) {
    throw signal.aborted ? signal.reason : explainCopy(error, target, snapshot.path)
  }
}

/** Turns a copy into a single file without a write-ahead log, checks it, and flushes it to disk. Returns the number of plants. */
function finishCopy(path: string, source: string): bigint {
  const db = connect(uriOf(path, 'mode=rw'), { readOnly: false })
  try {
    db.exec('PRAGMA journal_mode=DELETE')
    return integrityCheck(db, source)
  } finally {
    db.close()
    const fd = openSync(path, 'r+')
    try {
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
  }
}

/**
 * Checks a whole store for damage. Returns the number of plants.
 *
 * @param path the name of the store in an error
 */
export function integrityCheck(db: Database, path: string): bigint {
  if (identify(db, path) === undefined) throw notOurs(path, 'contains no store')
  const found = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check']
  if (found !== 'ok') throw new DamageError(String(found))
  return countPlants(db)
}

/** Attributes disk errors to the target of the copy, except when the store cannot be read. */
function explainCopy(error: unknown, target: string, source: string): unknown {
  const code = primaryCode(error) ?? systemCode(error)
  const why = reasons[code === 10 && isFull(target) ? 13 : (code ?? '')]
  if (why === undefined) return explainFailure(error, source)
  const hint = 'Fix this, or choose another directory. Nothing was changed'
  return new PlantsError('unwritable', `The copy ${target} could not be written: ${why}`, { hint, cause: error })
}

/** By SQLite's primary result code, or by system error code. */
const reasons: Record<string, string> = {
  8: 'the disk is read-only',
  10: 'the disk failed',
  13: 'no space left on the disk',
  14: 'no file can be created in its directory',
  ...unwritableReasons,
}
