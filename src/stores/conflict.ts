import { equalPlants, type NewPlant } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'

/** How the creation of a row went. */
export const Outcome = {
  pending: 0,
  created: 1,
  /** a plant with its id is there, and that counts as done */
  skipped: 2,
  /** another plant has its id */
  taken: 3,
  /** for the reason in the batch's `refusals` */
  refused: 4,
  /** it was sent, and whether it was stored cannot be found out; what happened is in the batch's `refusals` */
  unknown: 5,
} as const

/** What the create of a row counts as when its id exists: rejected, done, or done only when the plants are equal. */
export const existsPolicies = ['error', 'skip', 'same'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

/** The outcome for a row whose id exists. `isEqual` is called only where the policy depends on it. */
export function resolveConflict(policy: ExistsPolicy, isEqual: () => boolean): typeof Outcome.skipped | typeof Outcome.taken {
  return policy === 'skip' || (policy === 'same' && isEqual()) ? Outcome.skipped : Outcome.taken
}

/** Throws `conflict` for a plant whose id exists, unless its idempotency key has `created` this very plant. */
export function refuseUnlessRepeated(plant: NewPlant, created: NewPlant | undefined): void {
  if (created === undefined) throw idExists(plant.id)
  if (!equalPlants(created, plant)) throw keyConflict(created.id)
}

/** The error for an id that exists. */
export function idExists(id: bigint): PlantsError {
  return new PlantsError('conflict', idExistsText(id))
}

export function idExistsText(id: bigint): string {
  return `A plant with id ${id} already exists`
}

/** The error for a key that has created a different plant, with this id. */
export function keyConflict(id: bigint): PlantsError {
  const hint = `It made the plant ${id}. Repeat a key only with the very same plant, and use a new one for any other`
  return new PlantsError('conflict', 'This idempotency key was used for a different plant', { hint })
}
