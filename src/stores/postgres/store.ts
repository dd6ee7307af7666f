import { assertDefined, PlantsError } from '../../errors.js'
import type { StringFieldName } from '../../plant/fields.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { PostgresAddress } from '../address.js'
import { type Change, type Create, isRepeatable, type Outcome } from '../change.js'
import { type CountQuery, type FieldCounts, type ReadQuery, readInPages } from '../query.js'
import type {
  DirectStore,
  StoreServer,
  Transaction,
  TransactionOptions,
  WriteOptions,
} from '../store.js'
import type { Purpose } from '../store-kind.js'
import {
  describeMissingRights,
  type Right,
  rights,
  type TokenStore,
  tokenColumns,
} from '../tokens.js'
import type { PostgresOptions } from './address.js'
import { moveSavepoint, PostgresChangeApplier } from './apply.js'
import { examineServer } from './connection.js'
import { CreateBatch } from './create-batch.js'
import { PostgresDatabase } from './database.js'
import { ReadOnlyServerError } from './explain.js'
import { buildClauses, queryFieldCounts, readPages, readSnapshot } from './read.js'
import { toCount, toPlants, toToken } from './rows.js'
import { assertStore, createStore, plantColumns, plantsTable, tokensTable } from './schema.js'

/** A store in the schema `plant_store` of a database. */
export class PostgresStore implements DirectStore {
  readonly tokens: TokenStore
  readonly #applier = new PostgresChangeApplier()
  /** Creates join this batch while it waits for a connection. */
  #batch: CreateBatch | undefined

  private constructor(private readonly database: PostgresDatabase) {
    this.tokens = createPostgresTokenStore(database)
  }

  static async open(
    address: PostgresAddress,
    purpose: Purpose,
    { onCreated, ...options }: PostgresOptions,
  ): Promise<PostgresStore> {
    const database = new PostgresDatabase({ address, ...options })
    if (purpose !== 'init') await database.run(assertStore)
    else if (await database.run(createStore)) await onCreated?.(address.name)
    return new PostgresStore(database)
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const sql = `SELECT ${plantColumns} FROM ${plantsTable} WHERE id = ANY ('{${ids.join()}}'::bigint[])`
    const rows = await this.database.read(sql)
    return new Map(toPlants(rows, this.database.name).map((plant) => [plant.id, plant]))
  }

  read(query: ReadQuery = {}): AsyncIterable<StoredPlant[]> {
    return query.inPages ? readPages(this.database, query) : readSnapshot(this.database, query)
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    const { where } = await buildClauses(this.database, query)
    const select = `SELECT count(*) FROM ${plantsTable} ${where}`
    const [[count] = []] = await this.database.scan(select, query.signal)
    return toCount(count, this.database.name)
  }

  countBy(field: StringFieldName, query: CountQuery = {}): Promise<FieldCounts> {
    return queryFieldCounts(this.database, field, query)
  }

  async write(changes: readonly Change[], { signal }: WriteOptions = {}): Promise<Outcome[]> {
    signal?.throwIfAborted()
    const [change] = changes
    if (changes.length === 1 && change?.type === 'create') return [await this.#create(change)]
    return this.database.change(
      (connection) => connection.transaction(() => this.#applier.apply(connection, changes)),
      () => changes.every(isRepeatable),
    )
  }

  #create(create: Create): Promise<Outcome> {
    if (!this.#batch?.isOpen) this.#batch = new CreateBatch(this.database, this.#applier)
    return this.#batch.add(create)
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { shouldCommit }: TransactionOptions<T> = {},
  ): Promise<T> {
    return this.database.changeOnce((connection) => {
      const transaction: Transaction = {
        write: async (changes, { signal } = {}) => {
          signal?.throwIfAborted()
          const outcomes = await this.#applier.apply(connection, changes)
          await moveSavepoint(connection)
          return outcomes
        },
      }
      return connection.transaction(() => work(transaction), shouldCommit)
    })
  }

  async findRights(): Promise<readonly Right[]> {
    const [row = []] = await this.database.read(`SELECT ${rights.map(buildPrivilegeTest).join()}`)
    return rights.filter((_, index) => row[index] === 't')
  }

  findServer(): Promise<StoreServer> {
    return this.database.run(examineServer)
  }

  async check(neededRights: readonly Right[] = ['create']): Promise<void> {
    const server = await this.findServer()
    const isChange = neededRights.some((right) => right !== 'read')
    if (server.isReadOnly && isChange) throw new ReadOnlyServerError(server.name)
    const grantedRights = await this.findRights()
    const missingRights = neededRights.filter((right) => !grantedRights.includes(right))
    if (missingRights.length > 0)
      throw new PlantsError('accessDenied', describeMissingRights(missingRights))
  }

  close(): Promise<void> {
    return this.database.close()
  }
}

/**
 * A change first reads its plant. A deletion also locks the plant, which requires the privilege
 * UPDATE.
 */
const privileges: Readonly<Record<Right, readonly string[]>> = {
  create: ['SELECT', 'INSERT'],
  read: ['SELECT'],
  update: ['SELECT', 'UPDATE'],
  delete: ['SELECT', 'UPDATE', 'DELETE'],
}

function buildPrivilegeTest(right: Right): string {
  const tests = privileges[right].map((name) => `has_table_privilege('${plantsTable}', '${name}')`)
  return tests.join(' AND ')
}

function createPostgresTokenStore(database: PostgresDatabase): TokenStore {
  const select = async (condition: string) => {
    const sql = `SELECT ${tokenColumns} FROM ${tokensTable} ${condition}`
    return (await database.read(sql)).map((row) => toToken(row, database.name))
  }
  const change = (sql: string, values: unknown[]) =>
    database.change((connection) =>
      connection.transaction(async () => {
        const { rows } = await connection.query(`${sql} RETURNING ${tokenColumns}`, values)
        return rows.map((row) => toToken(row, connection.name))[0]
      }),
    )
  return {
    find: async (digest) =>
      (await select(`WHERE digest = '\\x${Buffer.from(digest).toString('hex')}'`))[0],
    add: async (digest, { note, rights, createdAt, expiresAt }) => {
      const sql = `INSERT INTO ${tokensTable} (digest, note, rights, created_at, expires_at)
        VALUES ($1, $2, $3, $4, $5)`
      const times = [createdAt.getTime(), expiresAt?.getTime()]
      return assertDefined(await change(sql, [Buffer.from(digest), note, rights.join(), ...times]))
    },
    list: () =>
      readInPages({}, (after = 0n, rows) =>
        select(`WHERE id > '${after}' ORDER BY id LIMIT ${rows}`),
      ),
    revoke: (id, revocationTime) => {
      const sql = `UPDATE ${tokensTable} SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1`
      return change(sql, [id, revocationTime.getTime()])
    },
  }
}
