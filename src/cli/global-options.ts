import { Option } from 'commander'
import { type OutputFormat, outputFormats } from '../config/option-values.js'
import { getSetting, type SettingName, settingNames } from '../config/setting-table.js'
import type { Io } from '../platform/io.js'

/**
 * The options of every command, before or after its name. `input` and `color` are true unless the
 * line has `--no-input` or `--no-color`.
 */
export interface GlobalOptions {
  store?: string
  output?: string
  timeout?: string
  caCert?: string
  allowHttp?: boolean
  verbose?: boolean
  quiet?: boolean
  input?: boolean
  color?: boolean
}

/** @param formats the formats that --output chooses, which completion offers */
export function createGlobalOptions(formats: readonly OutputFormat[] = outputFormats): Option[] {
  const options = settingNames
    .filter((name) => getSetting(name).flags !== undefined)
    .map(createSettingOption)
  const output = options.find(({ long }) => long === '--output')
  if (output) {
    output.argChoices = [...formats]
    output.description += `: ${formats.join(', ')}`
  }
  return [
    ...options,
    new Option('-v, --verbose', 'log requests and responses to stderr'),
    new Option('-q, --quiet', 'print only data and errors'),
    new Option('--no-input', 'never prompt or start a pager'),
    new Option('--no-color', 'do not use colors'),
  ]
}

/**
 * Creates the option of a setting. `EffectiveSettings` parses its value, as it parses values of
 * other sources.
 */
export function createSettingOption(name: SettingName): Option {
  const { flags = `--${name} <command>`, description } = getSetting(name)
  return new Option(flags, description)
}

/**
 * Whether the program may wait for a person, who answers a question or quits a pager. Many services
 * for continuous integration set `CI`, and some of them have a terminal that nobody reads.
 */
export function mayWaitForPerson({ input }: Pick<GlobalOptions, 'input'>, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}
