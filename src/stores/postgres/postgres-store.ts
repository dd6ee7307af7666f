import type { TextName } from '../../plant/fields.js'
import type { NewPlant } from '../../plant/plant.js'
import type { PostgresAddress } from '../common/address.js'
import type { Change, Outcome } from '../common/change.js'
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
import { assertUsable, rightsOf } from './postgres-check.js'
import { identify, migrate } from './postgres-schema.js'
import { postgresTokens } from './postgres-tokens.js'
import { PostgresWriter } from './postgres-writer.js'
import { countPlants, countTexts, getPlants, readPages, readSnapshot } from './read.js'
import { imports, literal } from './sql.js'
import { transact, transactOnce } from './transaction.js'
import { makeChanges } from './write.js'

/** A store in a PostgreSQL database, shared by any number of processes. */
export class PostgresStore implements OwnStore {
  readonly tokens: TokenStore
  readonly maxSnapshots: number
  readonly #pool: ConnectionPool
  readonly #writer: PostgresWriter
  /** the gets of one turn of the event loop, which share a statement */
  #gets: { ids: Set<bigint>; found: Promise<Map<bigint, NewPlant>> } | undefined

  private constructor(pool: ConnectionPool) {
    this.#pool = pool
    this.#writer = new PostgresWriter(pool)
    this.maxSnapshots = pool.size - 1 // each uses a connection until its reader is done
    this.tokens = postgresTokens(pool)
  }

  /** Creates or migrates the store. */
  static async open(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore> {
    const { pool, result } = await ConnectionPool.open(address, options, (connection) => migrate(connection))
    if (result) await options.onMigrated?.(address.name)
    return new PostgresStore(pool)
  }

  static async openExisting(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore | undefined> {
    const { pool, result } = await ConnectionPool.open(address, options, (connection) => identify(connection))
    if (result > 0) return new PostgresStore(pool)
    pool.close()
    return undefined
  }

  /** A single one waits for the next turn of the event loop, so that simultaneous gets share a statement. */
  async get(ids: readonly bigint[]): Promise<Map<bigint, NewPlant>> {
    const [id, ...others] = ids
    if (id === undefined) return new Map()
    if (others.length > 0) return getPlants(this.#pool, ids)
    if (!this.#gets || this.#gets.ids.size >= maxGets) {
      const shared = new Set<bigint>()
      const found = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        if (this.#gets?.ids === shared) this.#gets = undefined
        return getPlants(this.#pool, [...shared])
      })
      this.#gets = { ids: shared, found }
    }
    this.#gets.ids.add(id)
    const plant = (await this.#gets.found).get(id)
    return plant ? new Map([[id, plant]]) : new Map()
  }

  read(query: ReadQuery = {}): AsyncIterable<NewPlant[]> {
    return query.inPages ? readPages(this.#pool, query) : readSnapshot(this.#pool, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change] = changes
    if (!options.checkpoint) {
      if (!change) return []
      if (changes.length === 1 && change.type === 'create') return [await this.#writer.write(change)]
    }
    const call = this.#pool.newCall(options.signal)
    return transact(this.#pool, (transaction) => makeChanges(transaction, changes, options), call)
  }

  /** It is not repeated: `work` may have read its input already. */
  async transaction<T>(work: (write: PostgresStore['write']) => Promise<T>): Promise<T> {
    const call = this.#pool.newCall()
    const connection = await this.#pool.retry(call, () => this.#pool.lease(call))
    return transactOnce(this.#pool, connection, call, (transaction) =>
      work(async (changes, options = {}) => {
        options.signal?.throwIfAborted()
        return makeChanges(transaction, changes, options)
      }),
    )
  }

  async checkpoint(id: string): Promise<string | undefined> {
    const [[state] = []] = await this.#pool.query(`SELECT state FROM ${imports} WHERE id = ${literal(id)}`)
    return state ?? undefined
  }

  count(query: CountQuery = {}): Promise<bigint> {
    return countPlants(this.#pool, query)
  }

  countBy(by: TextName, query: CountQuery = {}): AsyncIterable<TextCount[]> {
    return countTexts(this.#pool, by, query)
  }

  rights(): Promise<readonly Right[]> {
    return this.#pool.run(rightsOf)
  }

  check(needs: readonly Right[] = ['create']): Promise<void> {
    return this.#pool.run((connection) => assertUsable(connection, needs))
  }

  async close(): Promise<void> {
    this.#pool.close()
  }
}

/** of the gets that share a statement */
const maxGets = 64
