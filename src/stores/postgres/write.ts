import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { equalPlants, type NewPlant, patchedPlant } from '../../plant/plant.js'
import { must } from '../../platform/values.js'
import {
  type Change,
  constraintProblem,
  existingOutcome,
  idOf,
  missingOutcome,
  notFound,
  type Outcome,
  problem,
  rejected,
} from '../common/change.js'
import { keyConflict } from '../common/conflict.js'
import { checkpointState, type WriteOptions } from '../common/store.js'
import type { Connection } from './postgres-connection.js'
import { isConstraint, isForeignConstraint, leftOut, textOf } from './postgres-errors.js'
import { columns, idsOf, imports, literal, plants, rowOf, toPlant } from './sql.js'
import { reachStandbys, type Transaction } from './transaction.js'

export interface KeyedPlant {
  plant: NewPlant
  key?: string | undefined
}

/** Makes the changes, with the checkpoint. They are within the savepoint `changes`. */
export async function makeChanges(
  transaction: Transaction,
  changes: readonly Change[],
  { checkpoint, maxRejected }: WriteOptions = {},
): Promise<Outcome[]> {
  const outcomes = await settle(transaction, changes, maxRejected)
  const last = outcomes.findLast((outcome) => 'plant' in outcome)
  if (last) transaction.evidence = evidenceOf(last)
  if (!checkpoint) return outcomes
  const [id, state] = [literal(checkpoint.id), checkpointState(checkpoint, outcomes)]
  if (state === undefined) {
    await transaction.ask(`DELETE FROM ${imports} WHERE id = ${id}`)
  } else {
    await transaction.ask(`INSERT INTO ${imports} (id, state) VALUES (${id}, ${literal(state)})
      ON CONFLICT (id) DO UPDATE SET state = excluded.state`)
    transaction.evidence = `SELECT EXISTS (SELECT FROM ${imports} WHERE id = ${id} AND state = ${literal(state)})`
  }
  return outcomes
}

/** Queries whether a change is stored. */
export function evidenceOf({ type, plant: { id, name, tag } }: Changed): string {
  const isThere = `EXISTS (SELECT FROM ${plants} WHERE id = ${literal(id)} AND name = ${literal(name)}
    AND tag IS NOT DISTINCT FROM ${literal(tag)})`
  return `SELECT ${type === 'deleted' ? 'NOT ' : ''}${isThere}`
}

type Changed = Extract<Outcome, { plant: NewPlant }>

/** Halves the changes until those that violate a constraint of somebody else are alone. */
async function settle(
  transaction: Transaction,
  changes: readonly Change[],
  maxRejected = Infinity,
): Promise<Outcome[]> {
  await transaction.ask('SAVEPOINT changes')
  let stored = changes.every(isPlainCreate) ? [] : await storedFor(transaction, changes) // no lookup if all ids are free
  for (let tries = 1; ; tries += 1) {
    const plan = new Plan(stored)
    const outcomes = plan.apply(changes, maxRejected)
    let failure: unknown = leftOut(transaction.connection.address.name, true)
    try {
      if (await save(transaction, plan)) return outcomes
    } catch (error) {
      if (!isConstraint(error)) throw error
      failure = error
    }
    if (tries === maxTries) throw failure
    await transaction.ask('ROLLBACK TO changes')
    const [change, ...others] = changes
    if (change && isForeignConstraint(failure)) {
      if (others.length === 0) return [rejected(constraintProblem(idOf(change), textOf(failure)))]
      const half = Math.ceil(changes.length / 2)
      const first = await settle(transaction, changes.slice(0, half), maxRejected)
      await transaction.ask('RELEASE changes')
      return [...first, ...(await settle(transaction, changes.slice(half), maxRejected - rejectedIn(first)))]
    }
    stored = await storedFor(transaction, changes)
  }
}

/** in each of which another writer has changed one of the plants after they were looked up */
const maxTries = 20

function rejectedIn(outcomes: Outcome[]): number {
  return outcomes.filter(({ type }) => type === 'rejected').length
}

/** Whether it depends on nothing but the id. */
function isPlainCreate(change: Change): boolean {
  if (change.type === 'create') return change.key === undefined
  return change.type === 'update' && change.ifMissing === 'create' && patchedPlant(change.patch) !== undefined
}

/** Those with the ids and the keys of the changes. */
export async function storedFor(
  connection: Pick<Connection, 'ask'>,
  changes: readonly Change[],
): Promise<KeyedPlant[]> {
  const ids = [...new Set(changes.map(idOf))]
  const keys = changes.flatMap((change) => (change.type === 'create' && change.key !== undefined ? change.key : []))
  const hasKey = keys.length === 0 ? '' : ` OR idempotency_key IN ${rowOf(...keys)}`
  const find = `SELECT ${columns}, idempotency_key FROM ${plants} WHERE id = ANY (${idsOf(ids)})${hasKey}`
  const rows = await connection.ask(find, ids.length + keys.length)
  return rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
}

/** The plants as the changes find and leave them, one after the other. */
export class Plan {
  /** whether a create repeats one whose commit may not be on the standbys yet */
  hasRepeated = false
  readonly #before: ReadonlyMap<bigint, KeyedPlant>
  /** undefined for a plant that is deleted */
  readonly #after: Map<bigint, KeyedPlant | undefined>
  readonly #idOfKey = new Map<string, bigint>()

  constructor(stored: KeyedPlant[]) {
    this.#before = new Map(stored.map((each) => [each.plant.id, each]))
    this.#after = new Map(this.#before)
    for (const { plant, key } of stored) if (key !== undefined) this.#idOfKey.set(key, plant.id)
  }

  apply(changes: readonly Change[], maxRejected = Infinity): Outcome[] {
    let rejections = 0
    return changes.map((change) => {
      if (rejections >= maxRejected) return unsent
      const outcome = this.#apply(change)
      if (outcome.type === 'rejected') rejections += 1
      return outcome
    })
  }

  #apply(change: Change): Outcome {
    const now = this.#after.get(idOf(change))?.plant
    if (change.type === 'create') {
      const { plant, key } = change
      const first = key === undefined ? undefined : this.#createdWith(key)
      if (first && !equalPlants(first, plant)) return rejected(keyConflict(first.id))
      if (!first && now) return existingOutcome(change, now)
      if (first) this.hasRepeated = true
      else this.#put(plant, key)
      return { type: 'created', plant }
    }
    if (change.type === 'delete') {
      if (!now || (change.only && !equalPlants(now, change.only))) return rejected(notFound(change.id))
      this.#after.set(change.id, undefined)
      return { type: 'deleted', plant: now }
    }
    const plant = patchedPlant(change.patch, now)
    if (now && plant) {
      if (Object.keys(change.patch).length > 1) this.#put(plant)
      return { type: 'updated', plant, before: now }
    }
    if (now) return rejected(notFound(change.patch.id))
    if (!plant || change.ifMissing !== 'create') return missingOutcome(change)
    this.#put(plant)
    return { type: 'created', plant }
  }

  #createdWith(key: string): NewPlant | undefined {
    const id = this.#idOfKey.get(key)
    const now = id === undefined ? undefined : this.#after.get(id)
    return now?.key === key ? now.plant : undefined
  }

  #put(plant: NewPlant, key?: string): void {
    this.#after.set(plant.id, { plant, key })
    if (key !== undefined) this.#idOfKey.set(key, plant.id)
  }

  differences() {
    const deleted: NewPlant[] = []
    const replaced: { before: NewPlant; after: KeyedPlant }[] = []
    const created: KeyedPlant[] = []
    for (const [id, after] of this.#after) {
      const before = this.#before.get(id)
      if (before === after) continue
      if (!before) created.push(must(after))
      else if (after) replaced.push({ before: before.plant, after })
      else deleted.push(before.plant)
    }
    return { deleted, replaced, created }
  }
}

const unsent: Outcome = { type: 'unsent', error: problem('unavailable', 'Not stored: too many were rejected before') }

/** Returns false when one of the plants is not as it was looked up. Throws when one that is created exists. */
async function save(transaction: Transaction, plan: Plan): Promise<boolean> {
  const { deleted, replaced, created } = plan.differences()
  if (plan.hasRepeated) await transaction.ask(reachStandbys)
  if (deleted.length > 0) {
    const values = deleted.map(({ id, name, tag }) => rowOf(id, name, tag))
    const rows =
      await transaction.ask(`DELETE FROM ${plants} AS plant USING (VALUES ${values.join()}) AS old (${columns})
      WHERE ${isOld} RETURNING plant.id`)
    if (rows.length < deleted.length) return false
  }
  if (replaced.length > 0) {
    const values = replaced.map(({ before: { id, name, tag }, after: { plant, key } }) =>
      rowOf(id, name, tag, plant.name, plant.tag, key),
    )
    const rows = await transaction.ask(`UPDATE ${plants} AS plant
      SET name = new_name, tag = new_tag, idempotency_key = new_key
      FROM (VALUES ${values.join()}) AS old (${columns}, new_name, new_tag, new_key) WHERE ${isOld} RETURNING plant.id`)
    if (rows.length < replaced.length) return false
  }
  if (created.length > 0) await copy(transaction.connection, created)
  return true
}

const isOld = 'plant.id = old.id AND plant.name = old.name AND plant.tag IS NOT DISTINCT FROM old.tag'

/** COPY is by far the fastest way. It fails if one of the ids exists. */
async function copy(connection: Connection, created: KeyedPlant[]): Promise<void> {
  const stream = connection.query(copyFrom(`COPY ${plants} (${columns}, idempotency_key) FROM STDIN (FORMAT csv)`))
  const sorted = created.toSorted((one, other) => compareIds(one.plant, other.plant))
  function* pieces() {
    let piece = ''
    for (const { plant, key } of sorted) {
      piece += `${plant.id},${copyCell(plant.name)},${copyCell(plant.tag)},${copyCell(key)}\n`
      if (piece.length < pieceSize) continue
      yield piece
      piece = ''
    }
    yield piece
  }
  await connection.inTime(pipeline(pieces, stream))
  if (stream.rowCount !== created.length) throw leftOut(connection.address.name)
}

/** The server processes a piece while the next is encoded. */
const pieceSize = 65_536

/** The order of all writers, which prevents deadlocks. */
export function compareIds(one: NewPlant, other: NewPlant): number {
  return one.id < other.id ? -1 : 1
}

/** In PostgreSQL's CSV, NULL is an empty cell without quotes. */
function copyCell(text: string | undefined): string {
  return text === undefined ? '' : `"${text.includes('"') ? text.replaceAll('"', '""') : text}"`
}
