/**
 * A backup is a snapshot in one file, which is checked before it gets its name. A restore replaces
 * rows, not the file: an open store goes on with those of the backup.
 */
import { existsSync, rmSync, type Stats, statSync, truncateSync } from 'node:fs'
import { PlantsError, systemCode, usageError } from '../../errors.js'
import { formatPlantCount } from '../../plant/plant.js'
import { AtomicFile, assertOwnFile } from '../../platform/atomic-file.js'
import { readBytes, resolveLink } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import { buildUri } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../address.js'
import {
  belongsToStore,
  Connection,
  findUnmergedFile,
  immutable,
  type SqliteOptions,
} from './connection.js'
import { explainSqliteError, StoreDamageError } from './errors.js'
import { countPlants } from './read.js'
import { applicationId, tables } from './schema.js'
import { Writer } from './writer.js'

interface BackupOptions extends SqliteOptions {
  /** Throws if a backup with more than twice the plants must stay. */
  onLarger?(message: string): Promise<void>
}

const anotherTarget = 'Choose another file for the backup'
const isStoreItself = 'is a file of the store'

/**
 * The file is a store itself, and there as a whole or not at all. Undefined if there is no store.
 */
export async function backUp(
  { name }: SqliteAddress,
  file: string,
  { onLarger, ...options }: BackupOptions,
) {
  const target = resolveLink(file)
  const backup = `The backup ${target}`
  if (belongsToStore(name, target)) throw usageError(`${target} ${isStoreItself}`, anotherTarget)
  const old = statSync(target, { throwIfNoEntry: false })
  if (old) assertOwnFile(target, old, anotherTarget)
  const signal = options.runtime.handleSignals()
  const store = await Connection.open(name, options)
  if (!store) return undefined
  let copy: AtomicFile | undefined
  try {
    const former = old ? countReplaceable(store, target, old) : 0n
    const present = await countPlants(store)
    const counts = `has ${formatPlantCount(former)}, and ${store.path} has ${formatPlantCount(present)}`
    if (former > 2n * present) await onLarger?.(`${backup} ${counts}`)
    copy = new AtomicFile(target)
    const { path } = copy
    await store.retry(
      () => {
        truncateSync(path)
        store.db.prepare('VACUUM INTO ?').run(path)
      },
      { path: target, subject: backup },
    )
    await checkSignal(signal)
    const plants = await store.retry(() => countAttached(store, path))
    await checkSignal(signal)
    const bytes = statSync(path).size
    // A file that was there may have been readable for others: the backup is not.
    if (old) copy.commit()
    else createNew(copy, backup)
    return { plants, bytes }
  } catch (error) {
    throw explainSqliteError(error, target, backup)
  } finally {
    store.close()
    copy?.discard()
  }
}

/** Two first backups to one file may run at once. */
function createNew(copy: AtomicFile, backup: string): void {
  try {
    copy.create()
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    const message = `${backup} was created by another process in the meantime`
    throw new PlantsError('unavailable', message, {
      hint: 'To replace it, run the command again',
      cause: error,
    })
  }
}

/** How many plants the older backup has. Throws for any other file. */
function countReplaceable(store: Connection, target: string, old: Stats): bigint {
  let cause: unknown
  try {
    if (old.isFile() && old.size === 0) return 0n
    if (old.isFile() && isBackup(target)) return countAttached(store, target)
  } catch (error) {
    cause = error
  }
  const why = 'cannot be overwritten: it is not a backup, or is damaged or in use'
  throw usageError(`${target} ${why}`, anotherTarget, cause)
}

/** By the header: see `applicationId`. What may be written to has a log, or had one. */
function isBackup(path: string): boolean {
  const header = readBytes(path, 0, 100)
  const hasLog = header[18] === 2 || findUnmergedFile(path) !== undefined
  return !hasLog && BigInt(header.readUInt32BE(68)) === applicationId
}

/**
 * DETACH closes the file at once, as `Connection.close` may not, and Windows replaces no open file.
 */
function countAttached(store: Connection, path: string): bigint {
  store.db.prepare('ATTACH ? AS copy').run(buildUri(path, immutable))
  try {
    return countIfSound(store, 'copy')
  } finally {
    store.db.exec('DETACH copy')
  }
}

function countIfSound({ db }: Connection, database: 'main' | 'copy'): bigint {
  const found = String(db.prepare(`PRAGMA ${database}.integrity_check(1)`).get().integrity_check)
  if (found !== 'ok') throw new StoreDamageError(found.split('\n').at(-1)) // after the database's name
  return db.prepare(`SELECT count(*) AS count FROM ${database}.plants`).get().count
}

export async function checkIntegrity(path: string, options: SqliteOptions) {
  const store = await Connection.open(path, options)
  try {
    return await store?.retry(() => countIfSound(store, 'main'))
  } finally {
    store?.close()
  }
}

export async function checkBackup({ name }: SqliteAddress, file: string, options: SqliteOptions) {
  const hint = 'Choose a file that plants backup has created'
  const failure = (why: string) => usageError(`${file} was not restored: it ${why}`, hint)
  if (belongsToStore(name, file)) throw failure(isStoreItself)
  const changes = findUnmergedFile(file)
  if (changes !== undefined)
    throw failure(`is not a complete backup, because it has changes in ${changes}`)
  const plants = await checkIntegrity(file, options)
  if (plants === undefined) throw failure('does not exist, or contains no store')
  return plants
}

/** Returns the file with the previous contents, if any. @param file was checked */
export async function restoreStore(
  address: SqliteAddress,
  file: string,
  at: Date,
  options: SqliteOptions,
) {
  const signal = options.runtime.handleSignals()
  const { connection: store, isNew } = await Connection.create(address, options)
  const { db, path } = store
  let kept: string | undefined
  try {
    await new Writer(store).transaction(async () => {
      db.prepare('ATTACH ? AS copy').run(buildUri(file, immutable))
      if (!isNew) {
        kept = `${path}.before-restore-${at.toISOString().replace(/[-:]|\.\d+/g, '')}`
        while (existsSync(kept)) kept += '-2'
        await backUp(address, kept, options)
      }
      for (const [table, columns] of Object.entries(tables)) {
        const rows = `(${columns}) SELECT ${columns} FROM copy.${table}`
        db.exec(`DELETE FROM main.${table}; INSERT INTO main.${table} ${rows}`)
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
