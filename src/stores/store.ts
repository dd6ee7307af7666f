import type { StringFieldName } from '../plant/fields.js'
import type { StoredPlant } from '../plant/plant.js'
import type { Change, Outcome } from './change.js'
import type { CountQuery, FieldCounts, ReadQuery } from './query.js'
import type { Right, TokenStore } from './tokens.js'

/** Plants are kept in a store. A service lacks the methods that it cannot offer. */
export interface Store {
  /** The result has no entry for an id that does not exist. */
  get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>>
  /**
   * Yields at most a few MiB at once. All plants are one consistent snapshot, unless
   * `query.inPages` is set.
   */
  read(query?: ReadQuery): AsyncIterable<StoredPlant[]>
  count(query?: CountQuery): Promise<bigint>
  /**
   * Counts the plants for each value of a field, at one moment. All different values are kept in
   * memory.
   */
  countBy?(field: StringFieldName, query?: CountQuery): Promise<FieldCounts>
  /**
   * Returns an outcome for each change, in the order of the changes. A direct store makes them in
   * one transaction: when the promise resolves, the changes are on the disk.
   *
   * @throws {PlantsError} `unavailable`, `accessDenied` or `constraint` when nothing was stored,
   *   `unknownOutcome` when it is unknown whether the changes were stored, and the reason of the
   *   signal. After a change was sent to a service, nothing is thrown: see `Outcome`.
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<Outcome[]>
  /** Commits all that `work` writes, or nothing if it throws. Other writers wait meanwhile. */
  transaction?<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions<T>,
  ): Promise<T>
  readonly tokens?: TokenStore
  /**
   * Returns the rights of the store's own credentials, in the order of the constant `rights`. They
   * may include changes although the server of the database is read-only now.
   */
  findRights?(): Promise<readonly Right[]>
  /** Returns the server of a database that is used now, or undefined for a file. */
  findServer?(): Promise<StoreServer | undefined>
  /**
   * Rejects if the store does not have the needed rights now. A check of the right to read takes no
   * lock, so it does not wait while another program writes.
   *
   * @param neededRights the default is to create plants
   */
  check?(neededRights?: readonly Right[]): Promise<void>
  close(): Promise<void>
}

export interface StoreServer {
  /** This is the host and the port, such as `db.example.com:5432`. */
  name: string
  /** This is true for a server that accepts no changes now, such as a standby. */
  isReadOnly: boolean
}

/** A store that the program opens itself: a SQLite file or a PostgreSQL database. */
export type DirectStore = Required<Store>

export interface WriteOptions {
  signal?: AbortSignal | undefined
}

export interface TransactionOptions<T> {
  /** Returns false to roll back what `work` wrote. By default, it is committed. */
  shouldCommit?(result: T): boolean
}

export interface Transaction {
  write: Store['write']
}
