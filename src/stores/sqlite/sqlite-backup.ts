import { existsSync, rmSync, type Stats, statSync, truncateSync } from 'node:fs'
import { AtomicFile, assertOwnFile, unwritable } from '../../platform/atomic-file.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { checkSignal } from '../../platform/runtime.js'
import { attach, isBusy, isSqliteError, uriOf } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import { countPlants } from './read.js'
import { checkCopiedTexts, checkIntegrity, checkTexts } from './sqlite-check.js'
import {
  Connection,
  immutable,
  openToRead,
  openToWrite,
  type SqliteOptions,
} from './sqlite-connection.js'
import { explainFailure, isFull, nothingChanged, notOurs } from './sqlite-errors.js'
import { tables } from './sqlite-format.js'
import { flawOf, isStore } from './sqlite-schema.js'
import { SqliteWriter } from './sqlite-writer.js'
import {
  assertUnchanged,
  fileVersion,
  isInWalMode,
  isPartOf,
  isStoreFile,
  realPathOf,
  unmergedChanges,
} from './store-file.js'

interface BackupOptions extends SqliteOptions {
  /** Called before what seems to be a backup of another store is replaced. Throws if it must stay. */
  onOther(message: string): Promise<void>
}

/** Copies a snapshot into a file that is a store itself, as a whole or not at all. Undefined if there is no store. */
export async function backUp(
  address: SqliteAddress,
  file: string,
  { onOther, ...options }: BackupOptions,
) {
  const path = realPathOf(address.name)
  const target = realPathOf(file)
  assertApart(path, target, anotherTarget)
  try {
    const store = await openToRead(path, options)
    return await store?.use(async () => {
      const old = await store.retry(() => replacedFile(store, target))
      if (old?.isOther)
        await onOther(`Most of the backup ${target} is not in ${path}: it may be of another store`)
      return copyStore(store, target, old, options)
    })
  } catch (error) {
    throw explainFailure(nothingChanged(error, options.runtime.handleSignals()), path)
  }
}

function assertApart(store: string, file: string, hint: string): void {
  if (isPartOf(store, file)) throw usageError(`${file} is the store itself, or belongs to it`, hint)
}

const anotherTarget = 'Choose another file for the backup'

interface ReplacedFile {
  stats: Stats
  /** Its `fileVersion`. */
  version: string
  /** Whether it seems to be a backup of another store. */
  isOther: boolean
}

/** The file that a backup may replace: an empty one, or a backup of this user. Undefined if there is none. */
function replacedFile(store: Connection, target: string): ReplacedFile | undefined {
  const stats = statSync(target, { throwIfNoEntry: false })
  if (!stats) return undefined
  const what = `${target} cannot be replaced by a backup`
  if (!stats.isFile()) throw usageError(`${what}: it is not a regular file`, anotherTarget)
  assertOwnFile(target, stats, anotherTarget)
  const version = fileVersion(target)
  if (stats.size === 0) return { stats, version, isOther: false }
  const changes = unmergedChanges(target)
  if (changes !== undefined)
    throw usageError(`${what}: it has changes in ${changes}`, anotherTarget)
  if (!isStoreFile(target)) throw usageError(`${what}: it is not a backup`, anotherTarget)
  if (isInWalMode(target)) throw usageError(`${what}: it is a store in use`, anotherTarget) // a backup never is
  try {
    return attached(store, target, (database) => {
      const flaw = flawOf(store.prepare, database)
      if (flaw !== undefined) throw notOurs(target, `is not a store of plants: ${flaw}`)
      return { stats, version, isOther: !sharesMost(store, database) }
    })
  } catch (error) {
    if (isBusy(error)) throw error
    if (isSqliteError(error)) checkIntegrity(store.db) // SQLite does not say which of the two files it is about
    const failure = explainFailure(error, target)
    throw failure instanceof PlantsError
      ? usageError(`${what}: ${failure.message}`, anotherTarget, error)
      : failure
  }
}

/**
 * Whether the store has most of the plants, by id and name, and tokens of a copy. A store has no identity that a copy could
 * keep, and a backup of yesterday differs from it by a day's changes.
 */
function sharesMost({ prepare }: Connection, database: 'copy'): boolean {
  const shared = `SELECT count(*) AS total, count(now.id) AS shared FROM ${database}.plants AS old
    LEFT JOIN main.plants AS now ON now.id = old.id AND now.name = old.name UNION ALL
    SELECT count(*), count(now.id) FROM ${database}.tokens AS old
    LEFT JOIN main.tokens AS now ON now.id = old.id AND now.digest = old.digest`
  const sql = `SELECT 2 * sum(shared) >= sum(total) AS isMost FROM (${shared})`
  return prepare(sql).get()?.['isMost'] === 1n
}

const notRestored = 'Choose a file that plants backup has created'

/** Throws `usage` for what is not a store in one file. */
async function checkedBackup(file: string, options: SqliteOptions): Promise<bigint> {
  try {
    // SQLite would apply it to the backup.
    const changes = unmergedChanges(file)
    if (changes !== undefined)
      throw notOurs(file, `is not a complete backup, because it has changes in ${changes}`)
    return await new Connection(file, 'immutable', options).use(async (backup) => {
      const plants = await backup.retry(() => {
        if (!isStore(backup)) throw notOurs(file, 'contains no store')
        checkIntegrity(backup.db)
        return countPlants(backup)
      })
      await checkTexts(backup, options.runtime)
      return plants
    })
  } catch (error) {
    const failure = explainFailure(nothingChanged(error, options.runtime.handleSignals()), file)
    if (!(failure instanceof PlantsError) || failure.kind !== 'inaccessible') throw failure
    throw usageError(`Not restored: ${failure.message}`, notRestored, error)
  }
}

/** Replaces `target` once the copy is checked and on disk. */
async function copyStore(
  store: Connection,
  target: string,
  old: ReplacedFile | undefined,
  options: SqliteOptions,
) {
  const signal = options.runtime.handleSignals()
  let copy: AtomicFile | undefined
  try {
    copy = new AtomicFile(target)
    const { path } = copy
    await store.retry(() => {
      truncateSync(path)
      store.db.prepare('VACUUM INTO ?').run(path)
    })
    await checkSignal(signal)
    const plants = attached(store, path, (database) => checkedCount(store, database))
    await checkSignal(signal)
    store.checkUnchanged()
    const { size: bytes } = statSync(path)
    if (old?.isOther) assertUnchanged(target, old.version) // what was confirmed is this file alone
    if (old) copy.commit(old.stats)
    else copy.create()
    return { plants, bytes }
  } catch (error) {
    // SQLite does not say which of the two files it is about.
    if (isSqliteError(error) && !isFull(target)) throw explainFailure(error, store.path)
    const cause = isSqliteError(error)
      ? Object.assign(new Error('full'), { code: 'ENOSPC' })
      : error
    throw unwritable(
      `The copy ${target}`,
      target,
      cause,
      'Fix this, or choose another directory. Nothing was changed',
    )
  } finally {
    copy?.discard()
    if (copy) rmSync(`${copy.path}-journal`, { force: true })
  }
}

/**
 * Attaches a file that is then replaced or renamed. DETACH closes it; a connection of the packaged driver keeps its file
 * open until its statements are garbage-collected, and Windows replaces no open file.
 */
function attached<T>({ db }: Connection, path: string, action: (database: 'copy') => T): T {
  attach(db, uriOf(path, immutable), 'copy')
  try {
    return action('copy')
  } finally {
    db.exec('DETACH copy')
  }
}

function checkedCount({ db }: Connection, database: 'copy'): bigint {
  checkIntegrity(db, database)
  checkCopiedTexts(db)
  const { count } = db.prepare(`SELECT count(*) AS count FROM ${database}.plants`).get() as {
    count: bigint
  } // one row
  return count
}

interface Backup {
  path: string
  /** Its `fileVersion`. */
  version: string
  plants: bigint
}

export async function checkBackup(
  address: SqliteAddress,
  file: string,
  options: SqliteOptions,
): Promise<Backup> {
  const path = realPathOf(file)
  assertApart(realPathOf(address.name), path, notRestored)
  const version = fileVersion(path)
  return { path, version, plants: await checkedBackup(path, options) }
}

/**
 * Replaces the rows, not the file: who has the store open continues with those of the backup. Returns the file beside the
 * store with the previous contents, if there were any.
 */
export async function restoreStore(
  address: SqliteAddress,
  backup: Backup,
  at: Date,
  options: SqliteOptions,
): Promise<string | undefined> {
  const path = realPathOf(address.name)
  let kept: string | undefined
  const replaceRows = async ({ db }: Connection) => {
    const isUsed = tables.some((name) => db.prepare(`SELECT 1 FROM main.${name} LIMIT 1`).get())
    if (isUsed) kept = await backUpBeside(path, at, options)
    for (const name of tables) {
      db.exec(`DELETE FROM main.${name}`)
      db.exec(`INSERT INTO main.${name} SELECT * FROM backup.${name}`) // both are as in the schema
      await checkSignal(options.runtime.handleSignals())
    }
    assertUnchanged(backup.path, backup.version)
  }
  try {
    const store = await openToWrite(address, { ...options, onCreated: undefined })
    await store.use(async () => {
      attach(store.db, uriOf(backup.path, immutable), 'backup')
      await new SqliteWriter(store, options).transact(() => replaceRows(store))
    })
    return kept
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.kind === 'unknownOutcome'
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw explainFailure(nothingChanged(error, options.runtime.handleSignals()), path)
  }
}

/** Nobody else can write meanwhile: this process holds the write lock. */
async function backUpBeside(path: string, at: Date, options: SqliteOptions): Promise<string> {
  const name = `${path}.before-restore-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let file = name
  for (let count = 2; existsSync(file); count += 1) file = `${name}-${count}`
  const opened = await openToRead(path, options)
  await opened?.use((store) => copyStore(store, file, undefined, options))
  return file
}
