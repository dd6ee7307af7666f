import { equalPlants, type NewPlant, type Plant, type PlantPatch } from '../../plant/plant.js'
import type { PostgresAddress } from '../common/address.js'
import type { OnConflict } from '../common/conflict.js'
import { pagesOf } from '../common/pages.js'
import type {
  Batch,
  Block,
  Checkpoint,
  CheckpointStore,
  CountByQuery,
  CountQuery,
  CreateManyOptions,
  CreateOptions,
  ListQuery,
  OpenOptions,
  Right,
  ServedStore,
  SnapshotQuery,
  TokenStore,
} from '../common/store.js'
import { batched } from './batched.js'
import { ConnectionPool } from './pool.js'
import { checkWritable } from './postgres-check.js'
import type { Client } from './postgres-client.js'
import { identify, migrate } from './postgres-schema.js'
import { postgresTokens } from './postgres-tokens.js'
import { PostgresWriter } from './postgres-writer.js'
import {
  barrier,
  binder,
  type Change,
  deleteStatement,
  eq,
  getStatement,
  imports,
  keepCheckpointStatement,
  pageStatement,
  pinned,
  plants,
  type Query,
  type Row,
  replaceStatement,
  rightsStatement,
  toPlant,
  toRights,
  where,
} from './sql.js'

export class PostgresStore implements ServedStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly maxSnapshots: number
  readonly #connections: ConnectionPool
  readonly #writer: PostgresWriter
  readonly #get = batched((jobs: { id: bigint }[]) => this.getMany(jobs.map(({ id }) => id)))
  readonly #delete = batched((changes: Change[]) => this.#deleteMany(changes))
  readonly #replace = batched((changes: Change[]) =>
    this.#change(changes, replaceStatement(changes), ({ plant }, now) =>
      plant && now && equalPlants(now, plant) ? now : undefined,
    ),
  )

  private constructor(connections: ConnectionPool) {
    this.#connections = connections
    this.#writer = new PostgresWriter(connections)
    this.maxSnapshots = connections.size - 1 // each uses a connection until its reader is done
    this.tokens = postgresTokens((statement) => connections.query(statement))
  }

  static async open(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore> {
    const { connections } = await connected(address, options, (client) => migrate(client, address))
    return new PostgresStore(connections)
  }

  static async openExisting(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore | undefined> {
    const { connections, result: version } = await connected(address, options, (client) => identify(client, address))
    if (version > 0) return new PostgresStore(connections)
    connections.close()
    return undefined
  }

  create(plant: NewPlant, options?: CreateOptions): Promise<Plant> {
    return this.#writer.create(plant, options)
  }

  async greatestId(): Promise<bigint | undefined> {
    const [[id] = []] = await this.#connections.query({ text: `SELECT pg_catalog.max(id) FROM ${plants}` })
    return id == null ? undefined : BigInt(id)
  }

  get(id: bigint): Promise<NewPlant | undefined> {
    return this.#get({ id })
  }

  async getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    return ids.length === 0 ? new Map() : byId(await this.#connections.query(getStatement(ids)))
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    const values: unknown[] = []
    const text = `SELECT pg_catalog.count(*) FROM ${plants} ${where(query, binder(values))}`
    const [[count] = []] = await this.#connections.query({ text, values })
    return BigInt(count ?? 0)
  }

  list(query: ListQuery = {}): AsyncIterable<NewPlant[]> {
    return pagesOf(query, async (after, rows) =>
      (await this.#connections.query(pageStatement({ ...query, after }, rows))).map(toPlant),
    )
  }

  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { snapshot } = await import('./postgres-snapshot.js')
    yield* snapshot(this.#connections, query)
  }

  async *countBy(query: CountByQuery): AsyncIterable<Block> {
    const { countBy } = await import('./postgres-snapshot.js')
    yield* countBy(this.#connections, query)
  }

  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#replace({ id: plant.id, plant, only })
  }

  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#delete({ id, only })
  }

  async #deleteMany(changes: Change[]): Promise<Map<bigint, NewPlant>> {
    const before = await this.getMany(changes.filter(({ only }) => !only).map(({ id }) => id))
    return this.#change(changes, deleteStatement(changes), ({ id, only }, now) =>
      now ? undefined : (only ?? before.get(id)),
    )
  }

  /**
   * `resultFrom` returns the result of an earlier try whose response was lost from the plant that has the id now, if a
   * retry finds nothing left to change.
   */
  #change(
    changes: Change[],
    statement: Query,
    resultFrom: (change: Change, now: NewPlant | undefined) => NewPlant | undefined,
  ): Promise<Map<bigint, NewPlant>> {
    return this.#connections.run(async (client, { isLost }) => {
      const changed = byId(await client.commit(statement))
      const others = changes.filter(({ id }) => !changed.has(id))
      if (!isLost || others.length === 0) return changed
      await client.ask(pinned(barrier)) // what is read after this is also on the standbys
      const now = byId(await client.ask(getStatement(others.map(({ id }) => id))))
      for (const change of others) {
        const result = resultFrom(change, now.get(change.id))
        if (result) changed.set(change.id, result)
      }
      return changed
    })
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { createRows } = await import('./postgres-bulk.js')
    await createRows(this.#connections, batch, options)
  }

  async createAll(pages: () => Iterable<PlantPatch[]>, onConflict: OnConflict): Promise<void> {
    const { createAll } = await import('./postgres-bulk.js')
    await createAll(this.#connections, pages, onConflict)
  }

  async findCheckpoint(id: string): Promise<string | undefined> {
    const text = `SELECT state FROM ${imports} WHERE id ${eq} $1`
    return (await this.#connections.query({ text, values: [id] }))[0]?.[0] ?? undefined
  }

  async keepCheckpoint(checkpoint: Checkpoint): Promise<void> {
    await this.#connections.query(keepCheckpointStatement(checkpoint))
  }

  async removeCheckpoint(id: string): Promise<void> {
    await this.#connections.query({ text: `DELETE FROM ${imports} WHERE id ${eq} $1`, values: [id] })
  }

  async preload(): Promise<void> {
    await import('./postgres-snapshot.js')
  }

  async rights(): Promise<readonly Right[]> {
    return toRights(await this.#connections.query(rightsStatement()))
  }

  check(): Promise<void> {
    return this.#connections.run((client) => checkWritable(client, this.#connections.account.address))
  }

  async close(): Promise<void> {
    this.#connections.close()
  }
}

async function connected<T>(address: PostgresAddress, options: OpenOptions, action: (client: Client) => Promise<T>) {
  const connections = new ConnectionPool({ address, login: await options.login(address) }, options)
  try {
    return { connections, result: await connections.run(action) }
  } catch (error) {
    connections.close()
    throw error
  }
}

function byId(rows: Row[]): Map<bigint, NewPlant> {
  return new Map(rows.map(toPlant).map((plant) => [plant.id, plant]))
}
