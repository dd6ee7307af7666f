/**
 * Applies changes in a transaction that the caller has begun.
 *
 * An INSERT of fifty new plants takes 0.6 of the time of fifty INSERTs of one. So fifty changes
 * that follow one another are inserted together, if all of them are creates and the store accepts
 * them. Otherwise they are applied one by one.
 *
 * The owner of a store may add constraints, indexes and triggers. What these reject is one change,
 * which is undone as a whole: a trigger that calls RAISE(FAIL) undoes nothing itself, and one that
 * calls RAISE(IGNORE) skips the change without an error.
 */

import { assertDefined, describeReason } from '../../errors.js'
import { type NewPlant, type NewPlantRows, type RowValue, toRowValues } from '../../plant/plant.js'
import { findPrimaryCode } from '../../platform/sqlite.js'
import {
  type Change,
  type Create,
  createConstraintOutcome,
  getTargetId,
  type Outcome,
} from '../change.js'
import { planChanges } from '../plan.js'
import { RowsRejectedError } from '../store.js'
import type { Connection } from './connection.js'
import { toPlant } from './read.js'

const rowsPerInsert = 50

export function applyChanges(connection: Connection, changes: readonly Change[]): Outcome[] {
  if (areInOrder(changes)) return applyInOrder(connection, changes)
  const order = sortById(changes)
  const sorted = applyInOrder(
    connection,
    order.map((index) => assertDefined(changes[index])),
  )
  const outcomes = new Array<Outcome>(changes.length)
  for (const [at, index] of order.entries()) outcomes[index] = assertDefined(sorted[at])
  return outcomes
}

function applyInOrder(connection: Connection, changes: readonly Change[]): Outcome[] {
  const outcomes: Outcome[] = []
  for (let start = 0; start < changes.length; start += rowsPerInsert) {
    const batch = changes.slice(start, start + rowsPerInsert)
    const creates = batch.length > 1 && batch.every(isCreate) ? batch : undefined
    if (creates && insertTogether(connection, creates))
      for (const { plant } of creates) outcomes.push({ type: 'created', plant })
    else for (const change of batch) outcomes.push(applyOne(connection, change))
  }
  return outcomes
}

function isCreate(change: Change): change is Create {
  return change.type === 'create'
}

/** Most files are sorted by id, and sorting them again would take longer than to find that. */
function areInOrder(changes: readonly Change[]): boolean {
  return changes.every((change, index) => {
    const before = changes[index - 1]
    return !before || getTargetId(before) <= getTargetId(change)
  })
}

/**
 * Returns the indexes of changes by id, so that those in one page of the table come one after the
 * other: a page that is left and visited again may be written twice. Changes of one id stay in
 * their order.
 */
function sortById(changes: readonly Change[]): number[] {
  const ids = changes.map(getTargetId)
  return [...changes.keys()].sort((a, b) =>
    compareIds(assertDefined(ids[a]), assertDefined(ids[b])),
  )
}

/** Subtracting would make a bigint for each comparison. */
function compareIds(id: bigint, other: bigint): number {
  if (id === other) return 0
  return id < other ? -1 : 1
}

/** Inserts all plants, or none of them if the store rejects one or has its id. */
function insertTogether(connection: Connection, creates: readonly Create[]): boolean {
  const hasKeys = creates.some(({ key }) => key !== undefined)
  const values: RowValue[] = []
  for (const { plant, key = null } of creates) {
    values.push(plant.id, plant.name, plant.tag ?? null)
    if (hasKeys) values.push(key)
  }
  const row = `(?, ?, ?, ${hasKeys ? '?' : 'NULL'})`
  const rows = Array(creates.length).fill(row).join()
  const insert = connection.prepare(`${insertInto} ${rows}`)
  const insertAll = () => {
    const isComplete = countChanges(insert.run(...values)) === creates.length
    return isComplete ? 'inserted' : undefined
  }
  return 'result' in runOrUndo(connection, insertAll)
}

/**
 * Inserts rows of a text. Without savepoints, which copy each page that changes, a row that is not
 * inserted rolls back the transaction: `OR ROLLBACK`, also where a trigger ignores the row.
 */
export function insertRows({ prepare }: Connection, rows: NewPlantRows): void {
  const order = rows.listById()
  for (let start = 0; start < rows.length; start += rowsPerInsert) {
    const end = Math.min(start + rowsPerInsert, rows.length)
    const values: RowValue[] = []
    for (let index = start; index < end; index += 1)
      if (!rows.addValues(order?.[index] ?? index, values)) throw new RowsRejectedError()
    const sql = buildRowsInsert(end - start)
    try {
      if (countChanges(prepare(sql).run(...values)) !== end - start) throw new RowsRejectedError()
    } catch (error) {
      throw isRejection(error) ? new RowsRejectedError() : error
    }
  }
}

function buildRowsInsert(count: number): string {
  return `INSERT OR ROLLBACK INTO plants (id, name, tag) VALUES ${Array(count).fill('(?, ?, ?)').join()}`
}

function applyOne(connection: Connection, change: Change): Outcome {
  const attempt = runOrUndo(connection, (): Outcome | undefined => {
    const isCreated = change.type === 'create' && insert(connection, change.plant, change.key)
    return isCreated ? { type: 'created', plant: change.plant } : applyPlan(connection, change)
  })
  return 'result' in attempt ? attempt.result : createConstraintOutcome(change, attempt.reason)
}

/**
 * Applies a change to a plant that the store has, or that has no id there.
 *
 * @returns undefined if a trigger skips it
 */
function applyPlan(connection: Connection, change: Change): Outcome | undefined {
  const rows = connection.prepare(selectStored).all(getTargetId(change))
  const stored = rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
  const plan = planChanges(stored, [change])
  const isApplied =
    plan.created.every(({ plant }) => insert(connection, plant)) &&
    plan.replaced.every(({ plant }) => runOnRow(connection, updatePlant, ...toRowValues(plant))) &&
    plan.deleted.every(({ id }) => runOnRow(connection, deletePlant, id))
  return isApplied ? plan.outcomes[0] : undefined
}

function insert(connection: Connection, plant: NewPlant, key?: string): boolean {
  return runOnRow(connection, insertPlant, ...toRowValues(plant), key ?? null)
}

/** @returns whether the statement has changed its row */
function runOnRow(connection: Connection, sql: string, ...values: RowValue[]): boolean {
  return countChanges(connection.prepare(sql).run(...values)) === 1
}

function countChanges({ changes }: { changes: number | bigint }): number {
  return Number(changes)
}

/** SQLite's result codes when it rejects a row (https://sqlite.org/rescode.html). */
const SQLITE_ERROR = 1 // such as of an index on an expression
const SQLITE_TOOBIG = 18
const SQLITE_CONSTRAINT = 19

type Attempt<T> = { result: T } | { reason: string }

/**
 * Runs `work`, and undoes it if the store rejects a row.
 *
 * @param work returns undefined if a trigger skips a row
 * @returns the result of the work, or the reason of the store
 */
function runOrUndo<T>({ db, prepare }: Connection, work: () => T | undefined): Attempt<T> {
  let attempt: Attempt<T> = { reason: 'a trigger skipped it' }
  prepare('SAVEPOINT change').run()
  try {
    const result = work()
    if (result !== undefined) attempt = { result }
  } catch (error) {
    // A trigger that calls RAISE(ROLLBACK) has ended the transaction, and with it the savepoint.
    if (!isRejection(error) || !db.isTransaction) throw error
    attempt = { reason: describeReason(error) }
  }
  if ('reason' in attempt) prepare('ROLLBACK TO change').run()
  prepare('RELEASE change').run()
  return attempt
}

function isRejection(error: unknown): boolean {
  const code = findPrimaryCode(error)
  return code === SQLITE_ERROR || code === SQLITE_TOOBIG || code === SQLITE_CONSTRAINT
}

const selectStored = 'SELECT id, name, tag, idempotency_key FROM plants WHERE id = ?'

const insertInto = 'INSERT INTO plants (id, name, tag, idempotency_key) VALUES'

/** Another constraint, of the owner, is an error: it is not taken for an id that exists. */
const insertPlant = `${insertInto} (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

/** Removes the key, so that a late retry of the create conflicts. */
const updatePlant = 'UPDATE plants SET name = ?2, tag = ?3, idempotency_key = NULL WHERE id = ?1'

const deletePlant = 'DELETE FROM plants WHERE id = ?'
