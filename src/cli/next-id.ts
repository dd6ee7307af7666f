import { largestId, type Plant, plantFrom, type StoredPlant } from '../plant/plant.js'
import { must, PlantsError } from '../platform/errors.js'
import { changedBy } from '../stores/common/change.js'
import type { Store } from '../stores/common/store.js'

export function idAfter(greatest: bigint | undefined): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `No id is left: a plant has the largest one, ${largestId}`, {
    hint: 'Choose a number that no plant has',
  })
}

export async function greatestId(store: Pick<Store, 'read'>): Promise<bigint | undefined> {
  for await (const [plant] of store.read({ desc: true, limit: 1, inPages: true })) return plant?.id
  return undefined
}

/**
 * Creates the plant with the greatest id plus 1. If another process creates that id first, the next
 * one is tried; a store that rejects the same id twice has another reason.
 */
export async function createNext(
  store: Pick<Store, 'read' | 'write'>,
  { name, tag }: Plant,
): Promise<StoredPlant> {
  for (let tried: bigint | undefined; ; ) {
    const id = idAfter(await greatestId(store))
    const [outcome] = await store.write([{ type: 'create', plant: plantFrom(id, name, tag) }])
    const exists = outcome?.type === 'rejected' && outcome.error.kind === 'conflict'
    if (!exists || id === tried) return changedBy(must(outcome)).plant
    tried = id
  }
}
