import { statSync } from 'node:fs'
import type { StoredPlant, TextName } from '../../plant/plant.js'
import { isBusy } from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import type { Change, Outcome } from '../common/change.js'
import {
  type CheckpointChange,
  CheckpointMovedError,
  donePrefix,
  maxDone,
} from '../common/checkpoint-state.js'
import { type CountQuery, pagesOf, type ReadQuery, type TextCount } from '../common/query.js'
import type { OwnStore, Transaction, TransactionOptions, WriteOptions } from '../common/store.js'
import {
  type Right,
  rights,
  type Token,
  type TokenStore,
  tokenColumns,
  tokenFrom,
} from '../common/token-store.js'
import { applyChanges } from './apply.js'
import { countPlants, countTexts, readPlants } from './read.js'
import { assertSorted, belowAll, findPlant, findPlants } from './rows.js'
import {
  type Connection,
  openToRead,
  openToWrite,
  type SqliteOptions,
} from './sqlite-connection.js'
import { explainFailure, isWritable, replacedStore, StoreDamageError } from './sqlite-errors.js'
import { SqliteWriter } from './sqlite-writer.js'

/** The embedded store: one SQLite file, shared by any number of processes. */
export class SqliteStore implements OwnStore {
  readonly tokens: TokenStore
  readonly maxSnapshots = Infinity
  readonly #connection: Connection
  readonly #options: SqliteOptions
  readonly #writer: SqliteWriter
  #reads: { perform(): void; reject(error: unknown): void }[] = []
  /** Used for many changes. */
  #isPrepared = false

  private constructor(connection: Connection, options: SqliteOptions) {
    this.#connection = connection
    this.#options = options
    this.#writer = new SqliteWriter(connection, options)
    this.tokens = sqliteTokens(connection, this.#writer)
  }

  /** Creates a missing store. Returns whether it was missing. */
  static async init(address: SqliteAddress, options: SqliteOptions): Promise<boolean> {
    const existing = await SqliteStore.openExisting(address, options)
    await (existing ?? (await SqliteStore.open(address, options))).close()
    return existing === undefined
  }

  static async open(address: SqliteAddress, options: SqliteOptions): Promise<SqliteStore> {
    return new SqliteStore(await openToWrite(address, options), options)
  }

  static async openExisting(
    { name }: SqliteAddress,
    options: SqliteOptions,
  ): Promise<SqliteStore | undefined> {
    const connection = await openToRead(name, options)
    return connection && new SqliteStore(connection, options)
  }

  async write(
    changes: readonly Change[],
    { maxRejected, signal }: WriteOptions = {},
  ): Promise<Outcome[]> {
    if (changes.length >= manyChanges) await this.#prepareForMany()
    signal?.throwIfAborted()
    const work = () => applyChanges(this.#connection, changes, maxRejected)
    return this.#writer.write(work, changes.filter(({ type }) => type === 'create').length)
  }

  /** A larger cache and write-ahead log, so that pages with many new rows are written only once. */
  async #prepareForMany(): Promise<void> {
    if (this.#isPrepared) return
    this.#isPrepared = true
    await this.#connection.run(() =>
      this.#connection.db.exec('PRAGMA cache_size=-8192; PRAGMA wal_autocheckpoint=4000'),
    )
  }

  async transaction<T>(
    work: (transaction: Transaction) => Promise<T>,
    { commits }: TransactionOptions<T> = {},
  ): Promise<T> {
    await this.#prepareForMany()
    const write: Transaction['write'] = async (
      changes,
      { maxRejected, signal = this.#options.runtime.handleSignals() } = {},
    ) => {
      signal.throwIfAborted()
      return applyChanges(this.#connection, changes, maxRejected)
    }
    const saveCheckpoint: Transaction['saveCheckpoint'] = async (change) =>
      this.#saveCheckpoint(change)
    return this.#writer.transact(() => work({ write, saveCheckpoint }), commits)
  }

  #saveCheckpoint(change: CheckpointChange): void {
    const { changes } = replaceCheckpoint(this.#connection, change)
    if (Number(changes) === 0) throw new CheckpointMovedError()
    if (change.to?.startsWith(donePrefix)) this.#connection.prepare(forgetOldest).run()
  }

  /** Merges the write-ahead log. What is read by others meanwhile stays in it. */
  flush(): Promise<void> {
    return this.#connection.run(() => this.#connection.db.exec('PRAGMA wal_checkpoint(PASSIVE)'))
  }

  checkpoint(id: string): Promise<string | undefined> {
    return this.#connection.run(() => {
      const row = this.#connection.prepare('SELECT state FROM imports WHERE id = ?').get(id)
      return row && (row as { state: string }).state // of a STRICT table
    })
  }

  /** Calls of one turn share a transaction: its locks take as long as a plant. */
  get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    return new Promise((resolve, reject) => {
      const perform = () => {
        try {
          const one = (id: bigint) => findPlant(this.#connection, 'id', id) ?? []
          const found = ids.length === 1 ? ids.flatMap(one) : findPlants(this.#connection, ids)
          resolve(new Map(found.map((plant) => [plant.id, plant])))
        } catch (error) {
          if (isBusy(error)) throw error
          reject(explainFailure(error, this.#connection.path))
        }
      }
      if (this.#reads.push({ perform, reject }) === 1) queueMicrotask(() => this.#readAll())
    })
  }

  async #readAll(): Promise<void> {
    const reads = this.#reads
    this.#reads = []
    const { db } = this.#connection
    const perform = () => {
      const isShared = reads.length > 1 && !db.isTransaction
      if (isShared) db.exec('BEGIN')
      try {
        for (const read of reads) read.perform()
      } finally {
        if (isShared && db.isTransaction) db.exec('COMMIT')
      }
    }
    await this.#connection.run(perform).catch((error) => {
      for (const read of reads) read.reject(error)
    })
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.inPages) yield* readPlants(this.#connection, query)
    else yield* this.#inSnapshot((connection) => readPlants(connection, query))
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    return this.#connection.run(() => countPlants(this.#connection, query))
  }

  async *countBy(by: TextName, query: CountQuery = {}): AsyncGenerator<TextCount[]> {
    yield* this.#inSnapshot((connection) => countTexts(connection, by, query))
  }

  /** Uses another connection: a transaction on this one would affect all other operations. */
  async *#inSnapshot<T>(read: (connection: Connection) => AsyncIterable<T>): AsyncGenerator<T> {
    const { path } = this.#connection
    const connection = await openToRead(path, this.#options)
    if (!connection) throw replacedStore(path)
    try {
      connection.db.exec('BEGIN')
      yield* read(connection)
    } finally {
      connection.close()
    }
  }

  async rights(): Promise<readonly Right[]> {
    return isWritable(this.#connection.path) ? rights : ['read']
  }

  check(): Promise<void> {
    return this.#writer.write(() => undefined)
  }

  logSize(): number {
    return statSync(`${this.#connection.path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  }

  async close(): Promise<void> {
    this.#connection.close()
  }
}

function replaceCheckpoint({ prepare }: Connection, { id, from, to }: CheckpointChange) {
  if (to === undefined)
    return prepare('DELETE FROM imports WHERE id = ? AND state = ?').run(id, from ?? null)
  if (from === undefined)
    return prepare('INSERT INTO imports (id, state) VALUES (?, ?) ON CONFLICT DO NOTHING').run(
      id,
      to,
    )
  return prepare('UPDATE imports SET state = ? WHERE id = ? AND state = ?').run(to, id, from)
}

const forgetOldest = `DELETE FROM imports WHERE id IN (SELECT id FROM imports WHERE state LIKE '${donePrefix}%'
  ORDER BY state DESC LIMIT -1 OFFSET ${maxDone})`

/** A write of so many changes is of an import. */
const manyChanges = 1000

function sqliteTokens(connection: Connection, writer: SqliteWriter): TokenStore {
  return {
    find: (digest) =>
      connection.run(() => {
        const row = connection.prepare(findSql).get(digest, digest)
        return row && toToken(row)
      }),

    add: (digest, { note, rights, createdAt, expiresAt }) =>
      writer.write(() => {
        const times = [createdAt.getTime(), expiresAt?.getTime() ?? null]
        return toToken(
          connection.prepare(insertSql).get(digest, note ?? null, rights.join(), ...times),
        )
      }),

    list: () =>
      pagesOf({}, (after, rows) =>
        connection.run(() => readTokens(connection, after ?? belowAll, rows)),
      ),

    revoke: (id, at) =>
      writer.write(() => {
        connection
          .prepare('UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL')
          .run(at.getTime(), id)
        const row = connection.prepare(`SELECT ${tokenColumns} FROM tokens WHERE id = ?`).get(id)
        return row && toToken(row)
      }),
  }
}

const insertSql = `INSERT INTO tokens (digest, note, rights, created_at, expires_at) VALUES (?, ?, ?, ?, ?) RETURNING ${tokenColumns}`

/** Compares the digest again in the table, which `list` shows: an index of a crafted file can have other contents. */
const findSql = `SELECT ${tokenColumns} FROM tokens NOT INDEXED WHERE id = (SELECT id FROM tokens WHERE digest = ?) AND digest = ?`

function readTokens(connection: Connection, after: bigint | number, rows: number): Token[] {
  const select = connection.prepare(
    `SELECT ${tokenColumns} FROM tokens NOT INDEXED WHERE id > ? ORDER BY id LIMIT ?`,
  )
  const page = select.all(after, rows).map(toToken)
  assertSorted(page, after)
  return page
}

type TokenRow = Record<'id' | 'created_at', bigint> &
  Record<'expires_at' | 'revoked_at', bigint | null> &
  Record<'note' | 'rights', unknown>

function toToken(row: unknown): Token {
  const { id, note, rights, created_at, expires_at, revoked_at } = row as TokenRow
  if ((note !== null && typeof note !== 'string') || typeof rights !== 'string')
    throw new StoreDamageError(`the token ${id} has a value that is not text`)
  return tokenFrom(id, note, rights, [created_at, expires_at, revoked_at])
}
