import { equalPlants, type NewPlant, type Plant } from '../../plant/plant.js'
import type { PostgresAddress } from '../address.js'
import type { OnConflict } from '../conflict.js'
import { pagesOf } from '../pages.js'
import type {
  Batch,
  Block,
  Checkpoint,
  CheckpointStore,
  CreateManyOptions,
  CreateOptions,
  ListQuery,
  OpenOptions,
  Right,
  ServedStore,
  SnapshotQuery,
  TokenStore,
} from '../store.js'
import type { Connection, Rows } from './connection.js'
import type { Account } from './dial.js'
import { explainDatabase, isRefusal } from './failure.js'
import { Pool } from './pool.js'
import { type Turn, untilDone } from './retry.js'
import { identify, migrate } from './schema.js'
import { checkWritable } from './server-state.js'
import type { Use } from './session.js'
import {
  deleteStatement,
  getManyStatement,
  getStatement,
  imports,
  keepStatement,
  literal,
  pageStatement,
  replaceStatement,
  rightsStatement,
  toPlant,
  toRights,
} from './sql.js'
import { PostgresTokens } from './tokens.js'
import { Writer } from './writer.js'

/** The shared store: a PostgreSQL database, used by any number of processes on any number of machines. */
export class PostgresStore implements ServedStore, CheckpointStore {
  readonly tokens: TokenStore
  readonly #use: Use
  readonly #writer: Writer

  private constructor(account: Account, options: OpenOptions) {
    this.#use = { account, pool: new Pool(account, options), options }
    this.#writer = new Writer(this.#use)
    this.tokens = new PostgresTokens((statement) => this.#query(statement))
  }

  /** Opens the database; makes or migrates the tables first where that is needed. */
  static async open(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore> {
    const store = new PostgresStore({ address, login: await options.login(address) }, options)
    await store.#closingOnFailure((turn) => store.#use.pool.own(turn, (connection) => migrate(connection, address)))
    return store
  }

  /** Opens the database if it holds a store. */
  static async openExisting(address: PostgresAddress, options: OpenOptions): Promise<PostgresStore | undefined> {
    const store = new PostgresStore({ address, login: await options.login(address) }, options)
    const version = await store.#closingOnFailure((turn) => store.#use.pool.share(turn, (connection) => identify(connection, address)))
    if (version > 0) return store
    await store.close()
    return undefined
  }

  create(plant: NewPlant, options?: CreateOptions): Promise<Plant> {
    return this.#writer.create(plant, options)
  }

  async get(id: bigint): Promise<NewPlant | undefined> {
    const [row] = await this.#query(getStatement(id))
    return row && toPlant(row)
  }

  /** Those of some ids that are there. */
  async getMany(ids: bigint[]): Promise<Map<bigint, NewPlant>> {
    return new Map((await this.#query(getManyStatement(ids))).map((row) => [BigInt(row[0] ?? 0), toPlant(row)]))
  }

  list(query: ListQuery = {}): AsyncIterable<NewPlant[]> {
    return pagesOf(query, async (after, rows) => (await this.#query(pageStatement({ ...query, after }, rows, pageBytes))).map(toPlant))
  }

  async *snapshot(query: SnapshotQuery): AsyncIterable<Block> {
    const { snapshot } = await import('./records.js')
    yield* snapshot(this.#use, query)
  }

  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined> {
    return this.#change(replaceStatement(plant, only), async () => {
      const now = await this.get(plant.id)
      return now && equalPlants(now, plant) ? now : undefined
    })
  }

  async delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined> {
    const before = only ?? (await this.get(id))
    return this.#change(deleteStatement(id, only), async () => ((await this.get(id)) ? undefined : before))
  }

  /**
   * Runs a statement that changes at most one plant, and returns it.
   *
   * @param lookUp gives what a try has returned whose answer was lost, when there is nothing left to change
   */
  async #change(statement: string, lookUp: () => Promise<NewPlant | undefined>): Promise<NewPlant | undefined> {
    let isLost = false
    const run = async (connection: Connection) => {
      try {
        return await connection.query(statement)
      } catch (error) {
        isLost ||= !isRefusal(error)
        throw error
      }
    }
    const [row] = await this.#again((turn) => this.#use.pool.share(turn, run))
    if (row) return toPlant(row)
    return isLost ? lookUp() : undefined
  }

  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { createRows } = await import('./bulk.js')
    await createRows(this.#use, batch, options)
  }

  /** Creates plants all at once, as `createAll` of postgres/create-all.ts has it. */
  async createAll(pages: () => Iterable<NewPlant[]>, onConflict: OnConflict): Promise<void> {
    const { createAll } = await import('./create-all.js')
    await createAll(this.#use, pages, onConflict)
  }

  async findCheckpoint(id: string): Promise<string | undefined> {
    return (await this.#query(`SELECT state FROM ${imports} WHERE id = ${literal(id)}`))[0]?.[0] ?? undefined
  }

  async keepCheckpoint(checkpoint: Checkpoint): Promise<void> {
    await this.#query(keepStatement(checkpoint))
  }

  async removeCheckpoint(id: string): Promise<void> {
    await this.#query(`DELETE FROM ${imports} WHERE id = ${literal(id)}`)
  }

  async rights(): Promise<readonly Right[]> {
    const [row] = await this.#query(rightsStatement())
    return toRights(row)
  }

  check(): Promise<void> {
    return this.#again((turn) =>
      this.#use.pool.share(turn, (connection) => checkWritable(connection, this.#use.account, this.#use.options)),
    )
  }

  close(): Promise<void> {
    return this.#use.pool.close()
  }

  #query(statement: string): Promise<Rows> {
    return this.#again((turn) => this.#use.pool.share(turn, (connection) => connection.query(statement)))
  }

  #again<T>(action: (turn: Turn) => Promise<T>): Promise<T> {
    const turn = this.#turn()
    return untilDone(turn, { account: this.#use.account, clock: this.#use.options.clock }, () => action(turn))
  }

  #turn(): Turn {
    return { deadline: this.#use.options.clock.now() + this.#use.options.timeout, signal: this.#use.options.clock.signal }
  }

  async #closingOnFailure<T>(action: (turn: Turn) => Promise<T>): Promise<T> {
    try {
      return await this.#again(action)
    } catch (error) {
      await this.close()
      throw explainDatabase(error, this.#use.account)
    }
  }
}

/** of a page, about */
const pageBytes = 1_000_000
