import { malformed, PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { type Address, shownAddress } from '../stores/common/address.js'
import { parseAddress } from '../stores/registry.js'
import { type SavedSettings, type SavedStore, type SettingsFile, savedStore } from './file.js'
import { type Flags, flagOf, flagValue, type SettingName, settingOf, textOf } from './table.js'

export interface SettingSource {
  name: SettingName
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** the source as messages name it: `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json` */
  place: string
  /** the key for `plants config`, if it is saved */
  key: string | undefined
}

interface Sources {
  flags: Flags
  io: Io
  file: SettingsFile
  storeName?: string | undefined
  /** whether the store is not the one of this run: the flags and variables of a run do not widen the trust in other stores */
  isOther?: boolean
}

/** The settings that widen trust: where a token may be sent, and which database is accepted. */
const trust: SettingName[] = ['ca-cert', 'allow-http']

/** The value of a setting from the first source that has one: flag > environment > store > user > default. */
export function findSource(name: SettingName, { flags, io, file: { saved, path }, storeName, isOther = false }: Sources): SettingSource {
  const { variable = '', scopes } = settingOf(name)
  const flag = flagOf(name) ?? ''
  const text = io.env[variable]
  const key = `stores.${storeName}.${name}`
  const store = storeName === undefined ? undefined : savedStore(saved, storeName)
  const ofRun: SettingSource[] = [
    { name, value: flag === '' ? undefined : flagValue(name, flags), source: 'flag', place: flag, key: undefined },
    { name, value: (name === 'store' ? text?.trim() : text) || undefined, source: 'variable', place: variable, key: undefined },
  ]
  const kept: SettingSource[] = [
    { name, value: scopes.includes('store') ? textOf(store?.[name]) : undefined, source: 'store', place: `${key} in ${path}`, key },
    { name, value: scopes.includes('user') ? textOf(saved[name]) : undefined, source: 'saved', place: `${name} in ${path}`, key: name },
  ]
  const sources = isOther && trust.includes(name) ? kept : [...ofRun, ...kept]
  return sources.find(({ value }) => value !== undefined) ?? defaultSource(name)
}

export function defaultSource(name: SettingName): SettingSource {
  const { default: value } = settingOf(name)
  return { name, value: typeof value === 'string' ? value : undefined, source: 'default', place: 'default', key: undefined }
}

export function failureOf({ name, value, place }: SettingSource): PlantsError | undefined {
  try {
    if (value !== undefined) settingOf(name).parse(place, value)
    return undefined
  } catch (error) {
    if (error instanceof PlantsError) return error
    throw error
  }
}

/** A value that is safe to show: the password of an address is redacted, even if the address is invalid. */
export function shownValue<Text extends string | undefined>(value: Text): Text | string {
  return value === undefined ? value : shownAddress(value)
}

export function parsed<Value>(
  name: SettingName,
  sources: SettingSource[],
  parse: (source: string, text: string) => Value,
): Value | undefined {
  const setting = sources.find((candidate) => candidate.name === name)
  if (setting?.value === undefined) return undefined
  const { place, value, key } = setting
  try {
    return parse(place, value)
  } catch (error) {
    if (!(error instanceof PlantsError) || key === undefined) throw error
    throw malformed(error.message, `Change it: plants config set ${key} VALUE. Or unset it: plants config unset ${key}`, error)
  }
}

export async function resolveStore(
  { sources, file: { saved, path } }: { sources: SettingSource[]; file: SettingsFile },
  io: Io,
): Promise<{ store: Address; storeName: string | undefined }> {
  const setting = sources.find(({ name }) => name === 'store') ?? defaultSource('store')
  const { value = 'local', place, source } = setting
  if (!isStoreName(value)) return { store: await resolveAddress(value, place, io, { isArgument: source === 'flag' }), storeName: undefined }
  const known = savedStore(saved, value)
  if (!known) throw await unknownStore(value, saved, setting)
  return { store: await resolveAddress(known.address, `stores.${value}.address in ${path}`, io), storeName: value }
}

/** The `place` of a store that is named by an argument, not by a setting. */
const argumentPlace = 'The store'

export function namedStore(value: string): SettingSource {
  return { name: 'store', value, source: 'flag', place: argumentPlace, key: undefined }
}

export function resolveAddress(text: string, place: string, io: Io, { isArgument = false } = {}): Promise<Address> {
  const { env, resolvePath, userName, secrets } = io
  const dataFolder = async () => (env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : io.dataFolder())
  return parseAddress(text, place, { resolvePath, dataFolder, env, userName, secrets, isArgument })
}

/** Whether a word can be the name of a store; otherwise it is an address. */
export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** The saved stores, without entries whose key cannot be the name of a store. */
export function namedStores({ stores = {} }: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

export async function unknownStore(name: string, saved: SavedSettings, setting?: SettingSource): Promise<PlantsError> {
  const place = setting === undefined || setting.place === argumentPlace ? '' : ` (from ${setting.place})`
  const message = `There is no store named ${JSON.stringify(shorten(shownValue(name)))}${place}`
  const names = namedStores(saved).map(([known]) => known)
  const known = names.length === 0 ? '' : `The saved stores are: ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}. `
  if (setting?.key !== undefined)
    return malformed(message, `${known}Choose another: plants stores use ${names.length === 0 ? 'local' : 'NAME'}`)
  const { similar } = await import('../platform/nearest.js')
  const [guess] = similar(name, setting === undefined ? names : [...names, 'local'])
  if (guess !== undefined) return malformed(message, `Did you mean ${guess}?`)
  if (setting === undefined) return malformed(message, `${known}See: plants stores list`)
  return malformed(message, `${known}Save it with: plants stores add ${name} ADDRESS. For a file with that name: ./${name}`)
}
