/**
 * Applies changes in a transaction that the caller has begun.
 *
 * Creates are first inserted as if no plant had their ids, because usually none has. If a plant has
 * one of the ids, the insert fails, and the transaction goes back to the savepoint `changes`. Then
 * the plants that have the ids are looked up, `planChanges` decides the outcome of each change, and
 * the plan is executed. Updates and deletions begin with the lookup, which locks the plants, so
 * that the plan stays true until the commit. Creates lock nothing: if another writer takes an id in
 * the meantime, the plan fails, and the next try makes a new plan.
 *
 * The database may reject a plant, for example by a constraint of its owner, and does not say which
 * plant of a statement it rejects. So the changes are halved until the rejected plant is found.
 *
 * Each statement concerns one id, or is an INSERT with VALUES, a COPY or a plain SELECT. These also
 * work in a table that is partitioned or distributed by id. Citus would neither lock rows of
 * several shards by one statement nor insert from `unnest` in a reasonable time. To save round
 * trips, statements about one id each are sent together, as one message.
 */
import { escapeLiteral } from 'pg'
import { PlantsError } from '../../errors.js'
import { type Change, createConstraintOutcome, getTargetId, type Outcome } from '../change.js'
import { type KeyedPlant, type Plan, planChanges, planNewPlants } from '../plan.js'
import { CheckpointMovedError, type ImportEntryChange } from '../store.js'
import type { PostgresConnection, Row } from './connection.js'
import { findConstraintMessage, isUniqueViolation } from './errors.js'
import { parsePlantRow } from './rows.js'
import { importsTable, plantColumns, plantsTable } from './schema.js'

/**
 * @param onWait see `WriteOptions`
 * @returns an outcome for each change, in the order of the changes
 */
export async function applyChangesInTransaction(
  connection: PostgresConnection,
  changes: readonly Change[],
  onWait?: () => void,
): Promise<Outcome[]> {
  try {
    return await tryToApply(connection, changes, onWait)
  } catch (error) {
    const reason = findConstraintMessage(error)
    if (reason === undefined) throw error
    await connection.query(rollBackToSavepoint)
    const [change, ...furtherChanges] = changes
    if (change && furtherChanges.length === 0) return [createConstraintOutcome(change, reason)]
    const half = Math.ceil(changes.length / 2)
    const first = await applyChangesInTransaction(connection, changes.slice(0, half))
    await moveSavepoint(connection)
    return [...first, ...(await applyChangesInTransaction(connection, changes.slice(half)))]
  }
}

/** Moves the savepoint, so that a later failure in the transaction does not undo these changes. */
export async function moveSavepoint(connection: PostgresConnection): Promise<void> {
  await connection.query('RELEASE changes; SAVEPOINT changes')
}

const rollBackToSavepoint = 'ROLLBACK TO changes'

/** After each lookup, another writer may create one of the plants. This ends such a race. */
const maxTries = 6

async function tryToApply(
  connection: PostgresConnection,
  changes: readonly Change[],
  onWait?: () => void,
): Promise<Outcome[]> {
  const creates = changes.filter((change) => change.type === 'create')
  const areCreates = creates.length === changes.length
  // The ids of creates are mostly free, so the first plan looks nothing up.
  let plan = areCreates ? planNewPlants(creates) : await planWithStoredPlants(connection, changes)
  let wasLookedUp = !areCreates
  for (let tries = 1; tries <= maxTries; tries += 1) {
    if (changesNothing(plan)) {
      // The outcomes say what is stored, so the commit confirms that a standby has it.
      await connection.writeWalMessage()
      return plan.outcomes
    }
    const result = await executePlan(connection, plan, onWait)
    if (result === 'saved') return plan.outcomes
    await connection.query(rollBackToSavepoint)
    const nextPlan = await planWithStoredPlants(connection, changes)
    // If no plant has had these ids, neither before the insert nor after it, the insert did not
    // fail because of an id: a unique index of the owner rejects a plant.
    const wereIdsFree = wasLookedUp && nextPlan.createdPlants.length === plan.createdPlants.length
    if (result.violation && wereIdsFree) throw result.violation
    plan = nextPlan
    wasLookedUp = true
  }
  throw new PlantsError('constraint', 'a trigger skipped it, or another writer stored it first')
}

/**
 * Plans changes with the stored plants that have their ids. A create never changes such a plant, so
 * the plants are locked only for other changes.
 */
async function planWithStoredPlants(
  connection: PostgresConnection,
  changes: readonly Change[],
): Promise<Plan> {
  const areCreates = changes.every(({ type }) => type === 'create')
  const ids = [...new Set(changes.map(getTargetId))].toSorted(compareIds)
  const storedPlants = await (areCreates ? findPlants : lockPlants)(connection, ids)
  return planChanges(storedPlants, changes)
}

async function findPlants(connection: PostgresConnection, ids: bigint[]): Promise<KeyedPlant[]> {
  const select = `SELECT ${keyedColumns} FROM ${plantsTable} WHERE id = ANY ($1::bigint[])`
  const { rows } = await connection.query(select, [ids], ids.length)
  return rows.map((row) => toKeyedPlant(row, connection.name))
}

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
    1,
  )
  return results.flatMap(({ rows }) => rows.map((row) => toKeyedPlant(row, connection.name)))
}

function toKeyedPlant(row: Row, server: string): KeyedPlant {
  return { plant: parsePlantRow(row, server), key: row[3] ?? undefined }
}

function changesNothing({ deletedPlants, replacedPlants, createdPlants }: Plan): boolean {
  return deletedPlants.length + replacedPlants.length + createdPlants.length === 0
}

/**
 * A plan that was not saved can be made again: another writer has taken an id or removed a plant,
 * or a trigger ignores a row. The violation is the error of a unique index, or undefined.
 */
type PlanResult = 'saved' | { violation: unknown }

async function executePlan(
  connection: PostgresConnection,
  plan: Plan,
  onWait?: () => void,
): Promise<PlanResult> {
  try {
    const isSaved =
      (await changeRows(connection, plan.deletedPlants.map(formatDelete))) &&
      (await changeRows(connection, plan.replacedPlants.map(formatUpdate))) &&
      (await insertPlants(connection, plan.createdPlants, onWait))
    return isSaved ? 'saved' : { violation: undefined }
  } catch (error) {
    if (isUniqueViolation(error)) return { violation: error }
    throw error
  }
}

/** @returns true if each of the statements has changed one row */
async function changeRows(connection: PostgresConnection, statements: string[]): Promise<boolean> {
  const results = await connection.queryEach(statements)
  return results.every(({ rowCount }) => rowCount === 1)
}

function formatDelete({ id }: { id: bigint }): string {
  return `DELETE FROM ${plantsTable} WHERE id = '${id}'`
}

function formatUpdate({ plant: { id, name, tag }, key }: KeyedPlant): string {
  const values = [name, tag, key].map((field) => formatLiteral(field))
  return `UPDATE ${plantsTable} SET (name, tag, idempotency_key) = (${values.join()}) WHERE id = '${id}'`
}

function formatLiteral(field: string | undefined): string {
  return field === undefined ? 'NULL' : escapeLiteral(field)
}

/** @returns true if all plants were inserted */
async function insertPlants(
  connection: PostgresConnection,
  created: readonly KeyedPlant[],
  onWait?: () => void,
): Promise<boolean> {
  if (created.length === 0) return true
  // All writers insert in the order of ids, so that no two of them wait for each other.
  const sortedPlants = created.toSorted((left, right) => compareIds(left.plant.id, right.plant.id))
  if (sortedPlants.length > maxRowsPerInsert) {
    const rowCount = await connection.insertByCopy(keyedTable, formatCopyRows(sortedPlants), onWait)
    return rowCount === sortedPlants.length
  }
  // Literals take less processor time than four parameters for each row.
  const rows = sortedPlants.map(formatRow)
  const { rowCount } = await connection.query(`INSERT INTO ${keyedTable} VALUES ${rows.join()}`)
  return rowCount === sortedPlants.length
}

function formatRow({ plant: { id, name, tag }, key }: KeyedPlant): string {
  return `('${id}',${[name, tag, key].map(formatLiteral).join()})`
}

function compareIds(left: bigint, right: bigint): number {
  return left < right ? -1 : 1
}

/** Above this number, COPY is faster. For fewer rows, an INSERT is, as it needs fewer messages. */
const maxRowsPerInsert = 500

const keyedColumns = `${plantColumns}, idempotency_key`
const keyedTable = `${plantsTable} (${keyedColumns})`

/** Formats rows for COPY: https://www.postgresql.org/docs/current/sql-copy.html, "Text Format". */
export function formatCopyRows(keyedPlants: readonly KeyedPlant[]): string {
  const formatCopyRow = ({ plant: { id, name, tag }, key }: KeyedPlant) =>
    `${id}\t${formatCell(name)}\t${formatCell(tag)}\t${formatCell(key)}\n`
  return keyedPlants.map(formatCopyRow).join('')
}

function formatCell(field: string | null | undefined): string {
  if (field == null) return '\\N'
  // Most fields have no such character, and to search for one takes less time than `replace`.
  if (field.search(escapedCharacters) === -1) return field
  return field.replace(escapedCharacters, (character) => `\\${escapeLetters[character]}`)
}

/** The characters that the text format of COPY escapes, and the letters that stand for them. */
const escapedCharacters = /[\\\t\n\r]/g
const escapeLetters: Record<string, string> = { '\\': '\\', '\t': 't', '\n': 'n', '\r': 'r' }

export async function saveImportEntry(
  connection: PostgresConnection,
  { id, expectedState, newState }: ImportEntryChange,
): Promise<void> {
  if (expectedState === newState) return
  const replace = async (sql: string, values: unknown[]) => {
    if ((await connection.query(sql, values)).rowCount === 0) throw new CheckpointMovedError()
  }
  if (newState === undefined)
    await replace(`DELETE FROM ${importsTable} WHERE id = $1 AND state = $2`, [id, expectedState])
  else if (expectedState === undefined)
    await replace(`INSERT INTO ${importsTable} VALUES ($1, $2) ON CONFLICT DO NOTHING`, [
      id,
      newState,
    ])
  else
    await replace(`UPDATE ${importsTable} SET state = $3 WHERE id = $1 AND state = $2`, [
      id,
      expectedState,
      newState,
    ])
}
