import {
  fieldNames,
  type NewPlant,
  type PlantPatch,
  plantColumns,
  plantParameters,
  textNames,
} from '../../plant/fields.js'
import { largestId, patchedPlant, smallestId } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { connect, type Database } from '../../platform/sqlite.js'
import {
  idExistsText,
  incompletePlant,
  type OnConflict,
  Outcome,
  type PolicyOptions,
  policyFor,
  resolveRecord,
} from './conflict.js'
import type { Batch, BulkStore, CreateManyOptions, PlannedChange } from './store.js'

/** The store of a dry run. */
export interface StagingSource {
  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>>
  close(): Promise<void>
}

/** The store of an import that creates nothing before its end. */
export interface StagedStore extends StagingSource {
  /**
   * One transaction: all or none.
   *
   * @param pages returns the records in ascending order of id, from the beginning with each call
   * @param onConflict is called, possibly twice, for an id that exists, and for an incomplete record whose id does not
   * @throws {PlantsError} the errors of `onConflict`; the reason of the clock's signal, or `unavailable`, when nothing
   * was stored; `unknownOutcome` when that is unknown
   */
  createAll(pages: () => Iterable<PlantPatch[]>, onConflict: OnConflict): Promise<void>
}

/** Collects the records of an import in a temporary table on the local disk. `--dry-run` never calls `commit`. */
export class Staging implements BulkStore {
  readonly #source: StagingSource | undefined
  readonly #isReadable: boolean
  readonly #db = openTable()
  readonly #insert = this.#db.prepare(`INSERT INTO staged ${values} ON CONFLICT DO NOTHING`)
  readonly #find = this.#db.prepare(`SELECT ${plantColumns} FROM staged WHERE id = ?`)
  readonly #replace = this.#db.prepare(`REPLACE INTO staged ${values}`)
  readonly #select = this.#db.prepare(
    `SELECT ${plantColumns} FROM staged WHERE id >= ? ORDER BY id LIMIT ${rowsAtOnce}`,
  )
  #options: PolicyOptions = { ifExists: 'error' }

  /**
   * @param source undefined if there is no store yet, or if it cannot be read
   * @param isReadable whether an id that is neither in `source` nor in the input is known not to exist
   */
  constructor(source: StagingSource | undefined, isReadable: boolean) {
    this.#source = source
    this.#isReadable = isReadable
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { stopsAtReject, stop, onProgress, onPlanned } = options
    this.#options = options
    let isStopped = false
    for (let from = 0; from < batch.rows.length && !isStopped && !stop.aborted; from += rowsAtOnce) {
      const patches = Array.from({ length: Math.min(rowsAtOnce, batch.rows.length - from) }, (_, index) =>
        batch.rows.at(from + index),
      )
      const existing = await this.#source?.getMany(patches.map(({ id }) => id))
      const changes: PlannedChange[] = []
      this.#db.exec('BEGIN')
      for (const [index, patch] of patches.entries()) {
        if (batch.outcomes[from + index] !== Outcome.pending) continue
        const { outcome, change } = this.#resolve(patch, existing?.get(patch.id), batch, from + index)
        if (change) changes.push(change)
        batch.outcomes[from + index] = outcome
        isStopped = stopsAtReject && outcome >= Outcome.exists
        if (isStopped) break
      }
      this.#db.exec('COMMIT')
      await onPlanned?.(changes)
      onProgress()
      await new Promise(setImmediate)
    }
  }

  #resolve(
    patch: PlantPatch,
    existing: NewPlant | undefined,
    batch: Batch,
    row: number,
  ): { outcome: Outcome; change?: PlannedChange | undefined } {
    const plant = existing ? undefined : patchedPlant(patch)
    if (plant && BigInt(this.#insert.run(...valuesOf(patch)).changes) === 1n)
      return { outcome: Outcome.created, change: { after: plant } }
    const found: unknown = this.#find.get(patch.id)
    const staged = found === undefined ? undefined : patchIn(found)
    const before = staged ? patchedPlant(staged, existing) : existing
    const { outcome, plant: after } = resolveRecord(this.#options, patch, before)
    const isUpdated = outcome === Outcome.updated || (outcome === Outcome.rejected && !this.#isReadable)
    if (isUpdated) this.#replace.run(...valuesOf({ ...staged, ...patch }))
    else if (outcome === Outcome.rejected) batch.rejections.set(row, incompletePlant(patch))
    else if (outcome === Outcome.exists && !existing)
      batch.rejections.set(row, { error: 409, message: `The id ${patch.id} is in the input twice`, isRepeated: true })
    const change = isUpdated && before && after ? { before, after } : undefined
    return { outcome: isUpdated ? Outcome.updated : outcome, change }
  }

  /** Throws `conflict` for an id that was created or deleted meanwhile. */
  async commit(store: StagedStore): Promise<void> {
    await store.createAll(
      () => this.#pages(),
      (patch, existing) => {
        const { outcome } = resolveRecord(this.#options, patch, existing)
        if (existing && outcome < Outcome.exists) return outcome === Outcome.updated
        const policy = policyFor(patch.id, this.#options)
        const what = existing ? idExistsText(patch.id, policy) : `There is no plant with id ${patch.id}`
        const happened = `it was ${existing ? 'created' : 'deleted'} a moment ago, so nothing was imported`
        throw new PlantsError('conflict', `${what}: ${happened}`, { hint: 'Run it again' })
      },
    )
  }

  *#pages(): Iterable<PlantPatch[]> {
    for (let first = smallestId; first <= largestId; ) {
      const page = this.#select.all(first).map(patchIn)
      const last = page.at(-1)
      if (!last) return
      yield page
      first = last.id + 1n
    }
  }

  async close(): Promise<void> {
    this.#db.close()
    await this.#source?.close()
  }
}

/** about 20 ms, after which signals are handled */
const rowsAtOnce = 4000

function openTable(): Database {
  const db = connect(':memory:', { readOnly: false })
  const columns = textNames.map((name) => `${name} ANY`) // a number for a text that is missing
  db.exec(`CREATE TEMP TABLE staged (id INTEGER PRIMARY KEY, ${columns.join()}) STRICT; PRAGMA temp.cache_size=-16384`)
  return db
}

const values = `(${plantColumns}) VALUES (${plantParameters})`

function valuesOf(patch: PlantPatch): (bigint | string | null)[] {
  return fieldNames.map((name) => (patch[name] === undefined ? missing : patch[name]))
}

function patchIn(row: unknown): PlantPatch {
  // as `valuesOf` returns them
  const { id, ...texts } = row as { id: bigint } & Record<string, string | null | typeof missing>
  const patch: PlantPatch = { id }
  for (const name of textNames) {
    const text = texts[name]
    if (typeof text !== 'bigint') patch[name] = text ?? null
  }
  return patch
}

/** stands for a text that a record does not say */
const missing = 0n
