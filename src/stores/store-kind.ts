/**
 * A kind of store is one object, which has everything that differs between a SQLite file, a
 * PostgreSQL database and a service. A new kind is a new object, which is entered in `kinds.ts`.
 * Commands never compare kinds: they ask for a capability, or call a method.
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

export interface StoreKind<A extends Address = Address> {
  /** Messages name the kind by this, such as "a file". */
  readonly noun: string
  readonly capabilities: CapabilityOffers<A>

  /** Returns true if the user means an address of this kind, even if the address is not valid. */
  matches(address: string): boolean
  /**
   * @param source where the address comes from, such as "PLANTS_STORE". Messages say this instead
   *   of the address, which may contain a password.
   * @throws {PlantsError} `usage`
   */
  parse(address: string, source: string, context: AddressContext): Promise<A>
  /** Formats the complete address without its password, as it is saved. */
  format(address: A): string
  /** Returns true for the store `local`, which need not exist yet. */
  isDefault(address: A): boolean
  /** Returns true if the path is a file of the store, which an export must not replace. */
  ownsFile(address: A, path: string): Promise<boolean>
  /** Returns a warning if others could read or change what the connection carries. */
  findNetworkRisk(address: A): Promise<string | undefined>
  /** If a store may be used at a standby, this changes the address to its primary server. */
  toWritable(address: A): Promise<A>

  /** Looks up the credential. The store itself is opened by the opener. */
  createOpener(address: A, context: OpenContext): Promise<StoreOpener>
  /** Makes the checks of `plants doctor`, and yields each as soon as it is done. */
  diagnose(address: A, context: DoctorContext): AsyncIterable<Finding>
}

/** What some kinds can do and others cannot. */
export interface Capabilities<A extends Address = Address> {
  /**
   * The program opens the store itself. So the store has transactions, and the program can serve it
   * and keep the tokens of the service there.
   */
  direct: DirectAccess<A>
  backup: BackupAccess<A>
  restore: RestoreAccess<A>
  /** The store asks for a token. */
  token: TokenAccess<A>
}

/** For each capability, how a kind offers it, or why the kind lacks it. */
type CapabilityOffers<A extends Address> = {
  readonly [Name in keyof Capabilities]: Capabilities<A>[Name] | MissingCapability
}

/** Says why a kind lacks a capability. */
export class MissingCapability {
  /** The end of a sentence about the kind, which begins like "garden.db is a file, ". */
  readonly reason: string
  readonly hint: string

  constructor(reason: string, hint: string) {
    this.reason = reason
    this.hint = hint
  }
}

interface DirectAccess<A extends Address> {
  createOpener(address: A, context: OpenContext): Promise<DirectStoreOpener>
  /** A store can be created only if the address names one server. */
  countServers(address: A): number
  /** True if `openOrCreate` creates a store that does not exist. */
  isCreatedOnOpen?: true
}

interface BackupAccess<A extends Address> {
  /** @returns undefined if there is no store */
  backUp(
    address: A,
    file: string,
    context: BackupContext,
  ): Promise<{ plants: bigint; bytes: number } | undefined>
}

interface BackupContext extends OpenContext {
  /**
   * Called when the file is a backup with more than twice as many plants, which may be a mistake.
   * Throws to keep that backup.
   */
  onLarger(message: string): Promise<void>
}

interface RestoreAccess<A extends Address> {
  /** @returns how many plants the backup has */
  checkBackup(address: A, file: string, context: OpenContext): Promise<bigint>
  /** @returns the file that keeps the previous contents, if there were any */
  restore(address: A, file: string, context: CopyContext): Promise<string | undefined>
  /**
   * Copies the contents of a store that an import may change, under a temporary name.
   *
   * @returns undefined if there are no plants
   */
  copyBeforeImport(address: A, context: CopyContext): Promise<ImportCopy | undefined>
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
  getTarget(address: A): TokenTarget
  /** Asks the store whether it accepts the token, and changes nothing. */
  verify(address: A, context: OpenContext): Promise<TokenCheck>
}

/** A client sends at most this many requests at once. */
export const maxConcurrency = 64

/** What a kind may need to open a store. Each kind uses a part of it. */
export interface OpenContext {
  /** A call with its retries takes no longer than this. */
  timeoutMs: number
  runtime: Runtime
  /** How long a store that has not answered yet is tried, in milliseconds. */
  retryMs?: number | undefined
  /** @throws {PlantsError} `unauthorized` without a token, `usage` if others could read it */
  findAccess(target: TokenTarget): Promise<ServiceAccess>
  findLogin(address: PostgresAddress): Promise<Login>
  /** This is called for a new store that is not the default one. */
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

/**
 * An opener loads the module of its store only when it opens a store, because the loading takes
 * time.
 */
export interface StoreOpener {
  /** A missing store is created if `isCreatedOnOpen` is true. Otherwise, it is an error. */
  openOrCreate(): Promise<Store>
  /** Returns undefined for a missing file. Opening a service sends no request yet. */
  openExisting(): Promise<Store | undefined>
}

export interface DirectStoreOpener extends StoreOpener {
  /** Creates the store if it is missing, and then returns true. */
  init(): Promise<boolean>
  openOrCreate(): Promise<DirectStore>
  openExisting(): Promise<DirectStore | undefined>
  /**
   * Creates a missing file, as `openOrCreate` does, but may open a store that can only be read.
   *
   * @throws {PlantsError} `usage` if the address has no room for the requests of a service;
   *   `accessDenied` if a service would not see what others change
   */
  openToServe(): Promise<DirectStore>
}
