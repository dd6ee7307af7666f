import { existsSync } from 'node:fs'
import type { NewPlant } from '../../plant/plant.js'
import type { Database } from '../../platform/sqlite.js'
import { retryWhileBusy } from '../../platform/sqlite.js'
import { refuseUnlessRepeated } from '../conflict.js'
import type { CreateOptions, FileAddress, Foresight, OpenOptions } from '../store.js'
import { explainFailure, unwritableStore } from './failure.js'
import { checkStamp, openToPeek, realPathOf, reportOwner, stampOf } from './file.js'
import { inspect } from './inspect.js'
import { lockedError } from './lock.js'
import { toPlant } from './row.js'

/**
 * Finds out what a create would do, and leaves no trace.
 *
 * @throws {PlantsError} what it would throw, as far as that can be told
 */
export async function foresee(address: FileAddress, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<Foresight> {
  const path = realPathOf(address.path)
  const { exists, isWritable } = await inspect(address, options)
  await reportOwner(address, options)
  if (!isWritable) throw unwritableStore(path)
  return { exists, creates: !exists || (await peek(path, (db) => wouldCreate(db, plant, create), options)) }
}

async function peek<Answer>(path: string, look: (db: Database) => Answer, options: OpenOptions): Promise<Answer> {
  try {
    const stamp = existsSync(`${path}-wal`) ? undefined : stampOf(path)
    const db = openToPeek(path)
    try {
      const answer = await retryWhileBusy(
        () => look(db),
        options,
        () => lockedError(path, options.timeout),
      )
      checkStamp(path, stamp)
      return answer
    } finally {
      db.close()
    }
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** False when the key has made the plant already. Throws `conflict` as `create` does. */
function wouldCreate(db: Database, plant: NewPlant, { idempotencyKey }: CreateOptions): boolean {
  const find = (column: 'id' | 'idempotency_key', value: bigint | string) =>
    db.prepare(`SELECT id, name, tag FROM plants WHERE ${column} = ?`).get(value)
  const first = idempotencyKey === undefined ? undefined : find('idempotency_key', idempotencyKey)
  if (!first && !find('id', plant.id)) return true
  refuseUnlessRepeated(plant, first && toPlant(first))
  return false
}
