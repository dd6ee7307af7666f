import { commonFormats, isJson, type OutputFormat, parseOutput } from '../config/option-values.js'
import { EffectiveSettings } from '../config/resolve.js'
import { listSettings } from '../config/setting-table.js'
import { readSettings } from '../config/settings-file.js'
import type { Column, PlantRecord } from '../formats/write.js'
import { createStyle, mayColor, quoteIfNeeded, type Style, writeStdout } from '../output/output.js'
import { type Layout, Printer } from '../output/printer.js'
import { Reporter } from '../output/reporter.js'
import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { formatOption } from '../platform/shell.js'
import type { OpenContext } from '../stores/store-kind.js'
import { type GlobalOptions, mayWaitForPerson } from './global-options.js'

export interface ContextOptions extends GlobalOptions, Pick<OpenContext, 'retry' | 'concurrency'> {}

/** What a command works with that needs no store: its settings, and the terminal. */
export class SettingsContext {
  readonly settings: EffectiveSettings
  readonly options: ContextOptions
  readonly io: Io
  readonly output: OutputFormat
  readonly reporter: Reporter
  /** Hints add this to commands, such as " --store ./garden.db". It is empty without --store. */
  readonly storeFlag: string

  /**
   * @param formats the formats of the command: another one in the settings is ignored
   * @throws {PlantsError} `usage` for an option --output with another format
   */
  constructor(
    settings: EffectiveSettings,
    options: ContextOptions,
    io: Io,
    formats: readonly OutputFormat[] = commonFormats,
  ) {
    const chosen = settings.getValue('output')
    if (options.output !== undefined) parseOutput('--output', options.output, formats)
    const usual = io.stdout.isTerminal ? 'text' : 'ndjson'
    this.settings = settings
    this.options = options
    this.io = io
    this.output = formats.find((format) => format === chosen) ?? usual
    this.reporter = new Reporter(io, isJson(chosen), options)
    this.storeFlag = formatOption('store', options.store)
  }

  /**
   * Reads the settings.
   *
   * @param leavesOutUserSettings whether the settings for all stores are left out, as for a command
   *   that changes them: a wrong one would prevent its own repair
   * @throws {PlantsError} `usage` for an invalid setting, and `input` for an invalid file
   */
  static async read(
    options: ContextOptions,
    io: Io,
    formats?: readonly OutputFormat[],
    leavesOutUserSettings = false,
  ): Promise<SettingsContext> {
    const file = await readSettings(io)
    if (leavesOutUserSettings)
      for (const name of listSettings('user')) Reflect.deleteProperty(file.saved, name)
    const settings = new EffectiveSettings({ values: options.values, io, file })
    const context = new SettingsContext(settings, options, io, formats)
    const { permissionWarning: warning } = file
    if (warning) await context.warn(`${warning.message}. Fix it with: ${warning.command}`)
    return context
  }

  /** How long to wait for a store or the settings, in milliseconds. */
  get timeoutMs(): number {
    return this.settings.getValue('timeout') ?? 0
  }

  get mayAsk(): boolean {
    const { stdin, stderr } = this.io
    return mayWaitForPerson(this.options, this.io) && stdin.isTerminal && stderr.isTerminal
  }

  warn(text: string, label?: 'warning'): Promise<void> {
    return this.reporter.warn(text, label)
  }

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
    if (format === 'text') return writeStdout(this.io, `${text}\n`)
    if (isJson(format)) return writeStdout(this.io, `${toJson(fields)}\n`)
    // The specification's Plant has no id.
    const names = fieldNames.filter((name) => name !== 'id' || name in fields)
    await this.createPrinter({ fields: names }).printRows([fields])
  }

  /** Prints a word for a shell, or the fields if JSON was requested. */
  printWord(word: string, fields: object): Promise<void> {
    const shown = this.io.stdout.isTerminal ? quoteIfNeeded(word) : word
    return writeStdout(this.io, `${this.reporter.isJson ? toJson(fields) : shown}\n`)
  }

  /** @param isSingle whether JSON is one value in place of an array */
  createPrinter<Row extends object>(layout: Layout<Row>, isSingle = false): Printer<Row> {
    const format = isSingle && this.output === 'json' ? 'ndjson' : this.output
    return new Printer(this.io, format, layout)
  }

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

  createPlantPrinter<Row extends PlantRecord = StoredPlant>(
    fields: readonly Column[] = fieldNames,
    first = 0,
  ): Promise<Printer<Row>> {
    const formatCell = (value: unknown) => (value === undefined ? '' : quoteIfNeeded(String(value)))
    const titles = fields.map((name) => name.toUpperCase())
    const formatCells = (plant: Row) => fields.map((name) => formatCell(plant[name]))
    return this.createTablePrinter(titles, formatCells, { fields, firstRows: first })
  }

  createStreamStyle(stream = this.io.stdout): Promise<Style> {
    return createStyle(mayColor(stream, this.options, this.io))
  }
}
