import { escapeLiteral } from 'pg'
import { assertDefined, PlantsError } from '../../errors.js'
import type { StringFieldName } from '../../plant/fields.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { PostgresAddress } from '../address.js'
import type { Change, Create, Outcome } from '../change.js'
import { type CountQuery, type ReadQuery, readInPages, type TextCounts } from '../query.js'
import {
  type DirectStore,
  type LineFormat,
  PlainRowsRejectedError,
  type PlantLines,
  type StoreServer,
  type Transaction,
  type TransactionOptions,
  type WriteOptions,
} from '../store.js'
import {
  describeMissingRights,
  type Right,
  rights,
  type TokenStore,
  tokenColumns,
} from '../tokens.js'
import type { PostgresOptions } from './address.js'
import { examineServer, type PostgresConnection } from './connection.js'
import { copyPlainRows } from './copy-plain-rows.js'
import { CreateBatch } from './create-batch.js'
import { PostgresDatabase } from './database.js'
import { ReadOnlyServerError } from './errors.js'
import {
  buildClauses,
  queryTextCounts,
  readPages,
  readSnapshot,
  readSnapshotLines,
} from './read.js'
import { toCount, toPlants, toToken } from './rows.js'
import { assertStore, columns, createStore, imports, plants, tokens } from './schema.js'
import { keepChanges, makeChanges, saveCheckpoint } from './write.js'

/** A store in the schema `plant_store` of a database. */
export class PostgresStore implements DirectStore {
  readonly tokens: TokenStore
  readonly #database: PostgresDatabase
  /** Creates join this batch while it waits for a connection. */
  #batch: CreateBatch | undefined

  private constructor(database: PostgresDatabase) {
    this.#database = database
    this.tokens = createPostgresTokenStore(database)
  }

  static async init(address: PostgresAddress, options: PostgresOptions): Promise<boolean> {
    const database = new PostgresDatabase({ address, ...options })
    return database.run(createStore).finally(() => database.close())
  }

  static async open(address: PostgresAddress, options: PostgresOptions): Promise<PostgresStore> {
    const database = new PostgresDatabase({ address, ...options })
    await database.run(assertStore)
    return new PostgresStore(database)
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const text = `SELECT ${columns} FROM ${plants} WHERE id = ANY ('{${ids.join()}}'::bigint[])`
    const rows = await this.#database.read(text, ids.length)
    return new Map(toPlants(rows, this.#database.name).map((plant) => [plant.id, plant]))
  }

  read(query: ReadQuery = {}): AsyncIterable<StoredPlant[]> {
    return query.inPages ? readPages(this.#database, query) : readSnapshot(this.#database, query)
  }

  readLines(query: ReadQuery, format: LineFormat): AsyncIterable<PlantLines> {
    return readSnapshotLines(this.#database, query, format)
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    const { where } = await buildClauses(this.#database, query)
    const select = `SELECT count(*) FROM ${plants} ${where}`
    const [[count] = []] = await this.#database.scan(select, { signal: query.signal })
    return toCount(count, this.#database.name)
  }

  countBy(field: StringFieldName, query: CountQuery = {}): Promise<TextCounts> {
    return queryTextCounts(this.#database, field, query)
  }

  async write(changes: readonly Change[], { signal }: WriteOptions = {}): Promise<Outcome[]> {
    signal?.throwIfAborted()
    const [change] = changes
    if (changes.length === 1 && change?.type === 'create') return [await this.#create(change)]
    return this.#database.run((connection) =>
      connection.transaction(() => makeChanges(connection, changes)),
    )
  }

  #create(create: Create): Promise<Outcome> {
    if (!this.#batch?.isOpen) this.#batch = new CreateBatch(this.#database)
    return this.#batch.add(create)
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { isRepeatable, shouldCommit }: TransactionOptions<T> = {},
  ): Promise<T> {
    const transact = (connection: PostgresConnection) => {
      const transaction: Transaction = {
        write: async (changes, { signal, onWait } = {}) => {
          signal?.throwIfAborted()
          const outcomes = await makeChanges(connection, changes, onWait)
          await keepChanges(connection)
          return outcomes
        },
        saveCheckpoint: (change) => saveCheckpoint(connection, change),
        createPlainRows: (rows, { onWait } = {}) => copyPlainRows(connection, rows, onWait),
      }
      return connection
        .transaction(() => work(transaction), shouldCommit)
        .catch((error: unknown) => rollBackPlainRows(connection, error))
    }
    const result = await (isRepeatable
      ? this.#database.run(transact)
      : this.#database.runOnce(transact))
    if (result instanceof PlainRowsRejectedError) throw result
    return result
  }

  /**
   * `FOR SHARE` waits for a transaction that is replacing the checkpoint. It may be one of a
   * process that was killed after it had sent COMMIT, so that the server still commits it.
   */
  async findCheckpoint(id: string): Promise<string | undefined> {
    const text = `SELECT state FROM ${imports} WHERE id = ${escapeLiteral(id)} FOR SHARE`
    const [[state] = []] = await this.#database.read(text)
    return state ?? undefined
  }

  async findRights(): Promise<readonly Right[]> {
    const [row = []] = await this.#database.read(`SELECT ${rights.map(buildPrivilegeTest).join()}`)
    return rights.filter((_, index) => row[index] === 't')
  }

  findServer(): Promise<StoreServer> {
    return this.#database.run(examineServer)
  }

  async check(needs: readonly Right[] = ['create']): Promise<void> {
    const server = await this.findServer()
    const isChange = needs.some((right) => right !== 'read')
    if (server.isReadOnly && isChange) throw new ReadOnlyServerError(server.name)
    const has = await this.findRights()
    const missing = needs.filter((right) => !has.includes(right))
    if (missing.length > 0) throw new PlantsError('accessDenied', describeMissingRights(missing))
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

/**
 * Ends the transaction of rows that were rejected, so that its connection can be used again. A
 * connection whose action throws is dropped, and each chunk of a repeated import has such rows.
 */
async function rollBackPlainRows(
  connection: PostgresConnection,
  error: unknown,
): Promise<PlainRowsRejectedError> {
  if (!(error instanceof PlainRowsRejectedError)) throw error
  await connection.query('ROLLBACK')
  return error
}

/** A change first reads its plant. A deletion also locks it, for which PostgreSQL asks UPDATE. */
const privileges: Readonly<Record<Right, readonly string[]>> = {
  create: ['SELECT', 'INSERT'],
  read: ['SELECT'],
  update: ['SELECT', 'UPDATE'],
  delete: ['SELECT', 'UPDATE', 'DELETE'],
}

function buildPrivilegeTest(right: Right): string {
  const tests = privileges[right].map((name) => `has_table_privilege('${plants}', '${name}')`)
  return tests.join(' AND ')
}

function createPostgresTokenStore(database: PostgresDatabase): TokenStore {
  const select = async (condition: string, maxRows = 1) => {
    const text = `SELECT ${tokenColumns} FROM ${tokens} ${condition}`
    return (await database.read(text, maxRows)).map((row) => toToken(row, database.name))
  }
  const change = (text: string, values: unknown[]) =>
    database.run((connection) =>
      connection.transaction(async () => {
        const { rows } = await connection.query(`${text} RETURNING ${tokenColumns}`, values, 1)
        return rows.map((row) => toToken(row, connection.name))[0]
      }),
    )
  return {
    find: async (digest) =>
      (await select(`WHERE digest = '\\x${Buffer.from(digest).toString('hex')}'`))[0],
    add: async (digest, { note, rights, createdAt, expiresAt }) => {
      const text = `INSERT INTO ${tokens} (digest, note, rights, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5)`
      const times = [createdAt.getTime(), expiresAt?.getTime()]
      return assertDefined(await change(text, [Buffer.from(digest), note, rights.join(), ...times]))
    },
    list: () =>
      readInPages({}, (after = 0n, rows) =>
        select(`WHERE id > '${after}' ORDER BY id LIMIT ${rows}`, rows),
      ),
    revoke: (id, at) => {
      const text = `UPDATE ${tokens} SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1`
      return change(text, [id, at.getTime()])
    },
  }
}
