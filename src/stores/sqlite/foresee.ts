import type { NewPlant } from '../../plant.js'
import { SqliteStore } from '../sqlite.js'
import type { CreateOptions, FileAddress, Foresight, OpenOptions } from '../store.js'
import { unwritableStore } from './failure.js'
import { realPathOf } from './file.js'
import { inspect } from './inspect.js'

/**
 * Finds out what a create would do, and writes nothing.
 *
 * @throws {PlantsError} what it would throw, as far as that can be told
 */
export async function foresee(address: FileAddress, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<Foresight> {
  const { exists, isWritable } = await inspect(address, options)
  if (!isWritable) throw unwritableStore(realPathOf(address.path))
  const store = exists ? await SqliteStore.openExisting(address, options) : undefined
  try {
    return { exists: store !== undefined, creates: store === undefined || (await store.wouldCreate(plant, create)) }
  } finally {
    await store?.close()
  }
}
