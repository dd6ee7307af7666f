import { equalPlants, largestId, type NewPlant, type Plant, plantFrom } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'

/** How the creation of a row went. */
export const Outcome = {
  pending: 0,
  created: 1,
  /** a plant with its id is there, and that counts as done */
  skipped: 2,
  /** another plant had its id, and was replaced */
  updated: 3,
  /** another plant has its id */
  taken: 4,
  /** for the reason in the batch's `rejections` */
  refused: 5,
  /** it was sent, and whether it was stored cannot be found out; what happened is in the batch's `rejections` */
  unknown: 6,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/** What the create of a row counts as when its id exists: rejected, done, or done when the plants are equal, and else rejected or an update. */
export const existsPolicies = ['error', 'skip', 'same', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

/** The outcome for a row whose id exists. `isEqual` is called only where the policy compares plants. */
export function resolveConflict(policy: ExistsPolicy, isEqual: () => boolean): Outcome {
  if (policy === 'skip' || (comparesPlants(policy) && isEqual())) return Outcome.skipped
  return policy === 'update' ? Outcome.updated : Outcome.taken
}

/** Whether it depends on the plant that exists. */
export function comparesPlants(policy: ExistsPolicy): boolean {
  return policy === 'same' || policy === 'update'
}

/** Whether a plant is to replace the one that exists. Throws when neither is to be. */
export type OnConflict = (plant: NewPlant, existing: NewPlant) => boolean

/** Throws `conflict` for a plant whose id exists, unless its idempotency key has `created` this very plant. */
export function refuseUnlessRepeated(plant: NewPlant, created: NewPlant | undefined): void {
  if (created === undefined) throw idExists(plant.id)
  if (!equalPlants(created, plant)) throw keyConflict(created.id)
}

export function idExists(id: bigint): PlantsError {
  return new PlantsError('conflict', idExistsText(id))
}

export function idExistsText(id: bigint): string {
  return `A plant with id ${id} already exists`
}

/** The id for a new plant where this one is the greatest. Throws `conflict` when none is left. */
export function idAfter(greatest: bigint | undefined): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `There is no id after ${largestId}, which a plant has`, { hint: 'Choose one with --id NUMBER' })
}

/**
 * Creates a plant under the greatest id plus 1, or 1 in an empty store, and gives it back as the store answered it. When somebody else was
 * faster, it takes the next id. Each try that fails has seen a greater one.
 *
 * @throws {PlantsError} as `create` does, and `conflict` when no id is left
 */
export async function createNext(store: NextStore, plant: Plant): Promise<NewPlant> {
  for (let tries = 0, tried: bigint | undefined; ; tries += 1) {
    const next = plantFrom(idAfter(await store.greatestId()), ({ name }) => plant[name])
    try {
      const answer = await store.create(next)
      return plantFrom(next.id, ({ name }) => answer[name])
    } catch (error) {
      if (!(error instanceof PlantsError && error.kind === 'conflict') || next.id === tried || tries === maxTries) throw error
      tried = next.id
    }
  }
}

type NextStore = { greatestId(): Promise<bigint | undefined>; create(plant: NewPlant): Promise<Plant> }

/** Each try that fails means that somebody else has created a plant. */
const maxTries = 1000

/** The error for a key that has created a different plant, with this id. */
export function keyConflict(id: bigint): PlantsError {
  const hint = `It made the plant ${id}. Repeat a key only with the very same plant, and use a new one for any other`
  return new PlantsError('conflict', 'This idempotency key was used for a different plant', { hint })
}
