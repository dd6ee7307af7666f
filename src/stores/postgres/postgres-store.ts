import { type StoredPlant, type TextName, textLength } from '../../plant/plant.js'
import { must } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Change, Outcome } from '../common/change.js'
import type { Create } from '../common/plan.js'
import {
  type CountQuery,
  pagesOf,
  type ReadQuery,
  type TextCount,
  type WaitOptions,
} from '../common/query.js'
import type { OwnStore, Transaction, TransactionOptions, WriteOptions } from '../common/store.js'
import {
  type Right,
  type Token,
  type TokenStore,
  tokenColumns,
  tokenFrom,
} from '../common/token-store.js'
import { type Call, ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import type { PostgresOptions } from './postgres-options.js'
import { assertStore, assertUsable, migrate, rightsOf } from './postgres-schema.js'
import { countPlants, countTexts, getPlants, readPages, readSnapshot } from './read.js'
import { imports, literal, type Row, toBigInt, tokens } from './sql.js'
import { type PostgresTransaction, transact, transactOnce } from './transaction.js'
import { limits, makeChanges, saveCheckpoint } from './write.js'

/** A store in a PostgreSQL database, shared by any number of processes. */
export class PostgresStore implements OwnStore {
  readonly tokens: TokenStore
  readonly maxSnapshots: number
  readonly logSize = () => 0
  readonly #pool: ConnectionPool
  readonly #create
  readonly #get

  private constructor(pool: ConnectionPool) {
    this.#pool = pool
    // Group commit: a caller gets its outcome once the commit is on disk.
    this.#create = batching(pool, limits, async (connection, creates: Create[], call) => {
      const outcomes = await transactOnce(pool, connection, call, (transaction) =>
        makeChanges(transaction, creates),
      )
      const created = outcomes.filter(({ type }) => type === 'created').length
      if (created > 0) pool.options.onCommit?.(created)
      return outcomes
    })
    this.#get = batching(pool, { maxItems: maxGets }, (connection, ids: bigint[]) =>
      getPlants(connection, ids).finally(() => pool.release(connection)),
    )
    this.maxSnapshots = pool.size - 1 // each uses a connection until its reader is done
    this.tokens = postgresTokens(pool)
  }

  /**
   * Creates or migrates the store. Returns whether there was none. An address with several servers may lead to one that
   * is not the store's.
   */
  static async init(address: PostgresAddress, options: PostgresOptions): Promise<boolean> {
    const migration = (connection: Connection) => migrate(connection, { mayCreate: true })
    const { pool, result } = await ConnectionPool.open(address, options, migration)
    pool.close()
    if (result === 'migrated') await options.onMigrated?.(address.name)
    return result === 'created'
  }

  /** Migrates the store. Throws `unavailable` if there is none. */
  static async open(address: PostgresAddress, options: PostgresOptions): Promise<PostgresStore> {
    const { pool, result } = await ConnectionPool.open(address, options, (connection) =>
      migrate(connection),
    )
    if (result) await options.onMigrated?.(address.name)
    return new PostgresStore(pool)
  }

  /** Throws `unavailable` if there is none. */
  static async openExisting(
    address: PostgresAddress,
    options: PostgresOptions,
  ): Promise<PostgresStore> {
    return new PostgresStore((await ConnectionPool.open(address, options, assertStore)).pool)
  }

  async get(
    ids: readonly bigint[],
    { waited }: WaitOptions = {},
  ): Promise<Map<bigint, StoredPlant>> {
    const [id, ...others] = ids
    if (id === undefined) return new Map()
    if (others.length > 0 || this.#isLate(waited))
      return this.#pool.run(
        (connection) => getPlants(connection, ids),
        this.#pool.newCall({ waited }),
      )
    const plant = (await this.#get(id)).result.get(id)
    return new Map(plant && [[id, plant]])
  }

  read(query: ReadQuery = {}): AsyncIterable<StoredPlant[]> {
    return query.inPages ? readPages(this.#pool, query) : readSnapshot(this.#pool, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change] = changes
    if (!change) return []
    if (changes.length === 1 && change.type === 'create' && !this.#isLate(options.waited)) {
      const { result, index } = await this.#create(change, textLength(change.plant))
      return [must(result[index])]
    }
    const { signal, waited } = options
    const call = this.#pool.newCall({ signal, waited, isLong: changes.length > 1 })
    return transact(
      this.#pool,
      (transaction) => makeChanges(transaction, changes, options.maxRejected),
      call,
    )
  }

  /** Whether a call has waited too long to share the time of others, which it would exceed by as much. */
  #isLate(waited = 0): boolean {
    return waited > Math.min(1000, this.#pool.options.timeout / 10)
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { isRepeatable = false, commits = () => true }: TransactionOptions<T> = {},
  ): Promise<T> {
    const call = this.#pool.newCall({ isLong: true })
    const run = async (transaction: PostgresTransaction) => {
      const result = await work({
        write: async (changes, { maxRejected, signal } = {}) => {
          signal?.throwIfAborted()
          return makeChanges(transaction, changes, maxRejected)
        },
        saveCheckpoint: (change) => saveCheckpoint(transaction, change),
      })
      transaction.isCommitted = commits(result)
      return result
    }
    if (isRepeatable) return transact(this.#pool, run, call)
    const connection = await this.#pool.retry(call, () => this.#pool.lease(call))
    return transactOnce(this.#pool, connection, call, run)
  }

  async flush(): Promise<void> {}

  /** Waits for a transaction that replaces it: the server may commit one of a process that was killed. */
  async checkpoint(id: string): Promise<string | undefined> {
    const [[state] = []] = await this.#pool.query(
      `SELECT state FROM ${imports} WHERE id = ${literal(id)} FOR SHARE`,
    )
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

/** Reads that share a statement. */
const maxGets = 64

interface Batch<Item, Result> {
  items: Item[]
  characters: number
  result: Promise<Result>
}

/**
 * Calls that come before a connection is free share it, and a statement. Several batches run concurrently.
 *
 * @param perform releases the connection
 * @returns what adds an item to a batch, and resolves with the result of the batch and the index of the item in it
 */
function batching<Item, Result>(
  pool: ConnectionPool,
  { maxItems, maxCharacters = Infinity }: { maxItems: number; maxCharacters?: number },
  perform: (connection: Connection, items: Item[], call: Call) => Promise<Result>,
) {
  let next: Batch<Item, Result> | undefined

  const send = async (items: Item[]): Promise<Result> => {
    const call = pool.newCall()
    await new Promise(setImmediate) // for simultaneous calls
    return pool.retry(call, async () => {
      const connection = await pool.lease(call).finally(() => {
        if (next?.items === items) next = undefined
      })
      return perform(connection, items, call)
    })
  }

  const begin = (): Batch<Item, Result> => {
    const items: Item[] = []
    return { items, characters: 0, result: send(items) }
  }

  return async (item: Item, characters = 0): Promise<{ result: Result; index: number }> => {
    next ??= begin()
    const batch = next
    const index = batch.items.push(item) - 1
    batch.characters += characters
    if (batch.items.length >= maxItems || batch.characters > maxCharacters) next = undefined
    return { result: await batch.result, index }
  }
}

function postgresTokens(pool: ConnectionPool): TokenStore {
  /** @param evidence see `PostgresTransaction` */
  const change = (text: string, evidence: string) =>
    transact(pool, (transaction) => {
      transaction.evidence.push(() => evidence)
      return transaction.ask(text)
    })

  return {
    async find(digest) {
      const text = `SELECT ${tokenColumns} FROM ${tokens} WHERE digest = ${bytes(digest)}`
      return (await pool.query(text)).map(toToken)[0]
    },

    async add(digest, { note, rights, createdAt, expiresAt }) {
      const values = [
        bytes(digest),
        ...[note, rights.join(), createdAt.getTime(), expiresAt?.getTime()].map(literal),
      ]
      const insert = `INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at) VALUES (${values.join()})
        RETURNING ${tokenColumns}`
      const added = await change(
        insert,
        `EXISTS (SELECT FROM ${tokens} WHERE digest = ${bytes(digest)})`,
      )
      return toToken(must(added[0]))
    },

    list() {
      return pagesOf({}, async (after = 0n, rows) => {
        const page = `WHERE id > ${literal(after)} ORDER BY id LIMIT ${rows}`
        return (await pool.query(`SELECT ${tokenColumns} FROM ${tokens} ${page}`)).map(toToken)
      })
    },

    async revoke(id, at) {
      const text = `UPDATE ${tokens} SET revoked_at = coalesce(revoked_at, ${literal(at.getTime())})
        WHERE id = ${literal(id)} RETURNING ${tokenColumns}`
      const isValid = `id = ${literal(id)} AND revoked_at IS NULL`
      return (await change(text, `NOT EXISTS (SELECT FROM ${tokens} WHERE ${isValid})`)).map(
        toToken,
      )[0]
    },
  }
}

function bytes(digest: Uint8Array): string {
  return `'\\x${Buffer.from(digest).toString('hex')}'::bytea`
}

function toToken([id, note = null, rights, ...times]: Row): Token {
  return tokenFrom(toBigInt(id), note, `${rights}`, times)
}
