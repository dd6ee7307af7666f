import { assertDefined, type ErrorKind, getErrorValue, PlantsError } from '../errors.js'
import {
  haveEqualFields,
  type NewPlant,
  type PlantPatch,
  type StoredPlant,
} from '../plant/plant.js'

/**
 * What `Store.write` does to one plant. If `isFoundByName`, the id was found by the name of the
 * plant: a plant that has the id and another name is another one, and stays as it is.
 */
export type Change = Create | Update | { type: 'delete'; id: bigint }

export interface Create {
  type: 'create'
  plant: NewPlant
  /**
   * 1 to 255 visible ASCII characters. It is compared only if the id exists: a create with the key
   * and the content of the stored plant succeeds again.
   */
  key?: string | undefined
  /** By default an error. */
  ifExists?: Exclude<ExistsPolicy, 'update'> | undefined
  isFoundByName?: boolean | undefined
}

export interface Update {
  type: 'update'
  patch: PlantPatch
  /** By default `error`. */
  ifMissing?: 'error' | 'create' | undefined
  /** At a service, the key of the create. */
  key?: string | undefined
  isFoundByName?: boolean | undefined
}

/** Of a record whose id exists: `same` skips one that equals the plant, and rejects any other. */
export const existsPolicies = ['same', 'skip', 'update'] as const
type ExistsPolicy = (typeof existsPolicies)[number]

/**
 * What became of a change: a service does not report what the plant was `before`; of what is
 * `unknown`, no answer came; for what is `notSent`, the store was not asked, because it failed
 * before.
 */
export type Outcome =
  | { type: 'created' | 'deleted'; plant: StoredPlant }
  | { type: 'updated'; plant: StoredPlant; before?: StoredPlant }
  | { type: 'skipped' }
  | { type: 'rejected' | 'unknown' | 'notSent'; error: Problem }

/** Without a stack, which would take a kilobyte for each of millions of records. */
export type Problem = Pick<PlantsError, 'kind' | 'error' | 'message' | 'mayBeOwnPlant'> & {
  hint?: string | undefined
}

export function createProblem(kind: ErrorKind, message: string, hint?: string): Problem {
  return { kind, error: getErrorValue(kind), message, hint }
}

export function toError(reason: Problem): PlantsError {
  if (reason instanceof PlantsError) return reason
  return new PlantsError(reason.kind, reason.message, { ...reason })
}

export function getTargetId(change: Change): bigint {
  if (change.type === 'delete') return change.id
  return change.type === 'create' ? change.plant.id : change.patch.id
}

/** Throws the error of what failed. */
export async function writeOne(
  store: { write(changes: readonly Change[]): Promise<Outcome[]> },
  change: Change,
): Promise<Changed> {
  const [outcome] = await store.write([change])
  return unwrapOutcome(assertDefined(outcome))
}

type Changed = Extract<Outcome, { plant: StoredPlant }>

export function unwrapOutcome(outcome: Outcome): Changed {
  if ('error' in outcome) throw toError(outcome.error)
  if (outcome.type === 'skipped') throw new RangeError('The change was skipped')
  return outcome
}

export function createRejectedOutcome(error: Problem): Outcome {
  return { type: 'rejected', error }
}

export function createConstraintOutcome(change: Change, reason: string): Outcome {
  const message = `The store does not accept plant ${getTargetId(change)}: ${reason}`
  return createRejectedOutcome(createProblem('constraint', message, constraintHint))
}

export const constraintHint =
  'Somebody added this constraint to the store. Change the plant, or remove the constraint'

export function createExistsOutcome(change: Create, stored: StoredPlant | undefined): Outcome {
  const { plant, ifExists, isFoundByName } = change
  const other = findOtherNameOutcome(change, stored)
  if (other) return other
  const isEqual = ifExists === 'same' && stored !== undefined && haveEqualFields(stored, plant)
  if (ifExists === 'skip' || isEqual) return { type: 'skipped' }
  const [different, differs] =
    ifExists === 'same' ? ['different ', ', but its tag differs'] : ['', '']
  const message = isFoundByName
    ? `Plant ${plant.id} has this name${differs}`
    : `A ${different}plant with id ${plant.id} already exists`
  return createRejectedOutcome(createProblem('conflict', message))
}

/** The outcome of a change that `isFoundByName`, if the plant with its id has another name. */
export function findOtherNameOutcome(
  change: Create | Update,
  stored: StoredPlant | undefined,
): Outcome | undefined {
  const { name } = change.type === 'create' ? change.plant : change.patch
  if (!change.isFoundByName || !stored || stored.name === name) return undefined
  return createRejectedOutcome(createProblem('conflict', `Plant ${stored.id} now has another name`))
}

export function createMissingOutcome({ patch, ifMissing }: Update): Outcome {
  if (ifMissing !== 'create') return createRejectedOutcome(createNotFoundProblem(patch.id))
  const message = `Invalid plant: the name is missing, and no plant has id ${patch.id}`
  return createRejectedOutcome(createProblem('invalid', message))
}

export function createNotFoundProblem(id: bigint): Problem {
  return createProblem('notFound', `No plant has id ${id}`)
}
