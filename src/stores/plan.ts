/**
 * Decides what becomes of changes, given the stored plants that have their ids. Changes of the same
 * id are planned one after the other: after a create and a deletion, nothing is left to do. This
 * module reads and writes nothing. A direct store looks the plants up first, and then executes the
 * plan.
 */
import { assertDefined } from '../errors.js'
import {
  applyPatch,
  haveEqualNameAndTag,
  isPlantTooLarge,
  type NewPlant,
  type StoredPlant,
} from '../plant/plant.js'
import {
  type Change,
  type Create,
  createOutcomeForExistingId,
  createOutcomeForMissingPlant,
  createTooLargeOutcome,
  type Delete,
  findDeleteRejection,
  findRenameRejection,
  type Outcome,
  type Update,
} from './change.js'

/** A plant with the idempotency key of the create that stored it, if the create had one. */
export interface KeyedPlant {
  plant: NewPlant
  key?: string | undefined
}

/** Returns true for a create whose plant may be inserted unless its id exists. */
export function isInsertable(change: Change): change is Create {
  return change.type === 'create' && !isPlantTooLarge(change.plant)
}

export type RowValue = bigint | string | null

/** A plant as the values of its row. A missing tag or key is null. */
export type PlantRow = readonly [
  id: bigint,
  name: string,
  tag: string | null,
  idempotencyKey: string | null,
]

export function toRow({ plant: { id, name, tag }, key }: KeyedPlant): PlantRow {
  return [id, name, tag ?? null, key ?? null]
}

/**
 * The plants that a direct store inserts, updates and deletes, and the outcomes that the changes
 * then have.
 */
export interface Plan {
  outcomes: Outcome[]
  createdPlants: readonly KeyedPlant[]
  replacedPlants: readonly KeyedPlant[]
  deletedPlants: readonly StoredPlant[]
}

type PlantsById = Map<bigint, KeyedPlant>

/** @param storedPlants the plants that have the ids of the changes */
export function planChanges(storedPlants: readonly KeyedPlant[], changes: readonly Change[]): Plan {
  const plantsBefore: PlantsById = new Map(
    storedPlants.map((keyedPlant) => [keyedPlant.plant.id, keyedPlant]),
  )
  const plantsAfter: PlantsById = new Map(plantsBefore)
  const outcomes = changes.map((change) => applyChange(plantsAfter, change))
  return { outcomes, ...findDifferences(plantsBefore, plantsAfter) }
}

function applyChange(plants: PlantsById, change: Change): Outcome {
  if (change.type === 'create') return applyCreate(plants, change)
  if (change.type === 'update') return applyUpdate(plants, change)
  return applyDelete(plants, change)
}

function applyCreate(plants: PlantsById, change: Create): Outcome {
  const { plant, key } = change
  if (isPlantTooLarge(plant)) return createTooLargeOutcome(plant)
  const storedPlant = plants.get(plant.id)
  if (!storedPlant) {
    plants.set(plant.id, { plant, key })
    return { type: 'created', plant }
  }
  if (isRepeatedCreate(change, storedPlant)) return { type: 'created', plant, isReplayed: true }
  return createOutcomeForExistingId(change, storedPlant.plant)
}

/**
 * Returns true if this create has stored the plant before, and nobody has changed the plant since.
 */
function isRepeatedCreate({ plant, key }: Create, storedPlant: KeyedPlant): boolean {
  return (
    key !== undefined && key === storedPlant.key && haveEqualNameAndTag(plant, storedPlant.plant)
  )
}

function applyUpdate(plants: PlantsById, change: Update): Outcome {
  const { patch, ifMissing } = change
  const storedPlant = plants.get(patch.id)?.plant
  const renameRejection = findRenameRejection(change, storedPlant)
  if (renameRejection) return renameRejection
  const plant = applyPatch(patch, storedPlant)
  const mayCreate = ifMissing === 'create'
  if (!plant || (!storedPlant && !mayCreate)) return createOutcomeForMissingPlant(change)
  if (isPlantTooLarge(plant)) return createTooLargeOutcome(plant)
  if (!storedPlant) {
    plants.set(plant.id, { plant })
    return { type: 'created', plant }
  }
  // An update removes the idempotency key, because the plant is no longer what the create with that
  // key stored. Two updates change nothing and leave it: a patch that has only an id, and a record
  // that equals the plant, because an import may be repeated.
  const hasOnlyId = Object.keys(patch).length === 1
  const keepsKey = mayCreate ? haveEqualNameAndTag(plant, storedPlant) : hasOnlyId
  if (!keepsKey) plants.set(plant.id, { plant })
  return { type: 'updated', plant, before: storedPlant }
}

function applyDelete(plants: PlantsById, change: Delete): Outcome {
  const storedPlant = plants.get(change.id)?.plant
  const rejection = findDeleteRejection(change, storedPlant)
  if (rejection) return rejection
  plants.delete(change.id)
  return { type: 'deleted', plant: assertDefined(storedPlant) }
}

function findDifferences(
  plantsBefore: PlantsById,
  plantsAfter: PlantsById,
): Omit<Plan, 'outcomes'> {
  const createdPlants: KeyedPlant[] = []
  const replacedPlants: KeyedPlant[] = []
  const deletedPlants: StoredPlant[] = []
  for (const [id, keyedPlant] of plantsAfter) {
    const previousPlant = plantsBefore.get(id)
    if (!previousPlant) createdPlants.push(keyedPlant)
    else if (keyedPlant !== previousPlant) replacedPlants.push(keyedPlant)
  }
  for (const [id, { plant }] of plantsBefore) if (!plantsAfter.has(id)) deletedPlants.push(plant)
  return { createdPlants, replacedPlants, deletedPlants }
}
