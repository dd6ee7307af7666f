import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { textLength } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { type Change, constraintProblem, idOf, type Outcome, rejected } from '../common/change.js'
import {
  type CheckpointChange,
  CheckpointMovedError,
  donePrefix,
  maxDone,
} from '../common/checkpoint-state.js'
import { allCreated, type KeyedPlant, type Plan, planOf } from '../common/plan.js'
import { binaryRows } from './binary-copy.js'
import { codeOf, DatabaseFailure } from './postgres-errors.js'
import { columns, idsOf, imports, literal, plants, rowOf, toPlant } from './sql.js'
import type { PostgresTransaction } from './transaction.js'

export async function makeChanges(
  transaction: PostgresTransaction,
  changes: readonly Change[],
  maxRejected?: number,
): Promise<Outcome[]> {
  transaction.evidence = [] // that of the last of several writes is enough
  return settle(transaction, changes, maxRejected)
}

export async function saveCheckpoint(
  transaction: PostgresTransaction,
  change: CheckpointChange,
): Promise<void> {
  const { id, to } = change
  if ((await transaction.ask(`${replacementOf(change)} RETURNING id`)).length === 0)
    throw new CheckpointMovedError()
  const saved = `(SELECT state FROM ${imports} WHERE id = ${literal(id)})`
  transaction.evidence.push(() => `${saved} IS NOT DISTINCT FROM ${literal(to)}`)
  if (to?.startsWith(donePrefix)) await transaction.ask(forgetOldest)
}

function replacementOf({ id, from, to }: CheckpointChange): string {
  const isUnchanged = `id = ${literal(id)} AND state = ${literal(from)}`
  if (to === undefined) return `DELETE FROM ${imports} WHERE ${isUnchanged}`
  if (from === undefined)
    return `INSERT INTO ${imports} (id, state) VALUES ${rowOf(id, to)} ON CONFLICT DO NOTHING`
  return `UPDATE ${imports} SET state = ${literal(to)} WHERE ${isUnchanged}`
}

const forgetOldest = `DELETE FROM ${imports} WHERE id IN (SELECT id FROM ${imports} WHERE state LIKE '${donePrefix}%'
  ORDER BY state COLLATE "C" DESC OFFSET ${maxDone})`

async function settle(
  transaction: PostgresTransaction,
  changes: readonly Change[],
  maxRejected = Infinity,
): Promise<Outcome[]> {
  if (!transaction.isBegun)
    return trySettle(transaction, changes, maxRejected, () => transaction.restart())
  transaction.defer('SAVEPOINT changes')
  const outcomes = await trySettle(transaction, changes, maxRejected, () =>
    transaction.ask('ROLLBACK TO changes'),
  )
  transaction.defer('RELEASE changes')
  return outcomes
}

/** Creates assume that their ids and keys are free: so most of them need no lookup. */
async function trySettle(
  transaction: PostgresTransaction,
  changes: readonly Change[],
  maxRejected: number,
  undo: () => Promise<unknown>,
): Promise<Outcome[]> {
  const creates = changes.filter((change) => change.type === 'create')
  for (let tries = 1; ; tries += 1) {
    const isFree = tries === 1 && maxRejected > 0 && creates.length === changes.length
    const plan = isFree
      ? allCreated(creates)
      : planOf(await storedFor(transaction, changes), changes, maxRejected)
    try {
      await save(transaction, plan, tries === 1 ? 'ON CONFLICT DO NOTHING' : '')
      transaction.evidence.push(() => isSaved(plan))
      return plan.outcomes
    } catch (error) {
      const isTaken = error instanceof MissingRows || codeOf(error) === uniqueViolation
      const isViolation = error instanceof DatabaseFailure && error.code === 'CONSTRAINT'
      if (tries === maxTries || !(isTaken || isViolation)) throw error
      await undo()
      if (isViolation) return withoutViolations(transaction, changes, maxRejected, error)
    }
  }
}

/** In each try, another writer has changed one of the plants after they were looked up. */
const maxTries = 20

const uniqueViolation = '23505'

/** Halves the changes until those that violate a constraint of somebody else are alone. */
async function withoutViolations(
  transaction: PostgresTransaction,
  changes: readonly Change[],
  maxRejected: number,
  violation: DatabaseFailure,
): Promise<Outcome[]> {
  const [change, ...others] = changes
  if (change && others.length === 0)
    return [rejected(constraintProblem(idOf(change), violation.reason))]
  const half = Math.ceil(changes.length / 2)
  const first = await settle(transaction, changes.slice(0, half), maxRejected)
  const rejections = first.filter(({ type }) => type === 'rejected').length
  return [...first, ...(await settle(transaction, changes.slice(half), maxRejected - rejections))]
}

/** Reads the plants that have the ids or the keys of the changes. */
async function storedFor(
  transaction: PostgresTransaction,
  changes: readonly Change[],
): Promise<KeyedPlant[]> {
  const ids = [...new Set(changes.map(idOf))]
  const keys = changes.flatMap((change) =>
    change.type === 'create' && change.key !== undefined ? change.key : [],
  )
  const hasKey = keys.length === 0 ? '' : ` OR idempotency_key IN ${rowOf(...keys)}`
  const find = `SELECT ${columns}, idempotency_key FROM ${plants} WHERE id = ANY (${idsOf(ids)})${hasKey}`
  const rows = await transaction.ask(find, ids.length + keys.length)
  return rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
}

/** Fewer rows were changed than should be: another writer was faster, or a trigger or a rule suppresses them. */
class MissingRows extends PlantsError {
  constructor({ connection: { address } }: PostgresTransaction) {
    const hint =
      'Look for triggers, rules and policies on plant_store.plants that plants did not create'
    super('inaccessible', `${address.name} did not change all plants`, { hint })
  }
}

/** Throws for what is not as it was looked up; in the end without `onConflict`, to learn which constraint it is. */
async function save(
  transaction: PostgresTransaction,
  plan: Plan,
  onConflict: string,
): Promise<void> {
  const { deleted, replaced } = plan
  const change = async (count: number, statement: string) => {
    if (count > 0 && (await transaction.ask(`${statement} RETURNING plant.id`)).length < count)
      throw new MissingRows(transaction)
  }
  const old = deleted.map(({ id, name, tag }) => rowOf(id, name, tag)).join()
  await change(
    deleted.length,
    `DELETE FROM ${plants} AS plant USING (VALUES ${old}) AS old (${columns}) WHERE ${isOld}`,
  )
  const both = replaced.map(({ before: { id, name, tag }, after: { plant, key } }) =>
    rowOf(id, name, tag, plant.name, plant.tag, key),
  )
  await change(
    replaced.length,
    `UPDATE ${plants} AS plant SET name = new_name, tag = new_tag, idempotency_key = new_key
      FROM (VALUES ${both.join()}) AS old (${columns}, new_name, new_tag, new_key) WHERE ${isOld}`,
  )
  const created = plan.created.toSorted(byId)
  const characters = created.reduce((sum, { plant }) => sum + textLength(plant), 0)
  if (created.length > limits.maxItems || characters > limits.maxCharacters)
    return copy(transaction, created)
  await change(
    created.length,
    `INSERT INTO ${plants} AS plant (${columns}, idempotency_key) VALUES ${created.map(rowFor).join()} ${onConflict}`,
  )
}

/** The condition that all is as `save` leaves it. */
function isSaved({ deleted, replaced, created }: Plan): string {
  const gone = `EXISTS (SELECT FROM ${plants} WHERE id = ANY (${idsOf(deleted.map(({ id }) => id))}))`
  const stored = [...replaced.map(({ after }) => after), ...created]
  if (stored.length === 0) return `NOT ${gone}`
  const ids = idsOf(stored.map(({ plant }) => plant.id))
  const found = `SELECT ${columns}, idempotency_key FROM ${plants} WHERE id = ANY (${ids})`
  return `NOT ${gone} AND NOT EXISTS (VALUES ${stored.map(rowFor).join()} EXCEPT ${found})`
}

const isOld =
  'plant.id = old.id AND plant.name = old.name AND plant.tag IS NOT DISTINCT FROM old.tag'

function rowFor({ plant: { id, name, tag }, key }: KeyedPlant): string {
  return rowOf(id, name, tag, key)
}

/** The order of all writers, which prevents deadlocks. */
function byId({ plant: one }: KeyedPlant, { plant: other }: KeyedPlant): number {
  return one.id < other.id ? -1 : 1
}

/**
 * Plants and characters of one statement: it takes one message less than COPY, which is by far the fastest for many.
 */
export const limits = { maxItems: 1000, maxCharacters: 4_000_000 }

/** It fails if one of the ids or keys exists. */
async function copy(transaction: PostgresTransaction, created: KeyedPlant[]): Promise<void> {
  await transaction.ask('')
  const { connection } = transaction
  const stream = connection.query(
    copyFrom(`COPY ${plants} (${columns}, idempotency_key) FROM STDIN (FORMAT binary)`),
  )
  await connection.inTime(pipeline(binaryRows(created), stream))
  if (stream.rowCount !== created.length) throw new MissingRows(transaction)
}
