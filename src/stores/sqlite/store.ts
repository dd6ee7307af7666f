import { equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import type { Database, Statement } from '../../platform/sqlite.js'
import { retryWhileBusy } from '../../platform/sqlite.js'
import { Outcome, refuseUnlessRepeated } from '../conflict.js'
import type {
  Batch,
  Block,
  Checkpoint,
  CheckpointStore,
  CreateManyOptions,
  CreateOptions,
  FileAddress,
  ListQuery,
  OpenOptions,
  ReadableStore,
  SnapshotQuery,
  TokenStore,
} from '../store.js'
import type { BulkInsert } from './bulk.js'
import { BadRowError, explainFailure } from './failure.js'
import {
  checkStamp,
  fileHasContent,
  identityOf,
  isFrozen,
  makeFile,
  openToRead,
  openToWrite,
  realPathOf,
  reportOwner,
  secure,
  stampOf,
} from './file.js'
import { lockedError } from './lock.js'
import { toPlant } from './row.js'
import { identify, prepareStore } from './schema.js'
import { SqliteTokens } from './tokens.js'
import { Statements, type Ways } from './ways.js'
import { Writer } from './writer.js'

/** The embedded store: one SQLite file, shared by any number of processes. */
export class SqliteStore implements ReadableStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly #db: Database
  readonly #path: string
  readonly #options: OpenOptions
  readonly #writer: Writer
  /** of a file that is read without a lock */
  readonly #stamp: string | undefined
  readonly #statements: Statements
  readonly #ways: Ways

  private constructor(path: string, options: OpenOptions, { isWriting }: { isWriting: boolean }) {
    const frozen = !isWriting && isFrozen(path)
    this.#stamp = frozen ? stampOf(path) : undefined
    const identity = identityOf(path)
    this.#db = isWriting ? openToWrite(path) : openToRead(path, frozen)
    this.#path = path
    this.#options = options
    this.#writer = new Writer(this.#db, path, { ...options, identity })
    this.#statements = new Statements(this.#db)
    this.#ways = {
      db: this.#db,
      prepare: (sql) => this.#prepare(sql),
      read: (read) => this.#read(read),
      write: (work) => this.#writer.write(work),
    }
    this.tokens = new SqliteTokens(this.#ways)
  }

  /** Opens the file; makes it first where that is needed. */
  static open(address: FileAddress, options: OpenOptions): Promise<SqliteStore> {
    const path = realPathOf(address.path)
    return explained(path, async () => {
      makeFile({ ...address, path })
      await reportOwner(address, options)
      const store = new SqliteStore(path, options, { isWriting: true })
      await store.#ready(() => prepareStore(store.#db, path))
      return store
    })
  }

  /** Opens the file if it is there and holds a store. */
  static openExisting(address: FileAddress, options: OpenOptions): Promise<SqliteStore | undefined> {
    const path = realPathOf(address.path)
    return explained(path, async () => {
      if (!fileHasContent(path)) return undefined
      await reportOwner(address, options)
      const store = new SqliteStore(path, options, { isWriting: false })
      const isStore = await store.#ready(() => identify(store.#db, path))
      if (isStore) return store
      await store.close()
      return undefined
    })
  }

  create(plant: NewPlant, { idempotencyKey, signal }: CreateOptions = {}): Promise<Plant> {
    return this.#writer.write(
      () => {
        this.#insert(plant, idempotencyKey)
        return plantOf(plant)
      },
      signal,
      1,
    )
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    return this.#read(() => this.#find('SELECT id, name, tag FROM plants WHERE id = ?', id))
  }

  async *list({ after, limit = Infinity, tag }: ListQuery = {}): AsyncIterable<NewPlant[]> {
    let last = after
    let left = limit
    while (left > 0) {
      const page = await this.#read(() => this.#readPage(last, left, tag))
      if (page.length === 0) return
      yield page
      last = page.at(-1)?.id
      left -= page.length
    }
  }

  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { snapshot } = await import('./records.js')
    yield* snapshot(this.#ways, query)
  }

  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#writer.write(() => {
      const plant = this.#find('SELECT id, name, tag FROM plants WHERE id = ?', id)
      if (!plant || (only && !equalPlants(plant, only))) return undefined
      this.#prepare('DELETE FROM plants WHERE id = ?').run(id)
      return plant
    })
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const insert = await this.#prepareForMany()
    for (let from = firstPending(batch); from < batch.rows.length && !options.stop.aborted; ) {
      const begun = from
      from = await this.#writer
        .write(() => {
          const end = insert.run(batch, begun, options)
          this.#keep(options.checkpoint?.())
          return end
        })
        .catch((error: unknown) => {
          reset(batch, begun)
          throw error
        })
      options.onProgress()
    }
  }

  getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    return this.#read(() => {
      const found = ids.flatMap((id) => this.#find('SELECT id, name, tag FROM plants WHERE id = ?', id) ?? [])
      return new Map(found.map((plant) => [plant.id, plant]))
    })
  }

  createAll(pages: () => Iterable<NewPlant[]>, onConflict: (plant: NewPlant, existing: NewPlant) => void): Promise<void> {
    return this.#writer.write(() => {
      for (const page of pages()) {
        for (const plant of page) {
          const existing = this.#find('SELECT id, name, tag FROM plants WHERE id = ?', plant.id)
          if (existing) onConflict(plant, existing)
        }
      }
      const insert = this.#prepare('INSERT INTO plants (id, name, tag) VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
      for (const page of pages()) for (const { id, name, tag } of page) insert.run(id, name, tag ?? null)
    })
  }

  /** Room in memory and in the log, so that pages that many rows go to are written once. */
  async #prepareForMany(): Promise<BulkInsert> {
    this.#writer.isBulk = true
    await this.#read(() => this.#db.exec('PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000'))
    const { BulkInsert } = await import('./bulk.js')
    return new BulkInsert(this.#ways, this.#options.clock)
  }

  #keep(checkpoint: Checkpoint | undefined): void {
    if (!checkpoint) return
    const upsert = 'INSERT INTO imports (id, state) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state'
    this.#prepare(upsert).run(checkpoint.id, checkpoint.state)
  }

  findCheckpoint(id: string): Promise<string | undefined> {
    return this.#read(() => {
      const row = this.#prepare('SELECT state FROM imports WHERE id = ?').get(id)
      return row && (row as { state: string }).state // of a STRICT table
    })
  }

  keepCheckpoint(checkpoint: Checkpoint): Promise<void> {
    return this.#writer.write(() => this.#keep(checkpoint))
  }

  removeCheckpoint(id: string): Promise<void> {
    return this.#writer.write(() => {
      this.#prepare('DELETE FROM imports WHERE id = ?').run(id)
    })
  }

  /** Takes a turn at writing, and writes nothing. Throws what `create` would, as far as that can be told. */
  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  async close(): Promise<void> {
    this.#statements.clear()
    this.#db.close()
  }

  #insert(plant: NewPlant, key: string | undefined): void {
    const { id, name, tag } = plant
    const insert = this.#prepare('INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING')
    if (BigInt(insert.run(id, name, tag ?? null, key ?? null).changes) === 1n) return
    refuseUnlessRepeated(
      plant,
      key === undefined ? undefined : this.#find('SELECT id, name, tag FROM plants WHERE idempotency_key = ?', key),
    )
  }

  #find(sql: string, value: bigint | string): NewPlant | undefined {
    const row: unknown = this.#prepare(sql).get(value)
    return row === undefined ? undefined : toPlant(row)
  }

  #readPage(after: bigint | undefined, limit: number, tag: string | undefined): NewPlant[] {
    const where = [after === undefined ? [] : 'id > ?', tag === undefined ? [] : 'tag = ?'].flat().join(' AND ')
    const select = this.#prepare(`SELECT id, name, tag FROM plants ${where && `WHERE ${where}`} ORDER BY id LIMIT ?`)
    const page: NewPlant[] = []
    let characters = 0
    let previous = after
    for (const row of select.iterate(...[after ?? [], tag ?? []].flat(), Math.min(limit, pageRows))) {
      const plant = toPlant(row)
      if (previous !== undefined && plant.id <= previous) throw new BadRowError(`the plant ${plant.id} comes after ${previous}`)
      previous = plant.id
      page.push(plant)
      characters += plant.name.length + (plant.tag?.length ?? 0)
      if (characters >= pageCharacters) break
    }
    return page
  }

  #prepare(sql: string): Statement {
    return this.#statements.prepare(sql)
  }

  async #ready<T>(prepare: () => T): Promise<T> {
    try {
      await this.#read(() => secure(this.#db))
      return await this.#read(prepare)
    } catch (error) {
      this.#db.close()
      throw error
    }
  }

  async #read<T>(read: () => T): Promise<T> {
    try {
      const result = await retryWhileBusy(read, this.#options, () => lockedError(this.#path, this.#options.timeout))
      checkStamp(this.#path, this.#stamp)
      return result
    } catch (error) {
      checkStamp(this.#path, this.#stamp, error)
      throw explainFailure(error, this.#path)
    }
  }
}

/** A page ends at whichever comes first, so that a list needs the same memory for any plants. */
const pageRows = 1000
const pageCharacters = 1_000_000

async function explained<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/** Where a batch that was begun before goes on: its rows were taken in its order. */
function firstPending({ rows, order, outcomes }: Batch): number {
  let rank = 0
  while (rank < rows.length && outcomes[order?.[rank] ?? rank] !== Outcome.pending) rank += 1
  return rank
}

/** Forgets what was noted of rows whose transaction was undone. */
function reset({ rows, order, outcomes }: Batch, from: number): void {
  for (let rank = from; rank < rows.length; rank += 1) outcomes[order?.[rank] ?? rank] = Outcome.pending
}
