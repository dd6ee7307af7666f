import { type NewPlant, newPlant, type Plant } from '../../plant/plant.js'
import { must } from '../../platform/values.js'
import { changedBy } from './change.js'
import { idAfter } from './conflict.js'
import type { Store } from './store.js'

/** Undefined in an empty store. */
export async function greatestId(store: Pick<Store, 'read'>): Promise<bigint | undefined> {
  for await (const [plant] of store.read({ desc: true, limit: 1, inPages: true })) return plant?.id
  return undefined
}

/** With the greatest id plus 1, or the next one if another process creates that id first. */
export async function createNext(store: Pick<Store, 'read' | 'write'>, plant: Plant): Promise<NewPlant> {
  for (let tries = 0, tried: bigint | undefined; ; tries += 1) {
    const next = newPlant(idAfter(await greatestId(store)), plant.name, plant.tag)
    const isLast = next.id === tried || tries === maxTries
    const [outcome] = await store.write([{ type: 'create', plant: next }])
    const isTaken = outcome?.type === 'rejected' && outcome.error.type === 'conflict'
    if (!isTaken || isLast) return changedBy(must(outcome)).plant
    tried = next.id
  }
}

/** Each failed try means that another process has created a plant. */
const maxTries = 1000
