import { malformed, PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/common/address.js'
import { parseAddress } from '../stores/registry.js'
import { type Flags, flagOf, flagValue, type SettingName, settingOf, textOf } from './setting-table.js'
import { type SavedSettings, type SavedStore, type SettingsFile, savedStore } from './settings-file.js'

export interface SettingSource {
  name: SettingName
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** as messages name it: `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json` */
  place: string
  /** the key for `plants config`, if it is saved */
  key?: string | undefined
}

interface Sources {
  flags: Flags
  io: Io
  file: SettingsFile
  storeName?: string | undefined
  /** whether the store is the one of this run: its flags and variables do not widen the trust in other stores */
  isOfRun?: boolean
}

/** The settings that widen trust: where a token may be sent, and which database is accepted. */
const trust: SettingName[] = ['ca-cert', 'allow-http']

/** flag > environment > store > user > default */
export function findSource(
  name: SettingName,
  { flags, io, file: { saved, path }, storeName, isOfRun = true }: Sources,
): SettingSource {
  const { variable = '', scopes } = settingOf(name)
  const flag = flagOf(name)
  const inVariable = (name === 'store' ? io.env[variable]?.trim() : io.env[variable]) || undefined
  const key = `stores.${storeName}.${name}`
  const store = storeName === undefined || !scopes.includes('store') ? undefined : savedStore(saved, storeName)
  const ofUser = scopes.includes('user') ? textOf(saved[name]) : undefined
  const kept: Omit<SettingSource, 'name'>[] = [
    { value: textOf(store?.[name]), source: 'store', place: `${key} in ${path}`, key },
    { value: ofUser, source: 'saved', place: `${name} in ${path}`, key: name },
  ]
  const ofRun: typeof kept = [
    { value: flag && flagValue(name, flags), source: 'flag', place: flag ?? '' },
    { value: inVariable, source: 'variable', place: variable },
  ]
  const sources = !isOfRun && trust.includes(name) ? kept : [...ofRun, ...kept]
  const found = sources.find(({ value }) => value !== undefined)
  return found ? { name, ...found } : defaultSource(name)
}

export function defaultSource(name: SettingName): SettingSource {
  const { default: preset } = settingOf(name)
  const value = typeof preset === 'string' ? preset : undefined
  return { name, value, source: 'default', place: 'default' }
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
    const hint = `Change it: plants config set ${key} VALUE. Or unset it: plants config unset ${key}`
    throw malformed(error.message, hint, error)
  }
}

/** Throws `malformed` for an unknown store. */
export async function resolveStore(setting: SettingSource, { saved, path }: SettingsFile, io: Io): Promise<Address> {
  const { value = 'local', place, source } = setting
  if (!isStoreName(value)) return resolveAddress(value, place, io, { isArgument: source === 'flag' })
  const { address } = await knownStore(value, saved, setting)
  return resolveAddress(address, `stores.${value}.address in ${path}`, io)
}

export function resolveAddress(text: string, place: string, io: Io, { isArgument = false } = {}): Promise<Address> {
  const { env, resolvePath, userName, secrets } = io
  const dataFolder = async () => (env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : io.dataFolder())
  return parseAddress(text, place, { resolvePath, dataFolder, env, userName, secrets, isArgument })
}

/** A name as it is, an address without its user and parameters, and `***` for what is neither. */
export async function shownStore(text: string, io: Io, { isResolved = false } = {}): Promise<string> {
  if (text === 'local' || isStoreName(text)) return text
  try {
    const address = await resolveAddress(text, '', { ...io, env: {} }) // what is wrong with the environment is not shown here
    return isResolved || address.scheme === 'postgres' ? address.name : text
  } catch (error) {
    if (error instanceof PlantsError) return '***'
    throw error
  }
}

export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** Without entries whose key cannot be the name of a store. */
export function namedStores({ stores = {} }: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

/**
 * Throws `malformed` for an unknown store.
 *
 * @param setting where the name is from, unless it is an argument
 */
export async function knownStore(name: string, saved: SavedSettings, setting?: SettingSource): Promise<SavedStore> {
  const store = savedStore(saved, name)
  if (store) return store
  const { similar } = await import('../platform/nearest.js')
  const place = setting === undefined ? '' : ` (from ${setting.place})`
  const message = `There is no store named ${JSON.stringify(shorten(name))}${place}`
  const names = namedStores(saved).map(([known]) => known)
  const [guess] = similar(name, setting === undefined ? names : [...names, 'local'])
  if (guess !== undefined) throw malformed(message, `Did you mean ${guess}?`)
  const known = names.length === 0 ? 'No store is saved' : `The saved stores are: ${names.slice(0, 10).join(', ')}`
  const advice =
    setting?.key === undefined ? `For a file with that name: ./${name}` : 'Choose another: plants stores use local'
  throw malformed(message, setting === undefined ? known : `${known}. ${advice}`)
}
