import { isUtf8 } from 'node:buffer'
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { grouped, largestId, plantCount, smallestId } from '../../plant/plant.js'
import { assertCreatable } from '../../platform/files.js'
import { checkSignal } from '../../platform/runtime.js'
import type { Database, Statement } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import type { CheckReport } from '../common/store.js'
import { countPlants, type IdRange, rangeThatFits } from './read.js'
import {
  type Connection,
  openToRead,
  type SqliteOptions,
  warnIfExposed,
} from './sqlite-connection.js'
import { explained, explainFailure, isWritable, StoreDamageError } from './sqlite-errors.js'
import { realPathOf } from './store-file.js'

/** Whether there is a store. Warns if other users can change it. */
export function inspect(address: SqliteAddress, options: SqliteOptions): Promise<boolean> {
  return usingStore(address, options, 'immutable', async (store) => {
    if (store) await warnIfExposed(store.path, options)
    return store !== undefined
  })
}

/** Throws `unavailable` if this user cannot write to the store, or cannot create it. */
export function assertWritable({ name }: SqliteAddress): void {
  const path = realPathOf(name)
  try {
    if (!existsSync(path)) assertCreatable(path)
    else if (!isWritable(path)) throw Object.assign(new Error('not writable'), { code: 'EACCES' })
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** Reads each range of ids in a transaction of its own: no writer waits, and the log can be checkpointed. */
export function check(
  address: SqliteAddress,
  options: SqliteOptions,
  { timeout, onProgress }: { timeout: number; onProgress(read: number, total: number): void },
): Promise<CheckReport | undefined> {
  const { runtime } = options
  const start = runtime.now()
  const isOver = (part = 1) => runtime.now() - start >= timeout * part
  const hint = 'Allow more time'
  return usingStore(address, options, undefined, async (store) => {
    if (!store) return undefined
    const total = Number(await store.run(() => countPlants(store)))
    let read = 0
    for (let first = smallestId; first <= largestId; ) {
      await checkSignal(runtime.handleSignals())
      const left = total - read
      if (isOver() && left > 0)
        return { message: `${grouped(left)} of ${plantCount(total)} not read`, hint }
      const range = await store.run(() => readRange(store, first))
      if (!range) break
      read += range.plants
      first = range.last + 1n
      onProgress(read, Math.max(read, total))
    }
    // One call that nothing can interrupt. It needs less time than the plants, of which it reads the same pages.
    if (isOver(0.5))
      return {
        message: `${plantCount(read)} read, but there was no time for the structure of the file`,
        hint,
      }
    await store.run(() => checkIntegrity(store.db))
    return { message: `${plantCount(read)} read, and no damage found` }
  })
}

/** @param mode if there is no log, which SQLite would create, and remove at the end */
function usingStore<T>(
  address: SqliteAddress,
  options: SqliteOptions,
  mode: 'immutable' | undefined,
  action: (store: Connection | undefined) => Promise<T>,
): Promise<T> {
  const path = realPathOf(address.name)
  return explained(path, async () => {
    if (!address.isDefault) statSync(dirname(path)) // only the default folder is created if missing
    const store = await openToRead(path, options, existsSync(`${path}-wal`) ? 'ro' : mode)
    return store ? store.use(action) : action(undefined)
  })
}

/** Throws `StoreDamageError` for the first text that is none. */
export async function checkTexts(
  connection: Connection,
  runtime: SqliteOptions['runtime'],
): Promise<void> {
  const signal = runtime.handleSignals()
  for (let first = smallestId; first <= largestId; ) {
    await checkSignal(signal)
    const range = await connection.retry(() => readRange(connection, first))
    if (!range) return
    first = range.last + 1n
  }
}

/** The range of the next plants. Throws `StoreDamageError` for the first text that is none. */
function readRange(
  connection: Connection,
  first: bigint,
): (IdRange & { plants: number }) | undefined {
  const range = rangeThatFits(connection, { first, last: largestId }, 4000)
  if (!range) return undefined
  const rows = connection
    .prepare(`${selectTexts('main')} WHERE id BETWEEN ? AND ?`)
    .all(range.first, range.last)
  for (const row of rows) assertTexts(row)
  return { ...range, plants: rows.length }
}

/** Reads texts as bytes, because drivers change usageError ones. */
function selectTexts(database: 'main' | 'copy'): string {
  return `SELECT id, CAST(name AS BLOB) AS name, CAST(tag AS BLOB) AS tag FROM ${database}.plants`
}

type Row = NonNullable<ReturnType<Statement['get']>>

function assertTexts(row: Row): void {
  for (const name of ['name', 'tag'] as const) {
    const bytes = row[name]
    if (!(bytes instanceof Uint8Array) || (isUtf8(bytes) && !bytes.includes(0))) continue
    throw new StoreDamageError(`the ${name} of plant ${row['id']} is not UTF-8, or contains U+0000`)
  }
}

/** As `checkTexts`, of a copy that nobody else has open: in one call, as the check of its structure. */
export function checkCopiedTexts(db: Database): void {
  const sql = `${selectTexts('copy')} WHERE ${isBeyondAscii('name')} OR ${isBeyondAscii('tag')}`
  for (const row of db.prepare(sql).iterate()) assertTexts(row)
}

/** Whether a text has other characters than those from U+0001 to U+007F. `length` ends at U+0000. */
function isBeyondAscii(column: 'name' | 'tag'): string {
  return `octet_length(${column}) <> length(${column}) OR ${column} GLOB '*[^' || char(1) || '-' || char(127) || ']*'`
}

/** Checks pages, types and indexes. Throws `StoreDamageError`. */
export function checkIntegrity(db: Database, database: 'main' | 'copy' = 'main'): void {
  const found = String(
    db.prepare(`PRAGMA ${database}.integrity_check(1)`).get()?.['integrity_check'],
  )
  if (found !== 'ok') throw new StoreDamageError(found.split('\n').at(-1)) // after a line with the name of the database
}
