import { plantColumns, plantParameters } from '../../plant/fields.js'
import { equalPlants, type NewPlant, type Plant, type PlantPatch, plantOf, valuesOf } from '../../plant/plant.js'
import type { FileAddress } from '../common/address.js'
import { assertRepeated, type OnConflict, Outcome } from '../common/conflict.js'
import { pagesOf } from '../common/pages.js'
import {
  type Batch,
  type Block,
  type Checkpoint,
  type CheckpointStore,
  type CountByQuery,
  type CountQuery,
  type CreateManyOptions,
  type CreateOptions,
  type FileOptions,
  type ListQuery,
  type Right,
  rights,
  type ServedStore,
  type SnapshotQuery,
  type TokenStore,
} from '../common/store.js'
import { countSelected, findPlant, readPage, selectionOf } from './select.js'
import { type Connection, openSnapshot, openToRead, openToWrite } from './sqlite-connection.js'
import { explained, isWritable, replacedStore } from './sqlite-errors.js'
import { updatePlant } from './sqlite-schema.js'
import { sqliteTokens } from './sqlite-tokens.js'
import { SqliteWriter } from './sqlite-writer.js'
import { fileHasContent, isExposed, makeFile, realPathOf, reportOwner } from './store-file.js'

const insertPlant = `INSERT INTO plants (${plantColumns}, idempotency_key) VALUES (${plantParameters}, ?) ON CONFLICT DO NOTHING`

/** The embedded store: one SQLite file, shared by any number of processes. */
export class SqliteStore implements ServedStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly maxSnapshots = Infinity
  readonly #connection: Connection
  readonly #options: FileOptions
  readonly #writer: SqliteWriter

  private constructor(connection: Connection, options: FileOptions) {
    this.#connection = connection
    this.#options = options
    this.#writer = new SqliteWriter(connection, options)
    this.tokens = sqliteTokens(connection, this.#writer)
  }

  static open(address: FileAddress, options: FileOptions): Promise<SqliteStore> {
    const path = realPathOf(address.name)
    return explained(path, async () => {
      const isNew = makeFile(path, address.isDefault)
      await reportOwner(address, options)
      const connection = await openToWrite(path, options)
      if (isNew && !address.isDefault) await options.onCreated?.(path)
      return new SqliteStore(connection, options)
    })
  }

  /** An exposed store is opened for writing only if `needs` says so. */
  static openExisting(address: FileAddress, options: FileOptions): Promise<SqliteStore | undefined> {
    const path = realPathOf(address.name)
    return explained(path, async () => {
      if (!fileHasContent(path)) return undefined
      await reportOwner(address, options)
      const connection =
        options.needs && isExposed(path, options) ? await openToWrite(path, options) : await openToRead(path, options)
      return connection && new SqliteStore(connection, options)
    })
  }

  create(plant: NewPlant, { idempotencyKey: key }: CreateOptions = {}): Promise<Plant> {
    const work = () => {
      const { changes } = this.#connection.prepare(insertPlant).run(...valuesOf(plant), key ?? null)
      if (Number(changes) === 0)
        assertRepeated(plant, key === undefined ? undefined : findPlant(this.#connection, 'idempotency_key', key))
      return plantOf(plant)
    }
    return this.#writer.write(work, 1)
  }

  greatestId(): Promise<bigint | undefined> {
    return this.#connection.run(() => {
      // one row
      const { id } = this.#connection.prepare('SELECT max(id) AS id FROM plants').get() as { id: bigint | null }
      return id ?? undefined
    })
  }

  get(id: bigint): Promise<NewPlant | undefined> {
    return this.#connection.run(() => findPlant(this.#connection, 'id', id))
  }

  count(query: CountQuery = {}): Promise<bigint> {
    return this.#connection.run(() => countSelected(this.#connection, query))
  }

  list(query: ListQuery = {}): AsyncIterable<NewPlant[]> {
    const selection = selectionOf(query)
    return pagesOf(query, (after, rows) => readPage(this.#connection, selection, after, rows))
  }

  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { readBlocks, readSorted } = await import('./sqlite-snapshot.js')
    const isSorted = query.desc || (query.sort ?? 'id') !== 'id'
    yield* this.#atOnce((connection) => (isSorted ? readSorted : readBlocks)(connection, query))
  }

  async *countBy(query: CountByQuery): AsyncIterable<Block> {
    const { readCounts } = await import('./sqlite-snapshot.js')
    yield* this.#atOnce((connection) => readCounts(connection, query))
  }

  /** Uses another connection: a transaction on this one would affect all other operations. */
  async *#atOnce(read: (connection: Connection) => AsyncIterable<Block>): AsyncIterable<Block> {
    const { path, identity } = this.#connection
    const connection = await explained(path, () => openSnapshot(path, this.#options))
    try {
      if (connection?.identity !== identity) throw replacedStore(path)
      yield* read(connection)
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
    if (options.stop.aborted || batch.rows.length === 0) return
    this.#writer.isBulk = true
    // A larger cache and write-ahead log, so that pages with many new rows are written only once.
    await this.#connection.run(() =>
      this.#connection.db.exec('PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000'),
    )
    const { createRows } = await import('./sqlite-bulk.js')
    try {
      await this.#writer.transact(async () => {
        await createRows(this.#connection, batch, options)
        this.#keep(options.checkpoint?.())
      })
      options.onProgress()
    } catch (error) {
      batch.outcomes.fill(Outcome.pending) // rolled back
      if (!options.stop.aborted || error !== options.stop.reason) throw error
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
        if (db.isTransaction) db.exec('ROLLBACK')
      }
    })
  }

  async createAll(pages: () => Iterable<PlantPatch[]>, onConflict: OnConflict): Promise<void> {
    const { createAll } = await import('./sqlite-bulk.js')
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
    await import('./sqlite-snapshot.js')
  }

  async rights(): Promise<readonly Right[]> {
    return isWritable(this.#connection.path) ? rights : ['read']
  }

  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  async close(): Promise<void> {
    this.#connection.close()
  }
}
