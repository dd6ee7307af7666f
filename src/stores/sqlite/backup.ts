/**
 * A backup is a snapshot in one file (VACUUM INTO), which is checked before it gets its name. A restore replaces rows,
 * not the file, in one transaction: who has the store open goes on with those of the backup. What was there is copied
 * to a file beside the store first.
 */
import { existsSync, rmSync, type Stats, statSync, truncateSync } from 'node:fs'
import { plantCount } from '../../plant/plant.js'
import { AtomicFile, assertOwnFile } from '../../platform/atomic-file.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import { primaryCode, uriOf } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import {
  Connection,
  immutable,
  isPartOf,
  readBytes,
  type SqliteOptions,
  unmergedChanges,
} from './connection.js'
import { explained, StoreDamageError, unusableStore } from './errors.js'
import { countPlants } from './read.js'
import { applicationId, tables } from './schema.js'
import { Writer } from './writer.js'

interface BackupOptions extends SqliteOptions {
  /** Called before a backup with more than twice the plants is replaced. Throws if it must stay. */
  onLarger?(message: string): Promise<void>
}

const anotherTarget = 'Choose another file for the backup'
const anotherSource = 'Choose a file that plants backup has created'

/** Writes a file that is a store itself, as a whole or not at all. Undefined if there is no store. */
export async function backUp(
  { name }: Pick<SqliteAddress, 'name'>,
  file: string,
  { onLarger, ...options }: BackupOptions,
) {
  assertApart(name, file, anotherTarget)
  const target = targetOf(file)
  const old = statSync(target, { throwIfNoEntry: false })
  if (old) assertOwnFile(target, old, anotherTarget)
  const store = await Connection.open(name, options)
  if (!store) return undefined
  try {
    const [former, present] = [countReplaced(store, target, old), await countPlants(store)]
    if (former > 2n * present)
      await onLarger?.(
        `The backup ${target} has ${plantCount(former)}, and ${store.path} has ${plantCount(present)}`,
      )
    return await copyStore(store, target, options, old)
  } catch (error) {
    throw explained(error, target)
  } finally {
    store.close()
  }
}

function assertApart(store: string, file: string, hint: string): void {
  if (isPartOf(store, file)) throw usageError(`${file} is the store itself, or belongs to it`, hint)
}

/** How many plants the older backup has. Throws `usage` for any other file that is not empty. */
function countReplaced(store: Connection, target: string, old: Stats | undefined): bigint {
  if (!old || (old.isFile() && old.size === 0)) return 0n
  let cause: unknown
  try {
    if (old.isFile() && isBackup(target)) return countCopied(store, target)
  } catch (error) {
    cause = error
  }
  const message = `${target} cannot be replaced: it is not a backup, or is damaged or in use`
  throw usageError(message, anotherTarget, cause)
}

/** By the header (https://sqlite.org/fileformat2.html, 1.3). A store in use has a log, which no backup has. */
function isBackup(path: string): boolean {
  const header = readBytes(path, 0, 100)
  const isInWalMode = header[18] === 2
  const isOurs = BigInt(header.readUInt32BE(68)) === applicationId
  return isOurs && !isInWalMode && unmergedChanges(path) === undefined
}

/** DETACH closes the file at once, as `Connection.close` may not, and Windows replaces no open file. */
function countCopied(store: Connection, path: string, check = () => {}): bigint {
  const { db } = store
  db.prepare('ATTACH ? AS copy').run(uriOf(path, immutable))
  try {
    check()
    return db.prepare('SELECT count(*) AS count FROM copy.plants').get().count
  } finally {
    db.exec('DETACH copy')
  }
}

/** By way of a temporary file, which is checked. Replaces nothing but `old`. */
async function copyStore(
  store: Connection,
  target: string,
  { runtime }: SqliteOptions,
  old: Stats | undefined,
) {
  const signal = runtime.handleSignals() // which end the process otherwise, and leave the file
  const copy = new AtomicFile(target)
  try {
    await store.retry(() => vacuumInto(store, copy.path))
    await checkSignal(signal)
    const check = () => checkIntegrity(store, 'copy')
    const plants = await store.retry(() => countCopied(store, copy.path, check))
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

/** Checks pages, types and indexes. */
function checkIntegrity({ db }: Connection, database: 'main' | 'copy'): void {
  const found = String(db.prepare(`PRAGMA ${database}.integrity_check(1)`).get().integrity_check)
  if (found !== 'ok') throw new StoreDamageError(found.split('\n').at(-1)) // after the database's name
}

/** Reads all of a store. Returns the number of its plants; undefined if there is none. */
export async function countChecked(path: string, options: SqliteOptions) {
  const store = await Connection.open(path, options)
  try {
    await store?.retry(() => checkIntegrity(store, 'main'))
    return store && (await countPlants(store))
  } finally {
    store?.close()
  }
}

/** How many plants a backup has. Throws `usage` for what is not a complete store. */
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
    const plants = await countChecked(file, options)
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
  try {
    db.prepare('ATTACH ? AS copy').run(uriOf(file, immutable))
    await new Writer(store).transaction(async () => {
      if (tables.some((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get())) {
        kept = freeName(`${path}.before-restore-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`)
        await backUp({ name: path }, kept, options) // this transaction keeps out other writers
      }
      for (const table of tables) {
        db.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} SELECT * FROM copy.${table}`)
        await checkSignal(signal)
      }
    })
    return kept
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.isOutcomeUnknown
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw explained(error, path)
  } finally {
    store.close()
  }
}

function freeName(name: string): string {
  let free = name
  for (let count = 2; existsSync(free); count += 1) free = `${name}-${count}`
  return free
}
