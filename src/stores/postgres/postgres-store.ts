import type { TextName } from '../../plant/fields.js'
import type { NewPlant } from '../../plant/plant.js'
import type { PostgresAddress } from '../common/address.js'
import type { Change, Outcome } from '../common/change.js'
import { pagesOf } from '../common/pages.js'
import type {
  CountQuery,
  OpenOptions,
  OwnStore,
  ReadQuery,
  Right,
  TextCount,
  TokenStore,
  WriteOptions,
} from '../common/store.js'
import { ConnectionPool } from './pool.js'
import { checkWritable } from './postgres-check.js'
import { identify, migrate } from './postgres-schema.js'
import { countTexts, readSnapshot } from './postgres-snapshot.js'
import { postgresTokens } from './postgres-tokens.js'
import { transact, writeAll } from './postgres-write.js'
import { PostgresWriter } from './postgres-writer.js'
import {
  getStatement,
  imports,
  literal,
  pageStatement,
  plants,
  rightsStatement,
  toBigInt,
  toPlant,
  toRights,
  where,
} from './sql.js'

export class PostgresStore implements OwnStore {
  readonly tokens: TokenStore
  readonly maxSnapshots: number
  readonly #connections: ConnectionPool
  readonly #writer: PostgresWriter
  /** the gets of one turn of the event loop, which share a statement */
  #gets: { ids: Set<bigint>; found: Promise<Map<bigint, NewPlant>> } | undefined

  private constructor(connections: ConnectionPool) {
    this.#connections = connections
    this.#writer = new PostgresWriter(connections)
    this.maxSnapshots = connections.size - 1 // each uses a connection until its reader is done
    this.tokens = postgresTokens(connections)
  }

  /** Creates or migrates the store. */
  static async open(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore> {
    const opened = await ConnectionPool.open(address, options, (connection) => migrate(connection, address))
    if (opened.result) await options.onMigrated?.(address.name)
    return new PostgresStore(opened.connections)
  }

  static async openExisting(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore | undefined> {
    const opened = await ConnectionPool.open(address, options, (connection) => identify(connection, address))
    if (opened.result > 0) return new PostgresStore(opened.connections)
    opened.connections.close()
    return undefined
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, NewPlant>> {
    const [id, ...others] = ids
    if (id === undefined) return new Map()
    if (others.length > 0) return this.#getAll(ids)
    const plant = (await this.#getWithOthers(id)).get(id)
    return plant ? new Map([[id, plant]]) : new Map()
  }

  #getWithOthers(id: bigint): Promise<Map<bigint, NewPlant>> {
    if (!this.#gets || this.#gets.ids.size >= maxGets) {
      const ids = new Set<bigint>()
      const send = () => {
        if (this.#gets?.ids === ids) this.#gets = undefined
        return this.#getAll([...ids])
      }
      this.#gets = { ids, found: new Promise<void>((resolve) => setImmediate(resolve)).then(send) }
    }
    this.#gets.ids.add(id)
    return this.#gets.found
  }

  async #getAll(ids: readonly bigint[]): Promise<Map<bigint, NewPlant>> {
    const rows = await this.#connections.query(getStatement(ids), ids.length)
    return new Map(rows.map(toPlant).map((plant) => [plant.id, plant]))
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<NewPlant[]> {
    if (query.inPages) yield* this.#pages(query)
    else yield* readSnapshot(this.#connections, query)
  }

  #pages(query: ReadQuery): AsyncIterable<NewPlant[]> {
    return pagesOf(query, async (after, rows) =>
      (await this.#connections.query(pageStatement({ ...query, after }, rows))).map(toPlant),
    )
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change, ...others] = changes
    if (!change && !options.checkpoint) return []
    const isAlone = others.length === 0 && !options.checkpoint
    if (isAlone && change?.type === 'create' && (change.ifExists ?? 'error') === 'error')
      return [await this.#writer.write(change)]
    return writeAll(this.#connections, changes, options)
  }

  transaction<T>(work: (write: PostgresStore['write']) => Promise<T>): Promise<T> {
    return transact(this.#connections, work)
  }

  async checkpoint(id: string): Promise<string | undefined> {
    const [[state] = []] = await this.#connections.query(`SELECT state FROM ${imports} WHERE id = ${literal(id)}`)
    return state ?? undefined
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    const [[count] = []] = await this.#connections.query(`SELECT count(*) FROM ${plants} ${where(query)}`)
    return toBigInt(count)
  }

  countBy(by: TextName, query: CountQuery = {}): AsyncGenerator<TextCount[]> {
    return countTexts(this.#connections, by, query)
  }

  async rights(): Promise<readonly Right[]> {
    return toRights(await this.#connections.query(rightsStatement))
  }

  check(): Promise<void> {
    return this.#connections.run((connection) => checkWritable(connection, this.#connections.account.address))
  }

  async close(): Promise<void> {
    this.#connections.close()
  }
}

/** of the gets that share a statement */
const maxGets = 64
