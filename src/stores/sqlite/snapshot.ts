import type { Database } from '../../platform/sqlite.js'
import { retryWhileBusy } from '../../platform/sqlite.js'
import type { OpenOptions } from '../store.js'
import { damagedStore, notOurs } from './failure.js'
import { checkStamp, fileHasContent, isFrozen, openToRead, secure, stampOf } from './file.js'
import { lockedError } from './lock.js'
import { identify } from './schema.js'

/** A store as it is at one moment, whatever others write to it meanwhile. */
export interface Snapshot {
  path: string
  /** in a transaction that reads */
  db: Database
  /** Throws `unavailable` when what was read is of no use, because others could not be kept from writing. */
  check(): void
}

/** Runs an action on a snapshot of a store; undefined when there is no store in the file. Throws what SQLite throws. */
export async function withSnapshot<T>(path: string, options: OpenOptions, action: (snapshot: Snapshot) => Promise<T>) {
  if (!fileHasContent(path)) return undefined
  const stamp = isFrozen(path) ? stampOf(path) : undefined
  const db = openToRead(path, stamp !== undefined)
  const begin = () => {
    secure(db)
    db.exec('PRAGMA query_only=1')
    if (!db.isTransaction) db.exec('BEGIN')
    return identify(db, path)
  }
  try {
    const isStore = await retryWhileBusy(begin, options, () => lockedError(path, options.timeout))
    return isStore ? await action({ path, db, check: () => checkStamp(path, stamp) }) : undefined
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK')
    db.close()
  }
}

/**
 * Looks through a whole store for damage, and counts its plants. It can be called again when SQLite was busy.
 *
 * @param path what the store is called in an error
 * @throws {PlantsError} when it is no store, or damaged
 */
export function examine(db: Database, path: string): bigint {
  if (!identify(db, path)) throw notOurs(path, 'holds no store')
  const found = db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check']
  if (found !== 'ok') throw damagedStore(path, String(found))
  return countPlants(db)
}

export function countPlants(db: Database): bigint {
  const { count } = db.prepare('SELECT count(*) AS count FROM main.plants').get() as { count: bigint } // a count gives one row
  return count
}
