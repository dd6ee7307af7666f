import { must, PlantsError } from '../errors.js'
import { largestId, plantFrom, type StoredPlant } from '../plant/plant.js'
import { changedBy } from './change.js'
import type { Store } from './store.js'

export interface InputPlant {
  /** With `next`, the store chooses it. */
  id: bigint | 'next'
  name: string
  tag?: string | undefined
}

type Readable = Pick<Store, 'read'>

/** Above the ids of the store, if any, and the known id. */
export async function nextId(store: Readable | undefined, known?: bigint): Promise<bigint> {
  let greatest = known
  for await (const [plant] of store?.read({ desc: true, limit: 1, inPages: true }) ?? [])
    if (plant && (known === undefined || plant.id > known)) greatest = plant.id
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `No id is left: a plant has the largest one, ${largestId}`, {
    hint: 'Choose a number that no plant has',
  })
}

/**
 * Others may take each next id before: an error after 100 tries. A store that rejects an id twice
 * has another reason.
 */
export async function createNext(
  store: Readable & Pick<Store, 'write'>,
  { name, tag }: Omit<InputPlant, 'id'>,
): Promise<StoredPlant> {
  let tried: bigint | undefined
  for (let tries = 0; tries < 100; tries += 1) {
    const id = await nextId(store)
    const [outcome] = await store.write([{ type: 'create', plant: plantFrom(id, name, tag) }])
    const exists = outcome?.type === 'rejected' && outcome.error.kind === 'conflict'
    if (!exists || id === tried) return changedBy(must(outcome)).plant
    tried = id
  }
  throw new PlantsError('conflict', 'Others create plants faster', { hint: 'Try again' })
}
