import { equalPlants, type NewPlant, patchedPlant, type StoredPlant } from '../plant/plant.js'
import {
  type Change,
  type Create,
  existingOutcome,
  idOf,
  keyConflict,
  missingOutcome,
  notFound,
  type Outcome,
  otherNameOutcome,
  rejected,
} from './change.js'

export interface KeyedPlant {
  plant: NewPlant
  key?: string | undefined
}

/** What a direct store does for changes, and what becomes of each of them. */
export interface Plan {
  outcomes: Outcome[]
  created: readonly KeyedPlant[]
  replaced: KeyedPlant[]
  deleted: StoredPlant[]
}

/** As if their ids and keys were free and differed, in a third of the time. */
export function allCreated(created: readonly Create[]): Plan {
  const outcomes = created.map(({ plant }): Outcome => ({ type: 'created', plant }))
  return { outcomes, created, replaced: [], deleted: [] }
}

/** What becomes of the changes, one after the other, where these plants have their ids and keys. */
export function planOf(stored: KeyedPlant[], changes: readonly Change[]): Plan {
  const before = new Map(stored.map((each) => [each.plant.id, each]))
  const after = new Map<bigint, KeyedPlant | undefined>(before)
  const byKey = new Map<string, KeyedPlant>()
  for (const each of stored) if (each.key !== undefined) byKey.set(each.key, each)

  const put = (plant: NewPlant, key?: string) => {
    const each = { plant, key }
    after.set(plant.id, each)
    if (key !== undefined) byKey.set(key, each)
  }

  const create = (change: Create, now: StoredPlant | undefined): Outcome => {
    const { plant, key } = change
    const first = key === undefined ? undefined : byKey.get(key)
    if (first && after.get(first.plant.id) === first) {
      if (!equalPlants(first.plant, plant)) return rejected(keyConflict(first.plant.id))
    } else if (now) return existingOutcome(change, now)
    else put(plant, key)
    return { type: 'created', plant }
  }

  const apply = (change: Change): Outcome => {
    const now = after.get(idOf(change))?.plant
    if (change.type === 'create') return create(change, now)
    if (change.type === 'delete') {
      if (!now) return rejected(notFound(change.id))
      after.set(change.id, undefined)
      return { type: 'deleted', plant: now }
    }
    const other = otherNameOutcome(change, now)
    if (other) return other
    const { patch, ifMissing } = change
    const plant = patchedPlant(patch, now)
    if (!plant || !(now || ifMissing === 'create')) return missingOutcome(change)
    if (!now) {
      put(plant)
      return { type: 'created', plant }
    }
    // An import that is repeated changes nothing.
    const isSame =
      ifMissing === 'create' ? equalPlants(plant, now) : Object.keys(patch).length === 1
    if (!isSame) put(plant)
    return { type: 'updated', plant, before: now }
  }

  const outcomes = changes.map(apply)
  const created: KeyedPlant[] = []
  const replaced: KeyedPlant[] = []
  const deleted: StoredPlant[] = []
  for (const [id, now] of after) {
    const old = before.get(id)
    if (now && !old) created.push(now)
    else if (now && now !== old) replaced.push(now)
    else if (!now && old) deleted.push(old.plant)
  }
  return { outcomes, created, replaced, deleted }
}
