/**
 * A backup is a snapshot in one file (VACUUM INTO), which is checked before it gets its name. A restore replaces rows,
 * not the file, in one transaction: who has the store open goes on with those of the backup. What was there is copied
 * to a file beside the store first.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
  truncateSync,
} from 'node:fs'
import { plantCount } from '../../plant/plant.js'
import { AtomicFile, assertOwnFile, unwritable } from '../../platform/atomic-file.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import { primaryCode, uriOf } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import {
  Connection,
  immutable,
  isPartOf,
  type SqliteOptions,
  unmergedChanges,
} from './connection.js'
import { explained, StoreDamageError, unusableStore } from './errors.js'
import { countPlants } from './read.js'
import { applicationId, tables } from './schema.js'
import { Writer } from './writer.js'

interface BackupOptions extends SqliteOptions {
  /** Called before a backup with more than twice the plants is replaced. Throws if it must stay. */
  onLarger(message: string): Promise<void>
}

const anotherTarget = 'Choose another file for the backup'
const anotherSource = 'Choose a file that plants backup has created'

/** Writes a file that is a store itself, as a whole or not at all. Undefined if there is no store. */
export async function backUp(
  { name }: SqliteAddress,
  file: string,
  { onLarger, ...options }: BackupOptions,
): Promise<{ plants: bigint; bytes: number } | undefined> {
  assertApart(name, file, anotherTarget)
  const target = targetOf(file)
  const old = statSync(target, { throwIfNoEntry: false })
  if (old) assertOwnFile(target, old, anotherTarget)
  if (old && !(old.isFile() && (old.size === 0 || isBackup(target)))) throw irreplaceable(target)
  const store = await Connection.open(name, options)
  if (!store) return undefined
  try {
    const present = await countPlants(store)
    const former = old && old.size > 0 ? countFormer(store, target) : 0n
    if (former > 2n * present)
      await onLarger(
        `The backup ${target} has ${plantCount(former)}, and ${store.path} has ${plantCount(present)}`,
      )
    return await copyStore(store, target, options, old)
  } catch (error) {
    throw unwritable(`The copy ${target}`, target, error, 'Choose another directory')
  } finally {
    store.close()
  }
}

function assertApart(store: string, file: string, hint: string): void {
  if (isPartOf(store, file)) throw usageError(`${file} is the store itself, or belongs to it`, hint)
}

function irreplaceable(target: string, cause?: unknown): PlantsError {
  const message = `${target} cannot be replaced: it is not a backup, or is damaged or in use`
  return usageError(message, anotherTarget, cause)
}

/** By the header (https://sqlite.org/fileformat2.html, 1.3). A store in use has a log, which no backup has. */
function isBackup(path: string): boolean {
  const header = Buffer.alloc(100)
  const fd = openSync(path, 'r')
  readSync(fd, header, 0, header.length, 0)
  closeSync(fd)
  const isOurs =
    header.toString('latin1', 0, 16) === 'SQLite format 3\0' &&
    BigInt(header.readUInt32BE(68)) === applicationId
  const isInWalMode = header[18] === 2
  return isOurs && !isInWalMode && unmergedChanges(path) === undefined
}

/** How many plants the backup has that would be replaced. */
function countFormer(store: Connection, target: string): bigint {
  try {
    return withAttached(store, target, () => countCopied(store))
  } catch (error) {
    throw irreplaceable(target, error)
  }
}

function countCopied({ db }: Connection): bigint {
  return db.prepare('SELECT count(*) AS count FROM copy.plants').get().count
}

/** DETACH closes the file at once, as `Connection.close` may not, and Windows replaces no open file. */
function withAttached<T>({ db }: Connection, path: string, work: () => T): T {
  db.prepare('ATTACH ? AS copy').run(uriOf(path, immutable))
  try {
    return work()
  } finally {
    db.exec('DETACH copy')
  }
}

/** By way of a temporary file, which is checked. Replaces nothing but `old`. */
async function copyStore(
  store: Connection,
  target: string,
  { runtime }: SqliteOptions,
  old?: Stats,
): Promise<{ plants: bigint; bytes: number }> {
  const signal = runtime.handleSignals() // which end the process otherwise, and leave the file
  const copy = new AtomicFile(target)
  try {
    await store.retry(() => vacuumInto(store, copy.path))
    await checkSignal(signal)
    const count = () => {
      checkIntegrity(store, 'copy')
      return countCopied(store)
    }
    const plants = await store.retry(() => withAttached(store, copy.path, count))
    await checkSignal(signal)
    const bytes = statSync(copy.path).size
    if (old) copy.commit(old)
    else copy.create()
    return { plants, bytes }
  } finally {
    copy.discard()
    rmSync(`${copy.path}-journal`, { force: true })
  }
}

function vacuumInto({ db }: Connection, path: string): void {
  try {
    truncateSync(path)
    db.prepare('VACUUM INTO ?').run(path)
  } catch (error) {
    throw primaryCode(error) === 13 ? explained(error, path) : error // FULL: the store is only read
  }
}

/** Checks pages, types and indexes. Throws `StoreDamageError`. */
function checkIntegrity({ db }: Connection, database = 'main'): void {
  const found = String(db.prepare(`PRAGMA ${database}.integrity_check(1)`).get().integrity_check)
  if (found !== 'ok') throw new StoreDamageError(found.split('\n').at(-1)) // after the database's name
}

/** Reads all of a store. Returns the number of its plants; undefined if there is none. */
export async function countChecked(
  path: string,
  options: SqliteOptions,
  mode?: typeof immutable,
): Promise<bigint | undefined> {
  const store = await Connection.open(path, options, mode)
  try {
    await store?.retry(() => checkIntegrity(store))
    return store && (await countPlants(store))
  } finally {
    store?.close()
  }
}

/** How many plants a backup has. @throws {PlantsError} `usage` for what is not a complete store */
export async function checkBackup(
  { name }: SqliteAddress,
  file: string,
  options: SqliteOptions,
): Promise<bigint> {
  assertApart(name, file, anotherSource)
  try {
    statSync(file)
    const changes = unmergedChanges(file)
    if (changes !== undefined)
      throw unusableStore(file, `is not a complete backup, because it has changes in ${changes}`)
    const plants = await countChecked(file, options, immutable)
    if (plants === undefined) throw unusableStore(file, 'contains no store')
    return plants
  } catch (error) {
    const failure = explained(error, file)
    if (!(failure instanceof PlantsError) || failure.kind !== 'inaccessible') throw failure
    throw usageError(`Not restored: ${failure.message}`, anotherSource, error)
  }
}

/** Returns the file with the previous contents, if there were any. @param file was checked */
export async function restoreStore(
  address: SqliteAddress,
  file: string,
  at: Date,
  options: SqliteOptions,
): Promise<string | undefined> {
  const signal = options.runtime.handleSignals()
  const { connection: store } = await Connection.create(address, options)
  const { db, path } = store
  let kept: string | undefined
  const replaceRows = async () => {
    const isUsed = tables.some((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get())
    if (isUsed) kept = await keepCopy(path, at, options)
    for (const table of tables) {
      db.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM copy.${table}`)
      await checkSignal(signal)
    }
  }
  try {
    db.prepare('ATTACH ? AS copy').run(uriOf(file, immutable))
    await new Writer(store).transaction(replaceRows)
    return kept
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.isOutcomeUnknown
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw explained(error, path)
  } finally {
    store.close()
  }
}

/** On another connection. Nobody can write meanwhile: this process holds the write lock. */
async function keepCopy(path: string, at: Date, options: SqliteOptions): Promise<string> {
  const name = `${path}.before-restore-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let kept = name
  for (let count = 2; existsSync(kept); count += 1) kept = `${name}-${count}`
  const reader = await Connection.open(path, options)
  if (!reader) throw unusableStore(path, 'was emptied')
  try {
    await copyStore(reader, kept, options)
    return kept
  } finally {
    reader.close()
  }
}
