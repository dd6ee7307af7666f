/**
 * Applies changes in a transaction that the caller has begun.
 *
 * One INSERT of fifty new plants takes 0.6 of the time of fifty INSERTs. So changes are applied in
 * batches of fifty. If all changes of a batch are creates, one statement inserts them. If that
 * fails, because an id exists or the store rejects a plant, or if there are other changes in the
 * batch, the changes are applied one by one.
 *
 * The owner of a store may add constraints, indexes and triggers. If one of these rejects a change,
 * the change must be undone as a whole, and the other changes must stay. SQLite alone does not
 * ensure that: a trigger that calls RAISE(FAIL) undoes nothing, and one that calls RAISE(IGNORE)
 * skips the row without an error. So each change runs in a savepoint, and the rows that it changed
 * are counted.
 */

import { assertDefined, describeReason } from '../../errors.js'
import { type NewPlant, type RowValue, toRowValues } from '../../plant/plant.js'
import {
  findPrimaryCode,
  SQLITE_CONSTRAINT,
  SQLITE_ERROR,
  SQLITE_TOOBIG,
} from '../../platform/sqlite.js'
import {
  type Change,
  type Create,
  createConstraintOutcome,
  getTargetId,
  type Outcome,
} from '../change.js'
import { planChanges } from '../plan.js'
import type { Connection } from './connection.js'
import { toPlant } from './read.js'

const rowsPerInsert = 50

/** @returns an outcome for each change, in the order of the changes */
export function applyChanges(connection: Connection, changes: readonly Change[]): Outcome[] {
  if (areSortedById(changes)) return applyInBatches(connection, changes)
  const order = sortIndexesById(changes)
  const sortedOutcomes = applyInBatches(
    connection,
    order.map((index) => assertDefined(changes[index])),
  )
  const outcomes = new Array<Outcome>(changes.length)
  for (const [position, index] of order.entries())
    outcomes[index] = assertDefined(sortedOutcomes[position])
  return outcomes
}

function applyInBatches(connection: Connection, changes: readonly Change[]): Outcome[] {
  const outcomes: Outcome[] = []
  for (let start = 0; start < changes.length; start += rowsPerInsert) {
    const batch = changes.slice(start, start + rowsPerInsert)
    const creates = batch.length > 1 && batch.every(isCreate) ? batch : undefined
    if (creates && insertBatch(connection, creates))
      for (const { plant } of creates) outcomes.push({ type: 'created', plant })
    else for (const change of batch) outcomes.push(applyOne(connection, change))
  }
  return outcomes
}

function isCreate(change: Change): change is Create {
  return change.type === 'create'
}

/** Most inputs are sorted by id. To check this takes less time than to sort the changes again. */
function areSortedById(changes: readonly Change[]): boolean {
  return changes.every((change, index) => {
    const previous = changes[index - 1]
    return !previous || getTargetId(previous) <= getTargetId(change)
  })
}

/**
 * Sorts the indexes of the changes by the ids of the changes. Plants with neighboring ids are in
 * one page of the table, and a page that is visited twice may have to be written twice. Changes of
 * the same id keep their order.
 */
function sortIndexesById(changes: readonly Change[]): number[] {
  const ids = changes.map(getTargetId)
  return [...changes.keys()].sort((a, b) =>
    compareIds(assertDefined(ids[a]), assertDefined(ids[b])),
  )
}

/** A subtraction would create a bigint for each comparison. */
function compareIds(left: bigint, right: bigint): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

/**
 * @returns false, and inserts no plant, if the store rejects one of the plants or has one of the
 *   ids
 */
function insertBatch(connection: Connection, creates: readonly Create[]): boolean {
  const hasKeys = creates.some(({ key }) => key !== undefined)
  const values: RowValue[] = []
  for (const { plant, key = null } of creates) {
    values.push(plant.id, plant.name, plant.tag ?? null)
    if (hasKeys) values.push(key)
  }
  const row = `(?, ?, ?, ${hasKeys ? '?' : 'NULL'})`
  const rows = Array(creates.length).fill(row).join()
  const insert = connection.prepare(`${insertInto} ${rows}`)
  const insertAll = (): Attempt<undefined> => {
    const areInserted = countChanges(insert.run(...values)) === creates.length
    return areInserted ? { type: 'applied', result: undefined } : skippedByTrigger
  }
  return runInSavepoint(connection, insertAll).type === 'applied'
}

/**
 * Applies one change. The id of a create is mostly free, so its plant is inserted without looking
 * the id up. If no row was inserted, a plant has the id, or a trigger skips the row. `planAndApply`
 * finds out which of the two it is: where no plant has the id, it inserts the row again.
 */
function applyOne(connection: Connection, change: Change): Outcome {
  const attempt = runInSavepoint(connection, (): Attempt<Outcome> => {
    const isCreated = change.type === 'create' && insertOne(connection, change.plant, change.key)
    if (!isCreated) return planAndApply(connection, change)
    return { type: 'applied', result: { type: 'created', plant: change.plant } }
  })
  if (attempt.type === 'applied') return attempt.result
  return createConstraintOutcome(change, attempt.reason)
}

/** Looks up the plant that has the id, decides what becomes of the change, and does that. */
function planAndApply(connection: Connection, change: Change): Attempt<Outcome> {
  const rows = connection.prepare(selectStored).all(getTargetId(change))
  const storedPlants = rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
  const { outcomes, createdPlants, replacedPlants, deletedPlants } = planChanges(storedPlants, [
    change,
  ])
  const isApplied =
    createdPlants.every(({ plant, key }) => insertOne(connection, plant, key)) &&
    replacedPlants.every(({ plant }) => runOnRow(connection, updatePlant, ...toRowValues(plant))) &&
    deletedPlants.every(({ id }) => runOnRow(connection, deletePlant, id))
  return isApplied ? { type: 'applied', result: assertDefined(outcomes[0]) } : skippedByTrigger
}

function insertOne(connection: Connection, plant: NewPlant, key?: string): boolean {
  return runOnRow(connection, insertPlant, ...toRowValues(plant), key ?? null)
}

/** @returns false if the statement has changed no row, as when a trigger skips it */
function runOnRow(connection: Connection, sql: string, ...values: RowValue[]): boolean {
  return countChanges(connection.prepare(sql).run(...values)) === 1
}

function countChanges({ changes }: { changes: number | bigint }): number {
  return Number(changes)
}

/** The result of changes in a savepoint, or the reason why the store rejects them. */
type Attempt<T> = { type: 'applied'; result: T } | { type: 'rejected'; reason: string }

const skippedByTrigger = { type: 'rejected', reason: 'a trigger skipped it' } as const

/**
 * Runs `work` in a savepoint. All its changes are undone if `work` returns that they are rejected,
 * or throws because the store rejects a row.
 */
function runInSavepoint<T>({ db, prepare }: Connection, work: () => Attempt<T>): Attempt<T> {
  let attempt: Attempt<T>
  prepare('SAVEPOINT change').run()
  try {
    attempt = work()
  } catch (error) {
    // A trigger that calls RAISE(ROLLBACK) has ended the transaction, and with it the savepoint.
    if (!isRejection(error) || !db.isTransaction) throw error
    attempt = { type: 'rejected', reason: describeReason(error) }
  }
  if (attempt.type === 'rejected') prepare('ROLLBACK TO change').run()
  prepare('RELEASE change').run()
  return attempt
}

/**
 * Whether SQLite has rejected a row. `ERROR` comes from an index on an expression that fails, such
 * as `json(name)`.
 */
function isRejection(error: unknown): boolean {
  const code = findPrimaryCode(error)
  return code === SQLITE_ERROR || code === SQLITE_TOOBIG || code === SQLITE_CONSTRAINT
}

const selectStored = 'SELECT id, name, tag, idempotency_key FROM plants WHERE id = ?'

const insertInto = 'INSERT INTO plants (id, name, tag, idempotency_key) VALUES'

/**
 * `ON CONFLICT (id)` concerns only the id. `INSERT OR IGNORE` would also ignore a constraint of the
 * owner, and the rejected plant would be taken for a plant whose id exists.
 */
const insertPlant = `${insertInto} (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

/** The key is removed, because the plant is no longer what the create with that key stored. */
const updatePlant = 'UPDATE plants SET name = ?2, tag = ?3, idempotency_key = NULL WHERE id = ?1'

const deletePlant = 'DELETE FROM plants WHERE id = ?'
