import { readSettings, type SettingsFile, savedStore } from '../config/file.js'
import {
  defaultSource,
  failureOf,
  findSource,
  isStoreName,
  namedStore,
  parsed,
  resolveStore,
  type SettingSource,
  shownValue,
} from '../config/resolve.js'
import { defaultOf, settingNames, settingsTable } from '../config/table.js'
import { type OutputStyle, warn, warnMeanwhile } from '../output/output.js'
import { PlantsError, shellOption } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
import { commonFormats, isJson, type OutputFormat, outputFormats, parseOutput, parseText } from '../platform/values.js'
import type { Access } from '../stores/common/access.js'
import type { Address } from '../stores/common/address.js'
import type { Login, OpenOptions } from '../stores/common/store.js'
import type { GlobalFlags } from './define-command.js'
import type { AccessSettings } from './store-access.js'

export interface Preferences extends OutputStyle {
  /** milliseconds to wait for a store */
  timeout: number
  /** milliseconds to wait for another process that changes the settings; a timeout that is saved with a store does not apply */
  lockTimeout: number
  isVerbose: boolean
  showsProgress: boolean
  mayAsk(): boolean
  warn(text: string, label?: 'warning'): Promise<void>
  sources: SettingSource[]
  file: SettingsFile
}

export interface Settings extends Preferences, AccessSettings {
  store: Address
  storeOptions: OpenOptions
  warn: Preferences['warn']
  file: SettingsFile
}

interface ResolveOptions {
  /** what the command prints; by default everything but csv and tsv */
  formats?: readonly OutputFormat[]
  /** the name or the address of a store other than the one of this run */
  other?: string
  file?: SettingsFile
  /** ignores invalid saved values, for the commands that can correct them */
  ignoresSaved?: boolean
  /** ignores invalid values in the file and in the environment, without a warning, because `doctor` reports them */
  ignoresInvalid?: boolean
}

/** Resolves the settings of a run, and its store. Throws `malformed` for an invalid value, an unknown store, and an invalid settings file. */
export async function resolveSettings(flags: GlobalFlags, io: Io, options: ResolveOptions = {}): Promise<Settings> {
  const { usable, ...preferences } = await resolvePreferences(flags, io, options)
  const { timeout, warn } = preferences
  const { store, storeName } = await resolveStore(preferences, io)
  const settings: Omit<Settings, 'store' | 'storeOptions'> = {
    ...preferences,
    storeName,
    storeFlag: shellOption('store', options.other ?? flags.store),
    isOfRun: options.other === undefined,
    allowHttp: parsed('allow-http', usable, settingsTable['allow-http'].parse) ?? false,
    caCert: parsed('ca-cert', usable, (source, text) => ({ path: io.resolvePath(parseText(source, text)), source })),
    tokenCommand: parsed('token-command', usable, settingsTable['token-command'].parse),
  }
  let access: Promise<Access> | undefined // a token command runs once
  let login: Promise<Login> | undefined // a warning is printed once
  const warned = new Set<string>()
  const storeOptions: OpenOptions = {
    timeout,
    clock: io,
    trusts: io.trusts,
    access: async (address) => (access ??= import('./store-access.js').then(({ accessTo }) => accessTo(address, settings, io))),
    login: async (address) => (login ??= import('./store-access.js').then(({ loginTo }) => loginTo(address, settings, io))),
    onAway: (failure) => {
      if (failure) void warnMeanwhile(io, `${failure.message}. Trying again until --timeout expires`, settings)
    },
    onCreated: (path) => warn(`Created store ${path}`),
    onExposed: async (warning) => {
      if (warned.has(warning)) return
      warned.add(warning)
      await warn(warning)
    },
  }
  return { ...settings, store, storeOptions }
}

/**
 * Resolves the settings of a run that uses no store. Throws as `resolveSettings` does, but not for an unknown store.
 * `usable` are the `sources`, with defaults instead of ignored values.
 */
export async function resolvePreferences(
  flags: GlobalFlags,
  io: Io,
  { file: known, other, formats, ignoresSaved, ignoresInvalid }: ResolveOptions = {},
): Promise<Preferences & { usable: SettingSource[] }> {
  const file = known ?? (await readSettings(io))
  const isOther = other !== undefined
  const chosen = isOther ? namedStore(other) : findSource('store', { flags, io, file })
  const { value = '' } = chosen
  const storeName = isStoreName(value) && savedStore(file.saved, value) ? value : undefined
  const sources = settingNames.map((name) => (name === 'store' ? chosen : findSource(name, { flags, io, file, storeName, isOther })))
  const usable = sources.map((setting) => {
    const mayBeInvalid = (ignoresSaved && setting.key !== undefined) || (ignoresInvalid && setting.source !== 'flag')
    return mayBeInvalid && failureOf(setting) ? defaultSource(setting.name) : setting
  })
  const ofRun = usable.filter(({ source }) => source === 'flag' || source === 'variable')
  const output = parsed('output', usable, settingsTable.output.parse)
  const errors = isJson(output) ? 'json' : 'text'
  const [isVerbose, isQuiet] = [flags.verbose === true, flags.quiet === true]
  const colors = (stream: Output) => mayColor(stream, flags, io)
  const preferences = {
    output: printedFormat(output, flags, io, formats),
    errors,
    timeout: parsed('timeout', usable, settingsTable.timeout.parse) ?? 0,
    lockTimeout: parsed('timeout', ofRun, settingsTable.timeout.parse) ?? defaultLockTimeout,
    isVerbose,
    isQuiet,
    showsProgress: io.stderr.isTerminal && errors === 'text' && !isVerbose && !isQuiet,
    mayAsk: () => isInteractive(flags, io) && io.stdin.isTerminal && io.stderr.isTerminal,
    colors,
    warn: (text: string, label?: 'warning') => warn(io, text, { errors, colors, isQuiet }, label),
    sources,
    usable,
    file,
  } as const
  if (!isOther && !ignoresInvalid) await report(preferences, io)
  return preferences
}

/** milliseconds */
export const defaultLockTimeout = 30_000

async function report({ file, sources, errors, isVerbose, warn }: Preferences, io: Io): Promise<void> {
  for (const { what, command } of file.warnings) await warn(`${what}. Fix it with: ${command}`)
  if (!isVerbose) return
  const { traceSettings } = await import('../output/trace.js')
  const settings = sources.map((setting) => ({ ...setting, value: shownValue(setting.value), fallback: defaultOf(setting.name) }))
  traceSettings(file.path, settings, { errors }, io)
  await new Promise(setImmediate) // writes the log before the output of the command
}

/**
 * The format that a command prints. A saved one that it does not print is ignored, so that `csv` can be saved for
 * plants. Throws `malformed` for one of `--output`.
 */
export function printedFormat(
  chosen: OutputFormat | undefined,
  { output }: GlobalFlags,
  { stdout }: Io,
  formats = commonFormats,
): OutputFormat {
  if (chosen !== undefined && formats.includes(chosen)) return chosen
  if (output !== undefined) parseOutput('--output', output, formats)
  return stdout.isTerminal ? 'text' : 'ndjson'
}

/** The setting `output`, also if other settings are invalid; undefined if it is invalid itself. `given` is the value of `--output`. */
export async function chosenFormat(given: string | undefined, io: Io): Promise<OutputFormat | undefined> {
  try {
    const file = await readSettings(io)
    const setting = findSource('output', { flags: { output: given }, io, file })
    return parsed('output', [setting], settingsTable.output.parse)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return outputFormats.find((format) => format === given)
  }
}

/** Whether prompts and a pager are allowed: not with `--no-input`, PLANTS_NO_INPUT or CI. */
export function isInteractive({ input }: GlobalFlags, { env }: Io): boolean {
  return input !== false && ['PLANTS_NO_INPUT', 'CI'].every((name) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? ''))
}

/** Precedence: the flag, FORCE_COLOR, NO_COLOR, the terminal. See https://no-color.org and https://force-color.org. */
export function mayColor(stream: Output, flags: GlobalFlags, { env }: Io): boolean {
  if (flags.color === false) return false
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb' && stream.isTerminal
}
