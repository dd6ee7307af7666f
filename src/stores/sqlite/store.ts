/**
 * A store in a SQLite file, which several processes of this machine may use at once. One connection
 * serves all calls; only a snapshot, which needs a read transaction, opens another one.
 */
import type { StringFieldName } from '../../plant/fields.js'
import { isWritableFile } from '../../platform/files.js'
import type { SqliteAddress } from '../address.js'
import type { Change } from '../change.js'
import { type CountQuery, type ReadQuery, readInPages } from '../query.js'
import type { DirectStore, Transaction, TransactionOptions, WriteOptions } from '../store.js'
import type { Purpose } from '../store-kind.js'
import {
  buildToken,
  type Right,
  rights,
  type Token,
  type TokenStore,
  tokenColumns,
} from '../tokens.js'
import { Connection, type SqliteOptions } from './connection.js'
import { createUnusableStoreError, StoreDamageError } from './explain.js'
import { countByField, countPlants, readPlants, toPlant } from './read.js'
import { Writer } from './writer.js'

export class SqliteStore implements DirectStore {
  readonly tokens: TokenStore
  readonly #writer: Writer

  private constructor(
    private readonly connection: Connection,
    private readonly options: SqliteOptions,
  ) {
    this.#writer = new Writer(connection)
    this.tokens = createSqliteTokenStore(connection, this.#writer)
  }

  static async open(
    address: SqliteAddress,
    purpose: Purpose,
    options: SqliteOptions,
  ): Promise<SqliteStore | undefined> {
    const connection = await Connection.open(address, purpose, options)
    return connection && new SqliteStore(connection, options)
  }

  async write(changes: readonly Change[], { signal }: WriteOptions = {}) {
    signal?.throwIfAborted()
    return this.#writer.write(changes)
  }

  transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { shouldCommit }: TransactionOptions<T> = {},
  ) {
    return this.#writer.transaction((applier) => {
      const transaction: Transaction = {
        write: async (changes, { signal } = {}) => {
          signal?.throwIfAborted()
          return applier.apply(changes)
        },
      }
      return work(transaction)
    }, shouldCommit)
  }

  get(ids: readonly bigint[]) {
    return this.connection.retryWhileLocked(() => findPlants(this.connection, ids))
  }

  async *read(query: ReadQuery = {}) {
    if (query.inPages) return yield* readPlants(this.connection, query)
    const connection = await this.#openSnapshot()
    try {
      yield* readPlants(connection, query)
    } finally {
      connection.close()
    }
  }

  /**
   * Opens a connection that shows the store at one moment. A read transaction on the store's own
   * connection would show all other calls the same moment.
   */
  async #openSnapshot(): Promise<Connection> {
    const { path } = this.connection
    const connection = await Connection.open({ name: path }, 'read', this.options)
    if (!connection) throw createUnusableStoreError(path, 'was deleted or replaced', 'Try again')
    connection.db.exec('BEGIN')
    return connection
  }

  count(query: CountQuery = {}) {
    return countPlants(this.connection, query)
  }

  async countBy(field: StringFieldName, query: CountQuery = {}) {
    const connection = await this.#openSnapshot()
    try {
      return await countByField(connection, field, query)
    } finally {
      connection.close()
    }
  }

  async findRights() {
    return isWritableFile(this.connection.path) ? rights : (['read'] as const)
  }

  async findServer() {
    return undefined
  }

  check(neededRights: readonly Right[] = ['create']) {
    if (neededRights.every((right) => right === 'read')) return this.#writer.checkReading()
    return this.#writer.transaction(
      async () => undefined,
      () => false,
    )
  }

  async close() {
    this.#writer.close()
  }
}

function findPlants({ prepare }: Connection, ids: readonly bigint[]) {
  const select = 'SELECT id, name, tag FROM plants WHERE id'
  const [id, ...furtherIds] = ids
  const rows =
    id !== undefined && furtherIds.length === 0
      ? // For one id, this takes half the time of the statement for several.
        prepare(`${select} = ?`).all(id)
      : prepare(`${select} IN (SELECT value FROM json_each(?))`).all(`[${ids.join()}]`)
  const plants = rows.map(toPlant)
  return new Map(plants.map((plant) => [plant.id, plant]))
}

const select = `SELECT ${tokenColumns} FROM tokens`

const selectByDigest = `${select} WHERE digest = ?`

const selectPage = `${select} WHERE id > ? ORDER BY id LIMIT ?`

const insert = `INSERT INTO tokens (digest, note, rights, created_at, expires_at)
  VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`

/** A second revocation changes nothing, so that the time of the first one stays. */
const revoke = `UPDATE tokens SET revoked_at = ifnull(revoked_at, ?) WHERE id = ?
  RETURNING ${tokenColumns}`

function createSqliteTokenStore(connection: Connection, writer: Writer): TokenStore {
  const { prepare } = connection
  const getToken = (sql: string, ...values: (bigint | number | Uint8Array)[]) => {
    const row = prepare(sql).get(...values)
    return row && toToken(row)
  }
  return {
    find: (digest) => connection.retryWhileLocked(() => getToken(selectByDigest, digest)),

    add: (digest, { note = null, rights, createdAt, expiresAt }) =>
      writer.transaction(async () => {
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        const row = prepare(insert).get(digest, note, rights.join(), ...times)
        return toToken(row)
      }),

    list: () =>
      readInPages({}, (after = 0n, rows) =>
        connection.retryWhileLocked(() => prepare(selectPage).all(after, rows).map(toToken)),
      ),

    revoke: (id, revocationTime) =>
      writer.transaction(async () => getToken(revoke, revocationTime.getTime(), id)),
  }
}

/** A row has the columns of `tokenColumns`, and the connection returns rows as arrays. */
type TokenRow = [id: bigint, note: string | null, rights: string, ...times: (bigint | null)[]]

/** @throws {StoreDamageError} for a time that only another program can have written */
function toToken([id, note, rights, ...times]: TokenRow): Token {
  const token = buildToken(id, note, rights, times)
  if (token) return token
  throw new StoreDamageError(`token ${id} has an invalid time`)
}
