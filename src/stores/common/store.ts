import type { TextField } from '../../plant/fields.js'
import type { FieldName, NewPlant, Plant } from '../../plant/plant.js'
import type { RecordFormat } from '../../plant/records.js'
import type { PlantRows } from '../../plant/rows.js'
import type { Clock } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { Access } from './access.js'
import type { PostgresAddress, PostgresHost, RemoteAddress } from './address.js'
import type { PolicyOptions } from './conflict.js'

/** When `create` resolves, the plant is on disk. */
export interface PlantStore {
  /**
   * With an idempotency key that has created the same plant before, returns the first result.
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
  /** in a consistent snapshot */
  count(query?: CountQuery): Promise<bigint>
  /**
   * How many plants have each text, such as `{"tag":"shade","count":2}` on a line: the most frequent first, then in the
   * order of Unicode. Plants without the field come last of those that are as frequent. A service has a limit for
   * different texts.
   */
  countBy(query: CountByQuery): AsyncIterable<Block>
  /** In ascending order of id, in pages of at most a few MiB. */
  list(query?: ListQuery): AsyncIterable<NewPlant[]>
  /** Consistent, in blocks of some hundred KiB. Does not block writers. Uses a connection until the iteration ends. */
  snapshot(query: SnapshotQuery): AsyncIterable<Block>
  /**
   * With `only`, only if the plant still equals it. Removes the idempotency key, so that a late retry of the create is
   * a conflict.
   *
   * @returns undefined if there is no plant with this id, or if it has changed
   * @throws {PlantsError} `unavailable` when nothing was changed; `unknownOutcome` when that is unknown
   */
  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined>
  /** Also deletes its idempotency key. Returns the plant; for the rest see `replace`. */
  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined>
}

export interface ListQuery {
  after?: bigint | undefined
  /** at least 1 */
  limit?: number | undefined
  /** false for plants without one */
  tag?: string | false | undefined
  /** in any text, in any case: see `soughtTexts`; at most `maxSearch` */
  search?: string | undefined
  signal?: AbortSignal | undefined
}

/** Unicode characters: the time to search a text of one character again and again grows with it */
export const maxSearch = 200

export type CountQuery = Pick<ListQuery, 'tag' | 'search'>

export interface CountByQuery extends CountQuery {
  by: TextField['name']
  /** at least 1 */
  min?: number | undefined
  limit?: number | undefined
}

export interface SnapshotQuery extends ListQuery {
  record: RecordFormat
  /** ignoring the case of A to Z, then by id; plants without the field come last. A service sorts only by id */
  sort?: FieldName | undefined
  /** the field of `sort` in descending order; not at a service */
  desc?: boolean | undefined
}

export interface Block {
  text: string
  /** or other records, of which each is a line of `text` */
  plants: number
}

export interface BulkStore {
  /**
   * Creates the rows, all pending, and sets their outcomes. A store with checkpoints does so in one transaction.
   * Resolves when no row is pending, or a rejected row or `stop` ends the batch, and nothing is in flight any more.
   *
   * @throws {PlantsError} when the store cannot continue. Pending rows were not stored, unless the error is
   * `unknownOutcome`.
   */
  createMany(batch: Batch, options: CreateManyOptions): Promise<void>
  close(): Promise<void>
}

export interface Batch {
  rows: PlantRows
  /** indexes of `rows`; undefined for their own order */
  order: Uint32Array | undefined
  outcomes: Uint8Array
  /** why a row is rejected, or its outcome unknown, where the outcome is not enough */
  rejections: Map<number, Pick<PlantsError, 'error' | 'message'> & { isRepeated?: boolean }>
}

export interface CreateManyOptions extends PolicyOptions {
  /** rows are then created in their order */
  stopsAtReject: boolean
  /** written in the transaction of the plants; their outcomes are set whenever it is called */
  checkpoint: (() => Checkpoint) | undefined
  /** the Idempotency-Key of a row, for a service */
  keyOf(row: number): string
  onProgress(): void
  /** of a dry run: what some records would create and update */
  onPlanned?: ((changes: PlannedChange[]) => Promise<void>) | undefined
  stop: AbortSignal
}

/** `before` is undefined for a plant that would be created. */
export type PlannedChange = { before?: NewPlant | undefined; after: NewPlant }

export interface ManyStore {
  store: BulkStore
  /** the store, if it writes them */
  checkpoints?: CheckpointStore | undefined
  commit?: (() => Promise<void>) | undefined
  /** a dry run at a service that cannot be read checks only the input */
  isUnread?: boolean
}

/** The progress of an import. */
export interface Checkpoint {
  id: string
  state: string
}

/** Writes the checkpoint of an import in the same transaction as its plants. */
export interface CheckpointStore extends BulkStore {
  findCheckpoint(id: string): Promise<string | undefined>
  keepCheckpoint(checkpoint: Checkpoint): Promise<void>
  removeCheckpoint(id: string): Promise<void>
}

export interface CreatePreview {
  /** otherwise, a create would create the store */
  exists: boolean
  /** false if the idempotency key has created this plant already */
  creates: boolean
}

export interface Login {
  /** a password file may have one for each host */
  password(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM; those of the system if undefined. Used only if the sslmode of the address verifies certificates */
  ca: string | undefined
  cert: string | undefined
  key: string | undefined
  /** whether a user id is this user or root, whose Unix sockets are trusted */
  trusts(uid: number): boolean
}

export interface FileOptions {
  /** of a call, in milliseconds */
  timeout: number
  clock: Clock
  /** the rights of a command that writes, besides the default ones. Also for the hint about a token that lacks one */
  needs?: readonly Right[]
  onCommit?(count: number): void
  /** not called for the default store */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** whether a user's files are trusted like this user's own */
  trusts(uid: number): boolean
  /** before the store is opened: what other users can do to its file, or to a backup of it */
  onExposed?(warning: string): Promise<void>
}

export interface OpenOptions extends FileOptions {
  login(address: PostgresAddress): Promise<Login>
  /** a database has been unavailable for a second, or, with undefined, is available again */
  onAway?(failure: PlantsError | undefined): void
  access(address: RemoteAddress): Promise<Access>
  concurrency?: number | undefined
  /** how long refused connections are retried, in milliseconds; at most the timeout */
  retry?: number | undefined
}

export const defaultConcurrency = 64

export interface TokenStore {
  /** @param digest SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** Includes revoked ones, in the order of their creation, in pages of 1 to `pageRows`. */
  list(): AsyncIterable<Token[]>
  /** Returns undefined if there is none with this id. */
  revoke(id: bigint, at: Date): Promise<Token | undefined>
  /** A service does so once a day. */
  markUsed(id: bigint, at: Date): Promise<void>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

export const defaultRights: readonly Right[] = ['create', 'read']

/** Ignores unknown words, such as rights of a newer version. */
export function rightsIn(text: string): Right[] {
  const words = text.split(',')
  return rights.filter((right) => words.includes(right))
}

export interface ServedStore extends ReadableStore {
  readonly tokens: TokenStore
  /** The rights of the store's own credentials, in the order of `rights`. */
  rights(): Promise<readonly Right[]>
  /** Modules cannot be loaded once no more files can be opened. */
  preload(): Promise<void>
  /** the number of concurrent snapshots that do not delay other calls */
  readonly maxSnapshots: number
  /** Rejects with the reason if no plant could be created now. */
  check(): Promise<void>
}

type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export const tokenColumns = 'id, note, rights, created_at, expires_at, revoked_at, last_used_at'

/** @param times in milliseconds, in the order of `tokenColumns` */
export function tokenFrom(id: bigint, note: string | null, rights: string, times: (bigint | string | null)[]): Token {
  const [createdAt, expiresAt, revokedAt, lastUsedAt] = times.map((time) => (time === null ? undefined : toDate(time)))
  return {
    id,
    note: note ?? undefined,
    rights: rightsIn(rights),
    createdAt: createdAt ?? new Date(0), // of a damaged row
    expiresAt,
    revokedAt,
    lastUsedAt,
  }
}

/** Clamped: outside the range of `Date`, all comparisons are false. */
function toDate(time: bigint | string): Date {
  return new Date(Math.min(Math.max(Number(time), -8.64e15), 8.64e15))
}

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
