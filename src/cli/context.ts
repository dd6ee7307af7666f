import {
  defaultSource,
  findSource,
  parseSetting,
  resolveStore,
  type SettingSource,
  shownStore,
} from '../config/resolve.js'
import { defaultOf, type SettingName, type SettingValue, settingNames } from '../config/setting-table.js'
import { isStoreName, readSettings, type SettingsFile, savedStore } from '../config/settings-file.js'
import { mayColor, warn, warnMeanwhile } from '../output/output.js'
import { PlantsError, shellOption } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
import { commonFormats, isJson, type OutputFormat, outputFormats, parseOutput } from '../platform/values.js'
import { tryingAgain } from '../stores/common/retry-policy.js'
import type { Access, Login, OpenOptions } from '../stores/common/store.js'
import type { GlobalOptions } from './command.js'
import type { Preferences, Settings } from './settings.js'

interface ResolveOptions {
  /** by default everything but csv and tsv */
  formats?: readonly OutputFormat[]
  /** ignores invalid values, except those of options, for the commands that report or correct them */
  ignoresInvalid?: boolean
  /** if it is already read, and its warning reported */
  file?: SettingsFile
  /** a store other than that of this run */
  other?: string
}

/** Throws `malformed` for an invalid value, an unknown store, and an invalid settings file. */
export async function resolveSettings(options: GlobalOptions, io: Io, resolve: ResolveOptions = {}): Promise<Settings> {
  const preferences = await resolvePreferences(options, io, resolve)
  const { timeout, warn, file, source } = preferences
  const store = await resolveStore(source('store'), file, io)
  const storeFlag = shellOption('store', resolve.other ?? options.store)
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
    onAway: async (failure, patience = timeout) => {
      if (!failure) return
      await warnMeanwhile(io, tryingAgain(failure, patience), settings)
    },
    onCreated: (path) => warn(`Created store ${path}`),
    onMigrated: (name) => warn(`Migrated the store in ${name}`),
    onExposed: async (message, hint) => {
      const warning = `${message}. ${hint}`
      if (warned.has(warning)) return
      warned.add(warning)
      await warn(warning, 'warning')
    },
  }
  const settings: Settings = { ...preferences, store, storeFlag, storeOptions }
  return settings
}

/** The settings of a run without a store. Throws as `resolveSettings` does, but not for an unknown store. */
export async function resolvePreferences(
  options: GlobalOptions,
  io: Io,
  { formats, ignoresInvalid, file: known, other }: ResolveOptions = {},
): Promise<Preferences> {
  const file = known ?? (await readSettings(io))
  const isOfRun = other === undefined
  const ofRun = findSource('store', { options, io, file })
  const named = other ?? ofRun.value ?? ''
  const storeName = isStoreName(named) && savedStore(file.saved, named) ? named : undefined
  const source = (name: SettingName): SettingSource => {
    if (name === 'store') return isOfRun ? ofRun : { name, value: other, source: 'saved', place: 'the settings' }
    return findSource(name, { options, io, file, storeName, isOfRun })
  }
  const value = <Name extends SettingName>(name: Name) => {
    const found = source(name)
    try {
      return parseSetting(found) as SettingValue<Name> | undefined // as its entry of the table parses it
    } catch (error) {
      if (!ignoresInvalid || found.source === 'flag' || !(error instanceof PlantsError)) throw error
      return parseSetting(defaultSource(name)) as SettingValue<Name> | undefined // the same
    }
  }
  const output = value('output')
  const errors = isJson(output) ? 'json' : 'text'
  const [isVerbose, isQuiet] = [options.verbose === true, options.quiet === true]
  const colors = (stream: Output) => mayColor(stream, options, io)
  const preferences: Preferences = {
    output: printedFormat(output, options, io, formats),
    errors,
    timeout: value('timeout') ?? 0,
    isVerbose,
    isQuiet,
    showsProgress: io.stderr.isTerminal && errors === 'text' && !isVerbose && !isQuiet,
    mayAsk: () => isInteractive(options, io) && io.stdin.isTerminal && io.stderr.isTerminal,
    colors,
    warn: (text: string, label?: 'warning') => warn(io, text, { errors, colors, isQuiet }, label),
    file,
    storeName,
    isOfRun,
    source,
    value,
  }
  if (known === undefined) await report(preferences, io)
  return preferences
}

async function report(preferences: Preferences, io: Io): Promise<void> {
  const { file, isVerbose, warn } = preferences
  if (file.warning) await warn(`${file.warning.what}. Fix it with: ${file.warning.command}`)
  if (!isVerbose) return
  const { trace } = await import('../output/trace.js')
  const lines: string[] = []
  for (const name of settingNames) {
    const { value, place } = preferences.source(name)
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
  { output }: GlobalOptions,
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
    return parseSetting(findSource('output', { options: { output: given }, io, file })) as OutputFormat | undefined
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return outputFormats.find((format) => format === given)
  }
}

export function isInteractive({ input }: GlobalOptions, { env }: Io): boolean {
  const isUnset = (name: string) => ['', '0', 'false'].includes(env[name]?.toLowerCase() ?? '')
  return input !== false && isUnset('PLANTS_NO_INPUT') && isUnset('CI')
}
