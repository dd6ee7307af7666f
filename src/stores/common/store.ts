import type { FieldName, NewPlant, TextName } from '../../plant/plant.js'
import type { Clock } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { HttpAddress, PostgresAddress, PostgresHost } from './address.js'
import type { Change, Outcome } from './change.js'

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
  /** the number of concurrent snapshots that do not delay other calls */
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

/** The states of a checkpoint: undefined is none. */
export interface CheckpointChange {
  id: string
  from: string | undefined
  to: string | undefined
}

/** A store keeps the newest so many checkpoints of complete imports. */
export const maxDone = 100
/** How the state of a complete import begins. The time follows, so that the greatest state is the newest. */
export const donePrefix = '{"done":"'

/** Not retryable: the import goes on in the other process. */
export class CheckpointMovedError extends PlantsError {
  constructor() {
    const message = 'Another plants process is importing the same inputs into this store'
    super('unavailable', message, { hint: 'Wait for it' })
  }
}

export interface WaitOptions {
  /** milliseconds that the caller has waited already: a database counts them, and all pages of a list, as one call */
  waited?: number | undefined
}

export interface WriteOptions extends WaitOptions {
  /** after so many rejected changes, the later ones are not made */
  maxRejected?: number | undefined
  signal?: AbortSignal | undefined
}

export interface ListQuery extends WaitOptions {
  after?: bigint | undefined
  /** at least 1 */
  limit?: number | undefined
  /** false for plants without one */
  tag?: string | false | undefined
  /** in any text, in any case: see `soughtText`; at most `maxSearch` */
  search?: string | undefined
  signal?: AbortSignal | undefined
}

export interface ReadQuery extends ListQuery {
  /** by default `id`; texts without regard to the case of A to Z, then by id, and plants without them last */
  sort?: FieldName | undefined
  desc?: boolean | undefined
  /** in the order of ids, each page at a moment of its own: what a page of a service needs, and its first page faster */
  inPages?: boolean | undefined
}

export interface TextCount {
  /** undefined for plants without one */
  text: string | undefined
  count: bigint
}

/** Unicode characters: the time to search a text of one character again and again grows with it */
export const maxSearch = 200

export type CountQuery = Pick<ListQuery, 'tag' | 'search'>

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

export interface TokenStore {
  /** @param digest SHA-256 of the token */
  find(digest: Uint8Array): Promise<Token | undefined>
  add(digest: Uint8Array, token: NewToken): Promise<Token>
  /** Includes revoked tokens. In the order of their creation. */
  list(): AsyncIterable<Token[]>
  /** Undefined if there is none with this id. */
  revoke(id: bigint, at: Date): Promise<Token | undefined>
}

export const rights = ['create', 'read', 'update', 'delete'] as const
export type Right = (typeof rights)[number]

export const defaultRights: readonly Right[] = ['create', 'read']

/** Ignores unknown words, such as rights of a newer version. */
export function rightsIn(text: string): Right[] {
  const words = text.split(',')
  return rights.filter((right) => words.includes(right))
}

type NewToken = Pick<Token, 'note' | 'rights' | 'createdAt' | 'expiresAt'>

export const tokenColumns = 'id, note, rights, created_at, expires_at, revoked_at'

/** @param times in milliseconds, in the order of `tokenColumns` */
export function tokenFrom(id: bigint, note: string | null, rights: string, times: (bigint | string | null)[]): Token {
  const [createdAt, expiresAt, revokedAt] = times.map((time) => (time === null ? undefined : toDate(time)))
  return {
    id,
    note: note ?? undefined,
    rights: rightsIn(rights),
    createdAt: createdAt ?? new Date(0), // of a damaged row
    expiresAt,
    revokedAt,
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
}

/** bounds the memory of a list */
export const pageRows = 1000

/** @param readPage returns at most `rows` rows after an id, and none at the end */
export async function* pagesOf<Row extends { id: bigint }>(
  { after, limit = Infinity, signal }: ListQuery,
  readPage: (after: bigint | undefined, rows: number) => Promise<Row[]>,
): AsyncIterable<Row[]> {
  let last = after
  for (let left = limit; left > 0; ) {
    signal?.throwIfAborted()
    const page = await readPage(last, Math.min(left, pageRows))
    if (page.length === 0) return
    yield page
    last = page.at(-1)?.id
    left -= page.length
  }
}

/** Such as `limit=100&after=1`. */
export function queryText({ limit, desc, after, tag, search }: ReadQuery): string {
  const order = desc ? 'desc' : undefined
  const parameters = { limit, order, after, ...(tag === false ? { noTag: true } : { tag }), search }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
}
