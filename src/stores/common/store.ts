import type { NewPlant, TextName } from '../../plant/plant.js'
import type { Clock } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { HttpAddress, PostgresAddress, PostgresHost } from './address.js'
import type { Change, Outcome } from './change.js'
import type { CheckpointChange } from './checkpoint-state.js'
import type { CountQuery, ReadQuery, TextCount, WaitOptions } from './query.js'
import type { Right, TokenStore } from './tokens.js'

/** Where plants are kept. What a service cannot do is absent. */
export interface Store {
  /** Leaves out the ids that do not exist. */
  get(ids: readonly bigint[], options?: WaitOptions): Promise<Map<bigint, NewPlant>>
  /** Yields at most some hundred plants or a few MiB at once: one consistent snapshot, unless it is read in pages. */
  read(query?: ReadQuery): AsyncIterable<NewPlant[]>
  count(query?: CountQuery): Promise<bigint>
  /**
   * How many plants have each text: the most frequent first, then in the order of Unicode, and plants without it last of
   * those that are as frequent. A service has a limit for different texts.
   */
  countBy(by: TextName, query?: CountQuery): AsyncIterable<TextCount[]>
  /**
   * Returns an outcome for each change, in their order. A store of ours makes them in one transaction: when it resolves,
   * they are on disk. Calls that come while one commits share the next commit.
   *
   * @throws {PlantsError} `unavailable` when nothing was stored, `unknownOutcome` when that is unknown, and the reason
   * of the signal. A service throws nothing once it was sent a change: see `Outcome`.
   */
  write(changes: readonly Change[], options?: WriteOptions): Promise<Outcome[]>
  /** Commits all that `work` writes, or nothing if it throws. Other writers wait meanwhile. */
  transaction?<T>(work: (transaction: Transaction) => Promise<T>, options?: TransactionOptions<T>): Promise<T>
  /** The state of a checkpoint; undefined if there is none. */
  checkpoint?(id: string): Promise<string | undefined>
  /** Does what `close` would do after many changes, which may take a second. */
  flush?(): Promise<void>
  readonly tokens?: TokenStore
  /** The rights of the store's own credentials, in the order of `rights`. */
  rights?(): Promise<readonly Right[]>
  /** Rejects if the store could not be used now. `needs` is by default the right to create plants. */
  check?(needs?: readonly Right[]): Promise<void>
  /** The number of concurrent snapshots that do not delay other calls. */
  readonly maxSnapshots?: number
  /** The bytes of the log that snapshots keep from being emptied. */
  logSize?(): number
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

export interface WriteOptions extends WaitOptions {
  /** After so many rejected changes, the later ones are not made. */
  maxRejected?: number | undefined
  signal?: AbortSignal | undefined
}

export interface CheckOptions {
  /** in milliseconds */
  timeout: number
  /** number of plants that were read, of `total` */
  onProgress(read: number, total: number): void
}

export interface CheckReport {
  message: string
  /** why something was not read */
  hint?: string
}

export interface Login {
  /** a password file may have one for each host */
  password(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM; those of the system if undefined. Used only if the sslmode of the address verifies certificates */
  ca: string | undefined
  cert: string | undefined
  key: string | undefined
}

export interface Access {
  token: string
  tokenHint: string
  /** Looks the token up again; calls within a minute share one lookup. Throws like the first lookup. */
  renew?: (() => Promise<string | undefined>) | undefined
  userAgent: string
  /** PEM certificates that are trusted instead of the system's */
  ca: string | undefined
  proxy: string | undefined
  notify(text: string): Promise<void>
  /** Called often during a wait, with its milliseconds from a second on; undefined before that, and at its end. */
  onWait?: ((milliseconds: number | undefined) => Promise<void>) | undefined
  observer: Observer | undefined
}

/** The headers include the token. */
export interface Observer {
  /** `time` is the milliseconds since the first request of the connection was created. */
  connected(time: number): void
  sent(request: { method: string; url: string; headers: Record<string, string>; length: number }): void
  /** `firstByte` is the milliseconds since the request was created. */
  answered(answer: { status: number; headers: Readonly<Record<string, string[] | undefined>> }, firstByte: number): void
  /** `length` is in bytes, `whole` in milliseconds since the request was created. */
  ended(length: number, whole: number): void
  failed(cause: unknown): void
}

export interface FileOptions {
  /** of a call, in milliseconds */
  timeout: number
  clock: Clock
  /** the rights of a command that writes, besides the default ones */
  needs?: readonly Right[]
  onCommit?(count: number): void
  /** not called for the default store */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** a store of an earlier version was migrated */
  onMigrated?(name: string): Promise<void>
  /** how other users can change the store */
  onExposed?(warning: string, hint: string): Promise<void>
}

export interface OpenOptions extends FileOptions {
  login(address: PostgresAddress): Promise<Login>
  /** A database is unavailable, and retried for `patience` milliseconds; with undefined, it is available again. */
  onAway?(failure: PlantsError | undefined, patience?: number): void
  access(address: HttpAddress): Promise<Access>
  concurrency?: number | undefined
  /** see `patienceOf` */
  retry?: number | undefined
}

export const defaultConcurrency = 64
