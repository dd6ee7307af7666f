import { commonFormats, isJson, type OutputFormat, parseOutput } from '../config/option-values.js'
import { EffectiveSettings } from '../config/resolve.js'
import { readSettings } from '../config/settings-file.js'
import { mayColor, quoteIfNeeded, type Style, styleFor, writeAnswer } from '../output/output.js'
import { type Layout, Printer } from '../output/printer.js'
import { Reporter } from '../output/reporter.js'
import { toJson } from '../plant/exact-json.js'
import { fieldNames, type StoredPlant } from '../plant/plant.js'
import type { Column, PlantRecord } from '../plant/records.js'
import { PlantsError, usageError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { shellOption } from '../platform/shell.js'
import {
  type Address,
  endsWithPlants,
  type HttpAddress,
  isDefaultStore,
  type OwnAddress,
  type PostgresAddress,
  wrongAddressHint,
} from '../stores/common/address.js'
import type { Problem } from '../stores/common/change.js'
import { tryingAgain } from '../stores/common/retry-policy.js'
import type { OwnStore, Store } from '../stores/common/store.js'
import type { HttpOptions } from '../stores/http/http-options.js'
import type { PostgresOptions } from '../stores/postgres/options.js'
import {
  httpOpener,
  type OwnStoreOpener,
  postgresOpener,
  type StoreOpener,
  sqliteOpener,
} from '../stores/registry.js'
import type { SqliteOptions } from '../stores/sqlite/connection.js'
import { type GlobalOptions, mayWaitForPerson } from './command.js'

interface ContextOptions extends GlobalOptions, Pick<HttpOptions, 'retry' | 'concurrency'> {}

/** What a command works with that needs no store: its settings, and the terminal. */
export class SettingsContext {
  readonly settings: EffectiveSettings
  readonly options: ContextOptions
  readonly io: Io
  /** The format of results. */
  readonly output: OutputFormat
  readonly reporter: Reporter
  /** For the command of a hint, such as " --store ./garden.db"; empty if it needs no option. */
  readonly storeFlag: string

  /**
   * @param formats what the command prints. A saved format that it does not print is ignored.
   * @throws {PlantsError} `usage` for an invalid setting, and for a format of `--output` that is not one of these
   */
  constructor(
    settings: EffectiveSettings,
    options: ContextOptions,
    io: Io,
    formats: readonly OutputFormat[] = commonFormats,
  ) {
    const chosen = settings.value('output')
    const isPrinted = chosen !== undefined && formats.includes(chosen)
    if (!isPrinted && options.output !== undefined) parseOutput('--output', options.output, formats)
    this.settings = settings
    this.options = options
    this.io = io
    this.output = isPrinted ? chosen : io.stdout.isTerminal ? 'text' : 'ndjson'
    this.reporter = new Reporter(io, isJson(chosen), options)
    this.storeFlag = shellOption('store', options.store)
  }

  /** @throws {PlantsError} `usage` for an invalid setting, `input` for an invalid settings file */
  static async read(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<SettingsContext> {
    const file = await readSettings(io)
    const settings = new EffectiveSettings({ options, io, file })
    const context = new SettingsContext(settings, options, io, formats)
    const { warning } = file
    if (warning) await context.warn(`${warning.what}. Fix it with: ${warning.command}`)
    return context
  }

  /** How long to wait for another process that changes the settings, in milliseconds. */
  get timeout(): number {
    return this.settings.changeTimeoutMs
  }

  get mayAsk(): boolean {
    const { stdin, stderr } = this.io
    return mayWaitForPerson(this.options, this.io) && stdin.isTerminal && stderr.isTerminal
  }

  /** The label marks something that the user may have to correct. */
  warn(text: string, label?: 'warning'): Promise<void> {
    return this.reporter.warn(text, label)
  }

  /** @throws {PlantsError} `interrupted` without a confirmation */
  async confirm(question: string, refusal: string): Promise<void> {
    const { askToConfirm } = await import('./prompts.js')
    await askToConfirm(question, refusal, this.io)
  }

  /** Prints what was done: fields for programs, or a sentence unless --quiet. */
  async print(fields: object, sentence: string, format = this.output): Promise<void> {
    if (format !== 'text' || !this.reporter.isQuiet)
      await this.printResult(fields, sentence, format)
  }

  /** Prints what was asked for: fields for programs, or a text. */
  async printResult(fields: object, text: string, format = this.output): Promise<void> {
    if (format === 'text') return writeAnswer(this.io, `${text}\n`)
    if (isJson(format)) return writeAnswer(this.io, `${toJson(fields)}\n`)
    const names = fieldNames.filter((name) => name !== 'id' || name in fields) // the specification's Plant has none
    await this.printer({ fields: names }).rows([fields])
  }

  /** Prints a word for a shell, or the fields if JSON was requested. */
  printWord(word: string, fields: object): Promise<void> {
    return writeAnswer(this.io, `${this.reporter.isJson ? toJson(fields) : word}\n`)
  }

  /** @param isSingle whether JSON is one value in place of an array */
  printer<Row extends object>(layout: Layout<Row>, isSingle = false): Printer<Row> {
    const format = isSingle && this.output === 'json' ? 'ndjson' : this.output
    return new Printer(this.io, format, layout)
  }

  async tablePrinter<Row extends object>(
    titles: string[],
    cellsOf: (row: Row) => string[],
    layout: Layout<Row> = {},
  ): Promise<Printer<Row>> {
    if (this.output !== 'text') return this.printer(layout)
    const { tableOf } = await import('../output/text-table.js')
    const text = tableOf(titles, cellsOf, await this.style(), this.io.stdout)
    return this.printer({ ...layout, text })
  }

  plantPrinter<Row extends PlantRecord = StoredPlant>(
    fields: readonly Column[] = fieldNames,
    first = 0,
  ): Promise<Printer<Row>> {
    const titles = fields.map((name) => name.toUpperCase())
    const cellsOf = (plant: Row) =>
      fields.map((name) => (plant[name] === undefined ? '' : quoteIfNeeded(String(plant[name]))))
    return this.tablePrinter(titles, cellsOf, { fields, first })
  }

  style(stream = this.io.stdout): Promise<Style> {
    return styleFor(mayColor(stream, this.options, this.io))
  }
}

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
      onExposed: (message, hint) => reporter.warn(`${message}. ${hint}`, 'warning'),
    }
  }

  /** Throws as `read` does, and `usage` for an unknown store. */
  static async from(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<CommandContext> {
    const { settings } = await SettingsContext.read(options, io, formats)
    return new CommandContext(settings, await settings.address(), options, io, formats)
  }

  /** How long to wait for the store, in milliseconds. */
  override get timeout(): number {
    return this.settings.value('timeout') ?? 0
  }

  /** Undefined for a default store that does not exist yet. Throws `unavailable` for any other. */
  async openStore(): Promise<Store | undefined> {
    return this.#openExisting(await this.opener())
  }

  /** As `openStore`, of a store that this program keeps itself. Throws `usage` for a service. */
  async openOwnStore(): Promise<OwnStore | undefined> {
    return this.#openExisting(await this.ownOpener())
  }

  async openOrCreateStore(): Promise<Store> {
    return (await this.opener()).open()
  }

  async #openExisting<S extends Store>(opener: {
    openExisting(): Promise<S | undefined>
  }): Promise<S | undefined> {
    const store = await opener.openExisting()
    if (!store && !isDefaultStore(this.address)) throw this.noStore()
    return store
  }

  /** Throws `usage` for a service. */
  async ownOpener(): Promise<OwnStoreOpener> {
    const address = this.ownAddress()
    if (address.scheme === 'sqlite') return sqliteOpener(address, this.sqliteOptions)
    return postgresOpener(address, await this.postgresOptions(address))
  }

  /** Throws `unauthorized` for a service without a token. */
  async opener(): Promise<StoreOpener> {
    const { address } = this
    if (address.scheme !== 'http') return this.ownOpener()
    return httpOpener(address, await this.httpOptions(address))
  }

  /** @throws {PlantsError} `usage` for a service */
  ownAddress(): OwnAddress {
    const { address } = this
    if (address.scheme !== 'http') return address
    throw usageError(
      `${address.name} is a service, but this command needs direct access to the store`,
      'Run the command on the host of the service, or select another store with --store',
    )
  }

  async httpOptions(address: HttpAddress): Promise<HttpOptions> {
    const { timeout, io: runtime } = this
    const { retry, concurrency } = this.options
    const { accessTo } = await import('./store-access.js')
    return { access: await accessTo(address, this), timeout, runtime, retry, concurrency }
  }

  async postgresOptions(address: PostgresAddress): Promise<PostgresOptions> {
    const { timeout, io: runtime, reporter } = this
    const { loginTo } = await import('./store-access.js')
    return {
      login: await loginTo(address, this),
      timeout,
      runtime,
      retry: this.options.retry,
      onAway: async (failure, patience = timeout) => {
        if (failure) await reporter.warnMeanwhile(tryingAgain(failure, patience))
      },
    }
  }

  /** Whether it is the file of the store, or one that SQLite keeps beside it. */
  async isStoreFile(path: string): Promise<boolean> {
    const { address } = this
    if (address.scheme !== 'sqlite') return false
    return (await import('../stores/sqlite/connection.js')).isPartOf(address.name, path)
  }

  noStore(hint = 'Check the address. plants create creates a missing store'): PlantsError {
    return new PlantsError('unavailable', `There is no store at ${this.address.name}`, { hint })
  }

  noStoreYet(): string {
    return `There is no store at ${this.address.name} yet: plants create creates it`
  }

  /** The error of a plant, with the store and how to look into it, if there is no plant with the id. */
  errorOf(problem: Problem): PlantsError {
    const { kind, message } = problem
    if (kind !== 'notFound') return new PlantsError(kind, message, { ...problem })
    const listing = `List the plants with: plants list${this.storeFlag}`
    const hint = endsWithPlants(this.address) ? wrongAddressHint : listing
    return new PlantsError(kind, `${message} in ${this.address.name}`, { hint })
  }
}
