import {
  defaultSource,
  failureOf,
  findSource,
  isStoreName,
  parsed,
  resolveStore,
  type SettingSource,
  shownStore,
} from '../config/resolve.js'
import { defaultOf, settingNames, settingsTable } from '../config/setting-table.js'
import { readSettings, type SettingsFile, savedStore } from '../config/settings-file.js'
import { mayColor, type OutputStyle, warn, warnMeanwhile } from '../output/output.js'
import { PlantsError, shellOption } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
import { commonFormats, isJson, type OutputFormat, outputFormats, parseOutput, parseText } from '../platform/values.js'
import type { Access } from '../stores/common/access.js'
import type { Address } from '../stores/common/address.js'
import { tryingAgain } from '../stores/common/retry-policy.js'
import type { Login, OpenOptions } from '../stores/common/store.js'
import type { GlobalFlags } from './define-command.js'
import type { AccessSettings } from './store-access.js'

export interface Preferences extends OutputStyle, Pick<AccessSettings, 'storeName' | 'isOfRun'> {
  /** milliseconds to wait for a store, and for another process that changes the settings */
  timeout: number
  isVerbose: boolean
  showsProgress: boolean
  mayAsk(): boolean
  warn(text: string, label?: 'warning'): Promise<void>
  sources: SettingSource[]
  /** `sources`, with defaults instead of ignored values */
  usable: SettingSource[]
  storeSource: SettingSource
  file: SettingsFile
}

export interface Settings extends Preferences, AccessSettings {
  store: Address
  storeOptions: OpenOptions
  warn: Preferences['warn']
  file: SettingsFile
}

interface ResolveOptions {
  /** by default everything but csv and tsv */
  formats?: readonly OutputFormat[]
  /** ignores invalid values, except those of flags, for the commands that report or correct them */
  ignoresInvalid?: boolean
  /** if it is already read, and its warning reported */
  file?: SettingsFile
  /** a store other than that of this run */
  other?: string
}

/** Throws `malformed` for an invalid value, an unknown store, and an invalid settings file. */
export async function resolveSettings(flags: GlobalFlags, io: Io, options: ResolveOptions = {}): Promise<Settings> {
  const preferences = await resolvePreferences(flags, io, options)
  const { timeout, warn, file, usable, storeSource } = preferences
  const store = await resolveStore(storeSource, file, io)
  const settings = {
    ...preferences,
    storeFlag: shellOption('store', options.other ?? flags.store),
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
    access: async (address) =>
      (access ??= import('./store-access.js').then(({ accessTo }) => accessTo(address, settings, io))),
    login: async (address) =>
      (login ??= import('./store-access.js').then(({ loginTo }) => loginTo(address, settings, io))),
    onAway: (failure, patience = timeout) => {
      if (failure) void warnMeanwhile(io, tryingAgain(failure, patience), settings)
    },
    onCreated: (path) => warn(`Created store ${path}`),
    onMigrated: (name) => warn(`Migrated the store in ${name}`),
    onExposed: async (message, hint) => {
      const warning = `${message}. ${hint}`
      if (warned.has(warning)) return
      warned.add(warning)
      await warn(warning)
    },
  }
  return { ...settings, store, storeOptions }
}

/** For a run without a store. Throws as `resolveSettings` does, but not for an unknown store. */
export async function resolvePreferences(
  flags: GlobalFlags,
  io: Io,
  { formats, ignoresInvalid, file: known, other }: ResolveOptions = {},
): Promise<Preferences> {
  const file = known ?? (await readSettings(io))
  const isOfRun = other === undefined
  const ofRun = findSource('store', { flags, io, file })
  const storeSource: SettingSource = isOfRun ? ofRun : { ...ofRun, value: other, key: undefined }
  const { value: named = '' } = storeSource
  const storeName = isStoreName(named) && savedStore(file.saved, named) ? named : undefined
  const sources = settingNames.map((name) =>
    name === 'store' ? storeSource : findSource(name, { flags, io, file, storeName, isOfRun }),
  )
  const usable = sources.map((setting) =>
    ignoresInvalid && setting.source !== 'flag' && failureOf(setting) ? defaultSource(setting.name) : setting,
  )
  const output = parsed('output', usable, settingsTable.output.parse)
  const errors = isJson(output) ? 'json' : 'text'
  const [isVerbose, isQuiet] = [flags.verbose === true, flags.quiet === true]
  const colors = (stream: Output) => mayColor(stream, flags, io)
  const preferences = {
    storeName,
    isOfRun,
    output: printedFormat(output, flags, io, formats),
    errors,
    timeout: parsed('timeout', usable, settingsTable.timeout.parse) ?? 0,
    isVerbose,
    isQuiet,
    showsProgress: io.stderr.isTerminal && errors === 'text' && !isVerbose && !isQuiet,
    mayAsk: () => isInteractive(flags, io) && io.stdin.isTerminal && io.stderr.isTerminal,
    colors,
    warn: (text: string, label?: 'warning') => warn(io, text, { errors, colors, isQuiet }, label),
    sources,
    usable,
    storeSource,
    file,
  } as const
  if (known === undefined) await report(preferences, io)
  return preferences
}

async function report(preferences: Preferences, io: Io): Promise<void> {
  const { file, sources, isVerbose, warn } = preferences
  if (file.warning) await warn(`${file.warning.what}. Fix it with: ${file.warning.command}`)
  if (!isVerbose) return
  const { trace } = await import('../output/trace.js')
  const lines: string[] = []
  for (const { name, value, place } of sources) {
    const shown = name === 'store' && value !== undefined ? await shownStore(value, io) : value
    lines.push(`* ${name} ${shown ?? defaultOf(name)} (${place})`)
  }
  trace(io, preferences, `* settings ${file.path ?? 'not read: this user has no home directory'}`, ...lines)
  await new Promise(setImmediate) // writes the log before the output of the command
}

/**
 * A saved format that the command does not print is ignored, so that `csv` can be saved for plants. Throws `malformed`
 * for one of `--output`.
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

/** The setting `output`, even if others are invalid; undefined if it is invalid itself. `given` is from `--output`. */
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

export function isInteractive({ input }: GlobalFlags, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}
