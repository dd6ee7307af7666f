import { readSettings, type SettingsFile, savedStore } from '../config/file.js'
import {
  failureOf,
  findOrigin,
  isStoreName,
  namedStore,
  type Origin,
  parsed,
  presetOrigin,
  resolveStore,
  shownValue,
} from '../config/resolve.js'
import { presetOf, settingNames, settingsTable } from '../config/table.js'
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
interface Looking {
  /** the name or the address of another store than the one of this run, to be looked at besides */
  other?: string
  /** the settings file, where it was read already */
  file?: SettingsFile
  /** leaves out what is saved and wrong, for the commands that can put it right */
  isMending?: boolean
  /** leaves out what is wrong in the file and in the environment, and says nothing of it: `doctor` does */
  isChecking?: boolean
}

/**
 * Finds out what this run goes by.
 *
 * @throws {PlantsError} `malformed` for a value that a setting cannot have, and for a settings file that is broken
 */
export async function resolveSettings(
  flags: GlobalFlags,
  io: Io,
  { other, isChecking = false, file: known }: Looking = {},
): Promise<Settings> {
  const file = known ?? (await readSettings(io))
  const chosen = other === undefined ? findOrigin('store', { flags, io, file }) : namedStore(other)
  const { store, storeName } = await resolveStore(chosen, file, io)
  const origins = settingNames.map((name) =>
    name === 'store' ? chosen : findOrigin(name, { flags, io, file, storeName, isOther: other !== undefined }),
  )
  const usable = usableOrigins(origins, { isChecking })
  const preferences = { ...preferencesFrom(usable, flags, file, io), origins }
  const settings: Settings = {
    ...preferences,
    store,
    storeName,
    storeFlag: flagOf(other ?? flags.store),
    isOfRun: other === undefined,
    allowHttp: parsed('allow-http', usable, settingsTable['allow-http'].parse) ?? false,
    caCert: parsed('ca-cert', usable, (source, text) => ({ path: io.resolvePath(parseText(source, text)), source })),
    tokenCommand: parsed('token-command', usable, settingsTable['token-command'].parse),
    opening: storeOptions(
      () => settings,
      parsed('allow-async-commit', usable, settingsTable['allow-async-commit'].parse) ?? false,
      preferences.timeout,
      io,
    ),
  }
  if (settings.isOfRun && !isChecking) await tell(settings, io)
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
  { isMending = false, isChecking = false, file: known }: Looking = {},
): Promise<Preferences> {
  const file = known ?? (await readSettings(io))
  const { value = '' } = findOrigin('store', { flags, io, file })
  const storeName = isStoreName(value) && savedStore(file.saved, value) ? value : undefined
  const origins = settingNames.map((name) => findOrigin(name, { flags, io, file, storeName }))
  const usable = usableOrigins(origins, { isMending, isChecking })
  const preferences = { ...preferencesFrom(usable, flags, file, io), origins }
  if (!isChecking) await tell(preferences, io)
  return preferences
}

function flagOf(store: string | undefined): string {
  return store === undefined ? '' : ` --store${store.startsWith('-') ? '=' : ' '}${shellWord(store)}`
}

function usableOrigins(origins: Origin[], { isMending = false, isChecking = false }: Looking): Origin[] {
  const mayBeWrong = ({ source, key }: Origin) => (isMending && key !== undefined) || (isChecking && source !== 'flag')
  return origins.map((origin) => (mayBeWrong(origin) && failureOf(origin) ? presetOrigin(origin.name) : origin))
}

/** milliseconds that others may take who are changing the settings */
export const usualPatience = 30_000

/** Whether a value was given for this run alone. */
function isOfRun({ source }: Origin): boolean {
  return source === 'flag' || source === 'variable'
}

function preferencesFrom(origins: Origin[], flags: GlobalFlags, file: SettingsFile, io: Io): Preferences {
  const output = parsed('output', origins, settingsTable.output.parse)
  const errors = output ?? 'text'
  const colors = (stream: Output) => mayColor(stream, flags, io)
  return {
    output: output ?? (io.stdout.isTerminal ? 'text' : 'json'),
    errors,
    timeout: parsed('timeout', origins, settingsTable.timeout.parse) ?? 0,
    patience: parsed('timeout', origins.filter(isOfRun), settingsTable.timeout.parse) ?? usualPatience,
    isVerbose: flags.verbose === true,
    mayAsk: () => flags.input !== false && io.stdin.isTerminal && io.stderr.isTerminal,
    colors,
    warn: (text) => warn(io, text, { errors, colors }),
    origins,
    file,
  }
}

async function tell(preferences: Preferences, io: Io): Promise<void> {
  for (const { what, command } of preferences.file.complaints) await warn(io, `${what}. Mend it with: ${command}`, preferences)
  if (!preferences.isVerbose) return
  const { traceSettings } = await import('../output/trace.js')
  const settings = preferences.origins.map(({ name, value, source, place }) => ({
    name,
    value: shownValue(value),
    fallback: presetOf(name),
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
    const origin = findOrigin('output', { flags: given === undefined ? {} : { output: given }, io, file })
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
