import { largestId } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'

/** What happens to a record whose id exists: `same` skips it if it equals the plant, and rejects it otherwise. */
export const existsPolicies = ['error', 'skip', 'same', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

export function idExists(id: bigint): PlantsError {
  return new PlantsError('conflict', idExistsText(id))
}

export function idExistsText(id: bigint, policy: ExistsPolicy = 'error'): string {
  const isCompared = policy === 'same' || policy === 'update'
  return `A ${isCompared ? 'different plant' : 'plant'} with id ${id} already exists`
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
