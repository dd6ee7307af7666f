import { assertDefined, type ErrorKind, errorKinds, PlantsError } from '../errors.js'
import {
  haveEqualNameAndTag,
  type NewPlant,
  type PlantPatch,
  type StoredPlant,
} from '../plant/plant.js'

/** `Store.write` makes these changes. Each change concerns one plant. */
export type Change = Create | Update | Delete

export interface Create {
  type: 'create'
  plant: NewPlant
  /**
   * The idempotency key has 1 to 255 visible ASCII characters. The key is compared only if the id
   * exists: a create with the key and the fields of the stored plant succeeds again.
   */
  key?: string | undefined
  /** By default, a create whose id exists is rejected. */
  ifExists?: Exclude<ExistsPolicy, 'update'> | undefined
}

export interface Update {
  type: 'update'
  patch: PlantPatch
  /** The default is `error`: without a plant that has the id, the update is rejected. */
  ifMissing?: 'error' | 'create' | undefined
  /** With `ifMissing: 'create'`, a service gets this idempotency key with the create. */
  key?: string | undefined
  /**
   * The name that the plant had when it was read. If the plant with this id now has another name,
   * the record stands for another plant, and the update is rejected.
   */
  expectedName?: string | undefined
}

export interface Delete {
  type: 'delete'
  id: bigint
  /** The plant as it was read. If it is another one now, the deletion is rejected. */
  expectedPlant?: StoredPlant | undefined
}

/**
 * If the id of a record exists, `same` skips a record that equals the plant and rejects any other,
 * `skip` skips every record, and `update` changes the plant.
 */
export const existsPolicies = ['same', 'skip', 'update'] as const
export type ExistsPolicy = (typeof existsPolicies)[number]

/**
 * What became of a change:
 *
 * - `created`: with `isReplayed`, the same create has stored the plant before.
 * - `updated`: a service does not report what the plant was `before`.
 * - `rejected`: nothing was stored, because of this change itself.
 * - `unknown`: the change was sent, and no answer says whether it was stored.
 * - `notSent`: the change was not sent, because an earlier change failed.
 *
 * Only a service has the last two. A direct store throws instead.
 */
export type Outcome =
  | { type: 'created'; plant: StoredPlant; isReplayed?: true }
  | { type: 'deleted'; plant: StoredPlant }
  | { type: 'updated'; plant: StoredPlant; before?: StoredPlant }
  | { type: 'skipped' }
  | { type: 'rejected' | 'unknown' | 'notSent'; problem: Problem }

/**
 * A problem is an error without a stack. An import may have millions of rejected records, and the
 * stack of each would take a kilobyte.
 */
export type Problem = Pick<PlantsError, 'kind' | 'error' | 'message' | 'mayBeOwnPlant'> & {
  hint?: string | undefined
  /** The id exists, and the service does not let the token read the plant: it may be equal. */
  isUnreadable?: true
}

export function createProblem(kind: ErrorKind, message: string, hint?: string): Problem {
  return { kind, error: errorKinds[kind].error, message, hint }
}

export function toError(problem: Problem): PlantsError {
  if (problem instanceof PlantsError) return problem
  return new PlantsError(problem.kind, problem.message, { ...problem })
}

/** @param event what happened, such as "The disk failed under /srv/a.db during a commit" */
export function createUnknownOutcomeError(event: string, cause?: unknown): PlantsError {
  const message = `${event}: whether it is stored is unknown`
  const hint = 'Look at what is stored before you repeat it'
  return new PlantsError('unknownOutcome', message, { hint, cause })
}

/**
 * Returns true if the change may be made again although it may be stored, as after a commit whose
 * outcome is unknown. Any other create would find its own plant, and report a conflict.
 */
export function isRepeatable(change: Change): boolean {
  if (change.type === 'create') return change.key !== undefined || change.ifExists !== undefined
  if (change.type === 'delete') return change.expectedPlant !== undefined
  return change.ifMissing === 'create'
}

export function getTargetId(change: Change): bigint {
  if (change.type === 'delete') return change.id
  return change.type === 'create' ? change.plant.id : change.patch.id
}

/** Whether a service does not let the token read, or does not offer to read at all. */
export function isReadRejected(error: unknown): boolean {
  return error instanceof PlantsError && (error.kind === 'forbidden' || error.kind === 'rejected')
}

/** Makes one change, and throws if it is not made. */
export async function writeOne(
  store: { write(changes: readonly Change[]): Promise<Outcome[]> },
  change: Change,
): Promise<ChangedOutcome> {
  const [outcome] = await store.write([change])
  return unwrapOutcome(assertDefined(outcome))
}

type ChangedOutcome = Extract<Outcome, { plant: StoredPlant }>

export function unwrapOutcome(outcome: Outcome): ChangedOutcome {
  if ('problem' in outcome) throw toError(outcome.problem)
  if (outcome.type === 'skipped') throw new RangeError('The change was skipped')
  return outcome
}

export function createRejectedOutcome(problem: Problem): Outcome {
  return { type: 'rejected', problem }
}

export function createConstraintOutcome(change: Change, reason: string): Outcome {
  const message = `The store does not accept plant ${getTargetId(change)}: ${reason}`
  return createRejectedOutcome(createProblem('constraint', message, constraintHint))
}

export const constraintHint =
  'Change the plant, because somebody added this constraint to the store'

/**
 * Returns the outcome of a create whose id exists.
 *
 * @param storedPlant the plant with the id; undefined if it is unknown
 */
export function createOutcomeForExistingId(
  change: Create,
  storedPlant: StoredPlant | undefined,
): Outcome {
  const { plant, ifExists } = change
  const isEqual =
    ifExists === 'same' && storedPlant !== undefined && haveEqualNameAndTag(storedPlant, plant)
  if (ifExists === 'skip' || isEqual) return { type: 'skipped' }
  return createRejectedOutcome(createProblem('conflict', describeConflict(change)))
}

/** With `ifExists: 'same'`, an equal plant would have been skipped, so the stored plant differs. */
function describeConflict({ plant: { id }, ifExists }: Create): string {
  return ifExists === 'same'
    ? `A different plant with id ${id} already exists`
    : `A plant with id ${id} already exists`
}

/** Returns the rejection of an update whose plant has another name than the expected one. */
export function findRenameRejection(
  { patch, expectedName }: Update,
  storedPlant: StoredPlant | undefined,
): Outcome | undefined {
  // After an answer was lost, an update is repeated, and finds its own name.
  const names = [expectedName, patch.name]
  if (expectedName === undefined || !storedPlant || names.includes(storedPlant.name))
    return undefined
  return createRejectedOutcome(
    createProblem('conflict', `Plant ${storedPlant.id} now has another name`),
  )
}

/** Returns the rejection of a deletion whose plant is gone, or is not the expected one. */
export function findDeleteRejection(
  { id, expectedPlant }: Delete,
  storedPlant: StoredPlant | undefined,
): Outcome | undefined {
  if (!storedPlant) return createRejectedOutcome(createNotFoundProblem(id))
  if (!expectedPlant || haveEqualNameAndTag(storedPlant, expectedPlant)) return undefined
  return createRejectedOutcome(createProblem('conflict', `Plant ${id} was changed meanwhile`))
}

/**
 * Returns the outcome of an update whose id no plant has, if the update must not create a plant, or
 * has no name for it.
 */
export function createOutcomeForMissingPlant({ patch, ifMissing }: Update): Outcome {
  if (ifMissing !== 'create') return createRejectedOutcome(createNotFoundProblem(patch.id))
  const message = `Invalid plant: the name is missing, and no plant has id ${patch.id}`
  return createRejectedOutcome(createProblem('invalid', message))
}

export function createTooLargeOutcome({ id }: StoredPlant): Outcome {
  return createRejectedOutcome(
    createProblem('tooLarge', `Plant ${id} is larger than 1 MiB as JSON`),
  )
}

export function createNotFoundProblem(id: bigint): Problem {
  return createProblem('notFound', `No plant has id ${id}`)
}
