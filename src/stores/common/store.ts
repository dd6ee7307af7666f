import type { FieldName, NewPlant, Plant } from '../../plant/plant.js'
import type { RecordKind } from '../../plant/records.js'
import type { PlantRows } from '../../plant/rows.js'
import type { Clock } from '../../platform/clock.js'
import type { PlantsError } from '../../platform/errors.js'
import type { Access } from './access.js'
import type { PostgresAddress, PostgresHost, RemoteAddress } from './address.js'
import type { ExistsPolicy } from './conflict.js'

/** Where plants live. A plant that `create` has answered is on disk. */
export interface PlantStore {
  /**
   * Creates a plant, or answers as before when the key was used for this very plant.
   *
   * @throws {PlantsError} `conflict` when another plant has the id, or the key belongs to a different plant;
   * `unavailable` when nothing was stored; `unknownOutcome` when that could not be found out
   */
  create(plant: NewPlant, options?: CreateOptions): Promise<Plant>
  close(): Promise<void>
}

export interface CreateOptions {
  /** 1 to 255 visible ASCII characters; kept with the plant */
  idempotencyKey?: string | undefined
  /** ends the wait for a turn; what has been committed stays */
  signal?: AbortSignal | undefined
}

export interface ReadableStore extends PlantStore {
  get(id: bigint): Promise<NewPlant | undefined>
  /** undefined in an empty store */
  greatestId(): Promise<bigint | undefined>
  /** How many plants there are that a query selects, at one moment. */
  count(query?: CountQuery): Promise<bigint>
  /** The plants in the order of their ids, a page of at most a few MiB at a time. */
  list(query?: ListQuery): AsyncIterable<NewPlant[]>
  /** All plants of one moment as text, some hundred KiB at a time. Others can write meanwhile. It keeps a connection until the iteration ends. */
  snapshot(query: SnapshotQuery): AsyncIterable<Block>
  /**
   * Replaces the name and the tag of the plant with this id, and removes its idempotency key, so that a late retry of its create is a
   * conflict; with `only`, if it is still equal to this one.
   *
   * @returns the plant as it is now; undefined when there is none with this id, or it has changed
   * @throws {PlantsError} `unavailable` when nothing was changed; `unknownOutcome` when that could not be found out
   */
  replace(plant: NewPlant, only?: NewPlant): Promise<NewPlant | undefined>
  /** Removes a plant with its idempotency key, and gives it back if there was one; with `only`, if it is still this one. Throws like `replace`. */
  delete(id: bigint, only?: NewPlant): Promise<NewPlant | undefined>
}

export interface ListQuery {
  /** only ids greater than this one */
  after?: bigint | undefined
  /** at most so many plants, at least 1 */
  limit?: number | undefined
  /** only plants with exactly this tag */
  tag?: string | undefined
  /** only plants whose name or tag contains this text; the letters A to Z match in either case, every other character exactly */
  search?: string | undefined
  /** ends the search for more, with its reason */
  signal?: AbortSignal | undefined
}

export type CountQuery = Pick<ListQuery, 'tag' | 'search'>

export interface SnapshotQuery extends ListQuery {
  record: RecordKind
  /** by this field, A to Z in either case, and by id where that is the same; plants without it come last. A service sorts by id alone */
  sort?: FieldName | undefined
}

/** Some records, with a line feed between them. */
export interface Block {
  text: string
  plants: number
}

export interface BulkStore {
  /**
   * Creates the rows of a batch that are pending, and notes how each went. Resolves when none is pending, or when `stop` has
   * aborted and what was in flight is settled; the rest stays pending, and was not stored.
   *
   * @throws {PlantsError} when the store cannot go on. What is pending then was not stored, unless it is `unknownOutcome`.
   */
  createMany(batch: Batch, options: CreateManyOptions): Promise<void>
  close(): Promise<void>
}

/** Rows on their way into a store. */
export interface Batch {
  rows: PlantRows
  /** the order in which to take the rows; as they stand without one */
  order: Uint32Array | undefined
  /** an `Outcome` for each row */
  outcomes: Uint8Array
  /** why a row was refused, or what happened to it, where its outcome alone does not say it */
  rejections: Map<number, Pick<PlantsError, 'error' | 'message'>>
}

export interface CreateManyOptions {
  /** what a row counts as whose id is taken: rejected, done, done only when name and tag are equal, or an update where they are not */
  ifExists: ExistsPolicy
  /** nothing more is begun after a row was refused; rows are then taken in their order */
  stopsAtReject: boolean
  /** what is written together with the plants of a commit, by a store that has commits; `outcomes` holds them already when it is asked for */
  checkpoint: (() => Checkpoint) | undefined
  /** the Idempotency-Key of a row, for a service */
  keyOf(row: number): string
  /** Is called before a row is first sent to a service that keeps no keys; nothing is sent until it resolves. */
  beforeSend(row: number): Promise<void>
  /** told after rows were settled */
  onProgress(): void
  /** no more rows are begun once it aborts */
  stop: AbortSignal
}

/** What an import needs of a store. */
export interface ManyStore {
  store: BulkStore
  /** keeps the positions of imports, where the store does */
  checkpoints: CheckpointStore | undefined
  /** creates at once what the store has only taken in so far */
  commit?: (() => Promise<void>) | undefined
}

/** Where an import is, and whose position that is. */
export interface Checkpoint {
  id: string
  state: string
}

/** A store that keeps the positions of imports beside the plants that they have created. */
export interface CheckpointStore extends BulkStore {
  findCheckpoint(id: string): Promise<string | undefined>
  keepCheckpoint(checkpoint: Checkpoint): Promise<void>
  removeCheckpoint(id: string): Promise<void>
}

/** What a create would do in a file, or in a database. */
export interface CreatePreview {
  /** whether there is a store already; the create would make it */
  exists: boolean
  /** false when the idempotency key has made this very plant already */
  creates: boolean
}

/** What it takes to log in to a database. */
export interface Login {
  /** for a host, since a password file may have one for each */
  password(host: PostgresHost): string | undefined
  /** how to give another password */
  passwordHint: string
  /** PEM certificates to trust; those of the system when undefined, which counts where the mode of the address verifies */
  ca: string | undefined
  /** PEM, of a certificate that this program shows */
  cert: string | undefined
  key: string | undefined
  /** whether a user, by number, is this one or root: whose Unix socket can be used */
  trusts(uid: number): boolean
}

/** How far it is: in plants, and as a part from 0 to 1, each where it is known. */
export interface ProgressReport {
  done?: number
  part?: number | undefined
}

export interface OpenOptions {
  /** milliseconds that a call may wait for its turn, or for an answer */
  timeout: number
  clock: Clock
  /** creates that share a commit at most; 1000 when not given */
  batchLimit?: number
  /** told how many creates a commit held */
  onCommit?(count: number): void
  /** requests that a service is sent at once at most; `defaultConcurrency` when not given */
  concurrency?: number | undefined
  /** requests that a service is sent in a second at most by `createMany`; without a limit when not given */
  rate?: number | undefined
  /** milliseconds for which refused connections to a service are retried; `defaultRetry` when not given, or the time-out if that is less */
  retry?: number | undefined
  /** what a remote store takes besides */
  access(address: RemoteAddress): Promise<Access>
  /** what a shared database takes besides */
  login(address: PostgresAddress): Promise<Login>
  /** is told why a database has been away for a second, and with nothing that it is back */
  onAway?(failure: PlantsError | undefined): void
  /** is told which user owns the file of a store, before it is opened; a link that leads to it; and a backup, before it is restored */
  onOwner?(path: string, uid: number, what: 'store' | 'link' | 'backup'): Promise<void>
  /** is called with the path of a store's file that was created, unless it is the default one */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** is called while a backup or a restore proceeds */
  onProgress?(report: ProgressReport): void
  /** whether a database may answer before a plant is on disk */
  allowAsyncCommit: boolean
}

export const defaultConcurrency = 64

/** milliseconds */
export const defaultRetry = 2000

/** The bearer tokens of a store, of which only the SHA-256 is kept. */
export interface TokenStore {
  /** @param digest SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** All of them, revoked ones too, in the order in which they were made: pages of at least one, and at most `tokensAtOnce`. */
  list(): AsyncIterable<Token[]>
  /** @returns the token as it is now, or undefined when there is none */
  revoke(id: bigint, at: Date): Promise<Token | undefined>
  /** Saves when a token was last used. A service does so once a day. */
  markUsed(id: bigint, at: Date): Promise<void>
}

/** tokens of a page */
export const tokensAtOnce = 1000

/** What a token can allow. */
export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

/** What a new token allows when nothing else is said. */
export const defaultRights: readonly Right[] = ['create', 'read']

/** The rights in a text that a store keeps, separated by commas; what is none, such as one of a newer version, allows nothing. */
export function rightsIn(text: string): Right[] {
  const words = text.split(',')
  return rights.filter((right) => words.includes(right))
}

/** A store that a service can be put in front of. */
export interface ServedStore extends ReadableStore {
  readonly tokens: TokenStore
  /** What the store's own credentials can do, in the order of `rights`. */
  rights(): Promise<readonly Right[]>
  /** how many snapshots there can be at a time without holding up others */
  readonly maxSnapshots: number
  /** Resolves when a plant could be created now; rejects with why it could not. */
  check(): Promise<void>
}

/** A token that is added. */
export type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export interface Token {
  id: bigint
  note: string | undefined
  /** in the order of `rights` */
  rights: readonly Right[]
  createdAt: Date
  expiresAt: Date | undefined
  revokedAt: Date | undefined
  /** the first use on the latest day (UTC) on which a service accepted it */
  lastUsedAt: Date | undefined
}
