import { textFields } from '../../plant/fields.js'
import {
  equalFields,
  equalPlants,
  invalidPlant,
  largestId,
  type NewPlant,
  type Plant,
  type PlantPatch,
  patchedPlant,
  plantFrom,
} from '../../plant/plant.js'
import { errorValue, PlantsError } from '../../platform/errors.js'

export const Outcome = {
  pending: 0,
  created: 1,
  /** its id exists, which counts as done */
  skipped: 2,
  updated: 3,
  /** its id exists: rejected */
  exists: 4,
  /** rejected for the reason in the `rejections` of the batch */
  rejected: 5,
  /** sent, but perhaps not stored; the cause is in the `rejections` of the batch */
  unknown: 6,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/**
 * What a row whose id exists counts as: rejected; done; done if the plants are equal, and otherwise rejected or a
 * change of what the row has.
 */
export const existsPolicies = ['error', 'skip', 'same', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

export interface PolicyOptions {
  ifExists: ExistsPolicy
  /** from this id on, the import has numbered the plants */
  assignedFrom?: bigint | undefined
}

/** A plant must not be skipped because another one has the number that the import has given to it. */
export function policyFor(id: bigint, { ifExists, assignedFrom = largestId + 1n }: PolicyOptions): ExistsPolicy {
  return id >= assignedFrom && ifExists === 'skip' ? 'same' : ifExists
}

/**
 * @param existing `true` if the plant was not read, because the policy does not compare plants
 * @returns the plant that has the id then; undefined if that was not read
 */
export function resolveRecord(
  options: PolicyOptions,
  patch: PlantPatch,
  existing: NewPlant | true | undefined,
): { outcome: Outcome; plant: NewPlant | undefined } {
  const policy = policyFor(patch.id, options)
  const stored = existing === true ? undefined : existing
  const plant = patchedPlant(patch, policy === 'update' ? stored : undefined)
  if (!existing) return { outcome: plant ? Outcome.created : Outcome.rejected, plant }
  const isEqual = comparesPlants(policy) && plant !== undefined && stored !== undefined && equalFields(plant, stored)
  if (policy === 'skip' || isEqual) return { outcome: Outcome.skipped, plant: stored }
  return policy === 'update' ? { outcome: Outcome.updated, plant } : { outcome: Outcome.exists, plant: stored }
}

/** For a record that lacks a required text, when no plant has its id. */
export function incompletePlant(patch: PlantPatch): Pick<PlantsError, 'error' | 'message'> {
  const missing = textFields.filter(({ name, isRequired }) => isRequired && patch[name] == null)
  const problems = missing.map(({ name }) => `${name} must be a string, but is missing`)
  return { error: errorValue('invalid'), message: `${invalidPlant(problems)}, and no plant has id ${patch.id}` }
}

export function comparesPlants(policy: ExistsPolicy): boolean {
  return policy === 'same' || policy === 'update'
}

/** Returns whether a record changes the existing plant. Throws when the record is rejected. */
export type OnConflict = (patch: PlantPatch, existing: NewPlant | undefined) => boolean

/** Throws `conflict`, unless the idempotency key has `created` the same plant. */
export function assertRepeated(plant: NewPlant, created: NewPlant | undefined): void {
  if (created === undefined) throw idExists(plant.id)
  if (!equalPlants(created, plant)) throw keyConflict(created.id)
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

/** With the greatest id plus 1, or the next one if another process creates that id first. */
export async function createNext(store: NextStore, plant: Plant): Promise<NewPlant> {
  for (let tries = 0, tried: bigint | undefined; ; tries += 1) {
    const next = plantFrom(idAfter(await store.greatestId()), ({ name }) => plant[name])
    try {
      const answer = await store.create(next)
      return plantFrom(next.id, ({ name }) => answer[name])
    } catch (error) {
      if (!(error instanceof PlantsError && error.type === 'conflict') || next.id === tried || tries === maxTries)
        throw error
      tried = next.id
    }
  }
}

type NextStore = { greatestId(): Promise<bigint | undefined>; create(plant: NewPlant): Promise<Plant> }

/** Each failed try means that another process has created a plant. */
const maxTries = 1000

export function keyConflict(id: bigint): PlantsError {
  const hint = `It created plant ${id}. Repeat a key only with the same plant, and use a new key for any other`
  return new PlantsError('conflict', 'This idempotency key was used for a different plant', { hint })
}
