import { PlantsError } from '../errors.js'
import type { TextName } from '../plant/fields.js'
import type { NewPlantRows, StoredPlant } from '../plant/plant.js'
import type { Change, Outcome } from './change.js'
import type { CountQuery, ReadQuery, TextCounts } from './query.js'
import type { Right, TokenStore } from './tokens.js'

/** Where plants are kept. What a service cannot do is absent. */
export interface Store {
  /** Leaves out the ids that do not exist. */
  get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>>
  /** Yields at most a few MiB at once: one consistent snapshot, unless it is read in pages. */
  read(query?: ReadQuery): AsyncIterable<StoredPlant[]>
  /** The same snapshot as lines of a file, where the store makes them faster than of plants. */
  readLines?(query: ReadQuery, format: LineFormat): AsyncIterable<PlantLines>
  count(query?: CountQuery): Promise<bigint>
  /** Counts the plants of each text, at one moment. Takes memory for the texts that differ. */
  countBy?(field: TextName, query?: CountQuery): Promise<TextCounts>
  /**
   * Returns an outcome for each change, in their order. A direct store makes them in one
   * transaction: when it resolves, they are on disk.
   *
   * @throws {PlantsError} `unavailable`, `accessDenied` or `constraint` when nothing was stored,
   * `unknownOutcome` when that is unknown, and the reason of the signal. A service throws nothing
   * once it was sent a change: see `Outcome`.
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<Outcome[]>
  /** Commits all that `work` writes, or nothing if it throws. Other writers wait meanwhile. */
  transaction?<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions<T>,
  ): Promise<T>
  /** The state of a checkpoint; undefined if there is none. */
  findCheckpoint?(id: string): Promise<string | undefined>
  readonly tokens?: TokenStore
  /**
   * The rights of the store's own credentials, in the order of `rights`. The server of a database
   * may be read-only nevertheless.
   */
  findRights?(): Promise<readonly Right[]>
  /** The server of a database that is used now; undefined for a file. */
  findServer?(): Promise<StoreServer | undefined>
  /**
   * Rejects if the store could not do now what `needs` names, by default to create plants. To read,
   * it takes no lock that a writer may hold.
   */
  check?(needs?: readonly Right[]): Promise<void>
  close(): Promise<void>
}

export interface StoreServer {
  /** Its host and its port. */
  name: string
  /** It accepts no changes now, such as a standby. */
  isReadOnly: boolean
}

/** A store that the program opens itself: a SQLite file or a PostgreSQL database. */
export type DirectStore = Required<Omit<Store, 'readLines'>> & Pick<Store, 'readLines'>

/** A format with one line for each plant. */
export interface LineFormat {
  name: 'ndjson' | 'csv' | 'tsv'
  /** Returns the line of a plant, with its line feed. */
  format(plant: StoredPlant): string
}

export interface PlantLines {
  /** The number of plants. */
  length: number
  content: string | Uint8Array
}

export interface WriteOptions {
  signal?: AbortSignal | undefined
  /** An interrupted import may have sent these changes before. Only a service asks. */
  isRepetition?: boolean
  /** Is called, maybe more than once, when a server has the changes, and this process waits. */
  onWait?: (() => void) | undefined
}

export interface TransactionOptions<T> {
  /** Whether `work` is called again after `unavailable`. */
  isRepeatable?: boolean
  /** Whether what `work` wrote is committed, by its result. By default it is. */
  shouldCommit?(result: T): boolean
}

export interface Transaction {
  write: Store['write']
  /**
   * Of several processes with one import, one goes on.
   *
   * @throws {CheckpointMovedError} unless the state is `from`
   */
  saveCheckpoint(change: CheckpointChange): Promise<void>
  /**
   * Creates all plants, without an object for each and its outcome. Only SQLite can.
   *
   * @throws {RowsRejectedError} if one of them cannot be created, or may be no plant. The whole
   * transaction is then rolled back.
   */
  createRows?(rows: NewPlantRows): Promise<void>
}

/** A store does not create all of the rows. What else becomes of each, `write` can tell. */
export class RowsRejectedError extends Error {}

export interface CheckpointChange {
  id: string
  from: string | undefined
  to: string | undefined
}

export class CheckpointMovedError extends PlantsError {
  constructor() {
    const message = 'Another plants process is importing the same inputs into this store'
    super('accessDenied', message, { hint: 'Wait until it has finished' })
  }
}
