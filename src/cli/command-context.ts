import {
  choiceIn,
  commonFormats,
  isJson,
  type OutputFormat,
  outputFormats,
  parseOutput,
} from '../config/option-values.js'
import { EffectiveSettings, shownStore } from '../config/resolve.js'
import { defaultOf, settingNames } from '../config/setting-table.js'
import { readSettings } from '../config/settings-file.js'
import { mayColor, quoteIfNeeded, type Style, styleFor, writeAnswer } from '../output/output.js'
import { type Layout, Printer } from '../output/printer.js'
import { Reporter } from '../output/reporter.js'
import { toJson } from '../plant/exact-json.js'
import { fieldNames, type StoredPlant } from '../plant/plant.js'
import type { Column, PlantRecord } from '../plant/records.js'
import { PlantsError, usageError } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
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
import { tryingAgain } from '../stores/common/retry-policy.js'
import type { Store } from '../stores/common/store.js'
import type { Access, HttpOptions } from '../stores/http/http-options.js'
import type { Login, PostgresOptions } from '../stores/postgres/options.js'
import {
  httpOpener,
  type OwnStoreOpener,
  postgresOpener,
  type StoreOpener,
  sqliteOpener,
} from '../stores/registry.js'
import type { SqliteOptions } from '../stores/sqlite/connection.js'
import type { GlobalOptions } from './command.js'

interface ContextOptions extends GlobalOptions, Pick<HttpOptions, 'retry' | 'concurrency'> {}

interface ContextParts {
  settings: EffectiveSettings
  options: ContextOptions
  io: Io
  /** What the command prints: by default everything but csv and tsv. */
  formats?: readonly OutputFormat[] | undefined
}

/** What a command works with that needs no store: its settings, and the terminal. */
export class SettingsContext {
  readonly settings: EffectiveSettings
  readonly io: Io
  /** The format of results. */
  readonly output: OutputFormat
  /** How long to wait for another process that changes the settings, in milliseconds. */
  readonly timeout: number
  readonly reporter: Reporter
  /** For the command of a hint, such as " --store ./garden.db"; empty if it needs no option. */
  readonly storeFlag: string
  protected readonly options: ContextOptions

  protected constructor({ settings, options, io, formats }: ContextParts) {
    const chosen = settings.value('output')
    this.settings = settings
    this.io = io
    this.output = printedFormat(chosen, options, io, formats)
    this.timeout = settings.changeTimeoutMs
    this.reporter = new Reporter(io, isJson(chosen), options)
    this.storeFlag = shellOption('store', options.store)
    this.options = options
  }

  /** @throws {PlantsError} `usage` for an invalid setting, `input` for an invalid settings file */
  static async read(
    options: GlobalOptions,
    io: Io,
    formats?: ContextParts['formats'],
  ): Promise<SettingsContext> {
    const settings = new EffectiveSettings({ options, io, file: await readSettings(io) })
    const context = new SettingsContext({ settings, options, io, formats })
    await context.#reportSettings()
    return context
  }

  /** Whether a person sees what is shown once. */
  get isInteractive(): boolean {
    return mayWaitForPerson(this.options, this.io) && this.io.stderr.isTerminal
  }

  get mayAsk(): boolean {
    return this.isInteractive && this.io.stdin.isTerminal
  }

  /** The label marks something that the user may have to correct. */
  warn(text: string, label?: 'warning'): Promise<void> {
    return this.reporter.warn(text, label)
  }

  /** Prints what was done: fields for programs, or a sentence unless --quiet. */
  async print(
    fields: object,
    sentence: string,
    hint = 'The command succeeded, only its output was not written',
    format = this.output,
  ): Promise<void> {
    if (format !== 'text' || !this.reporter.isQuiet)
      await this.printResult(fields, sentence, hint, format)
  }

  /** Prints what was asked for: fields for programs, or a text. The hint is for a failed write. */
  async printResult(
    fields: object,
    text: string,
    hint?: string,
    format = this.output,
  ): Promise<void> {
    if (format === 'text') return writeAnswer(this.io, `${text}\n`, hint)
    if (isJson(format)) return writeAnswer(this.io, `${toJson(fields)}\n`, hint)
    const names = fieldNames.filter((name) => name !== 'id' || name in fields) // the specification's Plant has none
    await this.printer({ fields: names }).rows([fields], hint)
  }

  /** Prints a word for a shell, or the fields if JSON was requested. */
  printWord(word: string, fields: object, hint?: string): Promise<void> {
    return writeAnswer(this.io, `${this.reporter.isJson ? toJson(fields) : word}\n`, hint)
  }

  printer<Row extends object>(layout: Layout<Row>): Printer<Row> {
    return new Printer(this.io, this.output, layout)
  }

  async tablePrinter<Row extends object>(
    titles: string[],
    cellsOf: (row: Row) => string[],
    layout: Layout<Row> = {},
  ) {
    if (this.output !== 'text') return this.printer(layout)
    const { tableOf } = await import('../output/text-table.js')
    return this.printer({
      ...layout,
      text: tableOf(titles, cellsOf, await this.style(), this.io.stdout),
    })
  }

  plantPrinter<Row extends PlantRecord = StoredPlant>(
    fields: readonly Column[] = fieldNames,
    first = 0,
  ) {
    const titles = fields.map((name) => name.toUpperCase())
    const cellsOf = (plant: Row) =>
      fields.map((name) => (plant[name] === undefined ? '' : quoteIfNeeded(String(plant[name]))))
    return this.tablePrinter(titles, cellsOf, { fields, first })
  }

  style(stream: Output = this.io.stdout): Promise<Style> {
    return styleFor(this.isColored(stream))
  }

  isColored(stream: Output): boolean {
    return mayColor(stream, this.options, this.io)
  }

  /** @throws {PlantsError} `interrupted` without a confirmation */
  async confirm(question: string, refusal: string): Promise<void> {
    const { askToConfirm } = await import('./prompts.js')
    await askToConfirm(question, refusal, this.isColored(this.io.stderr), this.io)
  }

  async #reportSettings(): Promise<void> {
    const { settings, reporter } = this
    const { path, warning, saved } = settings.file
    if (warning) await reporter.warn(`${warning.what}. Fix it with: ${warning.command}`)
    if (!reporter.isVerbose) return
    const lines: string[] = []
    for (const name of settingNames) {
      const { value, place } = settings.source(name)
      const shown =
        name === 'store' && value !== undefined ? await shownStore(value, this.io, saved) : value
      lines.push(`* ${name} ${shown ?? defaultOf(name)} (${place})`)
    }
    reporter.log(`* settings ${path}`, ...lines)
    await new Promise(setImmediate) // writes the log before the output of the command
  }
}

/** What a command works with: its store, its settings, and the terminal. */
export class CommandContext extends SettingsContext {
  readonly address: Address
  /** How long to wait for the store, in milliseconds. */
  override readonly timeout: number
  readonly sqliteOptions: SqliteOptions
  /** A token command runs once, and a warning about a password is printed once. */
  #access: Promise<Access> | undefined
  #login: Promise<Login> | undefined

  /** @throws {PlantsError} `usage` for an invalid setting */
  constructor(parts: ContextParts, address: Address) {
    super(parts)
    this.address = address
    this.timeout = this.settings.value('timeout') ?? 0
    const { timeout, io, reporter } = this
    this.sqliteOptions = {
      ...{ timeout, runtime: io },
      onCreated: (path) => reporter.warn(`Created store ${path}`),
      onExposed: (message, hint) => reporter.warn(`${message}. ${hint}`, 'warning'),
    }
  }

  /** @throws {PlantsError} `usage` for an invalid setting, an unknown store, and an invalid settings file */
  static async from(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<CommandContext> {
    const { settings } = await SettingsContext.read(options, io, formats)
    return new CommandContext({ settings, options, io, formats }, await settings.address())
  }

  /** Undefined for a default store that does not exist yet. Throws `unavailable` for any other. */
  async openStore(): Promise<Store | undefined> {
    const store = await (await this.opener()).openExisting()
    if (!store && !isDefaultStore(this.address)) throw this.noStore()
    return store
  }

  async openOrCreateStore(): Promise<Store> {
    return (await this.opener()).open()
  }

  /** Looks up the credential of a database or a service, and throws `unauthorized` if it needs one and there is none. */
  async opener(): Promise<StoreOpener> {
    const { address } = this
    if (address.scheme !== 'http') return this.ownOpener()
    return httpOpener(address, await this.httpOptions(address))
  }

  async ownOpener(): Promise<OwnStoreOpener> {
    const address = this.ownAddress()
    if (address.scheme === 'sqlite') return sqliteOpener(address, this.sqliteOptions)
    return postgresOpener(address, await this.postgresOptions(address))
  }

  /** Whether it is the file of the store, or one that SQLite keeps beside it. */
  async isStoreFile(path: string): Promise<boolean> {
    const { address } = this
    return (
      address.scheme === 'sqlite' &&
      (await import('../stores/sqlite/connection.js')).isPartOf(address.name, path)
    )
  }

  /** @throws {PlantsError} `usage` for a service */
  ownAddress(): OwnAddress {
    const { address } = this
    if (address.scheme !== 'http') return address
    const hint = 'Run the command on the host of the service, or select another store with --store'
    throw usageError(
      `${address.name} is a service, but this command needs direct access to the store`,
      hint,
    )
  }

  async httpOptions(address: HttpAddress): Promise<HttpOptions> {
    const { accessTo } = await import('./store-access.js')
    this.#access ??= accessTo(address, this)
    const { retry, concurrency } = this.options
    return {
      access: await this.#access,
      timeout: this.timeout,
      runtime: this.io,
      retry,
      concurrency,
    }
  }

  async postgresOptions(address: PostgresAddress): Promise<PostgresOptions> {
    const { loginTo } = await import('./store-access.js')
    this.#login ??= loginTo(address, this)
    const { timeout, io, reporter } = this
    return {
      ...{ login: await this.#login, timeout, runtime: io, retry: this.options.retry },
      onAway: async (failure, patience = timeout) => {
        if (failure) await reporter.warnMeanwhile(tryingAgain(failure, patience))
      },
    }
  }

  noStore(hint = 'Check the address. plants create creates a missing store'): PlantsError {
    return new PlantsError('unavailable', `There is no store at ${this.address.name}`, { hint })
  }

  noStoreYet(): string {
    return `There is no store at ${this.address.name} yet: plants create creates it`
  }

  /** @param store undefined if it does not exist */
  notFound(id: bigint, store: object | undefined): PlantsError {
    const { name } = this.address
    const place = store ? `in ${name}` : `because there is no store at ${name} yet`
    const listing = store
      ? `List the plants with: plants list${this.storeFlag}`
      : 'List the stores with: plants stores list'
    const hint = endsWithPlants(this.address) ? wrongAddressHint : listing
    return new PlantsError('notFound', `No plant has id ${id} ${place}`, { hint })
  }
}

export function mayWaitForPerson({ input }: GlobalOptions, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}

/**
 * Returns the format of results. A saved format that the command does not print is ignored, so that `csv` can be saved
 * for plants. Throws `usage` for one of `--output`.
 */
export function printedFormat(
  chosen: OutputFormat | undefined,
  { output }: GlobalOptions,
  { stdout }: Io,
  formats = commonFormats,
): OutputFormat {
  if (chosen !== undefined && formats.includes(chosen)) return chosen
  if (output !== undefined) parseOutput('--output', output, formats)
  return stdout.isTerminal ? 'text' : 'ndjson'
}

/** The setting `output`, even if others are invalid; undefined if it is invalid itself. `given` is from `--output`. */
export async function chosenFormat(
  given: string | undefined,
  io: Io,
): Promise<OutputFormat | undefined> {
  try {
    return new EffectiveSettings({
      options: { output: given },
      io,
      file: await readSettings(io),
    }).value('output')
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return choiceIn(outputFormats, given)
  }
}
