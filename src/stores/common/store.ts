import type { FieldName, NewPlant, Plant } from '../../plant/plant.js'
import type { RecordFormat } from '../../plant/records.js'
import type { PlantRows } from '../../plant/rows.js'
import type { Clock } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { Access } from './access.js'
import type { PostgresAddress, PostgresHost, RemoteAddress } from './address.js'
import type { ExistsPolicy } from './conflict.js'

/** A store of plants. When `create` resolves, the plant is on disk. */
export interface PlantStore {
  /**
   * Creates a plant. With an idempotency key that has created the same plant before, returns the first result.
   *
   * @throws {PlantsError} `conflict` when another plant has the id, or the key belongs to a different plant;
   * `unavailable` when nothing was stored; `unknownOutcome` when that is unknown
   */
  create(plant: NewPlant, options?: CreateOptions): Promise<Plant>
  close(): Promise<void>
}

export interface CreateOptions {
  /** 1 to 255 visible ASCII characters; stored with the plant */
  idempotencyKey?: string | undefined
}

export interface ReadableStore extends PlantStore {
  get(id: bigint): Promise<NewPlant | undefined>
  /** undefined in an empty store */
  greatestId(): Promise<bigint | undefined>
  /** The number of plants that a query selects, in a consistent snapshot. */
  count(query?: CountQuery): Promise<bigint>
  /** The plants in ascending order of id, in pages of at most a few MiB. */
  list(query?: ListQuery): AsyncIterable<NewPlant[]>
  /** A consistent snapshot as text, in blocks of some hundred KiB. Does not block writers. Uses a connection until the iteration ends. */
  snapshot(query: SnapshotQuery): AsyncIterable<Block>
  /**
   * Replaces the texts of the plant with this id; with `only`, only if it still equals that plant. Removes its idempotency key, so that a
   * late retry of its create is a conflict.
   *
   * @returns the new plant; undefined if there is none with this id, or if it has changed
   * @throws {PlantsError} `unavailable` when nothing was changed; `unknownOutcome` when that is unknown
   */
  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined>
  /** Deletes a plant and its idempotency key, and returns it; with `only`, only if it still equals that plant. Throws like `replace`. */
  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined>
}

export interface ListQuery {
  after?: bigint | undefined
  /** the maximum number of plants, at least 1 */
  limit?: number | undefined
  tag?: string | undefined
  /** only plants of which a text contains this one, ignoring the case of A to Z */
  search?: string | undefined
  signal?: AbortSignal | undefined
}

export type CountQuery = Pick<ListQuery, 'tag' | 'search'>

export interface SnapshotQuery extends ListQuery {
  record: RecordFormat
  /** the field to sort by, ignoring the case of A to Z, then by id; plants without it come last. A service sorts only by id */
  sort?: FieldName | undefined
}

export interface Block {
  text: string
  plants: number
}

export interface BulkStore {
  /**
   * Creates the pending rows of a batch, and sets the outcome of each. Resolves when no row is pending, or when `stop` has aborted and all
   * requests in flight are settled. Rows that are still pending were not stored.
   *
   * @throws {PlantsError} when the store cannot continue. Pending rows were not stored, unless the error is `unknownOutcome`.
   */
  createMany(batch: Batch, options: CreateManyOptions): Promise<void>
  close(): Promise<void>
}

export interface Batch {
  rows: PlantRows
  /** the order of the rows by their indexes; undefined for the order in `rows` */
  order: Uint32Array | undefined
  outcomes: Uint8Array
  /** the reasons of rejected rows, and of those with an unknown outcome, where the outcome is not enough */
  rejections: Map<number, Pick<PlantsError, 'error' | 'message'>>
}

export interface CreateManyOptions {
  ifExists: ExistsPolicy
  /** whether a rejected row ends the batch; rows are then created in their order */
  stopsAtReject: boolean
  /** returns the checkpoint to write in the same transaction as the plants, whose outcomes are set when it is called */
  checkpoint: (() => Checkpoint) | undefined
  /** the Idempotency-Key of a row, for a service */
  keyOf(row: number): string
  /** Is called before a row is first sent to a service without idempotency keys; the row is sent when it resolves. */
  beforeSend(row: number): Promise<void>
  onProgress(): void
  stop: AbortSignal
}

export interface ManyStore {
  store: BulkStore
  /** stores the checkpoint of the import; undefined if the store cannot */
  checkpoints: CheckpointStore | undefined
  /** creates all staged plants in one transaction */
  commit?: (() => Promise<void>) | undefined
}

/** The progress of an import, by the id of the import. */
export interface Checkpoint {
  id: string
  state: string
}

/** A store that writes the checkpoint of an import in the same transaction as its plants. */
export interface CheckpointStore extends BulkStore {
  findCheckpoint(id: string): Promise<string | undefined>
  keepCheckpoint(checkpoint: Checkpoint): Promise<void>
  removeCheckpoint(id: string): Promise<void>
}

export interface CreatePreview {
  /** whether the store exists; otherwise, the create would create it */
  exists: boolean
  /** false if the idempotency key has created this plant already */
  creates: boolean
}

export interface Login {
  /** the password for a host: a password file may have one for each */
  password(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM certificates to trust; those of the system if undefined. Used only if the sslmode of the address verifies certificates */
  ca: string | undefined
  cert: string | undefined
  key: string | undefined
  /** whether a user id is this user or root, whose Unix sockets are trusted */
  trusts(uid: number): boolean
}

/** Progress: the number of plants, and the fraction from 0 to 1, each if known. */
export interface ProgressReport {
  done?: number
  part?: number | undefined
}

export interface OpenOptions {
  /** the timeout of a call, in milliseconds */
  timeout: number
  clock: Clock
  onCommit?(count: number): void
  /** the maximum number of concurrent requests to a service; `defaultConcurrency` if undefined */
  concurrency?: number | undefined
  /** how long refused connections to a service are retried, in milliseconds; `defaultRetry` if undefined, or the timeout if that is less */
  retry?: number | undefined
  /**
   * the rights that a command needs besides the default ones: it writes. Also for the hint about a token that lacks one
   */
  needs?: readonly Right[]
  access(address: RemoteAddress): Promise<Access>
  login(address: PostgresAddress): Promise<Login>
  /** is called with the reason when a database has been unavailable for a second, and with undefined when it is available again */
  onAway?(failure: PlantsError | undefined): void
  /** whether a user's files are trusted like this user's own */
  trusts(uid: number): boolean
  /** is called with what other users can do to a file or a backup of a store, before it is opened */
  onExposed?(warning: string): Promise<void>
  /** is called with the path of a store that was created, except the default store */
  onCreated?: ((path: string) => Promise<void>) | undefined
  onProgress?(report: ProgressReport): void
}

export const defaultConcurrency = 64

/** milliseconds */
export const defaultRetry = 2000

export interface TokenStore {
  /** @param digest SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** All tokens, including revoked ones, in the order of their creation, in pages of 1 to `pageRows`. */
  list(): AsyncIterable<Token[]>
  /** @returns the revoked token; undefined if there is none with this id */
  revoke(id: bigint, at: Date): Promise<Token | undefined>
  /** Saves when a token was last used. A service does so once a day. */
  markUsed(id: bigint, at: Date): Promise<void>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

export const defaultRights: readonly Right[] = ['create', 'read']

/** Parses rights that are separated by commas. Ignores unknown words, such as rights of a newer version. */
export function rightsIn(text: string): Right[] {
  const words = text.split(',')
  return rights.filter((right) => words.includes(right))
}

export interface ServedStore extends ReadableStore {
  readonly tokens: TokenStore
  /** The rights of the store's own credentials, in the order of `rights`. */
  rights(): Promise<readonly Right[]>
  /** Loads the modules that calls need, which cannot be loaded once no more files can be opened. */
  preload(): Promise<void>
  /** the number of concurrent snapshots that do not delay other calls */
  readonly maxSnapshots: number
  /** Checks whether a plant could be created now. Rejects with the reason if not. */
  check(): Promise<void>
}

export type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export interface Token {
  id: bigint
  note: string | undefined
  /** in the order of `rights` */
  rights: readonly Right[]
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  /** its first use on the latest day (UTC) on which it was used */
  lastUsedAt: Date | undefined
}
