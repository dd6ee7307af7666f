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
import { warn, warnMeanwhile } from '../output/output.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io, Output } from '../platform/io.js'
import { parseText } from '../platform/values.js'
import type { RemoteAddress } from '../stores/address.js'
import type { Access } from '../stores/http/types.js'
import type { Login, OpenOptions } from '../stores/store.js'
import type { GlobalFlags } from './define-command.js'
import type { Preferences, Settings } from './settings.js'

/** How a command looks at the settings that is not just a user of them. */
interface ResolveOptions {
  /** the name or the address of another store than the one of this run, to be looked at besides */
  other?: string
  /** the settings file, where it was read already */
  file?: SettingsFile
  /** leaves out what is saved and wrong, for the commands that can put it right */
  ignoresSaved?: boolean
  /** leaves out what is wrong in the file and in the environment, and says nothing of it: `doctor` does */
  ignoresInvalid?: boolean
}

/**
 * Finds out what this run goes by.
 *
 * @throws {PlantsError} `malformed` for a value that a setting cannot have, and for a settings file that is broken
 */
export async function resolveSettings(
  flags: GlobalFlags,
  io: Io,
  { other, ignoresInvalid = false, file: known }: ResolveOptions = {},
): Promise<Settings> {
  const file = known ?? (await readSettings(io))
  const chosen = other === undefined ? findSource('store', { flags, io, file }) : namedStore(other)
  const { store, storeName } = await resolveStore(chosen, file, io)
  const sources = settingNames.map((name) =>
    name === 'store' ? chosen : findSource(name, { flags, io, file, storeName, isOther: other !== undefined }),
  )
  const usable = usableSources(sources, { ignoresInvalid })
  const preferences = { ...preferencesFrom(usable, flags, file, io), sources }
  const settings: Settings = {
    ...preferences,
    store,
    storeName,
    storeFlag: flagOf(other ?? flags.store),
    isOfRun: other === undefined,
    allowHttp: parsed('allow-http', usable, settingsTable['allow-http'].parse) ?? false,
    caCert: parsed('ca-cert', usable, (source, text) => ({ path: io.resolvePath(parseText(source, text)), source })),
    tokenCommand: parsed('token-command', usable, settingsTable['token-command'].parse),
    storeOptions: storeOptions(
      () => settings,
      parsed('allow-async-commit', usable, settingsTable['allow-async-commit'].parse) ?? false,
      preferences.timeout,
      io,
    ),
  }
  if (settings.isOfRun && !ignoresInvalid) await report(settings, io)
  return settings
}

/** What joins a store, which knows no settings, to the credentials and the output of a run. */
function storeOptions(settings: () => Settings, allowAsyncCommit: boolean, timeout: number, io: Io): OpenOptions {
  let access: Promise<Access> | undefined
  let login: Promise<Login> | undefined
  const knownOwners = new Set<string>()
  return {
    timeout,
    clock: io,
    allowAsyncCommit,
    access: (address: RemoteAddress) => {
      access ??= import('./store-access.js').then(({ accessTo }) => accessTo(address, settings(), io)) // a token command runs once
      return access
    },
    login: (address) => {
      login ??= import('./store-access.js').then(({ loginTo }) => loginTo(address, settings(), io)) // a warning is printed once
      return login
    },
    onAway: (failure) => {
      if (failure) void warnMeanwhile(io, `${failure.message}. Trying again until --timeout is over`, settings())
    },
    onOwner: async (path, uid, what) => {
      if (knownOwners.has(path) || io.trusts(uid)) return
      knownOwners.add(path)
      const user = `another user (uid ${uid}), who`
      const warnings = {
        store: `The store ${path} belongs to ${user} can read and change all that is in it`,
        link: `The store ${path} is a link of ${user} can make it lead to another file`,
        backup: `The backup ${path} belongs to ${user} may have put tokens in it`,
      }
      await warn(io, warnings[what], settings())
    },
  }
}

/** Finds out what a run goes by that uses no store. Throws as `resolveSettings` does. */
export async function resolvePreferences(
  flags: GlobalFlags,
  io: Io,
  { ignoresSaved = false, ignoresInvalid = false, file: known }: ResolveOptions = {},
): Promise<Preferences> {
  const file = known ?? (await readSettings(io))
  const { value = '' } = findSource('store', { flags, io, file })
  const storeName = isStoreName(value) && savedStore(file.saved, value) ? value : undefined
  const sources = settingNames.map((name) => findSource(name, { flags, io, file, storeName }))
  const usable = usableSources(sources, { ignoresSaved, ignoresInvalid })
  const preferences = { ...preferencesFrom(usable, flags, file, io), sources }
  if (!ignoresInvalid) await report(preferences, io)
  return preferences
}

function flagOf(store: string | undefined): string {
  return store === undefined ? '' : ` --store${store.startsWith('-') ? '=' : ' '}${shellWord(store)}`
}

function usableSources(sources: SettingSource[], { ignoresSaved = false, ignoresInvalid = false }: ResolveOptions): SettingSource[] {
  const mayBeWrong = ({ source, key }: SettingSource) => (ignoresSaved && key !== undefined) || (ignoresInvalid && source !== 'flag')
  return sources.map((origin) => (mayBeWrong(origin) && failureOf(origin) ? defaultSource(origin.name) : origin))
}

/** milliseconds that others may take who are changing the settings */
export const defaultLockTimeout = 30_000

/** Whether a value was given for this run alone. */
function isOfRun({ source }: SettingSource): boolean {
  return source === 'flag' || source === 'variable'
}

function preferencesFrom(sources: SettingSource[], flags: GlobalFlags, file: SettingsFile, io: Io): Preferences {
  const output = parsed('output', sources, settingsTable.output.parse)
  const errors = output ?? 'text'
  const colors = (stream: Output) => mayColor(stream, flags, io)
  return {
    output: output ?? (io.stdout.isTerminal ? 'text' : 'json'),
    errors,
    timeout: parsed('timeout', sources, settingsTable.timeout.parse) ?? 0,
    lockTimeout: parsed('timeout', sources.filter(isOfRun), settingsTable.timeout.parse) ?? defaultLockTimeout,
    isVerbose: flags.verbose === true,
    mayAsk: () => flags.input !== false && io.stdin.isTerminal && io.stderr.isTerminal,
    colors,
    warn: (text) => warn(io, text, { errors, colors }),
    sources,
    file,
  }
}

async function report(preferences: Preferences, io: Io): Promise<void> {
  for (const { what, command } of preferences.file.warnings) await warn(io, `${what}. Fix it with: ${command}`, preferences)
  if (!preferences.isVerbose) return
  const { traceSettings } = await import('../output/trace.js')
  const settings = preferences.sources.map(({ name, value, source, place }) => ({
    name,
    value: shownValue(value),
    fallback: defaultOf(name),
    source,
    place,
  }))
  traceSettings(preferences.file.path, settings, preferences, io)
  await new Promise(setImmediate) // in which a log is written, so that it comes before the answer
}

/**
 * How errors look, for an error that came before the settings were known, or because of them.
 *
 * @param given what `--output` says
 */
export async function errorFormat(given: string | undefined, io: Io): Promise<'text' | 'json'> {
  try {
    const file = await readSettings(io)
    const origin = findSource('output', { flags: given === undefined ? {} : { output: given }, io, file })
    return parsed('output', [origin], settingsTable.output.parse) ?? 'text'
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return given === 'json' ? 'json' : 'text'
  }
}

/** How answers look, for a command that has to work where the settings are broken. Throws for a flag that is wrong. */
export async function outputFormat(given: string | undefined, io: Io): Promise<'text' | 'json'> {
  if (given !== undefined) return settingsTable.output.parse('--output', given)
  const asked = await errorFormat(undefined, io)
  return asked === 'json' || !io.stdout.isTerminal ? 'json' : 'text'
}

/** See https://no-color.org and https://force-color.org: the flag wins, then FORCE_COLOR, then NO_COLOR, then the terminal. */
export function mayColor(stream: Output, flags: GlobalFlags, { env }: Io): boolean {
  if (flags.color === false) return false
  if (env['FORCE_COLOR']) return !['0', 'false'].includes(env['FORCE_COLOR'])
  return !env['NO_COLOR'] && env['TERM'] !== 'dumb' && stream.isTerminal
}
