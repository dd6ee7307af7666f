import { type NewPlant, plantColumns, plantParameters, textFields } from '../../plant/fields.js'
import { equalPlants, plantFrom, valuesOf } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Statement } from '../../platform/sqlite.js'
import { type ExistsPolicy, idExistsText, type OnConflict, Outcome, resolveConflict } from './conflict.js'
import type { Batch, BulkStore, CreateManyOptions } from './store.js'

/** The store of an import that creates nothing before its end. */
export interface StagedStore {
  /** The existing plants with these ids. */
  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>>
  /**
   * Creates plants in one transaction, all or none.
   *
   * @param pages returns the plants in ascending order of id, from the beginning with each call
   * @param onConflict is called for a plant whose id exists, possibly twice
   * @throws {PlantsError} the errors of `onConflict`; `unavailable` when nothing was stored; `unknownOutcome` when that is unknown
   */
  createAll(pages: () => Iterable<NewPlant[]>, onConflict: OnConflict): Promise<void>
  close(): Promise<void>
}

/**
 * Collects the plants of an import in a temporary table on the local disk, and compares them with those of a store, if there is one.
 * `commit` creates them all in one transaction; `--check` never calls it.
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
        isStopped = stopsAtReject && outcome === Outcome.exists
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
    if (outcome === Outcome.exists && !existing)
      batch.rejections.set(row, new PlantsError('conflict', `The id ${plant.id} is in the input twice`))
    return outcome
  }

  /** Creates all staged plants. Throws `conflict` for an id that was created meanwhile. */
  async commit(): Promise<void> {
    await this.#store?.createAll(
      () => this.#pages(),
      (plant, existing) => {
        const outcome = resolveConflict(this.#policy, () => equalPlants(plant, existing))
        if (outcome !== Outcome.exists) return outcome === Outcome.updated
        throw new PlantsError('conflict', `${idExistsText(plant.id, this.#policy)}: it was created a moment ago, so nothing was imported`, {
          hint: 'Run it again',
        })
      },
    )
  }

  /** The staged plants in ascending order of id. */
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

/** about 20 ms, after which signals are handled */
const rowsAtOnce = 4000

function plantIn(row: unknown): NewPlant {
  const { id, ...texts } = row as { id: bigint } & Record<string, string | null> // the columns of a STRICT table
  return plantFrom(id, ({ name }) => texts[name])
}
