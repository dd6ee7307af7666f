import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { plantCount } from '../../plant/plant.js'
import { moveIntoPlace, unwritableReasons } from '../../platform/atomic-file.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import { assertNotRedirected, targetOf } from '../../platform/files.js'
import { withLockedTempDir } from '../../platform/locked-temp-dir.js'
import { connect, copyDatabase, type Database, primaryCode, uriOf } from '../../platform/sqlite.js'
import type { FileAddress } from '../common/address.js'
import type { FileOptions } from '../common/store.js'
import { holdsStore } from './sqlite-check.js'
import { Connection, openSnapshot, openToWrite } from './sqlite-connection.js'
import {
  changedWhileRead,
  DamageError,
  explainFailure,
  isFull,
  notOurs,
  replacedStore,
  unchanged,
} from './sqlite-errors.js'
import { countPlants, identify, identifyBackup, tablesOf } from './sqlite-schema.js'
import { SqliteWriter } from './sqlite-writer.js'
import {
  fileHasContent,
  fileVersion,
  identityOf,
  isInWalMode,
  isPartOf,
  makeFile,
  realPathOf,
  reportOwner,
  stranger,
} from './store-file.js'

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

function asMalformed(error: unknown, path: string, what: string, hint: string): unknown {
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
async function copyStore(snapshot: Connection, target: string, { clock, trusts }: FileOptions, beside = target) {
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
function integrityCheck(db: Database, path: string): bigint {
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

interface RestoreOptions extends FileOptions {
  /** replaces existing plants; a copy of the store is kept beside it */
  force: boolean
  /** checks the backup only */
  isDryRun: boolean
  at: Date
}

/** Others may use the store meanwhile. */
export async function restoreStore(address: FileAddress, file: string, options: RestoreOptions) {
  const path = realPathOf(address.name)
  const backup = realPathOf(file)
  if (isPartOf(path, backup)) throw malformed(`${backup} is the store itself, or belongs to it`, another)
  const checked = await checkWhole(backup, options)
  if (options.isDryRun) return { plants: checked.plants, kept: undefined }
  try {
    makeFile(path, address.isDefault)
    const { uid } = statSync(backup)
    if (!options.trusts(uid))
      await options.onExposed?.(`The backup ${backup} belongs to ${stranger(uid)} may have added tokens to it`)
    await reportOwner(address, options)
    const connection = await openToWrite(path, options)
    return await connection.use(() => replaceRows(connection, checked, options))
  } catch (error) {
    throw explainFailure(unchanged(error, options.clock.signal), path)
  }
}

interface CheckedBackup {
  path: string
  /** opens it as immutable: no file beside it is read */
  uri: string
  /** its `fileVersion` */
  version: string
  plants: bigint
}

async function checkWhole(backup: string, options: FileOptions): Promise<CheckedBackup> {
  try {
    if (!existsSync(backup)) throw malformed(`There is no file ${backup}`, another)
    if (!fileHasContent(backup)) throw malformed(`${backup} is empty, not a backup`, another)
    const left = ['-wal', '-journal'].map((suffix) => backup + suffix).find(fileHasContent)
    if (left !== undefined) {
      const hint = `If it is a store, restore a copy of it: plants help backup. If it is a backup, remove that file: rm ${shellWord(left)}`
      throw malformed(`Not restored: ${backup} is no complete backup, because it has changes in ${left}`, hint)
    }
    const version = fileVersion(backup)
    return await new Connection(backup, 'immutable', options).use(async (connection) => {
      const plants = await connection.run(() => integrityCheck(connection.db, backup))
      return { path: backup, uri: connection.uri, version, plants }
    })
  } catch (error) {
    throw asMalformed(error, backup, 'Not restored', another)
  }
}

const another = 'Choose a file that plants backup has created'

/** Rows, not the file: processes that have the store open continue with those of the backup. */
async function replaceRows(connection: Connection, backup: CheckedBackup, options: RestoreOptions) {
  const { db, path } = connection
  db.prepare('ATTACH ? AS backup').run(backup.uri)
  let plants = 0n
  let kept: string | undefined
  const work = async () => {
    const present = countPlants(db)
    if (present > 0n && !options.force) {
      const hint = 'To replace it, and keep a copy beside it, add --yes'
      throw new PlantsError('conflict', `The store ${path} has ${plantCount(present)}`, { hint })
    }
    const hasRows = (table: string) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get() !== undefined
    if (Object.keys(tablesOf()).some(hasRows)) kept = await backUpBeside(path, options)
    const version = identifyBackup(db, backup.path) // the file may have been replaced since the check
    await copyRows(db, tablesOf(version), options.clock.signal)
    plants = countPlants(db)
    if (fileVersion(backup.path) !== backup.version) throw changedWhileRead(backup.path)
    if (identityOf(path) !== connection.identity) throw replacedStore(path)
  }
  try {
    await new SqliteWriter(connection, options).transact(work)
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.type === 'unknownOutcome'
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw error
  }
  return { plants, kept }
}

/** Nobody else can write meanwhile: this process holds the write lock. */
async function backUpBeside(path: string, options: RestoreOptions): Promise<string> {
  const name = `${path}.before-restore-${options.at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let file = name
  for (let count = 2; existsSync(file); count += 1) file = `${name}-${count}`
  const opened = await openSnapshot(path, options)
  await opened?.use((snapshot) => copyStore(snapshot, file, options, path))
  return file
}

/** In steps of a few milliseconds. */
async function copyRows(
  db: Database,
  { plants, ...tables }: ReturnType<typeof tablesOf>,
  signal: AbortSignal,
): Promise<void> {
  for (const name of ['plants', ...Object.keys(tables)]) db.exec(`DELETE FROM main.${name}`)
  // -1e19 is less than any id
  const next = db.prepare(`INSERT INTO main.plants (${plants}) SELECT ${plants} FROM backup.plants
    WHERE id > ifnull((SELECT max(id) FROM main.plants), -1e19) ORDER BY id LIMIT ${rowsInStep}`)
  while (Number(next.run().changes) > 0) await checkSignal(signal)
  for (const [name, columns] of Object.entries(tables))
    db.exec(`INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM backup.${name}`)
}

const rowsInStep = 5000
