import { PlantsError, shellWord } from './errors.js'
import { type GlobalFlags, parseText } from './flags.js'
import type { Io, Output } from './io.js'
import { warn } from './output.js'
import { shorten } from './plant.js'
import { readSettings, type SavedSettings, type SettingsFile } from './settings/file.js'
import { type SettingName, settingNames, settingsTable } from './settings/table.js'
import { parseAddress } from './stores/open.js'
import type { Access, Address, OpenOptions, RemoteAddress } from './stores/store.js'

/** What a run goes by, whatever store it uses. */
export interface Preferences {
  /** how answers look: sentences for people, JSON for programs */
  output: 'text' | 'json'
  /** how errors and warnings look; JSON only when it was asked for */
  errors: 'text' | 'json'
  /** milliseconds that a store, or a file that others are changing, may take */
  timeout: number
  /** whether to tell what is done, and why */
  isVerbose: boolean
  /** whether somebody is there to answer questions */
  mayAsk(): boolean
  /** whether to colour what goes to this stream */
  colors(stream: Output): boolean
  /** every setting, and where its value came from */
  origins: Origin[]
  file: SettingsFile
}

/** What a run goes by: flag > environment > what is saved with the store > what is saved for the user > default. */
export interface Settings extends Preferences {
  store: Address
  /** the name that the store was saved under, where it was called by it */
  storeName: string | undefined
  /** what a command in a hint needs to mean this store, such as " --store ./garden.db"; empty when it does without */
  storeFlag: string
  /** whether it is the store of this run, for which PLANTS_TOKEN is, and not another one that is looked at */
  isOfRun: boolean
  allowHttp: boolean
  /** absolute path of a file of PEM certificates, and where it was named */
  caCert: { path: string; source: string } | undefined
  tokenCommand: string | undefined
  /** what it takes to open the store */
  opening: OpenOptions
}

/** A value that a setting has. */
export interface Origin {
  name: SettingName
  /** as it was given, or the default, if there is one */
  value: string | undefined
  source: Source
  /** the source in words, as messages name it: `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json` */
  place: string
  /** what `plants config` calls it, where it is saved */
  key: string | undefined
}

export type Source = 'flag' | 'variable' | 'store' | 'saved' | 'default'

/**
 * Finds out what this run goes by.
 *
 * @param other the name or the address of another store than the one of this run, to be looked at besides
 * @throws {PlantsError} `malformed` for a value that a setting cannot have, and for a settings file that is broken
 */
export async function resolveSettings(flags: GlobalFlags, io: Io, other?: string): Promise<Settings> {
  const file = await load(io)
  const chosen = other === undefined ? find('store', { flags, io, file }) : named(other)
  const { store, storeName } = await resolveStore(chosen, file, io)
  const origins = settingNames.map((name) => (name === 'store' ? chosen : find(name, { flags, io, file, storeName })))
  const preferences = preferencesFrom(origins, flags, file, io)
  let access: Promise<Access> | undefined
  const settings: Settings = {
    ...preferences,
    ...{ store, storeName },
    storeFlag: flagOf(other ?? flags.store),
    isOfRun: other === undefined,
    allowHttp: parsed('allow-http', origins, settingsTable['allow-http'].parse) ?? false,
    caCert: parsed('ca-cert', origins, (source, text) => ({ path: io.resolvePath(parseText(source, text)), source })),
    tokenCommand: parsed('token-command', origins, settingsTable['token-command'].parse),
    opening: {
      timeout: preferences.timeout,
      clock: io,
      access: async (address: RemoteAddress) => {
        const { accessTo } = await import('./access.js')
        access ??= accessTo(address, settings, io) // a token command runs once
        return access
      },
    },
  }
  if (settings.isOfRun) await tell(settings, io)
  return settings
}

/**
 * Finds out what a run goes by that uses no store. Throws as `resolveSettings` does.
 *
 * @param options.isMending leaves out what is saved and wrong, for the commands that can put it right
 */
export async function resolvePreferences(flags: GlobalFlags, io: Io, { isMending = false } = {}): Promise<Preferences> {
  const file = await load(io)
  const { value = '' } = find('store', { flags, io, file })
  const storeName = isStoreName(value) && Object.hasOwn(file.saved.stores ?? {}, value) ? value : undefined
  const origins = settingNames.map((name) => find(name, { flags, io, file, storeName }))
  const usable = isMending ? origins.filter(isUsable) : origins
  const preferences = { ...preferencesFrom(usable, flags, file, io), origins }
  await tell(preferences, io)
  return preferences
}

function preferencesFrom(origins: Origin[], flags: GlobalFlags, file: SettingsFile, io: Io): Preferences {
  const output = parsed('output', origins, settingsTable.output.parse)
  return {
    output: output ?? (io.stdout.isTerminal ? 'text' : 'json'),
    errors: output ?? 'text',
    timeout: parsed('timeout', origins, settingsTable.timeout.parse) ?? 0,
    isVerbose: flags.verbose === true,
    mayAsk: () => flags.input !== false && io.stdin.isTerminal && io.stderr.isTerminal,
    colors: (stream) => mayColor(stream, flags, io),
    ...{ origins, file },
  }
}

async function tell(preferences: Preferences, io: Io): Promise<void> {
  for (const complaint of preferences.file.complaints) await warn(io, complaint, preferences)
  if (preferences.isVerbose) (await import('./trace.js')).traceSettings(preferences, io)
}

/** Reads the settings file. What may be a secret is hidden before anything can be said about it. */
async function load(io: Io): Promise<SettingsFile> {
  hideTokens(io)
  return readSettings(io)
}

function hideTokens({ env, secrets }: Io): void {
  for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN']) {
    const token = env[name]?.trim()
    if (token) secrets.add(token)
  }
}

interface Sources {
  flags: GlobalFlags
  io: Io
  file: SettingsFile
  storeName?: string | undefined
}

/** The value of a setting from the first place that has one. */
function find(name: SettingName, { flags, io, file: { saved, path }, storeName }: Sources): Origin {
  const { flag, variable, scopes, preset } = settingsTable[name]
  const given = flagValue(name, flags)
  if (given !== undefined && flag !== undefined) return { name, value: given, source: 'flag', place: flag, key: undefined }
  const inVariable = variable === undefined ? undefined : io.env[variable]
  if (inVariable && variable !== undefined) return { name, value: inVariable, source: 'variable', place: variable, key: undefined }
  const ofStore = scopes.includes('store') && storeName !== undefined ? textOf(saved.stores?.[storeName]?.[name]) : undefined
  const key = `stores.${storeName}.${name}`
  if (ofStore !== undefined) return { name, value: ofStore, source: 'store', place: `${key} in ${path}`, key }
  const ofUser = scopes.includes('user') ? textOf(saved[name]) : undefined
  if (ofUser !== undefined) return { name, value: ofUser, source: 'saved', place: `${name} in ${path}`, key: name }
  return { name, value: typeof preset === 'string' ? preset : undefined, source: 'default', place: 'default', key: undefined }
}

function flagValue(name: SettingName, { store, output, timeout, caCert, allowHttp }: GlobalFlags): string | undefined {
  return textOf({ store, output, timeout, 'ca-cert': caCert, 'allow-http': allowHttp, 'token-command': undefined }[name])
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'boolean' ? String(value) : undefined
}

/** The place of a store that was not given as a setting. */
const askedFor = 'The store'

/** The origin of another store than the one of this run, which somebody has named. */
function named(value: string): Origin {
  return { name: 'store', value, source: 'flag', place: askedFor, key: undefined }
}

function isUsable({ name, value, place, key }: Origin): boolean {
  try {
    if (key !== undefined && value !== undefined) settingsTable[name].parse(place, value)
    return true
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return false
  }
}

/** What a setting was given, or its default, if it has one. */
function parsed<Value>(name: SettingName, origins: Origin[], parse: (source: string, text: string) => Value): Value | undefined {
  const origin = origins.find((candidate) => candidate.name === name)
  if (origin?.value === undefined) return undefined
  const { place, value, key } = origin
  try {
    return parse(place, value)
  } catch (error) {
    if (!(error instanceof PlantsError) || key === undefined) throw error
    const hint = `Change it: plants config set ${key} VALUE. Or forget it: plants config unset ${key}`
    throw new PlantsError('malformed', error.message, { hint, cause: error })
  }
}

async function resolveStore(
  origin: Origin,
  { saved, path }: SettingsFile,
  io: Io,
): Promise<{ store: Address; storeName: string | undefined }> {
  const { value = 'local', place } = origin
  if (!isStoreName(value)) return { store: await parseAddress(value, place, placesOf(io)), storeName: undefined }
  const known = Object.hasOwn(saved.stores ?? {}, value) ? saved.stores?.[value] : undefined
  if (!known) throw await unknownStore(value, saved, origin)
  return { store: await parseAddress(known.address, `stores.${value}.address in ${path}`, placesOf(io)), storeName: value }
}

/** Where addresses lead to that are no absolute paths. */
export function placesOf({ env, resolvePath, dataFolder }: Io): Parameters<typeof parseAddress>[2] {
  return { resolvePath, dataFolder: async () => (env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : dataFolder()) }
}

/** Whether a word can be the name of a store; any other is an address. */
export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** The error for a name that no store was saved under, and for what has named it, if that is not seen anyway. */
export async function unknownStore(name: string, { stores = {} }: SavedSettings, origin?: Origin): Promise<PlantsError> {
  const { nearest } = await import('./nearest.js')
  const names = Object.keys(stores)
  const guess = nearest(name, [...names, 'local'])
  const known = names.length === 0 ? '' : `Saved are: ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}. `
  const word = isStoreName(name) ? name : 'NAME'
  const hint =
    origin?.key !== undefined
      ? `${known}Choose another: plants stores use ${names[0] ?? 'local'}`
      : guess
        ? `Did you mean ${guess}?`
        : `${known}Save it with: plants stores add ${word} ADDRESS. For a file called so: ./${word}`
  const place = origin === undefined || origin.place === askedFor ? '' : `, which ${origin.place} names`
  return new PlantsError('malformed', `There is no store called ${JSON.stringify(shorten(name))}${place}`, { hint })
}

function flagOf(store: string | undefined): string {
  return store === undefined ? '' : ` --store${store.startsWith('-') ? '=' : ' '}${shellWord(store)}`
}

/**
 * How errors look, for an error that came before the settings were known, or because of them.
 *
 * @param given what `--output` says
 */
export async function errorFormat(given: string | undefined, io: Io): Promise<'text' | 'json'> {
  try {
    const file = await load(io)
    const origin = find('output', { flags: given === undefined ? {} : { output: given }, io, file })
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
