import { assertDefined, PlantsError } from '../errors.js'
import { largestId } from '../plant/fields.js'
import { buildPlant, type Plant, type StoredPlant } from '../plant/plant.js'
import { unwrapOutcome } from './change.js'
import type { Store } from './store.js'

/** With `next`, the store chooses the id. */
export type InputPlant = Plant & { id: bigint | 'next' }

type Readable = Pick<Store, 'read'>

/** Above the ids of the store, if any, and the known id. */
export async function findNextId(store: Readable | undefined, known?: bigint): Promise<bigint> {
  let greatest = known
  for await (const [plant] of store?.read({ desc: true, limit: 1, inPages: true }) ?? [])
    if (plant && (known === undefined || plant.id > known)) greatest = plant.id
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError(
    'conflict',
    `No greater id is left: a plant has the greatest one, ${largestId}`,
    {
      hint: 'Choose an id that no plant has',
    },
  )
}

/**
 * Creates a plant with the next id. If another plant takes that id first, it tries the one after
 * it, up to a hundred times. A read that lags may offer an id again that is taken.
 *
 * @throws {PlantsError} `unknownOutcome` if a try had no answer, and a plant has its id now
 */
export async function createNext(
  store: Readable & Pick<Store, 'write'>,
  { name, tag }: Omit<InputPlant, 'id'>,
): Promise<StoredPlant> {
  let taken: bigint | undefined
  for (let tries = 0; tries < 100; tries += 1) {
    const id = await findNextId(store, taken)
    const [outcome] = await store.write([{ type: 'create', plant: buildPlant(id, name, tag) }])
    if (outcome?.type !== 'rejected' || outcome.error.kind !== 'conflict')
      return unwrapOutcome(assertDefined(outcome)).plant
    if (outcome.error.mayBeOwnPlant) throw createUnknownOutcomeError(id, outcome.error.hint)
    taken = id
  }
  throw new PlantsError('conflict', 'Other clients took every next id first', { hint: 'Try again' })
}

function createUnknownOutcomeError(id: bigint, hint: string | undefined): PlantsError {
  const message = `Whether plant ${id} is the new one is unknown: its first try got no response`
  return new PlantsError('unknownOutcome', message, { hint })
}
