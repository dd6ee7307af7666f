import { smallestId, valuesOf } from '../../plant/plant.js'
import { must, reasonOf } from '../../platform/errors.js'
import { primaryCode } from '../../platform/sqlite.js'
import {
  type Change,
  constraintProblem,
  idOf,
  type Outcome,
  rejected,
  unsent,
} from '../common/change.js'
import { type KeyedPlant, planOf } from '../common/plan.js'
import { findPlant } from './rows.js'
import type { Connection } from './sqlite-connection.js'

/**
 * Makes the changes in a transaction that the caller has begun. Those without keys are made in ascending order of id,
 * which writes each page once; those of one id in their own order.
 */
export function applyChanges(
  connection: Connection,
  changes: readonly Change[],
  maxRejected = Infinity,
): Outcome[] {
  const keepsOrder =
    maxRejected < Infinity || changes.some((change) => change.type === 'create' && change.key)
  const order = keepsOrder || isById(changes) ? undefined : orderById(changes)
  if (!order) return applyInTurn(connection, changes, maxRejected)
  const outcomes = new Array<Outcome>(changes.length)
  const inOrder = order.map((index) => must(changes[index]))
  const made = applyInTurn(connection, inOrder)
  for (const [at, index] of order.entries()) outcomes[index] = must(made[at])
  return outcomes
}

function isById(changes: readonly Change[]): boolean {
  let last = smallestId
  for (const change of changes) {
    const id = idOf(change)
    if (id < last) return false
    last = id
  }
  return true
}

function orderById(changes: readonly Change[]): number[] {
  const idAt = (index: number) => idOf(must(changes[index]))
  return [...changes.keys()].sort((one, other) =>
    idAt(one) < idAt(other) ? -1 : Number(idAt(one) > idAt(other)),
  )
}

function applyInTurn(
  connection: Connection,
  changes: readonly Change[],
  maxRejected = Infinity,
): Outcome[] {
  const outcomes: Outcome[] = []
  let rejections = 0
  for (let from = 0; from < changes.length; from += rowsAtOnce) {
    const some = changes.slice(from, from + rowsAtOnce)
    const isWhole = some.length === rowsAtOnce && rejections < maxRejected
    const created = isWhole ? insertTogether(connection, some) : undefined
    if (created) {
      outcomes.push(...created)
      continue
    }
    for (const change of some) {
      const outcome = rejections < maxRejected ? apply(connection, change) : unsent
      outcomes.push(outcome)
      if (outcome.type === 'rejected') rejections += 1
    }
  }
  return outcomes
}

/** Rows of one INSERT: the fastest of 10 to 200. */
const rowsAtOnce = 50

/** All or none: undefined if one is not a plain create, or is refused, such as for an id that exists. */
function insertTogether(connection: Connection, changes: readonly Change[]): Outcome[] | undefined {
  const outcomes: Outcome[] = []
  const values: ReturnType<typeof valuesOf> = []
  for (const change of changes) {
    if (change.type !== 'create' || change.key !== undefined) return undefined
    outcomes.push({ type: 'created', plant: change.plant })
    values.push(...valuesOf(change.plant))
  }
  try {
    connection.prepare(insertMany).run(...values)
    return outcomes
  } catch (error) {
    if (!isRefusal(error)) throw error
    return undefined
  }
}

function apply(connection: Connection, change: Change): Outcome {
  // An error of a statement itself is not a refusal.
  const insert = connection.prepare(insertPlant)
  const update = connection.prepare(updatePlant)
  try {
    if (change.type === 'create') {
      const { plant, key } = change
      if (Number(insert.run(...valuesOf(plant), key ?? null).changes) === 1)
        return { type: 'created', plant }
    }
    const { outcomes, created, replaced, deleted } = planOf(storedFor(connection, change), [change])
    for (const { plant } of created) insert.run(...valuesOf(plant), null)
    for (const { after } of replaced) update.run(...valuesOf(after.plant))
    for (const { id } of deleted) connection.prepare('DELETE FROM plants WHERE id = ?').run(id)
    return must(outcomes[0])
  } catch (error) {
    if (!isRefusal(error)) throw error
    // SQLite has undone this statement alone.
    return rejected(constraintProblem(idOf(change), reasonOf(error)))
  }
}

/** Reads the plants that have the id or the key of the change. */
function storedFor(connection: Connection, change: Change): KeyedPlant[] {
  const key = change.type === 'create' ? change.key : undefined
  const plant = findPlant(connection, 'id', idOf(change))
  const first = key === undefined ? undefined : findPlant(connection, 'idempotency_key', key)
  return [...(plant ? [{ plant }] : []), ...(first ? [{ plant: first, key }] : [])]
}

/** Whether a constraint, or the expression of an index, that somebody added refuses the change, or a limit of SQLite. */
function isRefusal(error: unknown): boolean {
  return [1, 18, 19].includes(primaryCode(error) ?? 0) // ERROR, TOOBIG, CONSTRAINT
}

/** A constraint that the user has added fails as an error: it is not taken for an id or a key that exists. */
const insertPlant = `INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO NOTHING ON CONFLICT (idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING`

/** Removes the idempotency key, so that a late retry of the create conflicts. */
const updatePlant = 'UPDATE plants SET name = ?2, tag = ?3, idempotency_key = NULL WHERE id = ?1'

const insertMany = `INSERT INTO plants (id, name, tag) VALUES ${Array(rowsAtOnce).fill('(?, ?, ?)').join()}`
