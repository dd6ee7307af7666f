/**
 * Creates are first inserted as if their ids and keys were free. Where they are not, and for other
 * changes, the plants that have them are looked up, and locked if they are changed: a plan for them
 * stays true until the commit. A failed attempt goes back to the savepoint `changes`. A plant that
 * the database itself refuses is found by halving.
 */
import { PlantsError } from '../../errors.js'
import { type Change, idOf, type Outcome, refusedOutcome } from '../change.js'
import { allCreated, type KeyedPlant, type Plan, planOf } from '../plan.js'
import { type CheckpointChange, CheckpointMovedError } from '../store.js'
import type { Connection } from './connection.js'
import { isTaken, refusalIn } from './errors.js'
import { toPlant } from './rows.js'
import { columns, imports, plants } from './schema.js'

export async function makeChanges(
  connection: Connection,
  changes: readonly Change[],
): Promise<Outcome[]> {
  try {
    return await tryChanges(connection, changes)
  } catch (error) {
    const refusal = refusalIn(error)
    if (refusal === undefined) throw error
    await connection.query(undo)
    const [change, ...others] = changes
    if (change && others.length === 0) return [refusedOutcome(change, refusal)]
    const half = Math.ceil(changes.length / 2)
    const first = await makeChanges(connection, changes.slice(0, half))
    await keepChanges(connection)
    return [...first, ...(await makeChanges(connection, changes.slice(half)))]
  }
}

/** What comes later in the transaction undoes no further. */
export async function keepChanges(connection: Connection): Promise<void> {
  await connection.query('RELEASE changes; SAVEPOINT changes')
}

async function tryChanges(connection: Connection, changes: readonly Change[]): Promise<Outcome[]> {
  const creates = changes.filter((change) => change.type === 'create')
  const areCreates = creates.length === changes.length
  const keys = creates.map(({ key }) => key).filter((key) => key !== undefined)
  const select = `SELECT ${columns}, idempotency_key FROM ${plants}
    WHERE id = ANY ($1::bigint[]) OR idempotency_key = ANY ($2::text[])
    ORDER BY id ${areCreates ? '' : 'FOR UPDATE'}`
  const storedFor = async () => {
    const ids = changes.map(idOf)
    const { rows } = await connection.query(select, [ids, keys], ids.length + keys.length)
    return rows.map((row) => ({
      plant: toPlant(row, connection.name),
      key: row[3] ?? undefined,
    }))
  }
  // A try fails if another writer has created one of the plants since they were looked up.
  for (let tries = 1; tries <= 6; tries += 1) {
    const isBlind = areCreates && tries === 1
    const plan = isBlind ? allCreated(creates) : planOf(await storedFor(), changes)
    if (changesNothing(plan)) {
      // The outcomes say what is stored, so the commit confirms that a standby has it.
      await connection.logMessage()
      return plan.outcomes
    }
    if (await save(connection, plan)) return plan.outcomes
    await connection.query(undo)
  }
  throw new PlantsError('constraint', 'a trigger ignores it, or others store the same')
}

const undo = 'ROLLBACK TO changes'

function changesNothing({ deleted, replaced, created }: Plan): boolean {
  return deleted.length + replaced.length + created.length === 0
}

/** Returns whether all is changed: another writer may have one of the ids or keys. */
async function save(connection: Connection, plan: Plan): Promise<boolean> {
  const { deleted, replaced, created } = plan
  const changesAll = async (rows: readonly unknown[], text: string, values: unknown[]) =>
    rows.length === 0 || (await connection.query(text, values)).rowCount === rows.length
  try {
    const ids = deleted.map(({ id }) => id)
    if (!(await changesAll(ids, remove, [ids]))) return false
    if (!(await changesAll(replaced, update, valuesOf(replaced)))) return false
    // All writers have one order: no deadlocks.
    const sorted = created.toSorted((one, other) => (one.plant.id < other.plant.id ? -1 : 1))
    if (sorted.length > maxInserted)
      return (await connection.copyIn(target, copiedRows(sorted))) === sorted.length
    return await changesAll(sorted, insert, valuesOf(sorted))
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
}

/** Of one INSERT. It takes fewer messages than COPY, which is faster for many. */
const maxInserted = 500

const target = `${plants} (${columns}, idempotency_key)`
const newRows =
  'unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS new (id, name, tag, key)'
const insert = `INSERT INTO ${target} SELECT * FROM ${newRows}`
const remove = `DELETE FROM ${plants} WHERE id = ANY ($1::bigint[])`
const update = `UPDATE ${plants} AS plant SET name = new.name, tag = new.tag, idempotency_key = new.key
  FROM ${newRows} WHERE plant.id = new.id`

function valuesOf(all: readonly KeyedPlant[]): unknown[] {
  return [
    all.map(({ plant }) => plant.id),
    all.map(({ plant }) => plant.name),
    all.map(({ plant }) => plant.tag),
    all.map(({ key }) => key),
  ]
}

/** https://www.postgresql.org/docs/current/sql-copy.html, Text Format */
export function copiedRows(all: readonly KeyedPlant[]): string {
  const cells = ({ plant: { id, name, tag }, key }: KeyedPlant) =>
    `${id}\t${cell(name)}\t${cell(tag)}\t${cell(key)}\n`
  return all.map(cells).join('')
}

function cell(text: string | undefined): string {
  if (text === undefined) return '\\N'
  if (text.search(special) === -1) return text // as most: to replace nothing takes longer
  return text.replace(special, (each) => `\\${letters[each]}`)
}

const special = /[\\\t\n\r]/g
const letters: Record<string, string> = { '\\': '\\', '\t': 't', '\n': 'n', '\r': 'r' }

export async function saveCheckpoint(
  connection: Connection,
  { id, from, to }: CheckpointChange,
): Promise<void> {
  if (from === to) return
  const replace = async (text: string, values: unknown[]) => {
    if ((await connection.query(text, values)).rowCount === 0) throw new CheckpointMovedError()
  }
  if (to === undefined)
    await replace(`DELETE FROM ${imports} WHERE id = $1 AND state = $2`, [id, from])
  else if (from === undefined)
    await replace(`INSERT INTO ${imports} VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, to])
  else
    await replace(`UPDATE ${imports} SET state = $3 WHERE id = $1 AND state = $2`, [id, from, to])
}
