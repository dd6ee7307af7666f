import { equalPlants } from '../../plant/plant.js'
import type { Clock } from '../../platform/clock.js'
import { Outcome, resolveConflict } from '../conflict.js'
import type { Batch, CreateManyOptions } from '../store.js'
import { ChangesetWriter } from './changeset.js'
import { toPlant } from './row.js'
import type { Ways } from './ways.js'

type Policy = Pick<CreateManyOptions, 'ifExists' | 'stopsAtRefusal'>

/** Creates rows inside a transaction that somebody else begins and commits. */
export class BulkInsert {
  readonly #ways: Ways
  readonly #clock: Pick<Clock, 'now'>
  readonly #changeset = new ChangesetWriter()

  constructor(ways: Ways, clock: Pick<Clock, 'now'>) {
    this.#ways = ways
    this.#clock = clock
  }

  /**
   * Creates rows, from one on in the order of the batch, as many as a transaction may take, and notes how each went.
   *
   * @returns the first that was not looked at; the number of rows when there is none, or when one was refused and that ends it
   */
  run(batch: Batch, from: number, policy: Policy): number {
    const end = this.#clock.now() + longestTurn
    let rank = from
    while (rank < batch.rows.length && this.#clock.now() < end) {
      const range = { from: rank, to: Math.min(rank + rowsAtOnce, batch.rows.length) }
      if (!this.#createAll(batch, range) && this.#createEach(batch, range, policy)) return batch.rows.length
      rank = range.to
    }
    return rank
  }

  /** Creates a range of rows, or none of them when any cannot be created. */
  #createAll({ rows, order, outcomes }: Batch, range: Range): boolean {
    for (let rank = range.from; rank < range.to; rank += 1) if (outcomes[rowAt(order, rank)] !== Outcome.pending) return false
    const before = this.#changes()
    if (!this.#ways.db.applyChangeset(this.#changeset.write(rows, order, range), { onConflict: () => abort })) return false
    if (this.#changes() - before !== BigInt(range.to - range.from)) throw new Error('SQLite took a changeset and left rows out')
    for (let rank = range.from; rank < range.to; rank += 1) outcomes[rowAt(order, rank)] = Outcome.created
    return true
  }

  /** Creates a range of rows one by one. True when one was refused that ends it. */
  #createEach({ rows, order, outcomes }: Batch, { from, to }: Range, { ifExists, stopsAtRefusal }: Policy): boolean {
    const find = this.#ways.prepare('SELECT id, name, tag FROM plants WHERE id = ?')
    const insert = this.#ways.prepare('INSERT INTO plants (id, name, tag) VALUES (?, ?, ?)')
    for (let rank = from; rank < to; rank += 1) {
      const row = rowAt(order, rank)
      if (outcomes[row] !== Outcome.pending) continue
      const existing = find.get(rows.idAt(row))
      if (existing === undefined) {
        const { id, name, tag } = rows.at(row)
        insert.run(id, name, tag ?? null)
        outcomes[row] = Outcome.created
      } else {
        outcomes[row] = resolveConflict(ifExists, () => equalPlants(toPlant(existing), rows.at(row)))
      }
      if (stopsAtRefusal && outcomes[row] === Outcome.taken) return true
    }
    return false
  }

  #changes(): bigint {
    return BigInt(this.#ways.prepare('SELECT total_changes() AS changes').get()?.['changes'] as bigint) // a number in SQL
  }
}

type Range = Record<'from' | 'to', number>

function rowAt(order: Uint32Array | undefined, rank: number): number {
  return order ? (order[rank] ?? 0) : rank
}

/** milliseconds of a transaction, together with its commit at most 50 */
const longestTurn = 40

/** rows that are tried together: so many are looked at one by one when one of them cannot be created */
const rowsAtOnce = 4096

/** SQLITE_CHANGESET_ABORT */
const abort = 2
