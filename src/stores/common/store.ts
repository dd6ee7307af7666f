import type { StoredPlant } from '../../plant/plant.js'
import type { Change, Outcome } from './change.js'
import type { CheckpointChange } from './checkpoint-state.js'
import type { CountQuery, ReadQuery } from './query.js'
import type { Right, TokenStore } from './token-store.js'

/** Where plants are kept. What a service cannot do is absent. */
export interface Store {
  /** Leaves out the ids that do not exist. */
  get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>>
  /** Yields at most 1000 plants or a few MiB at once: one consistent snapshot, unless it is read in pages. */
  read(query?: ReadQuery): AsyncIterable<StoredPlant[]>
  count(query?: CountQuery): Promise<bigint>
  /**
   * Returns an outcome for each change, in their order. A store of ours makes them in one transaction: when it resolves,
   * they are on disk. Calls that come while one commits share the next commit.
   *
   * @throws {PlantsError} `unavailable` when nothing was stored, `unknownOutcome` when that is unknown, and the reason
   * of the signal. A service throws nothing once it was sent a change: see `Outcome`.
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<Outcome[]>
  /** Commits all that `work` writes, or nothing if it throws. Other writers wait meanwhile. */
  transaction?<T>(
    work: (transaction: Transaction) => Promise<T>,
    options?: TransactionOptions<T>,
  ): Promise<T>
  /** The state of a checkpoint; undefined if there is none. */
  checkpoint?(id: string): Promise<string | undefined>
  readonly tokens?: TokenStore
  /** The rights of the store's own credentials, in the order of `rights`. */
  rights?(): Promise<readonly Right[]>
  /** Rejects if the store could not be used now. `needs` is by default the right to create plants. */
  check?(needs?: readonly Right[]): Promise<void>
  close(): Promise<void>
}

/** A store that this program keeps itself, which can do everything. */
export type OwnStore = Required<Store>

export interface TransactionOptions<T> {
  /** Whether `work` is called again when the connection is lost before it is committed. */
  isRepeatable?: boolean
  /** Decides by the result whether what `work` wrote is committed, or rolled back. By default it is committed. */
  commits?(result: T): boolean
}

export interface Transaction {
  write: Store['write']
  /**
   * Replaces the state of a checkpoint: of several processes with one import, one continues.
   *
   * @throws {PlantsError} `unavailable` unless the state is `from`
   */
  saveCheckpoint(change: CheckpointChange): Promise<void>
}

export interface WriteOptions {
  signal?: AbortSignal | undefined
}
