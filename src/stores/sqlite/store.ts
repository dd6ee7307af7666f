import { plantColumns, plantFields } from '../../plant/fields.js'
import { equalPlants, type NewPlant, type Plant, plantOf, textLength } from '../../plant/plant.js'
import type { FileAddress } from '../address.js'
import { Outcome, refuseUnlessRepeated } from '../conflict.js'
import type {
  Batch,
  Block,
  Checkpoint,
  CheckpointStore,
  CreateManyOptions,
  CreateOptions,
  ListQuery,
  OpenOptions,
  ReadableStore,
  SnapshotQuery,
  TokenStore,
} from '../store.js'
import { type Connection, openToRead, openToWrite } from './connection.js'
import { BadRowError, explained } from './errors.js'
import { fileHasContent, makeFile, realPathOf, reportOwner } from './file.js'
import { toPlant, valuesOf } from './schema.js'
import { sqliteTokens } from './tokens.js'
import { Writer } from './writer.js'

/** The embedded store: one SQLite file, shared by any number of processes. */
export class SqliteStore implements ReadableStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly #connection: Connection
  readonly #options: OpenOptions
  readonly #writer: Writer

  private constructor(connection: Connection, options: OpenOptions) {
    this.#connection = connection
    this.#options = options
    this.#writer = new Writer(connection, options)
    this.tokens = sqliteTokens(connection, this.#writer)
  }

  /** Opens the file; makes it first where that is needed. */
  static open(address: FileAddress, options: OpenOptions): Promise<SqliteStore> {
    const path = realPathOf(address.path)
    return explained(path, async () => {
      makeFile({ ...address, path })
      await reportOwner(address, options)
      return new SqliteStore(await openToWrite(path, options), options)
    })
  }

  /** Opens the file if it is there and holds a store. */
  static openExisting(address: FileAddress, options: OpenOptions): Promise<SqliteStore | undefined> {
    const path = realPathOf(address.path)
    return explained(path, async () => {
      if (!fileHasContent(path)) return undefined
      await reportOwner(address, options)
      const connection = await openToRead(path, options)
      return connection && new SqliteStore(connection, options)
    })
  }

  create(plant: NewPlant, { idempotencyKey: key, signal }: CreateOptions = {}): Promise<Plant> {
    const work = () => {
      const sql = `INSERT INTO plants (${plantColumns}, idempotency_key) VALUES (${placeholders}, ?) ON CONFLICT DO NOTHING`
      const { changes } = this.#connection.prepare(sql).run(...valuesOf(plant), key ?? null)
      if (Number(changes) === 0) refuseUnlessRepeated(plant, key === undefined ? undefined : this.#find('idempotency_key', key))
      return plantOf(plant)
    }
    return this.#writer.write(work, signal, 1)
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    return this.#connection.run(() => this.#find('id', id))
  }

  async *list({ after, limit = Infinity, tag }: ListQuery = {}): AsyncIterable<NewPlant[]> {
    let last = after
    let left = limit
    while (left > 0) {
      const page = await this.#connection.run(() => this.#readPage(last, left, tag))
      if (page.length === 0) return
      yield page
      last = page.at(-1)?.id
      left -= page.length
    }
  }

  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { snapshot } = await import('./export.js')
    yield* snapshot(this.#connection, query)
  }

  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#writer.write(() => {
      const plant = this.#find('id', id)
      if (!plant || (only && !equalPlants(plant, only))) return undefined
      this.#connection.prepare('DELETE FROM plants WHERE id = ?').run(id)
      return plant
    })
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { rows, order, outcomes } = batch
    this.#writer.isBulk = true
    // Room in memory and in the log, so that pages that many rows go to are written once.
    await this.#connection.run(() => this.#connection.db.exec('PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000'))
    const { BulkInsert } = await import('./bulk.js')
    const insert = new BulkInsert(this.#connection, this.#options.clock)
    let from = 0 // a batch that was begun before goes on: its rows were taken in its order
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
        for (let rank = begun; rank < rows.length; rank += 1) outcomes[order?.[rank] ?? rank] = Outcome.pending // it was undone
        throw error
      }
      options.onProgress()
    }
  }

  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    return this.#connection.run(() => {
      const found = ids.flatMap((id) => this.#find('id', id) ?? [])
      return new Map(found.map((plant) => [plant.id, plant]))
    })
  }

  createAll(pages: () => Iterable<NewPlant[]>, onConflict: (plant: NewPlant, existing: NewPlant) => void): Promise<void> {
    return this.#writer.write(() => {
      for (const page of pages()) {
        for (const plant of page) {
          const existing = this.#find('id', plant.id)
          if (existing) onConflict(plant, existing)
        }
      }
      const insert = this.#connection.prepare(`INSERT INTO plants (${plantColumns}) VALUES (${placeholders}) ON CONFLICT DO NOTHING`)
      for (const page of pages()) for (const plant of page) insert.run(...valuesOf(plant))
    })
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

  /** Takes a turn at writing, and writes nothing. Throws what `create` would, as far as that can be known. */
  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  #find(column: 'id' | 'idempotency_key', value: bigint | string): NewPlant | undefined {
    const row: unknown = this.#connection.prepare(`SELECT ${plantColumns} FROM plants WHERE ${column} = ?`).get(value)
    return row === undefined ? undefined : toPlant(row)
  }

  #readPage(after: bigint | undefined, limit: number, tag: string | undefined): NewPlant[] {
    const where = [after === undefined ? [] : 'id > ?', tag === undefined ? [] : 'tag = ?'].flat().join(' AND ')
    const select = this.#connection.prepare(`SELECT ${plantColumns} FROM plants ${where && `WHERE ${where}`} ORDER BY id LIMIT ?`)
    const page: NewPlant[] = []
    let characters = 0
    let previous = after
    for (const row of select.iterate(...[after ?? [], tag ?? []].flat(), Math.min(limit, pageRows))) {
      const plant = toPlant(row)
      if (previous !== undefined && plant.id <= previous) throw new BadRowError(`the plant ${plant.id} comes after ${previous}`)
      previous = plant.id
      page.push(plant)
      characters += textLength(plant)
      if (characters >= pageCharacters) break
    }
    return page
  }
}

const placeholders = plantFields.map(() => '?').join()

/** A page ends at whichever comes first, so that a list needs the same memory for any plants. */
const pageRows = 1000
const pageCharacters = 1_000_000
