import { textFields } from '../../plant/fields.js'
import { invalidPlant, largestId, type PlantPatch } from '../../plant/plant.js'
import { errorValue, PlantsError } from '../../platform/errors.js'

/**
 * What happens to a record whose id exists: `error` rejects it, `skip` leaves the plant as it is, `same` does so if
 * they are equal and rejects it otherwise, `update` changes what the record has.
 */
export const existsPolicies = ['error', 'skip', 'same', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

/** For a record that lacks a required text, when no plant has its id. */
export function incompletePlant(patch: PlantPatch): Pick<PlantsError, 'error' | 'message'> {
  const missing = textFields.filter(({ name, isRequired }) => isRequired && patch[name] == null)
  const problems = missing.map(({ name }) => `${name} must be a string, but is missing`)
  return { error: errorValue('invalid'), message: `${invalidPlant(problems)}, and no plant has id ${patch.id}` }
}

export function comparesPlants(policy: ExistsPolicy): boolean {
  return policy === 'same' || policy === 'update'
}

export function idExists(id: bigint, policy?: ExistsPolicy): PlantsError {
  return new PlantsError('conflict', idExistsText(id, policy))
}

export function idExistsText(id: bigint, policy: ExistsPolicy = 'error'): string {
  return `A ${comparesPlants(policy) ? 'different plant' : 'plant'} with id ${id} already exists`
}

export function idAfter(greatest: bigint | undefined, flag = '--id'): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `There is no id after ${largestId}, which a plant has`, {
    hint: `Choose one with ${flag} NUMBER`,
  })
}

export function keyConflict(id: bigint): PlantsError {
  const hint = `It created plant ${id}. Repeat a key only with the same plant, and use a new key for any other`
  return new PlantsError('conflict', 'This idempotency key was used for a different plant', { hint })
}
