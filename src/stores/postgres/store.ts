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
import { examineServer, type PostgresConnection } from './connection.js'
import { PostgresDatabase } from './database.js'
import { isLockTimeout, ReadOnlyServerError } from './explain.js'
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

/** A batch of several creates waits for a lock no longer than this. */
const lockTimeoutMs = 1000

/** `locked` means that the batch had to wait too long for a lock, and nothing of it is stored. */
type BatchResult = Outcome[] | 'locked'

/**
 * Stores creates that arrive together in one transaction.
 *
 * A commit takes longer than an insert, and there are few connections. So creates join a batch
 * while the batch waits for a connection. When its transaction has begun, the batch is closed, and
 * the next create opens another one.
 *
 * A create may have to wait for another program, which has inserted the same id and not committed.
 * All creates of its batch would wait with it. So after a second, the batch is rolled back, and
 * each of its creates gets a separate transaction.
 *
 * docs/design/group-commit.md compares this with SQLite.
 */
class CreateBatch {
  readonly #creates: Create[] = []
  readonly #result: Promise<BatchResult>
  #isOpen = true

  constructor(
    private readonly database: PostgresDatabase,
    private readonly applier: PostgresChangeApplier,
  ) {
    this.#result = this.#storeAll()
  }

  /** This is true until the transaction begins. Call `add` only while it is true. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  async add(create: Create): Promise<Outcome> {
    const index = this.#creates.push(create) - 1
    const result = await this.#result
    return result === 'locked' ? this.#storeAlone(create) : assertDefined(result[index])
  }

  async #storeAll(): Promise<BatchResult> {
    // Even if a connection is free, this lets the creates of the same iteration of the event loop
    // join.
    await new Promise(setImmediate)
    try {
      return await this.database.change(
        (connection) => this.#storeInTransaction(connection),
        () => this.#creates.every(isRepeatable),
      )
    } finally {
      this.#isOpen = false
    }
  }

  #storeInTransaction(connection: PostgresConnection): Promise<BatchResult> {
    this.#isOpen = false
    const creates = this.#creates
    if (creates.length === 1)
      return connection.transaction(() => this.applier.apply(connection, creates))
    const store = () => this.#applyUnlessLocked(connection)
    return connection.transaction(store, (result) => result !== 'locked', lockTimeoutMs)
  }

  async #applyUnlessLocked(connection: PostgresConnection): Promise<BatchResult> {
    try {
      return await this.applier.apply(connection, this.#creates)
    } catch (error) {
      if (isLockTimeout(error)) return 'locked'
      throw error
    }
  }

  async #storeAlone(create: Create): Promise<Outcome> {
    const creates = [create]
    const [outcome] = await this.database.change(
      (connection) => connection.transaction(() => this.applier.apply(connection, creates)),
      () => creates.every(isRepeatable),
    )
    return assertDefined(outcome)
  }
}
