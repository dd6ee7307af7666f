import { plantColumns, plantParameters } from '../../plant/fields.js'
import { equalPlants, type NewPlant, type Plant, type PlantPatch, plantOf, valuesOf } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { FileAddress } from '../common/address.js'
import { assertRepeated, type OnConflict, Outcome } from '../common/conflict.js'
import { pagesOf } from '../common/pages.js'
import {
  type Batch,
  type Block,
  type Checkpoint,
  type CheckpointStore,
  type CountQuery,
  type CreateManyOptions,
  type CreateOptions,
  type ListQuery,
  type OpenOptions,
  type Right,
  rights,
  type ServedStore,
  type SnapshotQuery,
  type TokenStore,
} from '../common/store.js'
import { type Connection, openSnapshot, openToRead, openToWrite } from './connection.js'
import { DamageError, explained, isWritable, replacedStore } from './errors.js'
import { fileHasContent, isExposed, makeFile, realPathOf, reportOwner } from './file.js'
import { updatePlant } from './schema.js'
import { countSelected, findPlant, readPage } from './select.js'
import { sqliteTokens } from './tokens.js'
import { SqliteWriter } from './writer.js'

const insertPlant = `INSERT INTO plants (${plantColumns}, idempotency_key) VALUES (${plantParameters}, ?) ON CONFLICT DO NOTHING`

/** The embedded store: one SQLite file, shared by any number of processes. */
export class SqliteStore implements ServedStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly maxSnapshots = Infinity
  readonly #connection: Connection
  readonly #options: OpenOptions
  readonly #writer: SqliteWriter
  /** the ids that `get` reads at the end of this turn of the event loop, and their plants */
  readonly #wanted = new Set<bigint>()
  #found: Promise<Map<bigint, NewPlant> | undefined> | undefined

  private constructor(connection: Connection, options: OpenOptions) {
    this.#connection = connection
    this.#options = options
    this.#writer = new SqliteWriter(connection, options)
    this.tokens = sqliteTokens(connection, this.#writer)
  }

  /** Opens the file. Creates it if needed. */
  static open(address: FileAddress, options: OpenOptions): Promise<SqliteStore> {
    const path = realPathOf(address.name)
    return explained(path, async () => {
      const isNew = makeFile(path, address.isDefault)
      await reportOwner(address, options)
      const connection = await openToWrite(path, options)
      if (isNew && !address.isDefault) await options.onCreated?.(path)
      return new SqliteStore(connection, options)
    })
  }

  /**
   * Opens the file if it exists and contains a store. One that is exposed is opened for writing only if `needs` says
   * so.
   */
  static openExisting(address: FileAddress, options: OpenOptions): Promise<SqliteStore | undefined> {
    const path = realPathOf(address.name)
    return explained(path, async () => {
      if (!fileHasContent(path)) return undefined
      await reportOwner(address, options)
      const connection = options.needs && isExposed(path, options) ? await openToWrite(path, options) : await openToRead(path, options)
      return connection && new SqliteStore(connection, options)
    })
  }

  create(plant: NewPlant, { idempotencyKey: key }: CreateOptions = {}): Promise<Plant> {
    const work = () => {
      const { changes } = this.#connection.prepare(insertPlant).run(...valuesOf(plant), key ?? null)
      if (Number(changes) === 0) assertRepeated(plant, key === undefined ? undefined : findPlant(this.#connection, 'idempotency_key', key))
      return plantOf(plant)
    }
    return this.#writer.write(work, 1)
  }

  greatestId(): Promise<bigint | undefined> {
    return this.#connection.run(() => {
      const { id } = this.#connection.prepare('SELECT max(id) AS id FROM plants').get() as { id: bigint | null } // one row
      return id ?? undefined
    })
  }

  /** Calls in one turn of the event loop share a transaction, which takes longer than reading a plant. */
  async get(id: bigint): Promise<NewPlant | undefined> {
    this.#wanted.add(id)
    this.#found ??= this.#readWanted()
    const found = await this.#found
    return found ? found.get(id) : this.#connection.run(() => findPlant(this.#connection, 'id', id))
  }

  /** The plants with the wanted ids; undefined if one of them is damaged. */
  async #readWanted(): Promise<Map<bigint, NewPlant> | undefined> {
    await undefined // the other calls of this turn
    const ids = [...this.#wanted]
    this.#wanted.clear()
    this.#found = undefined
    return this.getMany(ids).catch((error: unknown) => {
      if (error instanceof PlantsError && error.cause instanceof DamageError) return undefined // each call then reads its own plant
      throw error
    })
  }

  count(query: CountQuery = {}): Promise<bigint> {
    return this.#connection.run(() => countSelected(this.#connection, query))
  }

  list(query: ListQuery = {}): AsyncIterable<NewPlant[]> {
    return pagesOf(query, (after, rows) => readPage(this.#connection, query, after, rows))
  }

  /** Uses a separate connection: a transaction on the main one would affect all other operations of this store. */
  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { readBlocks, readSorted } = await import('./export.js')
    const { path, identity } = this.#connection
    const connection = await explained(path, () => openSnapshot(path, this.#options))
    try {
      if (connection?.identity !== identity) throw replacedStore(path)
      yield* query.sort === undefined || query.sort === 'id' ? readBlocks(connection, query) : readSorted(connection, query, query.sort)
    } finally {
      connection?.close()
    }
  }

  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#writer.write(() => {
      const existing = findPlant(this.#connection, 'id', plant.id)
      if (!existing || (only && !equalPlants(existing, only))) return undefined
      this.#connection.prepare(updatePlant).run(...valuesOf(plant))
      return findPlant(this.#connection, 'id', plant.id)
    })
  }

  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#writer.write(() => {
      const plant = findPlant(this.#connection, 'id', id)
      if (!plant || (only && !equalPlants(plant, only))) return undefined
      this.#connection.prepare('DELETE FROM plants WHERE id = ?').run(id)
      return plant
    })
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { rows, order, outcomes } = batch
    this.#writer.isBulk = true
    // A larger cache and write-ahead log, so that pages with many new rows are written only once.
    await this.#connection.run(() => this.#connection.db.exec('PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000'))
    const { ChangesetWriter } = await import('./bulk.js')
    const insert = new ChangesetWriter(this.#connection, this.#options.clock)
    let from = 0 // resume an interrupted batch: rows are created in order
    while (from < rows.length && outcomes[order?.[from] ?? from] !== Outcome.pending) from += 1
    while (from < rows.length && !options.stop.aborted) {
      const begun = from
      try {
        from = await this.#writer.write(() => {
          const end = insert.run(batch, begun, options)
          this.#keep(options.checkpoint?.())
          return end
        })
      } catch (error) {
        for (let rank = begun; rank < rows.length; rank += 1) outcomes[order?.[rank] ?? rank] = Outcome.pending // rolled back
        throw error
      }
      options.onProgress()
    }
  }

  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    const { db } = this.#connection
    return this.#connection.run(() => {
      db.exec('BEGIN')
      try {
        const found = ids.flatMap((id) => findPlant(this.#connection, 'id', id) ?? [])
        return new Map(found.map((plant) => [plant.id, plant]))
      } finally {
        if (db.isTransaction) db.exec('ROLLBACK') // nothing was changed
      }
    })
  }

  async createAll(pages: () => Iterable<PlantPatch[]>, onConflict: OnConflict): Promise<void> {
    const { createAll } = await import('./bulk.js')
    await this.#writer.transact(() => createAll(this.#connection, this.#options.clock, pages(), onConflict))
  }

  #keep(checkpoint: Checkpoint | undefined): void {
    if (!checkpoint) return
    const upsert = 'INSERT INTO imports (id, state) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state'
    this.#connection.prepare(upsert).run(checkpoint.id, checkpoint.state)
  }

  findCheckpoint(id: string): Promise<string | undefined> {
    return this.#connection.run(() => {
      const row = this.#connection.prepare('SELECT state FROM imports WHERE id = ?').get(id)
      return row && (row as { state: string }).state // of a STRICT table
    })
  }

  keepCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#writer.write(() => this.#keep(checkpoint))
  }

  removeCheckpoint(id: string): Promise<void> {
    return this.#writer.write(() => {
      this.#connection.prepare('DELETE FROM imports WHERE id = ?').run(id)
    })
  }

  async preload(): Promise<void> {
    await import('./export.js')
  }

  async rights(): Promise<readonly Right[]> {
    return isWritable(this.#connection.path) ? rights : ['read']
  }

  /** Runs an empty write transaction. Throws the errors of `create`, as far as they can be predicted. */
  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  async close(): Promise<void> {
    await this.#found?.catch(() => undefined)
    this.#connection.close()
  }
}
