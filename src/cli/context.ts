import { commonFormats, isJson, type OutputFormat, parseOutput } from '../config/option-values.js'
import { EffectiveSettings } from '../config/resolve.js'
import { readSettings } from '../config/settings-file.js'
import { Reporter } from '../output/reporter.js'
import type { Io } from '../platform/io.js'
import { formatOption } from '../platform/shell.js'
import type { Address } from '../stores/address.js'
import type { OpenContext } from '../stores/store-kind.js'
import { type GlobalOptions, mayWaitForPerson } from './global-options.js'

export interface ContextOptions extends GlobalOptions {
  /** The milliseconds of the option --retry. */
  retry?: OpenContext['retryMs']
}

/** What every command works with. It is built once, from the command line and the settings. */
export interface SettingsContext {
  readonly settings: EffectiveSettings
  readonly options: ContextOptions
  readonly io: Io
  readonly reporter: Reporter
  readonly output: OutputFormat
  /** Whether a person is there to answer a question. */
  readonly mayAsk: boolean
  /**
   * The option --store of this command line, such as " --store ./garden.db", or "" without it. The
   * commands in hints have the same option, so that they use the same store.
   */
  readonly storeFlag: string
}

/** What a command on a store works with. */
export interface CommandContext extends SettingsContext {
  readonly address: Address
}

interface ReadOptions {
  ignoresUserSettings?: boolean
  formats?: readonly OutputFormat[] | undefined
}

/**
 * Reads the settings, for a command without a store.
 *
 * @param ignoresUserSettings whether the settings for all stores are ignored, as by `config set`.
 *   Otherwise it could not correct a wrong value that somebody has written into the file
 * @throws {PlantsError} `usage` for an invalid setting, and `input` for an invalid file
 */
export async function readContext(
  options: ContextOptions,
  io: Io,
  { ignoresUserSettings = false, formats }: ReadOptions = {},
): Promise<SettingsContext> {
  const file = await readSettings(io)
  const { version, stores = {} } = file.savedSettings
  const readFile = ignoresUserSettings ? { ...file, savedSettings: { version, stores } } : file
  const settings = new EffectiveSettings({ options, io, file: readFile })
  const context = buildContext(settings, options, io, formats)
  const { permissionWarning: warning } = file
  if (warning) await context.reporter.warn(`${warning.message}. Fix it with: ${warning.command}`)
  return context
}

/** Reads the settings, and finds the address of the store. */
export async function readStoreContext(
  options: ContextOptions,
  io: Io,
  formats?: readonly OutputFormat[],
): Promise<CommandContext> {
  const context = await readContext(options, io, { formats })
  const { settings } = context
  settings.getValue('timeout') // A wrong one is reported before a person is asked for anything.
  return { ...context, address: await settings.findAddress() }
}

/**
 * @param formats the formats that the command can print. A setting with another format is ignored,
 *   because somebody has chosen the format for other commands
 * @throws {PlantsError} `usage` for an option --output with another format
 */
export function buildContext(
  settings: EffectiveSettings,
  options: ContextOptions,
  io: Io,
  formats: readonly OutputFormat[] = commonFormats,
): SettingsContext {
  const requestedFormat = settings.getValue('output')
  if (options.output !== undefined) parseOutput('--output', options.output, formats)
  const { stdin, stdout, stderr } = io
  const defaultFormat = stdout.isTerminal ? 'text' : 'ndjson'
  return {
    settings,
    options,
    io,
    reporter: new Reporter(io, isJson(requestedFormat), options),
    output: formats.find((format) => format === requestedFormat) ?? defaultFormat,
    mayAsk: mayWaitForPerson(options, io) && stdin.isTerminal && stderr.isTerminal,
    storeFlag: formatOption('store', options.store),
  }
}
