import {
  commonFormats,
  isJson,
  type OutputFormat,
  outputFormats,
  parseOutput,
} from '../config/option-values.js'
import { EffectiveSettings } from '../config/resolve.js'
import { readSettings } from '../config/settings-file.js'
import { assertDefined } from '../errors.js'
import type { Column, PlantRecord } from '../formats/write.js'
import {
  addKeptHint,
  createStyle,
  mayColor,
  quoteIfNeeded,
  type Style,
  writeStdout,
} from '../output/output.js'
import { type Layout, Printer } from '../output/printer.js'
import { Reporter } from '../output/reporter.js'
import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { formatOption } from '../platform/shell.js'
import type { Address } from '../stores/address.js'
import type { OpenContext } from '../stores/store-kind.js'
import { type GlobalOptions, mayWaitForPerson } from './global-options.js'

export interface ContextOptions extends GlobalOptions {
  /** The milliseconds of the option --retry. */
  retry?: OpenContext['retryMs']
}

interface ReadOptions {
  ignoresUserSettings?: boolean
  formats?: readonly OutputFormat[] | undefined
}

/** The settings, the output, the terminal and the store of a command. */
export class CommandContext {
  readonly settings: EffectiveSettings
  readonly options: ContextOptions
  readonly io: Io
  readonly output: OutputFormat
  readonly reporter: Reporter
  /**
   * The option --store of this command line, such as " --store ./garden.db", or "" without it. The
   * commands in hints have the same option, so that they use the same store.
   */
  readonly storeFlag: string
  readonly #address: Address | undefined

  /**
   * @param address the address of the store; undefined for a command that uses none
   * @param formats the formats that the command can print. A setting with another format is
   *   ignored, because somebody has chosen the format for other commands
   * @throws {PlantsError} `usage` for an option --output with another format
   */
  constructor(
    settings: EffectiveSettings,
    options: ContextOptions,
    io: Io,
    address?: Address,
    formats: readonly OutputFormat[] = commonFormats,
  ) {
    const requestedFormat = settings.getValue('output')
    if (options.output !== undefined) parseOutput('--output', options.output, formats)
    const defaultFormat = io.stdout.isTerminal ? 'text' : 'ndjson'
    this.settings = settings
    this.options = options
    this.io = io
    this.output = formats.find((format) => format === requestedFormat) ?? defaultFormat
    this.reporter = new Reporter(io, isJson(requestedFormat), options)
    this.storeFlag = formatOption('store', options.store)
    this.#address = address
  }

  /**
   * Reads the settings, for a command without a store.
   *
   * @param ignoresUserSettings whether the settings for all stores are ignored, as by `config set`.
   *   Otherwise it could not correct a wrong value that somebody has written into the file
   * @throws {PlantsError} `usage` for an invalid setting, and `input` for an invalid file
   */
  static async read(
    options: ContextOptions,
    io: Io,
    { ignoresUserSettings = false, formats }: ReadOptions = {},
  ): Promise<CommandContext> {
    const file = await readSettings(io)
    const { version, stores = {} } = file.savedSettings
    const readFile = ignoresUserSettings ? { ...file, savedSettings: { version, stores } } : file
    const settings = new EffectiveSettings({ options, io, file: readFile })
    const context = new CommandContext(settings, options, io, undefined, formats)
    const { permissionWarning: warning } = file
    if (warning) await context.warn(`${warning.message}. Fix it with: ${warning.command}`)
    return context
  }

  /** Reads the settings, and finds the address of the store. */
  static async from(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
  ): Promise<CommandContext> {
    const { settings } = await CommandContext.read(options, io, { formats })
    settings.getValue('timeout') // A wrong one is reported before a person is asked for anything.
    return new CommandContext(settings, options, io, await settings.findAddress(), formats)
  }

  /** Creates the context of a command that prints plants, in all formats, also CSV and TSV. */
  static forPlants(options: ContextOptions, io: Io): Promise<CommandContext> {
    return CommandContext.from(options, io, outputFormats)
  }

  /** How long to wait for a store or the settings, in milliseconds. */
  get timeoutMs(): number {
    return this.settings.getValue('timeout') ?? 0
  }

  /** Whether a person is there to answer a question. */
  get mayAsk(): boolean {
    const { stdin, stderr } = this.io
    return mayWaitForPerson(this.options, this.io) && stdin.isTerminal && stderr.isTerminal
  }

  warn(text: string, label?: 'warning'): Promise<void> {
    return this.reporter.warn(text, label)
  }

  /**
   * @throws {PlantsError} `interrupted` with the message `declined`, unless a person answers yes
   */
  async confirm(question: string, declinedMessage: string): Promise<void> {
    const { askToConfirm } = await import('./prompts.js')
    await askToConfirm(question, declinedMessage, this.io)
  }

  /**
   * Prints what a command has done: fields for programs, or a sentence for people. --quiet
   * suppresses the sentence.
   *
   * @param options.isKept whether it stays done if the output fails: a dry run has done nothing
   */
  async printOutcome(
    fields: object,
    sentence: string,
    { format = this.output, isKept = true } = {},
  ): Promise<void> {
    if (format === 'text' && this.reporter.isQuiet) return
    try {
      await this.printResult(fields, sentence, format)
    } catch (error) {
      throw isKept ? addKeptHint(error) : error
    }
  }

  /** Prints the result of a command, also with --quiet: fields for programs, a text for people. */
  async printResult(fields: object, text: string, format = this.output): Promise<void> {
    if (format === 'text') return writeStdout(this.io, `${text}\n`)
    if (isJson(format)) return writeStdout(this.io, `${toJson(fields)}\n`)
    // The format is CSV or TSV. The columns include the id only if the fields do: the Plant of the
    // specification has no id.
    const names = fieldNames.filter((name) => name !== 'id' || name in fields)
    await this.createPrinter({ fields: names }).printRows([fields])
  }

  /**
   * Prints one value, such as a token. Scripts often assign the output to a variable of a shell, so
   * it is JSON only if somebody has chosen that format.
   */
  printValue(value: string, fields: object): Promise<void> {
    const text = this.io.stdout.isTerminal ? quoteIfNeeded(value) : value
    return writeStdout(this.io, `${this.reporter.isJson ? toJson(fields) : text}\n`)
  }

  /** @param isSingle whether JSON output is one value instead of an array */
  createPrinter<Row extends object>(layout: Layout<Row>, isSingle = false): Printer<Row> {
    const format = isSingle && this.output === 'json' ? 'ndjson' : this.output
    return new Printer(this.io, format, layout)
  }

  /** Creates a printer of a table for people, and of fields for programs. */
  async createTablePrinter<Row extends object>(
    titles: string[],
    formatCells: (row: Row) => string[],
    layout: Layout<Row> = {},
  ): Promise<Printer<Row>> {
    if (this.output !== 'text') return this.createPrinter(layout)
    const { formatTable } = await import('../output/text-table.js')
    const text = formatTable(titles, formatCells, await this.createStreamStyle(), this.io.stdout)
    return this.createPrinter({ ...layout, text })
  }

  /** @param firstRows how many plants determine the widths of the columns of a table */
  createPlantPrinter<Row extends PlantRecord = StoredPlant>(
    fields: readonly Column[] = fieldNames,
    firstRows = 0,
  ): Promise<Printer<Row>> {
    const formatCell = (value: unknown) => (value === undefined ? '' : quoteIfNeeded(String(value)))
    const titles = fields.map((name) => name.toUpperCase())
    const formatCells = (plant: Row) => fields.map((name) => formatCell(plant[name]))
    return this.createTablePrinter(titles, formatCells, { fields, firstRows })
  }

  createStreamStyle(stream = this.io.stdout): Promise<Style> {
    return createStyle(mayColor(stream, this.options, this.io))
  }

  get address(): Address {
    return assertDefined(this.#address)
  }
}
