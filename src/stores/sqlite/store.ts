/**
 * The embedded store: one SQLite file, shared by any number of processes of this machine. `Connection` opens it, the
 * `Writer` commits to it, `applyChanges` and `readPlants` are what is done there. This module must not know other kinds
 * of stores, or the command line.
 */
import type { StoredPlant } from '../../plant/plant.js'
import type { SqliteAddress } from '../common/address.js'
import type { Change, Outcome } from '../common/change.js'
import {
  type CheckpointChange,
  CheckpointMovedError,
  donePrefix,
  maxDone,
} from '../common/checkpoint-state.js'
import type { CountQuery, ReadQuery } from '../common/query.js'
import type { OwnStore, Transaction, TransactionOptions, WriteOptions } from '../common/store.js'
import { type Right, rights, type TokenStore } from '../common/token-store.js'
import { applyChanges } from './apply.js'
import { Connection, exposureHint, type SqliteOptions, whyExposed } from './connection.js'
import { isWritable, unusableStore } from './errors.js'
import { countPlants, findPlant, readPlants } from './read.js'
import { sqliteTokens } from './tokens.js'
import { Writer } from './writer.js'

export class SqliteStore implements OwnStore {
  readonly tokens: TokenStore
  readonly #connection: Connection
  readonly #options: SqliteOptions
  readonly #writer: Writer

  private constructor(connection: Connection, options: SqliteOptions) {
    this.#connection = connection
    this.#options = options
    this.#writer = new Writer(connection)
    this.tokens = sqliteTokens(connection, this.#writer)
  }

  /** Creates a missing store. Returns whether it was missing. */
  static async init(address: SqliteAddress, options: SqliteOptions): Promise<boolean> {
    const { connection, isNew } = await SqliteStore.#create(address, options)
    connection.close()
    return isNew
  }

  /** Creates a missing store. */
  static async open(address: SqliteAddress, options: SqliteOptions): Promise<SqliteStore> {
    const { connection } = await SqliteStore.#create(address, options)
    return new SqliteStore(connection, options)
  }

  static async #create(address: SqliteAddress, options: SqliteOptions) {
    const created = await Connection.create(address, options)
    const { path } = created.connection
    if (created.isNew && !address.isDefault) await options.onCreated?.(path)
    const exposure = created.isNew ? whyExposed(path) : undefined
    if (exposure !== undefined) await options.onExposed?.(exposure, exposureHint)
    return created
  }

  static async openExisting(
    { name }: SqliteAddress,
    options: SqliteOptions,
  ): Promise<SqliteStore | undefined> {
    const connection = await Connection.open(name, options)
    return connection && new SqliteStore(connection, options)
  }

  async write(changes: readonly Change[], { signal }: WriteOptions = {}): Promise<Outcome[]> {
    signal?.throwIfAborted()
    return this.#writer.write(() => applyChanges(this.#connection, changes))
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { commits }: TransactionOptions<T> = {},
  ): Promise<T> {
    const transaction: Transaction = {
      write: async (changes, { signal } = {}) => {
        const stopped = signal ?? this.#options.runtime.handleSignals()
        stopped.throwIfAborted()
        return applyChanges(this.#connection, changes)
      },
      saveCheckpoint: async (change) => saveCheckpoint(this.#connection, change),
    }
    return this.#writer.transaction(() => work(transaction), commits)
  }

  checkpoint(id: string): Promise<string | undefined> {
    return this.#connection.retry(() => {
      const select = 'SELECT state FROM imports WHERE id = ?'
      const [state]: [string?] = this.#connection.prepare(select).get(id) ?? []
      return state
    })
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    return this.#connection.retry(() => {
      const found = new Map<bigint, StoredPlant>()
      for (const id of ids) {
        const plant = findPlant(this.#connection, 'id', id)
        if (plant) found.set(id, plant)
      }
      return found
    })
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.inPages) yield* readPlants(this.#connection, query)
    else yield* this.#readSnapshot(query)
  }

  /** Uses another connection: a transaction on this one would affect all other operations. */
  async *#readSnapshot(query: ReadQuery): AsyncGenerator<StoredPlant[]> {
    const { path } = this.#connection
    const connection = await Connection.open(path, this.#options)
    if (!connection) throw unusableStore(path, 'was deleted or replaced', 'Try again')
    try {
      connection.db.exec('BEGIN')
      yield* readPlants(connection, query)
    } finally {
      connection.close()
    }
  }

  count(query: CountQuery = {}): Promise<bigint> {
    return countPlants(this.#connection, query)
  }

  async rights(): Promise<readonly Right[]> {
    return isWritable(this.#connection.path) ? rights : ['read']
  }

  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  async close(): Promise<void> {
    this.#connection.close()
  }
}

/** In the transaction of the changes: of two processes with one import, one finds another state and stores nothing. */
function saveCheckpoint(connection: Connection, { id, from, to }: CheckpointChange): void {
  const run = (sql: string, ...values: (string | null)[]) => connection.prepare(sql).run(...values)
  const replace = () => {
    if (to === undefined)
      return run('DELETE FROM imports WHERE id = ? AND state = ?', id, from ?? null)
    if (from === undefined)
      return run('INSERT INTO imports (id, state) VALUES (?, ?) ON CONFLICT DO NOTHING', id, to)
    return run('UPDATE imports SET state = ? WHERE id = ? AND state = ?', to, id, from)
  }
  if (Number(replace().changes) === 0) throw new CheckpointMovedError()
  if (to?.startsWith(donePrefix)) run(forgetOldest)
}

const forgetOldest = `DELETE FROM imports WHERE id IN (SELECT id FROM imports
  WHERE state LIKE '${donePrefix}%' ORDER BY state DESC LIMIT -1 OFFSET ${maxDone})`
