import { closeSync, fsyncSync, openSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../../platform/atomic-file.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { assertNotRedirected, targetOf } from '../../platform/files.js'
import { withLockedTempDir } from '../../platform/locked-temp-dir.js'
import { connect, copyDatabase, type Database, primaryCode, uriOf } from '../../platform/sqlite.js'
import type { FileAddress } from '../common/address.js'
import type { FileOptions } from '../common/store.js'
import { holdsStore } from './sqlite-check.js'
import { type Connection, openSnapshot } from './sqlite-connection.js'
import { DamageError, explainFailure, isFull, notOurs, unchanged } from './sqlite-errors.js'
import { countPlants, identify } from './sqlite-schema.js'
import { fileHasContent, identityOf, isInWalMode, isPartOf, makeFile, realPathOf, reportOwner } from './store-file.js'

/**
 * Copies a snapshot of a store into a file that is a store itself. Replaces a backup there as a whole or not at all.
 */
export async function backUp(address: FileAddress, file: string, options: FileOptions) {
  const path = realPathOf(address.name)
  const target = realTargetOf(file, path, options)
  if (isPartOf(path, target)) throw notReplaced(target, 'is the store itself, or belongs to it')
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

/** A real path: a link that is created there later is not followed. */
function realTargetOf(file: string, store: string, options: FileOptions): string {
  try {
    const target = targetOf(file, options)
    return join(realPathOf(dirname(target)), basename(target))
  } catch (error) {
    throw explainCopy(error, file, store)
  }
}

/** A target may be missing, empty, or a backup: a store that nobody uses. */
async function checkTarget(target: string, options: FileOptions): Promise<void> {
  const identity = identityOf(target)
  if (!identity.includes(':') && identity !== 'none') return // the system error will recur when the copy is written
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats && !stats.isFile()) throw notReplaced(target, 'is not a regular file')
  // SQLite would apply an existing write-ahead log or journal to the backup.
  if (['-wal', '-journal'].some((suffix) => fileHasContent(target + suffix)))
    throw notReplaced(target, 'is in use, or was not closed: it has a write-ahead log or a journal')
  if (!stats?.size) return
  const isStore = await holdsStore(target, options).catch((error: unknown) => {
    throw asMalformed(error, target, 'A backup would replace a file that is not a backup', anotherFile)
  })
  if (!isStore) throw notReplaced(target, 'contains no store')
  if (isInWalMode(target)) throw notReplaced(target, 'is a store in use, not a backup') // a backup is not in WAL mode
}

export function asMalformed(error: unknown, path: string, what: string, hint: string): unknown {
  const explained = explainFailure(error, path)
  if (!(explained instanceof PlantsError) || explained.retryable || explained.type !== 'unavailable') return explained
  return malformed(`${what}: ${explained.message}`, hint, error)
}

function notReplaced(target: string, why: string): PlantsError {
  return malformed(`${target} cannot be replaced by a backup: it ${why}`, anotherFile)
}

const anotherFile = 'Choose another file for the backup'

/**
 * Copies to a new file with mode 0600, which replaces `target` once it is complete, checked and on disk.
 *
 * @param beside the file in the same folder after which the temporary folder is named
 */
export async function copyStore(snapshot: Connection, target: string, { clock, trusts }: FileOptions, beside = target) {
  const { signal } = clock
  try {
    assertNotRedirected(dirname(beside), trusts)
    return await withLockedTempDir(beside, 'copy.db', async (copy) => {
      makeFile(copy)
      await copyDatabase(snapshot.db, copy, signal)
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

/** Makes a copy durable, and a single file without a write-ahead log. */
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

/** Returns the number of plants. Throws `DamageError`. */
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
