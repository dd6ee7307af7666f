/**
 * How changes are made. Most creates need no lookup: they are inserted as if their ids and keys were free. Where that
 * fails, or for other changes, the plants that have the ids and keys are read first, and locked if they are changed, so
 * that a plan for them stays true until the commit. A plant that the database itself refuses is found by halving.
 *
 * All of it happens in a transaction with a savepoint `changes`, to which a failed attempt goes back.
 */
import { textLength } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { type Change, constraintProblem, idOf, type Outcome, rejected } from '../common/change.js'
import { allCreated, type KeyedPlant, type Plan, planOf } from '../common/plan.js'
import {
  type CheckpointChange,
  CheckpointMovedError,
  donePrefix,
  maxDone,
} from '../common/store.js'
import type { Connection } from './connection.js'
import { isTaken, refusalIn } from './errors.js'
import { columns, imports, plants, toPlant } from './schema.js'

export async function makeChanges(
  connection: Connection,
  changes: readonly Change[],
): Promise<Outcome[]> {
  try {
    return await tryChanges(connection, changes)
  } catch (error) {
    const refusal = refusalIn(error)
    if (refusal === undefined) throw error
    await undoChanges(connection)
    const [change, ...others] = changes
    if (change && others.length === 0) return [rejected(constraintProblem(idOf(change), refusal))]
    const half = Math.ceil(changes.length / 2)
    const first = await makeChanges(connection, changes.slice(0, half))
    await keepChanges(connection)
    return [...first, ...(await makeChanges(connection, changes.slice(half)))]
  }
}

/** What comes later in the transaction does not undo what was changed up to here. */
export async function keepChanges(connection: Connection): Promise<void> {
  await connection.query('RELEASE changes; SAVEPOINT changes')
}

async function undoChanges(connection: Connection): Promise<void> {
  await connection.query('ROLLBACK TO changes')
}

async function tryChanges(connection: Connection, changes: readonly Change[]): Promise<Outcome[]> {
  const creates = changes.filter((change) => change.type === 'create')
  const areCreates = creates.length === changes.length
  // After the first try, another writer has created one of the plants since they were looked up.
  for (let tries = 1; tries <= 20; tries += 1) {
    const areFree = areCreates && tries === 1
    const lock = areCreates ? '' : 'FOR UPDATE'
    const plan = areFree
      ? allCreated(creates)
      : planOf(await storedFor(connection, changes, lock), changes)
    // A later try must not leave out what somebody else's unique constraint forbids.
    if (await save(connection, plan, areFree ? 'ON CONFLICT DO NOTHING' : '')) return plan.outcomes
    await undoChanges(connection)
  }
  const message = `Other writers kept creating the same plants in ${connection.name}`
  throw new PlantsError('unavailable', message, { hint: 'Try again' })
}

/** Reads the plants that have the ids or the keys of the changes. */
async function storedFor(
  connection: Connection,
  changes: readonly Change[],
  lock: '' | 'FOR UPDATE',
): Promise<KeyedPlant[]> {
  const keys = changes.map((change) => (change.type === 'create' ? change.key : undefined))
  const text = `SELECT ${columns}, idempotency_key FROM ${plants}
    WHERE id = ANY ($1::bigint[]) OR idempotency_key = ANY ($2::text[]) ORDER BY id ${lock}`
  const values = [changes.map(idOf), keys.filter((key) => key !== undefined)]
  const { rows } = await connection.query(text, values)
  return rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
}

/** Returns false if another writer has one of the new ids or keys. */
async function save(
  connection: Connection,
  { deleted, replaced, created }: Plan,
  onConflict: '' | 'ON CONFLICT DO NOTHING',
): Promise<boolean> {
  const change = async (count: number, text: string, values: unknown[]) => {
    if (count > 0 && (await connection.query(text, values)).rowCount !== count)
      throw missingRows(connection)
  }
  const ids = deleted.map(({ id }) => id)
  const after = replaced.map((each) => each.after)
  try {
    await change(ids.length, `DELETE FROM ${plants} WHERE id = ANY ($1::bigint[])`, [ids])
    await change(after.length, update, valuesOf(after))
    const count = await insert(connection, created, onConflict)
    if (count !== created.length && onConflict === '') throw missingRows(connection)
    return count === created.length
  } catch (error) {
    if (isTaken(error)) return false
    throw error
  }
}

function missingRows({ name }: Connection): PlantsError {
  const hint =
    'Look for triggers, rules and policies on plant_store.plants that plants did not create'
  return new PlantsError('inaccessible', `${name} did not change all plants`, { hint })
}

/** Of one INSERT, which takes fewer messages than COPY. That is by far the fastest for many. */
export const limits = { plants: 1000, characters: 4_000_000 }

/** Returns how many were inserted. COPY fails where an id or a key exists. All writers have one order: no deadlocks. */
async function insert(
  connection: Connection,
  created: readonly KeyedPlant[],
  onConflict: string,
): Promise<number | null> {
  if (created.length === 0) return 0
  const sorted = created.toSorted((one, other) => (one.plant.id < other.plant.id ? -1 : 1))
  const characters = sorted.reduce((sum, { plant }) => sum + textLength(plant), 0)
  if (sorted.length > limits.plants || characters > limits.characters)
    return connection.copyIn(target, copiedRows(sorted))
  const text = `INSERT INTO ${target} SELECT * FROM ${newRows} ${onConflict}`
  return (await connection.query(text, valuesOf(sorted))).rowCount
}

const target = `${plants} (${columns}, idempotency_key)`
const newRows =
  'unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) AS new (id, name, tag, key)'
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

/** In the text format of COPY (https://www.postgresql.org/docs/current/sql-copy.html), in pieces of some 64 KiB. */
export function* copiedRows(all: readonly KeyedPlant[]): Generator<string> {
  let piece = ''
  for (const { plant, key } of all) {
    piece += `${plant.id}\t${cell(plant.name)}\t${cell(plant.tag)}\t${cell(key)}\n`
    if (piece.length < pieceLength) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

const pieceLength = 65_536

function cell(text: string | undefined): string {
  if (text === undefined) return '\\N'
  return text.replace(/[\\\t\n\r]/g, (each) => `\\${letters[each]}`)
}

const letters: Readonly<Record<string, string>> = { '\\': '\\', '\t': 't', '\n': 'n', '\r': 'r' }

export async function saveCheckpoint(
  connection: Connection,
  change: CheckpointChange,
): Promise<void> {
  const { rowCount } = await connection.query(...replaceState(change))
  if (rowCount === 0) throw new CheckpointMovedError()
  if (change.to?.startsWith(donePrefix)) await connection.query(forgetOldest)
}

function replaceState({ id, from, to }: CheckpointChange): [text: string, values: unknown[]] {
  const isUnchanged = 'id = $1 AND state = $2'
  if (to === undefined) return [`DELETE FROM ${imports} WHERE ${isUnchanged}`, [id, from]]
  if (from === undefined)
    return [`INSERT INTO ${imports} VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, to]]
  return [`UPDATE ${imports} SET state = $3 WHERE ${isUnchanged}`, [id, from, to]]
}

const forgetOldest = `DELETE FROM ${imports} WHERE id IN (SELECT id FROM ${imports}
  WHERE state LIKE '${donePrefix}%' ORDER BY state COLLATE "C" DESC OFFSET ${maxDone})`
