import { equalPlants, largestId, type NewPlant, type Plant, plantFrom } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'

/** The outcome of a row. */
export const Outcome = {
  pending: 0,
  created: 1,
  /** its id exists, which counts as done */
  skipped: 2,
  /** the plant with its id was replaced */
  updated: 3,
  /** its id exists: rejected */
  exists: 4,
  /** rejected for the reason in the `rejections` of the batch */
  rejected: 5,
  /** it was sent, and whether it is stored is unknown; the cause is in the `rejections` of the batch */
  unknown: 6,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/** What a row whose id exists counts as: rejected; done; done if the plants are equal, and otherwise rejected or an update. */
export const existsPolicies = ['error', 'skip', 'same', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

/** The outcome for a row whose id exists. `isEqual` is called only where the policy compares plants. */
export function resolveConflict(policy: ExistsPolicy, isEqual: () => boolean): Outcome {
  if (policy === 'skip' || (comparesPlants(policy) && isEqual())) return Outcome.skipped
  return policy === 'update' ? Outcome.updated : Outcome.exists
}

/** Whether the outcome depends on the existing plant. */
export function comparesPlants(policy: ExistsPolicy): boolean {
  return policy === 'same' || policy === 'update'
}

/** Returns whether a plant replaces the existing one. Throws when it is rejected. */
export type OnConflict = (plant: NewPlant, existing: NewPlant) => boolean

/** Throws `conflict` for a plant whose id exists, unless its idempotency key has `created` the same plant. */
export function refuseUnlessRepeated(plant: NewPlant, created: NewPlant | undefined): void {
  if (created === undefined) throw idExists(plant.id)
  if (!equalPlants(created, plant)) throw keyConflict(created.id)
}

export function idExists(id: bigint, policy?: ExistsPolicy): PlantsError {
  return new PlantsError('conflict', idExistsText(id, policy))
}

/** The message for a plant whose id exists; with a policy that compares plants, only a different plant is rejected. */
export function idExistsText(id: bigint, policy: ExistsPolicy = 'error'): string {
  return `A ${comparesPlants(policy) ? 'different plant' : 'plant'} with id ${id} already exists`
}

/** The id after the greatest one. Throws `conflict` if there is none. */
export function idAfter(greatest: bigint | undefined): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `There is no id after ${largestId}, which a plant has`, { hint: 'Choose one with --id NUMBER' })
}

/**
 * Creates a plant with the greatest id plus 1, or 1 in an empty store. If another process creates that id first, tries the next one.
 *
 * @throws {PlantsError} like `create`; `conflict` when no id is left
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

/** Each failed try means that another process has created a plant. */
const maxTries = 1000

/** The error for a key that has created a different plant, with this id. */
export function keyConflict(id: bigint): PlantsError {
  const hint = `It created plant ${id}. Repeat a key only with the very same plant, and use a new one for any other`
  return new PlantsError('conflict', 'This idempotency key was used for a different plant', { hint })
}
