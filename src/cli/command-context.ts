import { type OutputFormat, outputFormats } from '../config/option-values.js'
import type { EffectiveSettings } from '../config/resolve.js'
import { PlantsError, usageError } from '../errors.js'
import type { Io } from '../platform/io.js'
import { type Address, isDefaultStore, type OwnAddress } from '../stores/address.js'
import {
  httpOpener,
  type OwnStoreOpener,
  postgresOpener,
  type StoreOpener,
  sqliteOpener,
} from '../stores/kinds.js'
import type { PostgresOptions } from '../stores/postgres/address.js'
import type { SqliteOptions } from '../stores/sqlite/connection.js'
import type { OwnStore, Store } from '../stores/store.js'
import { type ContextOptions, SettingsContext } from './settings-context.js'

type OwnOptions = Partial<Pick<PostgresOptions, 'runtime' | 'onAway'>> &
  Partial<Pick<SqliteOptions, 'onCreated'>>

/** What a command works with: its store, its settings, and the terminal. */
export class CommandContext extends SettingsContext {
  readonly address: Address
  readonly sqliteOptions: SqliteOptions

  constructor(
    settings: EffectiveSettings,
    address: Address,
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ) {
    super(settings, options, io, formats)
    const { timeout, reporter } = this
    this.address = address
    this.sqliteOptions = {
      timeout,
      runtime: io,
      onCreated: (path) => reporter.warn(`Created store ${path}`),
      onExposed: (warning) => reporter.warn(warning, 'warning'),
    }
  }

  static async from(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<CommandContext> {
    const { settings } = await SettingsContext.read(options, io, formats)
    return new CommandContext(settings, await settings.address(), options, io, formats)
  }

  static forPlants(options: ContextOptions, io: Io): Promise<CommandContext> {
    return CommandContext.from(options, io, outputFormats)
  }

  /** Undefined for a default store that does not exist yet. Throws `unavailable` for any other. */
  async openStore(): Promise<Store | undefined> {
    const opener = await this.opener()
    return this.#unlessMissing(await opener.openExisting())
  }

  /** As `openStore`, of a store that this program keeps itself. */
  async openOwnStore(): Promise<OwnStore | undefined> {
    const opener = await this.ownOpener()
    return this.#unlessMissing(await opener.openExisting())
  }

  #unlessMissing<S>(store: S | undefined): S | undefined {
    if (store === undefined && !isDefaultStore(this.address)) throw this.noStore()
    return store
  }

  async openOrCreateStore(): Promise<Store> {
    return (await this.opener()).open()
  }

  /** Throws `unauthorized` for a service without a token. */
  async opener(): Promise<StoreOpener> {
    const { address, timeout, io: runtime } = this
    if (address.scheme !== 'http') return this.ownOpener()
    const { retry, concurrency } = this.options
    const { accessTo } = await import('./store-access.js')
    const access = await accessTo(address, this)
    return httpOpener(address, { access, timeout, runtime, retry, concurrency })
  }

  async ownOpener(options: OwnOptions = {}): Promise<OwnStoreOpener> {
    const address = this.ownAddress()
    if (address.scheme === 'sqlite')
      return sqliteOpener(address, { ...this.sqliteOptions, ...options })
    const { databaseOptions } = await import('./store-access.js')
    return postgresOpener(address, { ...(await databaseOptions(address, this)), ...options })
  }

  /** Throws `usage` for a service, as all that open a store of its own. */
  ownAddress(): OwnAddress {
    const { address } = this
    if (address.scheme !== 'http') return address
    throw usageError(
      `${address.name} is a service, but this command needs direct access to the store`,
      'Run the command on the host of the service, or select another store with --store',
    )
  }

  async isStoreFile(path: string): Promise<boolean> {
    const { address } = this
    if (address.scheme !== 'sqlite') return false
    return (await import('../stores/sqlite/connection.js')).belongsToStore(address.name, path)
  }

  noStore(hint = 'Check the address. plants create creates a missing store'): PlantsError {
    return new PlantsError('unavailable', `There is no store at ${this.address.name}`, { hint })
  }

  noStoreYet(): string {
    return `There is no store at ${this.address.name} yet: plants create creates it`
  }
}
