/**
 * Applies changes in a transaction that the caller has begun.
 *
 * Creates are first inserted as if no plant had their ids, because usually none has. `RETURNING`
 * tells which rows were inserted. The plants with the other ids are looked up, and `planChanges`
 * decides the outcomes of their creates. Many rows are inserted by COPY, which fails as a whole if
 * one row is rejected. Then the transaction goes back to the savepoint `changes`, the ids are
 * looked up, and what is left is inserted by statements. Updates and deletions begin with a lookup,
 * which locks the plants, so that the plan stays true until the commit.
 *
 * Only the id tells whether a plant exists. A unique index of the owner rejects a plant, as any
 * other constraint does. The database does not say which plant of a statement it rejects, so the
 * changes are halved until the rejected plant is found.
 *
 * Each statement concerns one id, or is an INSERT with VALUES, a COPY or a plain SELECT. These also
 * work in a table that is partitioned or distributed by id. Citus would neither lock rows of
 * several shards by one statement nor insert from `unnest` in a reasonable time. To save round
 * trips, statements about one id each are sent together, as one message.
 */
import { escapeLiteral } from 'pg'
import { assertDefined, PlantsError } from '../../errors.js'
import {
  type Change,
  type Create,
  createConstraintOutcome,
  getTargetId,
  type Outcome,
} from '../change.js'
import { isInsertable, type KeyedPlant, type PlantRow, planChanges, toRow } from '../plan.js'
import type { PostgresConnection, Row } from './connection.js'
import { findConstraintMessage, isCopyRejected } from './explain.js'
import { parsePlantRow, toId } from './rows.js'
import { plantColumns, plantsTable } from './schema.js'

/** COPY takes less time than an INSERT of more rows. */
const maxRowsPerInsert = 100

/** After a lookup, another writer may create or delete one of the plants. This ends such a race. */
const maxTries = 6

/** Why a change could not be made in `maxTries` tries. */
const skippedReason = 'a trigger skipped it, or another writer stored it first'

export class PostgresChangeApplier {
  /**
   * Whether the ids of many creates are looked up before they are inserted, and COPY is not tried.
   * Where some ids exist, as in an import that is repeated, the next ids most likely exist, too.
   * It is a hint for the next call, which other calls may change at any moment.
   */
  #expectsStoredIds = false

  /** @returns an outcome for each change, in the order of the changes */
  async apply(connection: PostgresConnection, changes: readonly Change[]): Promise<Outcome[]> {
    const creates = changes.filter(isInsertable)
    try {
      return await (creates.length === changes.length
        ? this.#applyCreates(connection, creates)
        : applyLocked(connection, changes))
    } catch (error) {
      const reason = findConstraintMessage(error)
      if (reason === undefined) throw error
      await connection.query(rollBackToSavepoint)
      const [change, ...furtherChanges] = changes
      if (change && furtherChanges.length === 0) return [createConstraintOutcome(change, reason)]
      const half = Math.ceil(changes.length / 2)
      const first = await this.apply(connection, changes.slice(0, half))
      await moveSavepoint(connection)
      return [...first, ...(await this.apply(connection, changes.slice(half)))]
    }
  }

  /** A create never changes a stored plant, so no plant is locked. */
  async #applyCreates(
    connection: PostgresConnection,
    creates: readonly Create[],
  ): Promise<Outcome[]> {
    const outcomes = new Map<Create, Outcome>()
    let remaining = creates
    let mayCopy = !this.#expectsStoredIds
    if (creates.length > maxRowsPerInsert && this.#expectsStoredIds) {
      remaining = await planStored(connection, creates, outcomes)
      this.#expectsStoredIds = remaining.length < creates.length
    }
    let insertedCount = 0
    for (let tries = 1; tries <= maxTries && remaining.length > 0; tries += 1) {
      // Of several creates with one id, the first is inserted.
      const createsById = new Map(remaining.toReversed().map((create) => [create.plant.id, create]))
      const rows = [...createsById.values()].map(toRow).sort(compareIds)
      const insertedIds = await this.#insert(connection, rows, mayCopy)
      mayCopy = false
      insertedCount += insertedIds.length
      for (const create of insertedIds.map((id) => createsById.get(id)))
        if (create) outcomes.set(create, { type: 'created', plant: create.plant })
      remaining = remaining.filter((create) => !outcomes.has(create))
      if (remaining.length > 0) remaining = await planStored(connection, remaining, outcomes)
    }
    for (const create of remaining)
      outcomes.set(create, createConstraintOutcome(create, skippedReason))
    const orderedOutcomes = creates.map((create) => assertDefined(outcomes.get(create)))
    const areStored = orderedOutcomes.some(({ type }) => type !== 'rejected')
    // A synchronous standby may not have plants that were stored before.
    if (insertedCount === 0 && areStored) await connection.writeWalMessage()
    return orderedOutcomes
  }

  /** @returns the ids that were inserted. A COPY inserts none if one of the rows is rejected. */
  async #insert(
    connection: PostgresConnection,
    rows: readonly PlantRow[],
    mayCopy: boolean,
  ): Promise<bigint[]> {
    if (!mayCopy || rows.length <= maxRowsPerInsert) return insertByStatements(connection, rows)
    if (await tryToCopy(connection, rows)) return rows.map(([id]) => id)
    await connection.query(rollBackToSavepoint)
    this.#expectsStoredIds = true
    return []
  }
}

/**
 * Looks up the plants that have the ids of creates, and adds the outcomes of these creates.
 *
 * @returns the creates whose ids no plant has
 */
async function planStored(
  connection: PostgresConnection,
  creates: readonly Create[],
  outcomes: Map<Create, Outcome>,
): Promise<Create[]> {
  const ids = [...new Set(creates.map(getTargetId))]
  const select = `SELECT ${keyedColumns} FROM ${plantsTable} WHERE id = ANY ($1::bigint[])`
  const { rows } = await connection.query(select, [ids])
  const storedPlants = rows.map((row) => toKeyedPlant(row, connection.name))
  const storedIds = new Set(storedPlants.map(({ plant }) => plant.id))
  const storedCreates = creates.filter(({ plant }) => storedIds.has(plant.id))
  const plan = planChanges(storedPlants, storedCreates)
  for (const [index, create] of storedCreates.entries())
    outcomes.set(create, assertDefined(plan.outcomes[index]))
  return creates.filter((create) => !outcomes.has(create))
}

/**
 * @returns false if a row was rejected, or a trigger has skipped one. The caller then goes back to
 *   the savepoint.
 */
async function tryToCopy(
  connection: PostgresConnection,
  rows: readonly PlantRow[],
): Promise<boolean> {
  try {
    const text = rows.map(formatCopyRow).join('')
    return (await connection.insertByCopy(keyedTable, text)) === rows.length
  } catch (error) {
    if (isCopyRejected(error)) return false
    throw error
  }
}

/**
 * Inserts the rows whose ids no plant has.
 *
 * @param rows sorted by id, with each id once. All writers insert in this order, so that no two of
 *   them wait for each other (a deadlock).
 * @returns the ids that were inserted
 */
async function insertByStatements(
  connection: PostgresConnection,
  rows: readonly PlantRow[],
): Promise<bigint[]> {
  const insertedIds: bigint[] = []
  for (let start = 0; start < rows.length; start += maxRowsPerInsert) {
    const batch = rows.slice(start, start + maxRowsPerInsert)
    const sql = `INSERT INTO ${keyedTable} VALUES ${batch.map(formatRow).join()}
      ON CONFLICT (id) DO NOTHING RETURNING id`
    const { rows: inserted } = await connection.query(sql)
    // If all rows were inserted, nothing depends on the order of the ids that are returned.
    const ids =
      inserted.length === batch.length
        ? batch.map(([id]) => id)
        : inserted.map(([id]) => toId(id, connection.name))
    insertedIds.push(...ids)
  }
  return insertedIds
}

/** Applies changes to plants that it has locked, so that the plan stays true until the commit. */
async function applyLocked(
  connection: PostgresConnection,
  changes: readonly Change[],
): Promise<Outcome[]> {
  const ids = [...new Set(changes.map(getTargetId))].sort(compareNumbers)
  for (let tries = 1; tries <= maxTries; tries += 1) {
    const { outcomes, createdPlants, replacedPlants, deletedPlants } = planChanges(
      await lockPlants(connection, ids),
      changes,
    )
    // Locks are written to the log, so the commit of a transaction that changes nothing waits for a
    // synchronous standby, too.
    if (createdPlants.length + replacedPlants.length + deletedPlants.length === 0) return outcomes
    const createdRows = createdPlants.map(toRow).sort(compareIds)
    const isSaved =
      (await changeRows(connection, deletedPlants.map(formatDelete))) &&
      (await changeRows(connection, replacedPlants.map(formatUpdate))) &&
      (await insertByStatements(connection, createdRows)).length === createdRows.length
    if (isSaved) return outcomes
    await connection.query(rollBackToSavepoint)
  }
  throw new PlantsError('constraint', skippedReason)
}

/** Moves the savepoint, so that a later failure in the transaction does not undo these changes. */
export async function moveSavepoint(connection: PostgresConnection): Promise<void> {
  await connection.query('RELEASE changes; SAVEPOINT changes')
}

const rollBackToSavepoint = 'ROLLBACK TO changes'

/**
 * @param ids must be in ascending order. All writers lock in this order, so that no two of them can
 *   wait for each other (a deadlock).
 */
async function lockPlants(
  connection: PostgresConnection,
  ids: readonly bigint[],
): Promise<KeyedPlant[]> {
  const results = await connection.queryEach(
    ids.map((id) => `SELECT ${keyedColumns} FROM ${plantsTable} WHERE id = '${id}' FOR UPDATE`),
  )
  return results.flatMap(({ rows }) => rows.map((row) => toKeyedPlant(row, connection.name)))
}

function toKeyedPlant(row: Row, server: string): KeyedPlant {
  return { plant: parsePlantRow(row, server), key: row[3] ?? undefined }
}

/** @returns true if each of the statements has changed one row */
async function changeRows(connection: PostgresConnection, statements: string[]): Promise<boolean> {
  const results = await connection.queryEach(statements)
  return results.every(({ rowCount }) => rowCount === 1)
}

function formatDelete({ id }: { id: bigint }): string {
  return `DELETE FROM ${plantsTable} WHERE id = '${id}'`
}

function formatUpdate(plant: KeyedPlant): string {
  const [id, ...fields] = toRow(plant)
  return `UPDATE ${plantsTable} SET (name, tag, idempotency_key) = (${fields.map(formatLiteral).join()}) WHERE id = '${id}'`
}

/** Literals take less processor time than four parameters for each row. */
function formatRow([id, ...fields]: PlantRow): string {
  return `('${id}',${fields.map(formatLiteral).join()})`
}

function formatLiteral(field: string | null): string {
  return field === null ? 'NULL' : escapeLiteral(field)
}

function compareIds([left]: PlantRow, [right]: PlantRow): number {
  return compareNumbers(left, right)
}

function compareNumbers(left: bigint, right: bigint): number {
  return left < right ? -1 : 1
}

const keyedColumns = `${plantColumns}, idempotency_key`
const keyedTable = `${plantsTable} (${keyedColumns})`

/** See https://www.postgresql.org/docs/current/sql-copy.html, "Text Format". */
export function formatCopyRow([id, ...fields]: PlantRow): string {
  return `${id}\t${fields.map(formatCell).join('\t')}\n`
}

function formatCell(field: string | null): string {
  if (field === null) return '\\N'
  // Most fields have no such character, and to search for one takes less time than `replace`.
  if (field.search(escapedCharacters) === -1) return field
  return field.replace(escapedCharacters, (character) => `\\${escapeLetters[character]}`)
}

/** The characters that the text format of COPY escapes, and the letters that stand for them. */
const escapedCharacters = /[\\\t\n\r]/g
const escapeLetters: Record<string, string> = { '\\': '\\', '\t': 't', '\n': 'n', '\r': 'r' }
