import { assertDefined, PlantsError } from '../errors.js'
import { largestId } from '../plant/fields.js'
import { buildPlant, type Plant, type StoredPlant } from '../plant/plant.js'
import { unwrapOutcome } from './change.js'
import type { Store } from './store.js'

/** A plant whose id may be `next`: then the program chooses the id. */
export type InputPlant = Plant & { id: bigint | 'next' }

type ReadableStore = Pick<Store, 'read'>

/**
 * Returns an id that is 1 above the greatest id of the store and `knownId`, or 1 if there is none.
 *
 * @param store undefined for a store that does not exist yet
 */
export async function findNextId(
  store: ReadableStore | undefined,
  knownId?: bigint,
): Promise<bigint> {
  let greatestId = knownId
  for await (const [plant] of store?.read({ desc: true, limit: 1, inPages: true }) ?? [])
    if (plant && (knownId === undefined || plant.id > knownId)) greatestId = plant.id
  if (greatestId === undefined) return 1n
  if (greatestId < largestId) return greatestId + 1n
  throw new PlantsError(
    'conflict',
    `No greater id is left: a plant has the greatest one, ${largestId}`,
    { hint: 'Choose an id that no plant has, with --id' },
  )
}

/**
 * Creates a plant with the next id. If another client takes that id first, this tries the next id,
 * up to a hundred times. Each try starts above the id that was taken, because a replica that lags
 * may not know the plant with that id yet.
 *
 * @throws {PlantsError} `unknownOutcome` if a try had no answer, and a plant has its id now
 */
export async function createNext(
  store: ReadableStore & Pick<Store, 'write'>,
  { name, tag }: Omit<InputPlant, 'id'>,
): Promise<StoredPlant> {
  let takenId: bigint | undefined
  for (let tries = 0; tries < 100; tries += 1) {
    const id = await findNextId(store, takenId)
    const [outcome] = await store.write([{ type: 'create', plant: buildPlant(id, name, tag) }])
    if (outcome?.type !== 'rejected' || outcome.problem.kind !== 'conflict')
      return unwrapOutcome(assertDefined(outcome)).plant
    if (outcome.problem.mayBeOwnPlant) throw createUnknownOutcomeError(id, outcome.problem.hint)
    takenId = id
  }
  throw new PlantsError('conflict', 'Other clients took every next id first', { hint: 'Try again' })
}

function createUnknownOutcomeError(id: bigint, hint: string | undefined): PlantsError {
  const message = `Whether plant ${id} is the new one is unknown: its first try got no response`
  return new PlantsError('unknownOutcome', message, { hint })
}
