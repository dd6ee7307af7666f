/**
 * Makes backups of a store, and restores them.
 *
 * A backup is a snapshot of the store in one file. SQLite writes the file under a temporary name,
 * and the file is read and checked before it gets its final name. So a backup is complete and
 * sound, or does not exist.
 *
 * A restore replaces the rows of the store in one transaction, not the file. A process that has the
 * store open, such as a service, would otherwise go on with the old file.
 */
import { existsSync, rmSync, type Stats, statSync, truncateSync } from 'node:fs'
import { assertDefined, createUsageError, fileInFolderHint, PlantsError } from '../../errors.js'
import { formatPlantCount } from '../../plant/plant.js'
import { AtomicFile, assertOwnFile } from '../../platform/atomic-file.js'
import { readBytes, resolveLink, statIfExists } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import { buildUri } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../address.js'
import type { BackupContext } from '../store-kind.js'
import { Connection, type SqliteOptions } from './connection.js'
import { explainSqliteError, StoreDamageError } from './explain.js'
import { countPlants } from './read.js'
import { applicationId, assertOrdinaryTables, tables } from './schema.js'
import {
  belongsToStore,
  createChangedFileError,
  findUnmergedFile,
  hasLogFormat,
  immutableParameters,
  readFingerprint,
} from './store-file.js'
import { Writer } from './writer.js'

const anotherTargetHint = 'Choose another file for the backup'
const storeFileProblem = 'is a file of the store'

/**
 * @param file may be an older backup, which is replaced, but no other file
 * @returns the number of plants and the size of the backup; undefined if there is no store
 * @throws {PlantsError} `usage` for a file that must not be replaced
 */
export async function backUp(
  { name }: SqliteAddress,
  file: string,
  { onLarger, ...options }: SqliteOptions & Partial<Pick<BackupContext, 'onLarger'>>,
) {
  const { target, oldStats } = examineTarget(file, name)
  const backup = `The backup ${target}`
  const signal = options.runtime.getStopSignal()
  const store = await Connection.open({ name }, 'read', options)
  if (!store) return undefined
  let copy: AtomicFile | undefined
  try {
    const oldCount = oldStats ? countReplaceable(store, target, oldStats) : 0n
    const newCount = await countPlants(store)
    const newPlants = `${store.path} has ${formatPlantCount(newCount)}`
    const message = `${backup} has ${formatPlantCount(oldCount)}, and ${newPlants}`
    if (oldCount > 2n * newCount) await onLarger?.(message)
    copy = new AtomicFile(target)
    const { path } = copy
    await store.retryWhileLocked(() => vacuumInto(store, path), {
      path: target,
      subject: backup,
    })
    await checkSignal(signal)
    const plants = await store.retryWhileLocked(() => countInFile(store, path))
    await checkSignal(signal)
    const bytes = statSync(path).size
    // Other users may have been able to read the old file. They cannot read the new file, which
    // replaces it.
    if (oldStats) copy.commit()
    else copy.commitNew()
    return { plants, bytes }
  } catch (error) {
    throw explainSqliteError(error, target, backup)
  } finally {
    store.close()
    copy?.discard()
    // SQLite leaves the journal of a copy that it could not complete.
    if (copy) rmSync(`${copy.path}-journal`, { force: true })
  }
}

/** @param path an existing file, which need not be empty: this may be the second try */
function vacuumInto({ db }: Connection, path: string): void {
  truncateSync(path) // VACUUM INTO accepts only an empty file.
  db.prepare('VACUUM INTO ?').run(path)
}

/**
 * Resolves the path of a backup, and finds the file that the backup replaces, if there is one.
 *
 * @param store the path of the store
 * @throws {PlantsError} for a file that must not be replaced, and a path where no file can be
 */
function examineTarget(file: string, store: string): { target: string; oldStats?: Stats } {
  try {
    const target = resolveLink(file)
    if (belongsToStore(store, target))
      throw createUsageError(`${target} ${storeFileProblem}`, anotherTargetHint)
    const oldStats = statIfExists(target)
    if (!oldStats) return { target }
    if (oldStats.isDirectory()) throw createUsageError(`${target} is a directory`, fileInFolderHint)
    assertOwnFile(target, oldStats, anotherTargetHint)
    return { target, oldStats }
  } catch (error) {
    throw explainSqliteError(error, file, `The backup ${file}`)
  }
}

/**
 * Counts the plants of an older backup.
 *
 * @throws {PlantsError} `usage` for any other file, which a backup must not replace
 */
function countReplaceable(store: Connection, target: string, oldStats: Stats): bigint {
  let cause: unknown
  try {
    if (oldStats.isFile() && oldStats.size === 0) return 0n
    if (oldStats.isFile() && isBackup(target)) return countInFile(store, target)
  } catch (error) {
    cause = error
  }
  const problem = 'cannot be overwritten: it is not a backup, or is damaged or in use'
  throw createUsageError(`${target} ${problem}`, anotherTargetHint, cause)
}

/**
 * The header of the file decides (https://sqlite.org/fileformat2.html, 1.3): offset 68 has the id
 * of the program. A backup has no log. A file with one is a store that somebody writes to.
 */
function isBackup(path: string): boolean {
  const hasLog = hasLogFormat(path) || findUnmergedFile(path) !== undefined
  return !hasLog && BigInt(readBytes(path, 68, 4).readUInt32BE()) === applicationId
}

/**
 * Counts the plants of a backup. The file is attached to the connection of the store, because
 * DETACH closes the file at once. A separate connection may stay open after `close`, and Windows
 * does not replace an open file.
 */
function countInFile(store: Connection, path: string): bigint {
  store.db.prepare('ATTACH ? AS copy').run(buildUri(path, immutableParameters))
  try {
    assertOrdinaryTables(store.db, path, 'copy')
    return countIfSound(store, 'copy')
  } finally {
    store.db.exec('DETACH copy')
  }
}

/**
 * Counts the plants of a database.
 *
 * @throws {StoreDamageError} if the check of SQLite, which reads every page, finds damage, or if a
 *   string has U+0000, which a table without the constraints of this program accepts
 */
function countIfSound({ db }: Connection, database: 'main' | 'copy'): bigint {
  const report = String(db.prepare(`PRAGMA ${database}.integrity_check(1)`).get().integrity_check)
  // The first line of the report is the name of the database.
  if (report !== 'ok') throw new StoreDamageError(report.split('\n').at(-1))
  const select = `SELECT count(*) AS count,
      min(id) FILTER (WHERE instr(name, char(0)) OR instr(tag, char(0))) AS invalidId
    FROM ${database}.plants`
  const { count, invalidId } = db.prepare(select).get()
  if (invalidId === null) return count
  throw new StoreDamageError(`plant ${invalidId} has U+0000 in its name or tag`)
}

/** @returns how many plants the store has, if it is sound; undefined if there is no store */
export async function checkIntegrity(path: string, options: SqliteOptions) {
  const store = await Connection.open({ name: path }, 'read', options)
  try {
    return await store?.retryWhileLocked(() => countIfSound(store, 'main'))
  } finally {
    store?.close()
  }
}

/**
 * @returns how many plants the backup has
 * @throws {PlantsError} for a file that cannot be restored
 */
export async function checkBackup({ name }: SqliteAddress, file: string, options: SqliteOptions) {
  const hint = 'Choose a file that plants backup has created'
  const createRestoreError = (problem: string) =>
    createUsageError(`${file} was not restored: it ${problem}`, hint)
  try {
    if (belongsToStore(name, file)) throw createRestoreError(storeFileProblem)
    const changes = findUnmergedFile(file)
    if (changes !== undefined)
      throw createRestoreError(`is not a complete backup, because it has changes in ${changes}`)
    if (statIfExists(file)?.isFile() && readBytes(file, 0, 15).toString() !== 'SQLite format 3')
      throw createRestoreError('is not a backup')
  } catch (error) {
    throw explainSqliteError(error, file, `The backup ${file}`)
  }
  const plants = await checkIntegrity(file, { ...options, noun: 'The backup' })
  if (plants === undefined)
    throw createRestoreError(existsSync(file) ? 'contains no store' : 'does not exist')
  return plants
}

/**
 * Restores a backup, after it has backed up the previous contents of the store. A store that has
 * tokens keeps them.
 *
 * @param file must have passed `checkBackup`
 * @param copyTime is a part of the name of the file with the previous contents
 * @returns the path of the file with the previous contents; undefined if the store is new
 */
export async function restoreStore(
  address: SqliteAddress,
  file: string,
  copyTime: Date,
  options: SqliteOptions,
) {
  const signal = options.runtime.getStopSignal()
  const store = assertDefined(await Connection.open(address, 'write', options))
  const { db, path, isNew } = store
  let previousContents: string | undefined
  try {
    await new Writer(store).transaction(async () => {
      const fingerprint = readFingerprint(file)
      db.prepare('ATTACH ? AS copy').run(buildUri(file, immutableParameters))
      assertOrdinaryTables(db, file, 'copy')
      if (!isNew) {
        const previousFile = nameCopy(`${path}.before-restore-`, copyTime)
        await backUp(address, previousFile, options)
        // Before this, another program may have created the file, which must not be deleted.
        previousContents = previousFile
      }
      const { tokens: _, ...otherTables } = tables
      // A token that was revoked after the backup must not become valid again.
      const hasTokens = db.prepare('SELECT 1 FROM main.tokens LIMIT 1').get() !== undefined
      for (const [table, columns] of Object.entries(hasTokens ? otherTables : tables)) {
        const rows = `(${columns}) SELECT ${columns} FROM copy.${table}`
        db.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} ${rows}`)
        await checkSignal(signal)
      }
      if (readFingerprint(file) !== fingerprint) throw createChangedFileError(`The backup ${file}`)
    })
    return previousContents
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.isOutcomeUnknown
    // If the rows may have been replaced, this file is the only copy of the previous contents.
    if (previousContents !== undefined && !isUnknown) rmSync(previousContents, { force: true })
    throw error
  } finally {
    store.close()
  }
}

/** Returns a path that does not exist yet, such as `garden.db.before-restore-20260102T030405Z`. */
export function nameCopy(beginning: string, time: Date): string {
  let path = beginning + time.toISOString().replace(/[-:]|\.\d+/g, '')
  while (existsSync(path)) path += '-2'
  return path
}
