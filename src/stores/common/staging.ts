import { type NewPlant, plantColumns, plantParameters, textFields } from '../../plant/fields.js'
import { equalPlants, plantFrom, valuesOf } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Statement } from '../../platform/sqlite.js'
import { type ExistsPolicy, idExists, type OnConflict, Outcome, resolveConflict } from './conflict.js'
import type { Batch, BulkStore, CreateManyOptions } from './store.js'

/** What an import is held against that creates nothing before its end. */
export interface StagedStore {
  /** The plants that exist, by their ids. */
  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>>
  /**
   * Creates plants in one transaction, all of them or none.
   *
   * @param pages gives them in the order of their ids, each time anew
   * @param onConflict is called for a plant whose id exists, maybe twice
   * @throws {PlantsError} what `onConflict` throws; `unavailable` when nothing was stored; `unknownOutcome` when that could not be found out
   */
  createAll(pages: () => Iterable<NewPlant[]>, onConflict: OnConflict): Promise<void>
  close(): Promise<void>
}

/**
 * Takes in the plants of an import, in a table on the disk of this machine that is gone at the end, and holds them against a store, if
 * there is one: to create them all at once with `commit`, or none ever.
 */
export class Staging implements BulkStore {
  readonly #store: StagedStore | undefined
  readonly #db = connect(':memory:', { readOnly: false })
  readonly #insert: Statement
  readonly #find: Statement
  readonly #replace: Statement
  #policy: ExistsPolicy = 'error'

  constructor(store: StagedStore | undefined) {
    this.#store = store
    const columns = textFields.map(({ name, isRequired }) => `${name} TEXT${isRequired ? ' NOT NULL' : ''}`)
    this.#db.exec(`CREATE TEMP TABLE staged (id INTEGER PRIMARY KEY, ${columns.join()}) STRICT; PRAGMA temp.cache_size=-16384`)
    this.#insert = this.#db.prepare(`INSERT INTO staged (${plantColumns}) VALUES (${plantParameters}) ON CONFLICT DO NOTHING`)
    this.#find = this.#db.prepare(`SELECT ${plantColumns} FROM staged WHERE id = ?`)
    this.#replace = this.#db.prepare(`REPLACE INTO staged (${plantColumns}) VALUES (${plantParameters})`)
  }

  async createMany(batch: Batch, { ifExists, stopsAtReject, stop, onProgress }: CreateManyOptions): Promise<void> {
    this.#policy = ifExists
    let isStopped = false
    for (let from = 0; from < batch.rows.length && !isStopped && !stop.aborted; from += rowsAtOnce) {
      const plants = Array.from({ length: Math.min(rowsAtOnce, batch.rows.length - from) }, (_, index) => batch.rows.at(from + index))
      const existing = await this.#store?.getMany(plants.map(({ id }) => id))
      this.#db.exec('BEGIN')
      for (const [index, plant] of plants.entries()) {
        if (batch.outcomes[from + index] !== Outcome.pending) continue
        const outcome = this.#outcomeOf(plant, existing?.get(plant.id), batch, from + index)
        batch.outcomes[from + index] = outcome
        isStopped = stopsAtReject && outcome === Outcome.taken
        if (isStopped) break
      }
      this.#db.exec('COMMIT')
      onProgress()
      await new Promise(setImmediate)
    }
  }

  #outcomeOf(plant: NewPlant, existing: NewPlant | undefined, batch: Batch, row: number): number {
    if (!existing && BigInt(this.#insert.run(...valuesOf(plant)).changes) === 1n) return Outcome.created
    const staged: unknown = this.#find.get(plant.id)
    const before = staged === undefined ? existing : plantIn(staged)
    const outcome = resolveConflict(this.#policy, () => before !== undefined && equalPlants(plant, before))
    if (outcome === Outcome.updated) this.#replace.run(...valuesOf(plant))
    if (outcome === Outcome.taken && !existing)
      batch.rejections.set(row, new PlantsError('conflict', `The id ${plant.id} is in the input twice`))
    return outcome
  }

  /** Creates all that were taken in. Throws `conflict` for an id that has come to exist meanwhile. */
  async commit(): Promise<void> {
    await this.#store?.createAll(
      () => this.#pages(),
      (plant, existing) => {
        const outcome = resolveConflict(this.#policy, () => equalPlants(plant, existing))
        if (outcome !== Outcome.taken) return outcome === Outcome.updated
        throw new PlantsError('conflict', `${idExists(plant.id).message}: it was created a moment ago, so nothing was imported`, {
          hint: 'Run it again',
        })
      },
    )
  }

  /** What was taken in, in the order of ids. */
  *#pages(): Iterable<NewPlant[]> {
    let page: NewPlant[] = []
    for (const row of this.#db.prepare(`SELECT ${plantColumns} FROM staged ORDER BY id`).iterate()) {
      page.push(plantIn(row))
      if (page.length < rowsAtOnce) continue
      yield page
      page = []
    }
    if (page.length > 0) yield page
  }

  async close(): Promise<void> {
    this.#db.close()
    await this.#store?.close()
  }
}

/** about 20 ms, between two looks at whether a signal came */
const rowsAtOnce = 4000

function plantIn(row: unknown): NewPlant {
  const { id, ...texts } = row as { id: bigint } & Record<string, string | null> // the columns of a STRICT table
  return plantFrom(id, ({ name }) => texts[name])
}
