import { closeSync, fsyncSync, openSync, readSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../../platform/atomic-file.js'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { withLockedTempDir } from '../../platform/file-lock.js'
import { connect, copyDatabase, type Database, primaryCode, uriOf, type Waiting } from '../../platform/sqlite.js'
import type { FileAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { type Connection, openSnapshot } from './connection.js'
import { DamagedStoreError, explainFailure, isFull, notOurs, unchanged } from './errors.js'
import { fileHasContent, identityOf, isPartOf, makeFile, realPathOf, reportOwner } from './file.js'
import { holdsStore } from './inspect.js'
import { countPlants, identify } from './schema.js'

export interface BackupOptions extends OpenOptions {
  /** the file that a link leads to, which may not be there yet; throws for a link that is not to be followed */
  targetOf(path: string): string
}

/** What `backUpStore` of `stores/registry.ts` does. */
export async function backUp(address: FileAddress, file: string, options: BackupOptions) {
  const path = realPathOf(address.path)
  const target = targetOf(file, path, options)
  if (isPartOf(path, target)) throw notReplaced(target, 'is the store itself, or belongs to it', 'Choose another file for the backup')
  try {
    await reportOwner(address, options)
    return await withSnapshot(path, options, async (snapshot) => {
      await checkTarget(target, options)
      return copyStore(snapshot, target, options)
    })
  } catch (error) {
    throw explainFailure(unchanged(error, options.clock.signal), path)
  }
}

/** The real path of what is replaced: nothing follows a link that takes its place after this. */
function targetOf(file: string, store: string, options: BackupOptions): string {
  try {
    const target = options.targetOf(file)
    return join(realPathOf(dirname(target)), basename(target))
  } catch (error) {
    throw explainCopy(error, file, store)
  }
}

/** A file that is there already is replaced only if it is a store that nobody uses. */
async function checkTarget(target: string, options: OpenOptions): Promise<void> {
  const identity = identityOf(target)
  if (!identity.includes(':') && identity !== 'none') return // and what the system says of it, it will say again
  const stats = statSync(target, { throwIfNoEntry: false })
  if (stats?.isDirectory()) throw notReplaced(target, 'is a folder', `Name a file in it: ${shellWord(`${target}/plants.bak`)}`)
  if (stats && !stats.isFile()) throw notReplaced(target, 'is a device or a pipe', 'Choose another file for the backup')
  // The log of another file would be taken for that of the backup.
  if (['-wal', '-journal'].some((suffix) => fileHasContent(target + suffix)))
    throw notReplaced(target, 'is in use, or was not closed: a log is beside it', 'Choose another file for the backup')
  if (!stats?.size) return
  const hint = 'Choose another file for the backup, or delete this one first'
  const isStore = await holdsStore(target, options).catch((error: unknown) => {
    throw asMalformed(error, target, 'A backup would replace what is no backup', hint)
  })
  if (!isStore) throw notReplaced(target, 'holds no store', hint)
  if (isWal(target)) throw notReplaced(target, 'is a store that is used as one, and no backup', hint)
}

/** A backup is no store that was written to: that would have turned the write-ahead log on (https://sqlite.org/fileformat.html, 1.3). */
function isWal(path: string): boolean {
  const fd = openSync(path, 'r')
  try {
    const header = Buffer.alloc(20)
    readSync(fd, header, 0, header.length, 0)
    return header[18] === 2
  } finally {
    closeSync(fd)
  }
}

/** The error for a file that a person has named, and that is not of use. */
export function asMalformed(error: unknown, path: string, what: string, hint: string): unknown {
  const explained = explainFailure(error, path)
  if (!(explained instanceof PlantsError) || explained.retryable || explained.kind !== 'unavailable') return explained
  return new PlantsError('malformed', `${what}: ${explained.message}`, { hint, cause: error })
}

function notReplaced(target: string, why: string, hint: string): PlantsError {
  return new PlantsError('malformed', `${target} cannot be replaced by a backup: it ${why}`, { hint })
}

/** Runs an action with a connection that sees a store as it is at one moment; undefined when there is no store in the file. */
export async function withSnapshot<T>(
  path: string,
  waiting: Waiting,
  action: (snapshot: Connection) => Promise<T>,
): Promise<T | undefined> {
  const snapshot = await openSnapshot(path, waiting)
  try {
    return snapshot && (await action(snapshot))
  } finally {
    snapshot?.close()
  }
}

/**
 * Copies a store into a file for its owner alone, which takes the place of `target` once it is whole, checked and on the disk.
 *
 * @param beside the file in the same folder that the temporary folder is named after
 * @throws {PlantsError} `unwritable` when there is no place for it, `unavailable` when the store could not be read or is damaged, or
 * the reason of the signal. What was at `target` is as it was then.
 */
export async function copyStore(snapshot: Connection, target: string, { clock: { signal }, onProgress }: OpenOptions, beside = target) {
  try {
    return await withLockedTempDir(beside, 'copy.db', async (copy) => {
      makeFile({ path: copy, isDefault: false })
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

/** Makes a copy a single file that needs no log, checks it, and writes it to the disk. Returns how many plants it holds. */
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
 * Checks a whole store for damage, and returns how many plants it holds.
 *
 * @param path what the store is called in an error
 */
export function integrityCheck(db: Database, path: string): bigint {
  if (identify(db, path) === undefined) throw notOurs(path, 'holds no store')
  const found = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check']
  if (found !== 'ok') throw new DamagedStoreError(path, String(found))
  return countPlants(db)
}

/** Lets signals in, which wait while SQLite works, and throws the reason when there was one. */
export async function checkSignal(signal: AbortSignal): Promise<void> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
}

/** What is wrong with the disk is wrong where the copy is made, except for a store that cannot be read. */
function explainCopy(error: unknown, target: string, source: string): unknown {
  const code = primaryCode(error) ?? systemCode(error)
  const why = reasons[code === 10 && isFull(target) ? 13 : (code ?? '')]
  if (why === undefined) return explainFailure(error, source)
  const hint = 'Fix that, or choose another place. What was there is as it was'
  return new PlantsError('unwritable', `The copy ${target} could not be written: ${why}`, { hint, cause: error })
}

/** By SQLite's primary result code, and by the code of a system call. */
const reasons: Record<string, string> = {
  8: 'the disk is read-only',
  10: 'the disk failed',
  13: 'no space left on the disk',
  14: 'its folder lets nothing be made in it',
  ...unwritableReasons,
}
