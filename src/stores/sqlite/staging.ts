import { PlantsError } from '../../platform/errors.js'
import type { NewPlant } from '../../plant/plant.js'
import { type Batch, type BulkStore, type CreateManyOptions, idTaken, Outcome } from '../store.js'
import { connect } from '../../platform/sqlite.js'
import { toPlant } from './row.js'
import { Statements, type Ways } from './ways.js'

type Policy = CreateManyOptions['ifExists']

/** Looks up some plants in a store that is elsewhere, and tells of each what it counts as, where its id is taken there. */
export type LookUp = (plants: NewPlant[], policy: Policy) => Promise<(plant: NewPlant) => number | undefined>

/**
 * Takes plants in beside a store, in a temporary table that SQLite keeps on the disk and that is gone with the connection, and holds them
 * against the store. None is created before `commit`.
 */
export class Staging implements BulkStore {
  readonly #ways: Ways
  readonly #hasStore: boolean
  readonly #lookUp: LookUp | undefined
  #policy: Policy = 'error'
  readonly close: () => Promise<void>

  private constructor(ways: Ways, store: { isHere: boolean; lookUp?: LookUp | undefined }, close: () => Promise<void>) {
    this.#ways = ways
    this.#hasStore = store.isHere
    this.#lookUp = store.lookUp
    this.close = close
    ways.db.exec('CREATE TEMP TABLE staged (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT; PRAGMA temp.cache_size=-16384')
  }

  /** Beside a store; closing it closes that. */
  static beside(ways: Ways, close: () => Promise<void>): Staging {
    return new Staging(ways, { isHere: true }, close)
  }

  /** Where there is no store, one that cannot be read, or one elsewhere. */
  static alone(lookUp?: LookUp): Staging {
    const db = connect(':memory:', { readOnly: false })
    const statements = new Statements(db)
    const call = async <T>(action: () => T) => action()
    return new Staging({ db, prepare: (sql) => statements.prepare(sql), read: call, write: call }, { isHere: false, lookUp }, async () =>
      db.close(),
    )
  }

  async createMany(batch: Batch, { ifExists, stopsAtRefusal, stop, onProgress }: CreateManyOptions): Promise<void> {
    this.#policy = ifExists
    for (let row = 0; row < batch.rows.length && !stop.aborted; ) {
      const to = Math.min(row + rowsAtOnce, batch.rows.length)
      const found = await this.#lookUp?.(plantsIn(batch, row, to), ifExists)
      const from = row
      row = await this.#ways.read(() => this.#takeSome(batch, { from, to, found }, stopsAtRefusal))
      onProgress()
      await new Promise(setImmediate)
    }
  }

  /** Creates all that were taken in, in one transaction. Throws `conflict` for an id that was taken meanwhile. */
  async commit(): Promise<void> {
    await this.#ways.write(() => {
      const isOther =
        this.#policy === 'error' ? '1' : this.#policy === 'skip' ? '0' : 'NOT (plants.name = staged.name AND plants.tag IS staged.tag)'
      const taken = this.#ways.prepare(`SELECT staged.id FROM staged JOIN plants USING (id) WHERE ${isOther} LIMIT 1`).get()
      if (taken) {
        const { message } = idTaken((taken as { id: bigint }).id) // the column of a STRICT table
        throw new PlantsError('conflict', `${message} since a moment ago, so nothing was created`, { hint: 'Run it again' })
      }
      this.#ways.db.exec(
        'INSERT INTO plants (id, name, tag) SELECT id, name, tag FROM staged WHERE true ORDER BY id ON CONFLICT DO NOTHING',
      )
    })
  }

  /** Takes rows from one on, in a transaction of the temporary table, and gives the next one. */
  #takeSome(batch: Batch, { from, to, found }: Range, stopsAtRefusal: boolean): number {
    const { db } = this.#ways
    db.exec('BEGIN')
    try {
      for (let row = from; row < to; row += 1) {
        const plant = batch.rows.at(row)
        const there = found?.(plant)
        const { outcome, refusal } = there === undefined ? this.#take(plant) : { outcome: there }
        batch.outcomes[row] = outcome
        if (refusal) batch.refusals.set(row, refusal)
        if (stopsAtRefusal && outcome === Outcome.taken) return batch.rows.length
      }
      return to
    } finally {
      db.exec('COMMIT')
    }
  }

  /** What was taken in, in the order of ids. */
  *pages(): Iterable<NewPlant[]> {
    const select = this.#ways.prepare('SELECT id, name, tag FROM staged WHERE id > ? ORDER BY id LIMIT ?')
    const first = this.#ways.prepare('SELECT id, name, tag FROM staged ORDER BY id LIMIT ?')
    let page = first.all(rowsAtOnce).map(toPlant)
    while (page.length > 0) {
      yield page
      page = select.all(page.at(-1)?.id ?? 0n, rowsAtOnce).map(toPlant)
    }
  }

  #take(plant: NewPlant): { outcome: number; refusal?: PlantsError } {
    if (this.#hasStore && this.#has('plants', plant.id)) return { outcome: this.#outcomeOf('plants', plant) }
    const { id, name, tag } = plant
    const insert = this.#ways.prepare('INSERT INTO staged (id, name, tag) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
    if (BigInt(insert.run(id, name, tag ?? null).changes) === 1n) return { outcome: Outcome.created }
    const outcome = this.#outcomeOf('staged', plant)
    return outcome === Outcome.skipped
      ? { outcome }
      : { outcome, refusal: new PlantsError('conflict', `The id ${id} stands in the input before`) }
  }

  #has(table: 'plants' | 'staged', id: bigint): boolean {
    return this.#ways.prepare(`SELECT 1 FROM ${table} WHERE id = ?`).get(id) !== undefined
  }

  #outcomeOf(table: 'plants' | 'staged', { id, name, tag }: NewPlant): number {
    const same = () =>
      this.#ways.prepare(`SELECT 1 FROM ${table} WHERE id = ? AND name = ? AND tag IS ?`).get(id, name, tag ?? null) !== undefined
    return this.#policy === 'skip' || (this.#policy === 'same' && same()) ? Outcome.skipped : Outcome.taken
  }
}

interface Range {
  from: number
  to: number
  found: Awaited<ReturnType<LookUp>> | undefined
}

function plantsIn({ rows }: Batch, from: number, to: number): NewPlant[] {
  return Array.from({ length: to - from }, (_, index) => rows.at(from + index))
}

/** about 20 ms, between two looks at whether a signal came */
const rowsAtOnce = 4000
