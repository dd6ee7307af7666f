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

import { reasonOf } from '../../errors.js'
import { type NewPlant, valuesOf } from '../../plant/plant.js'
import { primaryCode } from '../../platform/sqlite.js'
import { type Change, type Create, idOf, type Outcome, refusedOutcome } from '../change.js'
import { planChanges } from '../plan.js'
import type { Connection } from './connection.js'
import { toPlant } from './read.js'

/** A change, with its place in the list of changes. */
type Entry = [index: number, change: Change]

type Value = bigint | string | null

const rowsPerInsert = 50

export function applyChanges(connection: Connection, changes: readonly Change[]): Outcome[] {
  const outcomes = new Array<Outcome>(changes.length)
  const entries = sortById(changes)
  for (let start = 0; start < entries.length; start += rowsPerInsert) {
    const batch = entries.slice(start, start + rowsPerInsert)
    const creates = batch.length > 1 ? toCreates(batch) : undefined
    const areInserted = creates !== undefined && insertTogether(connection, creates)
    for (const [index, change] of batch)
      outcomes[index] =
        areInserted && change.type === 'create'
          ? { type: 'created', plant: change.plant }
          : applyOne(connection, change)
  }
  return outcomes
}

/**
 * Sorts changes by id, so that those in one page of the table come one after the other: a page that
 * is left and visited again may be written twice. Changes of one id stay in their order.
 */
function sortById(changes: readonly Change[]): Entry[] {
  const entries = [...changes.entries()]
  return entries.sort(([, change], [, other]) => Number(idOf(change) - idOf(other)))
}

/** Returns undefined unless all changes are creates. */
function toCreates(entries: readonly Entry[]): Create[] | undefined {
  const creates: Create[] = []
  for (const [, change] of entries) {
    if (change.type !== 'create') return undefined
    creates.push(change)
  }
  return creates
}

/** Inserts all plants, or none of them if the store rejects one or has its id. */
function insertTogether(connection: Connection, creates: readonly Create[]): boolean {
  const hasKeys = creates.some(({ key }) => key !== undefined)
  const values: Value[] = []
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

function applyOne(connection: Connection, change: Change): Outcome {
  const attempt = runOrUndo(connection, (): Outcome | undefined => {
    const isCreated = change.type === 'create' && insert(connection, change.plant, change.key)
    return isCreated ? { type: 'created', plant: change.plant } : applyPlan(connection, change)
  })
  return 'result' in attempt ? attempt.result : refusedOutcome(change, attempt.reason)
}

/**
 * Applies a change to a plant that the store has, or that has no id there.
 *
 * @returns undefined if a trigger skips it
 */
function applyPlan(connection: Connection, change: Change): Outcome | undefined {
  const rows = connection.prepare(selectStored).all(idOf(change))
  const stored = rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
  const plan = planChanges(stored, [change])
  const isApplied =
    plan.created.every(({ plant }) => insert(connection, plant)) &&
    plan.replaced.every(({ plant }) => runOnRow(connection, updatePlant, ...valuesOf(plant))) &&
    plan.deleted.every(({ id }) => runOnRow(connection, deletePlant, id))
  return isApplied ? plan.outcomes[0] : undefined
}

function insert(connection: Connection, plant: NewPlant, key?: string): boolean {
  return runOnRow(connection, insertPlant, ...valuesOf(plant), key ?? null)
}

/** @returns whether the statement has changed its row */
function runOnRow(connection: Connection, sql: string, ...values: Value[]): boolean {
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
  let attempt: Attempt<T> = { reason: 'a trigger ignores it' }
  prepare('SAVEPOINT change').run()
  try {
    const result = work()
    if (result !== undefined) attempt = { result }
  } catch (error) {
    // A trigger that calls RAISE(ROLLBACK) has ended the transaction, and with it the savepoint.
    if (!isRejection(error) || !db.isTransaction) throw error
    attempt = { reason: reasonOf(error) }
  }
  if ('reason' in attempt) prepare('ROLLBACK TO change').run()
  prepare('RELEASE change').run()
  return attempt
}

function isRejection(error: unknown): boolean {
  const code = primaryCode(error)
  return code === SQLITE_ERROR || code === SQLITE_TOOBIG || code === SQLITE_CONSTRAINT
}

const selectStored = 'SELECT id, name, tag, idempotency_key FROM plants WHERE id = ?'

const insertInto = 'INSERT INTO plants (id, name, tag, idempotency_key) VALUES'

/** Another constraint, of the owner, is an error: it is not taken for an id that exists. */
const insertPlant = `${insertInto} (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`

/** Removes the key, so that a late retry of the create conflicts. */
const updatePlant = 'UPDATE plants SET name = ?2, tag = ?3, idempotency_key = NULL WHERE id = ?1'

const deletePlant = 'DELETE FROM plants WHERE id = ?'
