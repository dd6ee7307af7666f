/**
 * A kind of store is one object, which has everything that differs between a SQLite file, a
 * PostgreSQL database and a service. A new kind is a new object, which is entered in `kinds.ts`.
 * Commands never compare kinds: they ask what a kind can do, or call it.
 *
 * Every command loads all kinds, so a kind imports its store, its client and its checks inside the
 * methods that need them.
 */

import type { PlantsError } from '../errors.js'
import type { Runtime } from '../platform/runtime.js'
import type { Address, AddressContext, PostgresAddress } from './address.js'
import type { Login, ServiceAccess, TokenCheck, TokenTarget } from './credentials.js'
import type { Finding } from './diagnose.js'
import type { DirectStore, Store } from './store.js'

export type StoreKind<A extends Address = Address> = DirectKind<A> | ServiceKind<A>

/**
 * The program opens the store itself. So the store has transactions, and the program can serve it
 * and keep the tokens of the service there.
 */
export interface DirectKind<A extends Address = Address> extends CommonKind<A> {
  isDirect: true
  open: Open<A, DirectStore>
  /** True if the purpose `write` creates a missing store, as for a file, and not only `init`. */
  isCreatedOnOpen?: true
}

interface ServiceKind<A extends Address> extends CommonKind<A> {
  isDirect: false
  open: Open<A, Store>
}

/**
 * @returns undefined for a missing file that is opened to `read` or to `serve`. Opening a service
 *   sends no request yet
 * @throws {PlantsError} `unauthorized` for a service without a token
 */
type Open<A extends Address, S extends Store> = (
  address: A,
  purpose: Purpose,
  context: OpenContext,
) => Promise<S | undefined>

/** What a kind cannot do is absent. The table in `kinds.ts` says why. */
interface CommonKind<A extends Address> {
  /** Messages name the kind by this, such as "a file". */
  noun: string
  /** Returns true if the user means an address of this kind, even if the address is not valid. */
  matches: (address: string) => boolean
  /**
   * @param source where the address comes from, such as "PLANTS_STORE". Messages say this instead
   *   of the address, which may contain a password.
   * @throws {PlantsError} `usage`
   */
  parse: (address: string, source: string, context: AddressContext) => Promise<A>
  /** Formats the complete address without its password, as it is saved. */
  format: (address: A) => string
  /** Returns true for the store `local`, which need not exist yet. */
  isDefault?: (address: A) => boolean
  /** Returns true if the path is a file of the store, which an export must not replace. */
  ownsFile?: (address: A, path: string) => Promise<boolean>
  /** Returns a warning if others could read or change what the connection carries. */
  findNetworkRisk?: (address: A) => Promise<string | undefined>
  /** Makes the checks of `plants doctor`, and yields each as soon as it is done. */
  diagnose: (address: A, context: DoctorContext) => AsyncIterable<Finding>
  /** @returns undefined if there is no store */
  backUp?: (
    address: A,
    file: string,
    context: BackupContext,
  ) => Promise<{ plants: bigint; bytes: number } | undefined>
  restore?: RestoreAccess<A>
  /**
   * Copies the contents of a store that an import may change, under a temporary name.
   *
   * @returns undefined if there are no plants
   */
  copyBeforeImport?: (address: A, context: CopyContext) => Promise<ImportCopy | undefined>
  /** The store asks for a token. */
  token?: TokenAccess<A>
}

export interface BackupContext extends OpenContext {
  /**
   * Called when the file is a backup with more than twice as many plants, which may be a mistake.
   * Throws to keep that backup.
   */
  onLarger(message: string): Promise<void>
}

interface RestoreAccess<A extends Address> {
  /** @returns how many plants the backup has */
  check: (address: A, file: string, context: OpenContext) => Promise<bigint>
  /** @returns the file that keeps the previous contents, if there were any */
  run: (address: A, file: string, context: CopyContext) => Promise<string | undefined>
}

interface CopyContext extends OpenContext {
  /** The name of the file that keeps the previous contents has this time. */
  copyTime: Date
}

export interface ImportCopy {
  /**
   * Gives the copy its name.
   *
   * @returns the path
   */
  keep(): string
  /** Deletes all but the newest copies of the store. */
  deleteOlder(): void
  /** Deletes the copy, under whichever name. */
  discard(): void
}

interface TokenAccess<A extends Address> {
  getTarget: (address: A) => TokenTarget
  /** Asks the store whether it accepts the token, and changes nothing. */
  verify: (address: A, context: OpenContext) => Promise<TokenCheck>
}

/**
 * What a store is opened for:
 *
 * - `read`: a missing store is not created, although the store may be changed if this user may.
 * - `write`: a missing file is created, and this user must be able to change it.
 * - `serve`: a missing store is not created, and this process must see what others commit, such as a
 *   revoked token. It may only be able to read the store.
 * - `init`: a missing store is created, also in a database.
 */
export type Purpose = 'read' | 'write' | 'serve' | 'init'

/** A client sends at most this many requests at once. */
export const maxConcurrency = 64

/** What a kind may need to open a store. Each kind uses a part of it. */
export interface OpenContext {
  /** A wait of a call, with its retries, takes no longer than this. */
  timeoutMs: number
  runtime: Runtime
  /** How long a store that has not answered yet is tried, in milliseconds. */
  retryMs?: number | undefined
  /** @throws {PlantsError} `unauthorized` without a token, `usage` if others could read it */
  findAccess(target: TokenTarget): Promise<ServiceAccess>
  findLogin(address: PostgresAddress): Promise<Login>
  /** Only a server that accepts writes is used, also if the address allows a standby. */
  needsPrimary?: boolean
  /** This is called for a new store, but for the default one only if the purpose is `init`. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** This is called for a new store that other users can change. */
  onExposed?: (warning: string) => Promise<void>
  /**
   * Called with the failure of a store that does not answer, and is tried until its budget is over.
   * Called with undefined when it answers again.
   */
  onUnreachable?: ((failure: PlantsError | undefined, retryBudgetMs?: number) => void) | undefined
}

export interface DoctorContext extends OpenContext {
  /** The check of the store has this name, such as "store garden". */
  storeCheck: string
}
