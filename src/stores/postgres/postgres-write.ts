import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { equalPlants, type NewPlant, patchedPlant } from '../../plant/plant.js'
import {
  type Change,
  existingOutcome,
  idOf,
  missingOutcome,
  notFound,
  type Outcome,
  problem,
  rejected,
} from '../common/change.js'
import { keyConflict } from '../common/conflict.js'
import { checkpointState, type Store, type WriteOptions } from '../common/store.js'
import { type ConnectionPool, reachStandbys, type Transaction } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { explainDatabase, isConstraint, isForeignConstraint, leftOut, violation } from './postgres-errors.js'
import {
  areStored,
  checkpointStatement,
  copyLine,
  copyStatement,
  deleteStatement,
  findStatement,
  imports,
  type KeyedPlant,
  literal,
  type Replacement,
  toPlant,
  updateStatement,
} from './sql.js'

/** Makes the changes in one transaction with the checkpoint. */
export function writeAll(
  connections: ConnectionPool,
  changes: readonly Change[],
  options: WriteOptions = {},
): Promise<Outcome[]> {
  const work = (transaction: Transaction) => new Write(connections, transaction).run(changes, options)
  return connections.transact(work, connections.limits(options.signal))
}

/** See `Store.transaction`. It is not repeated: `work` may have read its input already. */
export async function transact<T>(
  connections: ConnectionPool,
  work: (write: Store['write']) => Promise<T>,
): Promise<T> {
  const limits = connections.limits()
  const connection = await connections.retry(limits, () => connections.lease(limits))
  try {
    const commit = await connections
      .attempt(connection, (transaction) =>
        work(async (changes, options = {}) => {
          options.signal?.throwIfAborted()
          const outcomes = await new Write(connections, transaction).run(changes, options)
          await transaction.ask('RELEASE changes')
          return outcomes
        }),
      )
      .finally(() => connections.release(connection))
    return await connections.settle(commit)
  } catch (error) {
    throw explainDatabase(error, connections.account)
  }
}

class Write {
  readonly #connections: ConnectionPool
  readonly #transaction: Transaction

  constructor(connections: ConnectionPool, transaction: Transaction) {
    this.#connections = connections
    this.#transaction = transaction
  }

  async run(changes: readonly Change[], { checkpoint, maxRejected = Infinity }: WriteOptions): Promise<Outcome[]> {
    this.#transaction.evidence = [] // that of the last of several writes is enough
    const outcomes = (await this.#createAll(changes)) ?? (await this.#settle(changes, maxRejected))
    if (checkpoint) {
      const state = checkpointState(checkpoint, outcomes)
      await this.#transaction.ask(checkpointStatement(checkpoint.id, state))
      const isStored = `id = ${literal(checkpoint.id)} AND state = ${literal(state)}`
      if (state !== undefined)
        this.#transaction.evidence.push(() => `EXISTS (SELECT FROM ${imports} WHERE ${isStored})`)
    }
    return outcomes
  }

  /** Assumes that all ids are free, which saves a lookup. Returns undefined if they are not, or if more matters. */
  async #createAll(changes: readonly Change[]): Promise<Outcome[] | undefined> {
    await this.#transaction.ask('SAVEPOINT changes')
    const created = changes.flatMap((change) => newPlantOf(change) ?? [])
    if (created.length < changes.length || created.length === 0) return undefined
    try {
      const keyed = created.map((plant) => ({ plant }))
      await this.#copy(keyed)
      this.#transaction.evidence.push(() => areStored(keyed, []))
      return created.map((plant) => ({ type: 'created', plant }))
    } catch (error) {
      await this.#undo(error)
      return undefined
    }
  }

  /** Undoes what has violated a constraint. */
  async #undo(error: unknown): Promise<void> {
    if (!isConstraint(error)) throw error
    await this.#transaction.ask('ROLLBACK TO changes')
  }

  /** Halves the changes until those that violate a constraint of somebody else are alone. */
  async #settle(changes: readonly Change[], maxRejected: number): Promise<Outcome[]> {
    for (let tries = 1; ; tries += 1) {
      let failure: unknown = leftOut(this.#connections.account.address, true)
      try {
        const outcomes = await this.#resolve(changes, maxRejected)
        if (outcomes) return outcomes
        await this.#transaction.ask('ROLLBACK TO changes')
      } catch (error) {
        await this.#undo(error)
        failure = error
      }
      const [change, ...others] = changes
      if (change && isForeignConstraint(failure)) {
        if (others.length === 0) return [rejected(violation(idOf(change), failure))]
        const half = Math.ceil(changes.length / 2)
        const first = await this.#settle(changes.slice(0, half), maxRejected)
        await this.#transaction.ask('RELEASE changes; SAVEPOINT changes')
        const rejections = first.filter(({ type }) => type === 'rejected').length
        return [...first, ...(await this.#settle(changes.slice(half), maxRejected - rejections))]
      }
      if (tries === maxTries) throw failure
    }
  }

  /** Returns undefined when another writer has changed one of the plants meanwhile. */
  async #resolve(changes: readonly Change[], maxRejected: number): Promise<Outcome[] | undefined> {
    const stored = await storedFor(this.#transaction, changes)
    const plan = new Plan(stored)
    const outcomes: Outcome[] = []
    let rejections = 0
    for (const change of changes) {
      const outcome = rejections < maxRejected ? plan.apply(change) : unsent
      outcomes.push(outcome)
      rejections += Number(outcome.type === 'rejected')
    }
    if (plan.hasRepeated) await this.#transaction.ask(reachStandbys)
    return (await this.#save(plan)) ? outcomes : undefined
  }

  async #save(plan: Plan): Promise<boolean> {
    const { deleted, replaced, created } = plan.differences()
    for (const [statement, count] of [
      [deleteStatement(deleted), deleted.length],
      [updateStatement(replaced), replaced.length],
    ] as const)
      if (count > 0 && (await this.#transaction.ask(statement)).length < count) return false
    if (created.length > 0) await this.#copy(created)
    const stored = [...replaced.map(({ after }) => ({ plant: after })), ...created]
    this.#transaction.evidence.push(() => areStored(stored, deleted))
    return true
  }

  /** COPY is by far the fastest way. It fails if one of the ids exists. */
  async #copy(created: KeyedPlant[]): Promise<void> {
    const stream = this.#transaction.connection.query(copyFrom(copyStatement))
    const sorted = created.toSorted((one, other) => compareIds(one.plant, other.plant))
    function* pieces() {
      let piece = ''
      for (const each of sorted) {
        piece += copyLine(each)
        if (piece.length < pieceSize) continue
        yield piece
        piece = ''
      }
      yield piece
    }
    await this.#transaction.connection.inTime(pipeline(pieces, stream))
    if (stream.rowCount !== created.length) throw leftOut(this.#connections.account.address)
  }
}

/** in each of which another writer has changed one of the plants after they were read */
const maxTries = 20

/** The server processes a piece while the next is encoded. */
const pieceSize = 65_536

const unsent: Outcome = { type: 'unsent', error: problem('unavailable', 'Not stored: too many were rejected before') }

/** What a change creates if nobody has its id; undefined if that is not all that matters. */
function newPlantOf(change: Change): NewPlant | undefined {
  if (change.type === 'create') return change.key === undefined ? change.plant : undefined
  return change.type === 'update' && change.ifMissing === 'create' ? patchedPlant(change.patch) : undefined
}

/** The order of all writers, which prevents deadlocks. */
export function compareIds(one: NewPlant, other: NewPlant): number {
  return one.id < other.id ? -1 : 1
}

/** Those with the ids and the keys of the changes. */
export async function storedFor(
  connection: Pick<Connection, 'ask'>,
  changes: readonly Change[],
): Promise<KeyedPlant[]> {
  const ids = [...new Set(changes.map(idOf))]
  const keys = changes.flatMap((change) => (change.type === 'create' && change.key !== undefined ? change.key : []))
  const rows = await connection.ask(findStatement(ids, keys), ids.length + keys.length)
  return rows.map((row) => ({ plant: toPlant(row), key: row[3] ?? undefined }))
}

interface Planned extends KeyedPlant {
  /** created by the changes, and not stored before */
  isNew: boolean
  isChanged: boolean
}

/** The plants as the changes find and leave them, one after the other. */
export class Plan {
  /** whether a create repeats one whose commit may not be on the standbys yet */
  hasRepeated = false
  readonly #stored: ReadonlyMap<bigint, NewPlant>
  readonly #plants: Map<bigint, Planned>
  readonly #keys = new Map<string, NewPlant>()

  constructor(stored: KeyedPlant[]) {
    this.#stored = new Map(stored.map(({ plant }) => [plant.id, plant]))
    this.#plants = new Map(stored.map((each) => [each.plant.id, { ...each, isNew: false, isChanged: false }]))
    for (const { plant, key } of stored) if (key !== undefined) this.#keys.set(key, plant)
  }

  apply(change: Change): Outcome {
    const now = this.#plants.get(idOf(change))?.plant
    if (change.type === 'create') {
      const { plant, key } = change
      const first = key === undefined ? undefined : this.#keys.get(key)
      if (first && !equalPlants(first, plant)) return rejected(keyConflict(first.id))
      if (!first && now) return existingOutcome(change, now)
      if (first) this.hasRepeated = true
      else this.#create(plant, key)
      return { type: 'created', plant }
    }
    if (change.type === 'delete') {
      if (!now || (change.only && !equalPlants(now, change.only))) return rejected(notFound(change.id))
      this.#remove(change.id)
      return { type: 'deleted', plant: now }
    }
    const { patch, ifMissing } = change
    const plant = patchedPlant(patch, now)
    if (!now) {
      if (!plant || ifMissing !== 'create') return missingOutcome(change)
      this.#create(plant)
      return { type: 'created', plant }
    }
    if (!plant) return rejected(notFound(patch.id))
    if (Object.keys(patch).length > 1) this.#replace(plant)
    return { type: 'updated', plant, before: now }
  }

  #create(plant: NewPlant, key?: string): void {
    this.#plants.set(plant.id, { plant, key, isNew: true, isChanged: true })
    if (key !== undefined) this.#keys.set(key, plant)
  }

  #replace(plant: NewPlant): void {
    const isNew = this.#plants.get(plant.id)?.isNew === true
    this.#remove(plant.id)
    this.#plants.set(plant.id, { plant, isNew, isChanged: true })
  }

  #remove(id: bigint): void {
    const { key } = this.#plants.get(id) ?? {}
    if (key !== undefined) this.#keys.delete(key)
    this.#plants.delete(id)
  }

  /** In ascending order of id. A plant that is deleted and created again keeps nothing of its row. */
  differences(): { deleted: NewPlant[]; replaced: Replacement[]; created: KeyedPlant[] } {
    const planned = [...this.#plants.values()]
    const deleted = [...this.#stored.values()].filter(({ id }) => this.#plants.get(id)?.isNew !== false)
    const replaced = planned.flatMap(({ plant: after, isNew, isChanged }) => {
      const before = this.#stored.get(after.id)
      return before && isChanged && !isNew ? { before, after } : []
    })
    return {
      deleted: deleted.toSorted(compareIds),
      replaced: replaced.toSorted((one, other) => compareIds(one.after, other.after)),
      created: planned.filter(({ isNew }) => isNew),
    }
  }
}
