import { PlantsError, usageError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/common/address.js'
import { parseAddress } from '../stores/registry.js'
import {
  optionValue,
  type SettingName,
  type SettingValue,
  settingOf,
  textOf,
} from './setting-table.js'
import {
  isStoreName,
  type SavedSettings,
  type SavedStore,
  type SettingsFile,
  savedStore,
} from './settings-file.js'

export interface SettingSource {
  name: SettingName
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** As messages name it: `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json`. */
  place: string
  /** Of a saved value: the command that changes it, and the one that removes it. */
  fix?: string
}

/** The settings that widen trust: where a token may be sent, and which database is accepted. */
const trust: readonly SettingName[] = ['ca-cert', 'allow-http']

interface Sources {
  options: object
  io: Io
  file: SettingsFile
  /** A store in place of that of the run. */
  other?: string
  /** Whether an invalid value, but not of an option, counts as the default. */
  ignoresInvalid?: boolean
}

/** The settings of a run, and where they are from: option > environment > store > user > default. */
export class EffectiveSettings {
  readonly file: SettingsFile
  /** The saved name of the store, if it is named by it. */
  readonly storeName: string | undefined
  /** False for another store than that of the run, for which PLANTS_TOKEN and PGPASSWORD are not. */
  readonly isOfRun: boolean
  readonly #sources: Sources
  readonly #store: SettingSource

  constructor(sources: Sources) {
    const { file, other } = sources
    this.#sources = sources
    this.file = file
    this.isOfRun = other === undefined
    this.#store = this.isOfRun
      ? this.#find('store')
      : { name: 'store', value: other, source: 'saved', place: 'the settings' }
    const { value = '' } = this.#store
    this.storeName = isStoreName(value) && savedStore(file.saved, value) ? value : undefined
  }

  source(name: SettingName): SettingSource {
    return name === 'store' ? this.#store : this.#find(name)
  }

  /** @throws {PlantsError} `usage` for an invalid value */
  value<Name extends SettingName>(name: Name): SettingValue<Name> | undefined {
    const found = this.source(name)
    try {
      return parseSetting(found) as SettingValue<Name> | undefined // as its entry of the table parses it
    } catch (error) {
      if (
        !this.#sources.ignoresInvalid ||
        found.source === 'flag' ||
        !(error instanceof PlantsError)
      )
        throw error
      return parseSetting(defaultSource(name)) as SettingValue<Name> | undefined // the same
    }
  }

  /** @throws {PlantsError} `usage` for an unknown store */
  async address(): Promise<Address> {
    const { value = 'local', place, source } = this.#store
    const { io, file } = this.#sources
    if (!isStoreName(value))
      return resolveAddress(value, place, io, { isArgument: source === 'flag' })
    const { address } = knownStore(value, file.saved, this.#store)
    return resolveAddress(address, `stores.${value}.address in ${file.path}`, io)
  }

  #find(name: SettingName): SettingSource {
    const { storeName, isOfRun } = this
    const { options, io, file } = this.#sources
    const { saved, path } = file
    const { flags, variable = '', scopes } = settingOf(name)
    const inVariable = (name === 'store' ? io.env[variable]?.trim() : io.env[variable]) || undefined
    const ofRun: Omit<SettingSource, 'name'>[] = [
      { value: flags && textOf(optionValue(name, options)), source: 'flag', place: `--${name}` },
      { value: inVariable, source: 'variable', place: variable },
    ]
    const store =
      storeName !== undefined && scopes.includes('store') ? savedStore(saved, storeName) : undefined
    const kept: typeof ofRun = [
      {
        value: textOf(store?.[name]),
        source: 'store',
        place: `stores.${storeName}.${name} in ${path}`,
        fix: `plants stores set ${storeName} --${name} VALUE. Or remove it: plants stores set ${storeName} --no-${name}`,
      },
      {
        value: scopes.includes('user') ? textOf(saved[name]) : undefined,
        source: 'saved',
        place: `${name} in ${path}`,
        fix: `plants config set ${name} VALUE. Or remove it: plants config unset ${name}`,
      },
    ]
    const sources = !isOfRun && trust.includes(name) ? kept : [...ofRun, ...kept]
    const found = sources.find(({ value }) => value !== undefined)
    return found ? { name, ...found } : defaultSource(name)
  }
}

function defaultSource(name: SettingName): SettingSource {
  const { default: preset } = settingOf(name)
  return {
    name,
    value: typeof preset === 'string' ? preset : undefined,
    source: 'default',
    place: 'default',
  }
}

/** @throws {PlantsError} `usage`, with the command that changes what is saved */
function parseSetting(setting: SettingSource): unknown {
  const { name, value, place, fix } = setting
  try {
    return value === undefined ? undefined : settingOf(name).parse(place, value)
  } catch (error) {
    if (!(error instanceof PlantsError) || fix === undefined) throw error
    throw usageError(error.message, `Change it: ${fix}`, error)
  }
}

export function resolveAddress(
  text: string,
  place: string,
  io: Io,
  { isArgument = false } = {},
): Promise<Address> {
  const { env, resolvePath, userName, secrets } = io
  const dataFolder = async () =>
    env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : io.dataFolder()
  return parseAddress(text, place, { resolvePath, dataFolder, env, userName, secrets, isArgument })
}

/** A name as it is, an address without its user and parameters, and `***` for what is neither. */
export async function shownStore(
  text: string,
  io: Io,
  { isResolved = false } = {},
): Promise<string> {
  if (text === 'local' || isStoreName(text)) return text
  try {
    const address = await resolveAddress(text, '', { ...io, env: {} }) // what is wrong with the environment is not shown here
    return isResolved || address.scheme === 'postgres' ? address.name : text
  } catch (error) {
    if (error instanceof PlantsError) return '***'
    throw error
  }
}

/** Leaves out entries whose key cannot be the name of a store. */
export function namedStores({ stores = {} }: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

/**
 * Throws `usage` for an unknown store.
 *
 * @param setting where the name is from, unless it is an argument
 */
export function knownStore(
  name: string,
  saved: SavedSettings,
  setting?: SettingSource,
): SavedStore {
  const store = savedStore(saved, name)
  if (store) return store
  const place = setting === undefined ? '' : ` (from ${setting.place})`
  const names = namedStores(saved).map(([known]) => known)
  const known =
    names.length === 0
      ? 'No store is saved'
      : `The saved stores are: ${names.slice(0, 10).join(', ')}`
  const advice =
    setting?.fix === undefined
      ? `For a file with that name: ./${name}`
      : 'Choose another: plants stores use local'
  // What cannot be a name is not repeated: it may be an address with its password.
  const named = isStoreName(name) ? `named ${JSON.stringify(shorten(name))}` : 'of this name'
  throw usageError(
    `There is no store ${named}${place}`,
    setting === undefined ? known : `${known}. ${advice}`,
  )
}
