/**
 * A backup is a snapshot in one file, which is checked before it gets its name. A restore replaces rows, not the file: who
 * has the store open goes on with those of the backup.
 */
import { existsSync, rmSync, type Stats, statSync, truncateSync } from 'node:fs'
import { plantCount } from '../../plant/plant.js'
import { AtomicFile, assertOwnFile } from '../../platform/atomic-file.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import { uriOf } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import {
  Connection,
  immutable,
  isPartOf,
  readBytes,
  type SqliteOptions,
  unmergedChanges,
} from './connection.js'
import { explained, StoreDamageError } from './errors.js'
import { countPlants } from './read.js'
import { applicationId, tables } from './schema.js'
import { Writer } from './writer.js'

interface BackupOptions extends SqliteOptions {
  /** Called before a backup with more than twice the plants is replaced. Throws if it must stay. */
  onLarger?(message: string): Promise<void>
}

const anotherTarget = 'Choose another file for the backup'
const isStoreItself = 'is the store itself, or belongs to it'

/** The file is a store itself, and there as a whole or not at all. Undefined if there is no store. */
export async function backUp(
  { name }: SqliteAddress,
  file: string,
  { onLarger, ...options }: BackupOptions,
) {
  const target = targetOf(file)
  if (isPartOf(name, target)) throw usageError(`${target} ${isStoreItself}`, anotherTarget)
  const old = statSync(target, { throwIfNoEntry: false })
  if (old) assertOwnFile(target, old, anotherTarget)
  const store = await Connection.open(name, options)
  if (!store) return undefined
  try {
    const former = countReplaced(store, target, old)
    const present = await countPlants(store)
    const counts = `has ${plantCount(former)}, and ${store.path} has ${plantCount(present)}`
    if (former > 2n * present) await onLarger?.(`The backup ${target} ${counts}`)
    return await copyStore(store, target, options.runtime.handleSignals(), old)
  } catch (error) {
    throw explained(error, target)
  } finally {
    store.close()
  }
}

/** How many plants the older backup has. Throws for any other file that is not empty. */
function countReplaced(store: Connection, target: string, old?: Stats): bigint {
  if (!old || (old.isFile() && old.size === 0)) return 0n
  let cause: unknown
  try {
    if (old.isFile() && isBackup(target)) return countCopied(store, target)
  } catch (error) {
    cause = error
  }
  const why = 'cannot be replaced: it is not a backup, or is damaged or in use'
  throw usageError(`${target} ${why}`, anotherTarget, cause)
}

/** By the header: see `applicationId`. A store in use has a log, which no backup has. */
function isBackup(path: string): boolean {
  const header = readBytes(path, 0, 100)
  const hasLog = header[18] === 2 || unmergedChanges(path) !== undefined
  return !hasLog && BigInt(header.readUInt32BE(68)) === applicationId
}

/** DETACH closes the file at once, as `Connection.close` may not, and Windows replaces no open file. */
function countCopied(store: Connection, path: string): bigint {
  store.db.prepare('ATTACH ? AS copy').run(uriOf(path, immutable))
  try {
    return countChecked(store, 'copy')
  } finally {
    store.db.exec('DETACH copy')
  }
}

function countChecked({ db }: Connection, database: 'main' | 'copy'): bigint {
  const found = String(db.prepare(`PRAGMA ${database}.integrity_check(1)`).get().integrity_check)
  if (found !== 'ok') throw new StoreDamageError(found.split('\n').at(-1)) // after the database's name
  return db.prepare(`SELECT count(*) AS count FROM ${database}.plants`).get().count
}

async function copyStore(store: Connection, target: string, signal: AbortSignal, old?: Stats) {
  const copy = new AtomicFile(target)
  try {
    await store.retry(() => {
      truncateSync(copy.path)
      store.db.prepare('VACUUM INTO ?').run(copy.path)
    })
    await checkSignal(signal)
    const plants = await store.retry(() => countCopied(store, copy.path))
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

export async function examine(path: string, options: SqliteOptions) {
  const store = await Connection.open(path, options)
  try {
    return await store?.retry(() => countChecked(store, 'main'))
  } finally {
    store?.close()
  }
}

/** How many plants a backup has. */
export async function checkBackup({ name }: SqliteAddress, file: string, options: SqliteOptions) {
  const hint = 'Choose a file that plants backup has created'
  const failure = (why: string) => usageError(`Not restored: ${file} ${why}`, hint)
  if (isPartOf(name, file)) throw failure(isStoreItself)
  const changes = unmergedChanges(file)
  if (changes !== undefined)
    throw failure(`is not a complete backup, because it has changes in ${changes}`)
  const plants = await examine(file, options)
  if (plants === undefined) throw failure('contains no store')
  return plants
}

/** Returns the file with the previous contents, if there were any. @param file was checked */
export async function restoreStore(
  address: SqliteAddress,
  file: string,
  at: Date,
  options: SqliteOptions,
) {
  const signal = options.runtime.handleSignals()
  const { connection: store } = await Connection.create(address, options)
  const { db, path } = store
  let kept: string | undefined
  try {
    await store.retry(() => db.prepare('ATTACH ? AS copy').run(uriOf(file, immutable)))
    await new Writer(store).transaction(async () => {
      if (tables.some((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get())) {
        kept = `${path}.before-restore-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`
        while (existsSync(kept)) kept += '-2'
        await backUp(address, kept, options)
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
    throw error
  } finally {
    store.close()
  }
}
