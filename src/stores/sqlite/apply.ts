import { plantColumns, plantParameters } from '../../plant/fields.js'
import { equalPlants, type NewPlant, patchedPlant, valuesOf } from '../../plant/plant.js'
import { reasonOf } from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'
import { must } from '../../platform/values.js'
import {
  type Change,
  constraintProblem,
  existingOutcome,
  idOf,
  missingOutcome,
  notFound,
  type Outcome,
  rejected,
  unsent,
} from '../common/change.js'
import { keyConflict } from '../common/conflict.js'
import { findPlant } from './read.js'
import type { Connection } from './sqlite-connection.js'

/**
 * Makes the changes in a transaction that the caller has begun. Those without keys are made in ascending order of id,
 * which writes each page once; those of one id in their own order.
 */
export function applyChanges(connection: Connection, changes: readonly Change[], maxRejected = Infinity): Outcome[] {
  const outcomes = new Array<Outcome>(changes.length).fill(unsent)
  const keepsOrder = maxRejected < Infinity || changes.some((change) => change.type === 'create' && change.key)
  const order = keepsOrder ? [...changes.keys()] : orderById(changes)
  let rejections = 0
  for (let from = 0; from < order.length; from += rowsAtOnce) {
    const window = order.slice(from, from + rowsAtOnce)
    if (rejections === maxRejected) return outcomes
    if (window.length === rowsAtOnce && insertTogether(connection, changes, window, outcomes)) continue
    for (const index of window) {
      if (rejections === maxRejected) return outcomes
      const outcome = apply(connection, must(changes[index]))
      outcomes[index] = outcome
      if (outcome.type === 'rejected') rejections += 1
    }
  }
  return outcomes
}

/** rows of one INSERT: the fastest of 10 to 200 */
const rowsAtOnce = 50

function orderById(changes: readonly Change[]): number[] {
  const order = [...changes.keys()]
  const compare = (one: number, other: number) => {
    const [a, b] = [idOf(must(changes[one])), idOf(must(changes[other]))]
    return a < b ? -1 : Number(a > b)
  }
  const isInOrder = order.every((index) => index === 0 || compare(index - 1, index) <= 0)
  return isInOrder ? order : order.sort(compare)
}

/** All or none: false if one is no plain create, or is refused, such as for an id that exists. */
function insertTogether(
  connection: Connection,
  changes: readonly Change[],
  window: readonly number[],
  outcomes: Outcome[],
): boolean {
  const plants: NewPlant[] = []
  const values: ReturnType<typeof valuesOf>[number][] = []
  for (const index of window) {
    const change = must(changes[index])
    if (change.type !== 'create' || change.key !== undefined) return false
    plants.push(change.plant)
    values.push(...valuesOf(change.plant))
  }
  try {
    connection.prepare(insertMany).run(...values)
  } catch (error) {
    if (!isRefusal(error)) throw error
    return false
  }
  for (const [at, index] of window.entries()) outcomes[index] = { type: 'created', plant: must(plants[at]) }
  return true
}

function apply(connection: Connection, change: Change): Outcome {
  for (const sql of [insertPlant, updatePlant]) connection.prepare(sql) // an error of a statement itself is no refusal
  try {
    if (change.type === 'create') return create(connection, change)
    return change.type === 'update' ? update(connection, change) : remove(connection, change)
  } catch (error) {
    if (!isRefusal(error)) throw error
    // SQLite has undone this statement alone.
    return rejected(constraintProblem(idOf(change), reasonOf(error)))
  }
}

function create(connection: Connection, change: Extract<Change, { type: 'create' }>): Outcome {
  const { plant, key, ifExists } = change
  const { changes } = connection.prepare(insertPlant).run(...valuesOf(plant), key ?? null)
  if (Number(changes) === 1) return { type: 'created', plant }
  const first = key === undefined ? undefined : findPlant(connection, 'idempotency_key', key)
  if (first) return equalPlants(first, plant) ? { type: 'created', plant } : rejected(keyConflict(first.id))
  return existingOutcome(change, ifExists === 'same' ? findPlant(connection, 'id', plant.id) : undefined)
}

function update(connection: Connection, change: Extract<Change, { type: 'update' }>): Outcome {
  const { patch, ifMissing } = change
  const before = findPlant(connection, 'id', patch.id)
  const plant = patchedPlant(patch, before)
  if (!before)
    return plant && ifMissing === 'create' ? create(connection, { type: 'create', plant }) : missingOutcome(change)
  if (!plant) return rejected(notFound(patch.id))
  // An import that is repeated writes nothing.
  const isSame = ifMissing === 'create' ? equalPlants(plant, before) : Object.keys(patch).length === 1
  if (!isSame) connection.prepare(updatePlant).run(...valuesOf(plant))
  return { type: 'updated', plant, before }
}

function remove(connection: Connection, { id, only }: Extract<Change, { type: 'delete' }>): Outcome {
  const plant = findPlant(connection, 'id', id)
  if (!plant || (only && !equalPlants(plant, only))) return rejected(notFound(id))
  connection.prepare('DELETE FROM plants WHERE id = ?').run(id)
  return { type: 'deleted', plant }
}

/** By a constraint, or by the expression of an index, that somebody added. */
function isRefusal(error: unknown): boolean {
  const code = primaryCode(error)
  return code === 19 || code === 1
}

/** A constraint of the user's is an error, no id or key that exists. */
const insertPlant = `INSERT INTO plants (${plantColumns}, idempotency_key) VALUES (${plantParameters}, ?)
  ON CONFLICT (id) DO NOTHING ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING`

/** Also removes the idempotency key. */
const updatePlant = 'UPDATE plants SET name = ?2, tag = ?3, idempotency_key = NULL WHERE id = ?1'

const insertMany = `INSERT INTO plants (${plantColumns}) VALUES ${Array(rowsAtOnce).fill(`(${plantParameters})`).join()}`
