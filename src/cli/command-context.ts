import { type OutputFormat, outputFormats } from '../config/option-values.js'
import type { EffectiveSettings } from '../config/resolve.js'
import { quoteIfNeeded } from '../output/output.js'
import type { Io } from '../platform/io.js'
import { type Address, createNoStoreError } from '../stores/address.js'
import { findKind, requireCapability } from '../stores/kinds.js'
import { describeRetry } from '../stores/retry.js'
import type { DirectStore, Store } from '../stores/store.js'
import type { DirectStoreOpener, OpenContext, StoreOpener } from '../stores/store-kind.js'
import { type ContextOptions, SettingsContext } from './settings-context.js'

/** The store, the settings, the output and the terminal of a command. */
export class CommandContext extends SettingsContext {
  readonly address: Address
  readonly openContext: OpenContext

  constructor(
    settings: EffectiveSettings,
    address: Address,
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ) {
    super(settings, options, io, formats)
    const { timeoutMs, reporter } = this
    this.address = address
    this.openContext = {
      timeoutMs,
      runtime: io,
      retryMs: options.retry,
      findAccess: async (target) => (await loadStoreAccess()).findAccess(target, this),
      findLogin: async (database) => (await loadStoreAccess()).findLogin(database, this),
      onCreated: (path) => reporter.warn(`Created store ${path}`),
      onExposed: (warning) => reporter.warn(warning, 'warning'),
      onUnreachable: async (failure, retryBudgetMs = timeoutMs) => {
        if (failure) await reporter.warnMeanwhile(describeRetry(failure, retryBudgetMs))
      },
    }
  }

  static async from(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<CommandContext> {
    const { settings } = await SettingsContext.read(options, io, { formats })
    return new CommandContext(settings, await settings.findAddress(), options, io, formats)
  }

  /**
   * Returns a context for changes. If the store has several servers, the context has the address of
   * a server that accepts changes. It prints in the common formats only, without CSV and TSV: an
   * import, which needs this, prints no plants.
   */
  async forWrites(): Promise<CommandContext> {
    const { settings, options, io } = this
    const address = await findKind(this.address).toWritable(this.address)
    return new CommandContext(settings, address, options, io)
  }

  /** Creates the context of a command that prints plants, in all formats, also CSV and TSV. */
  static forPlants(options: ContextOptions, io: Io): Promise<CommandContext> {
    return CommandContext.from(options, io, outputFormats)
  }

  /**
   * Opens the store. Returns undefined for a default store that does not exist yet: it has no
   * plants.
   *
   * @throws {PlantsError} `accessDenied` for any other store that does not exist
   */
  async openStore(): Promise<Store | undefined> {
    const opener = await this.createOpener()
    return this.#unlessMissing(await opener.openExisting())
  }

  /** Opens the store as `openStore` does, if it is a direct one. */
  async openDirectStore(): Promise<DirectStore | undefined> {
    const opener = await this.createDirectOpener()
    return this.#unlessMissing(await opener.openExisting())
  }

  #unlessMissing<S>(store: S | undefined): S | undefined {
    const { address } = this
    if (store === undefined && !findKind(address).isDefault(address))
      throw createNoStoreError(address)
    return store
  }

  async openOrCreateStore(): Promise<Store> {
    return (await this.createOpener()).openOrCreate()
  }

  /** @throws {PlantsError} `unauthorized` for a service without a token */
  createOpener(): Promise<StoreOpener> {
    return findKind(this.address).createOpener(this.address, this.openContext)
  }

  /**
   * @param changes members that replace those of `openContext`, such as listeners of events
   * @throws {PlantsError} `usage` for a service
   */
  async createDirectOpener(changes: Partial<OpenContext> = {}): Promise<DirectStoreOpener> {
    const direct = requireCapability(this.address, 'direct')
    return direct.createOpener(this.address, { ...this.openContext, ...changes })
  }

  /**
   * Describes the store for a question, such as `prod (/srv/garden.db)`. It returns undefined for
   * the default store, because people expect that store.
   */
  describeStore(): string | undefined {
    const { address, settings } = this
    if (findKind(address).isDefault(address)) return undefined
    const name = quoteIfNeeded(address.name)
    return settings.storeName === undefined ? name : `${settings.storeName} (${name})`
  }

  describeMissingStore(): string {
    return `There is no store at ${this.address.name} yet`
  }
}

/**
 * Loads the module that finds tokens and passwords. A store in a file needs neither, so a command
 * on such a store starts sooner.
 */
function loadStoreAccess() {
  return import('./store-access.js')
}
