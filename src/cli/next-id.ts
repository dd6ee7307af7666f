import { largestId, type Plant, plantFrom, type StoredPlant } from '../plant/plant.js'
import { must, PlantsError } from '../platform/errors.js'
import { changedBy } from '../stores/common/change.js'
import type { Store } from '../stores/common/store.js'
import type { StoreOpener } from '../stores/registry.js'

/** @param flag for the hint of the error */
export function idAfter(greatest: bigint | undefined, flag = '--id'): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `No id is left: a plant has the largest one, ${largestId}`, {
    hint: `Choose one with ${flag} NUMBER`,
  })
}

/** Undefined in an empty store. */
export async function greatestId(store: Pick<Store, 'read'>): Promise<bigint | undefined> {
  for await (const [plant] of store.read({ desc: true, limit: 1, inPages: true })) return plant?.id
  return undefined
}

/** The greatest id plus 1, or 1 if there is no store. */
export async function nextIdIn(opener: StoreOpener, flag?: string): Promise<bigint> {
  const store = await opener.openExisting()
  try {
    return idAfter(store && (await greatestId(store)), flag)
  } finally {
    await store?.close()
  }
}

/** Each failed try means that another process has created a plant. */
const maxTries = 1000

/** Creates the plant with the greatest id plus 1, or the next one if another process creates that id first. */
export async function createNext(
  store: Pick<Store, 'read' | 'write'>,
  plant: Plant,
): Promise<StoredPlant> {
  for (let tries = 0, tried: bigint | undefined; ; tries += 1) {
    const next = plantFrom(idAfter(await greatestId(store)), plant.name, plant.tag)
    const isLast = next.id === tried || tries === maxTries
    const [outcome] = await store.write([{ type: 'create', plant: next }])
    const isTaken = outcome?.type === 'rejected' && outcome.error.kind === 'conflict'
    if (!isTaken || isLast) return changedBy(must(outcome)).plant
    tried = next.id
  }
}
