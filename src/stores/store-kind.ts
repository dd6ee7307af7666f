/**
 * A kind of store is one object, which has everything that differs between a SQLite file, a
 * PostgreSQL database and a service. Whoever adds a kind writes one of these and enters it in
 * `kinds.ts`. Commands never compare kinds: they ask for a capability, or call a method.
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
  /** As messages name it, such as "a file". */
  readonly noun: string
  /** What a store of this kind asks for. The text of an address may contain a password. */
  readonly credential: 'token' | 'password' | undefined
  readonly capabilities: Offers<A>

  /** Whether the text is meant as an address of this kind, right or wrong. */
  matches(text: string): boolean
  /**
   * @param source names the text in messages
   * @throws {PlantsError} `usage`, without the text, which may contain a password
   */
  parse(text: string, source: string, context: AddressContext): Promise<A>
  /** The complete address without its password, as it is saved. */
  format(address: A): string
  /** Whether it is the store `local`, which need not exist yet. */
  isDefault(address: A): boolean
  /** Whether the path is a file of the store, which an export must not replace. */
  ownsFile(address: A, path: string): Promise<boolean>
  /** A hint for an address that may be wrong, for when the store does not have a plant. */
  findAddressHint(address: A): string | undefined
  /** A warning if others could read or change what the connection carries. */
  findNetworkRisk(address: A): Promise<string | undefined>
  /** The address of a server of the same store that accepts changes, where it has several. */
  toWritable(address: A): Promise<A>

  /** Looks up the credential. The store itself is opened by the opener. */
  createOpener(address: A, context: OpenContext): Promise<StoreOpener>
  /** The checks of `plants doctor`, each as soon as it is done. They change nothing. */
  diagnose(address: A, context: DoctorContext): AsyncIterable<Finding>
}

/** What some kinds can do and others cannot. */
export interface Capabilities<A extends Address = Address> {
  /** The program opens the store itself, so it can serve it, and keep its tokens in it. */
  direct: DirectAccess<A>
  /** All changes of a command are made, or none. */
  transactions: true
  backup: BackupAccess<A>
  restore: RestoreAccess<A>
  /** The store asks for a token. */
  token: TokenAccess<A>
}

/** Each capability, or why the kind lacks it. */
type Offers<A extends Address> = {
  readonly [Name in keyof Capabilities]: Capabilities<A>[Name] | Lack
}

/** Why a kind lacks a capability. `createLackError` makes a sentence of it. */
export class Lack {
  /** Continues "garden.db is a file, …". Of what an option asks for, it continues "a service …". */
  readonly why: string
  readonly hint: string

  constructor(why: string, hint: string) {
    this.why = why
    this.hint = hint
  }
}

interface DirectAccess<A extends Address> {
  createOpener(address: A, context: OpenContext): Promise<DirectStoreOpener>
  /** A store can be created only where one server is named. */
  countServers(address: A): number
  /** Whether its transactions have `createRows`. */
  takesRows?: true
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
  /** Throws if a backup with more than twice as many plants must stay. */
  onLarger(message: string): Promise<void>
}

interface RestoreAccess<A extends Address> {
  /** @returns how many plants the backup has */
  checkBackup(address: A, file: string, context: OpenContext): Promise<bigint>
  /** @returns the file that keeps the previous contents, if there were any */
  restore(address: A, file: string, context: RestoreContext): Promise<string | undefined>
}

interface RestoreContext extends OpenContext {
  /** For the name of the file that keeps the previous contents. */
  at: Date
}

interface TokenAccess<A extends Address> {
  getTarget(address: A): TokenTarget
  /** Asks the store whether it accepts the token, and changes nothing. */
  verify(address: A, context: OpenContext): Promise<TokenCheck>
}

/** What a store needs from whoever opens it. Each kind takes what it uses. */
export interface OpenContext {
  /** Limits a call with its retries. */
  timeoutMs: number
  runtime: Runtime
  /** How long to try to reach a store that has not answered yet, in milliseconds. */
  retry?: number | undefined
  /** Requests at once. */
  concurrency?: number | undefined
  /** @throws {PlantsError} `unauthorized` without a token, `usage` if others could read it */
  findAccess(target: TokenTarget): Promise<ServiceAccess>
  findLogin(address: PostgresAddress): Promise<Login>
  /** Called for a new store that is not the default one. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** Called for a store that other users can change. */
  onExposed?: (warning: string) => Promise<void>
  /** The store does not answer, and is tried until its budget is over; undefined: it is back. */
  onUnreachable?: ((failure: PlantsError | undefined, retryBudgetMs?: number) => void) | undefined
}

export interface DoctorContext extends OpenContext {
  /** Names the check of the store, such as "store garden". */
  storeCheck: string
  /** Whether to leave out checks that read all plants. */
  isQuick: boolean
}

/** Loads the module of the store when it opens one. */
export interface StoreOpener {
  /** Creates a missing file, and nothing else. */
  open(): Promise<Store>
  /** Returns undefined for a missing file. A service is not asked yet. */
  openExisting(): Promise<Store | undefined>
}

export interface DirectStoreOpener extends StoreOpener {
  /** Creates a missing store. Returns whether it was missing. */
  init(): Promise<boolean>
  open(): Promise<DirectStore>
  openExisting(): Promise<DirectStore | undefined>
  /** @throws {PlantsError} `usage` if the address has no room for the requests of a service */
  assertCanServe(): void
}
