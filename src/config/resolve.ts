import { PlantsError, usageError } from '../errors.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import { findKind, parseAddress } from '../stores/kinds.js'
import {
  optionValue,
  type SettingName,
  type SettingValue,
  settingOf,
  textOf,
} from './setting-table.js'
import type { SettingsFile } from './settings-file.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'
import { savedStore } from './settings-text.js'
import { isStoreName } from './store-name.js'

export interface SettingSource {
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** Such as `--timeout`, `PLANTS_TIMEOUT`, `timeout in /home/…/settings.json`. */
  place: string
}

/**
 * Option > environment > store > user > default. A run has one store, so that its secrets are for
 * no other.
 */
export class EffectiveSettings {
  readonly file: SettingsFile
  /** The saved name of the store, if it is used. */
  readonly storeName: string | undefined
  readonly #options: object
  readonly #io: Io

  constructor({ options, io, file }: { options: object; io: Io; file: SettingsFile }) {
    this.file = file
    this.#options = options
    this.#io = io
    const store = this.value('store') ?? ''
    this.storeName = isStoreName(store) && savedStore(file.saved, store) ? store : undefined
  }

  source(name: SettingName): SettingSource {
    const { storeName } = this
    const { saved, path } = this.file
    const { flags, variable = '', scopes, default: preset } = settingOf(name)
    const option = flags && optionValue(name, this.#options)
    const given = this.#io.env[variable]?.trim()
    const store = storeName === undefined ? undefined : savedStore(saved, storeName)
    const ofStore = scopes.includes('store') ? store?.[name] : undefined
    const ofUser = scopes.includes('user') ? saved[name] : undefined
    const sources: SettingSource[] = [
      { value: textOf(option), source: 'flag', place: `--${name}` },
      // An empty one is an error for the store: the run would change another store.
      { value: name === 'store' ? given : given || undefined, source: 'variable', place: variable },
      { value: textOf(ofStore), source: 'store', place: `stores.${storeName}.${name} in ${path}` },
      { value: textOf(ofUser), source: 'saved', place: `${name} in ${path}` },
    ]
    const value = typeof preset === 'string' ? preset : undefined
    const found = sources.find((each) => each.value !== undefined)
    return found ?? { value, source: 'default', place: 'default' }
  }

  /** Throws `usage` for an invalid value. */
  value<Name extends SettingName>(name: Name): SettingValue<Name> | undefined {
    const { value, place } = this.source(name)
    if (value === undefined) return undefined
    // The parser in the entry of the setting returns a value of this type.
    return settingOf(name).parse(place, value) as SettingValue<Name>
  }

  /** Throws `usage` for an unknown store. */
  async address({ value = 'local', place, source } = this.source('store')): Promise<Address> {
    const { saved, path } = this.file
    const isArgument = source === 'flag'
    if (!isStoreName(value)) return resolveAddress(value, place, this.#io, { isArgument })
    const { address } = knownStore(value, saved, place)
    return resolveAddress(address, `stores.${value}.address in ${path}`, this.#io)
  }
}

export function resolveAddress(
  text: string,
  place: string,
  io: Io,
  { isArgument = false, env = io.env } = {},
): Promise<Address> {
  const { resolvePath, userName, secrets } = io
  const dataFolder = async () =>
    env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : io.dataFolder()
  return parseAddress(text, place, { resolvePath, dataFolder, env, userName, secrets, isArgument })
}

/** A saved name as it is, an address without its secrets, and `***` for what is neither. */
export async function shownStore(
  text: string,
  io: Io,
  saved: SavedSettings = { version: 1 },
): Promise<string> {
  if (text === 'local' || (isStoreName(text) && savedStore(saved, text))) return text
  try {
    const address = await resolveAddress(text, '', io, { env: {} }) // which may be wrong itself
    const mayHavePassword = findKind(address).credential === 'password'
    return mayHavePassword ? address.name : text
  } catch (error) {
    if (error instanceof PlantsError) return '***'
    throw error
  }
}

/** Leaves out entries whose key cannot be the name of a store. */
export function namedStores({ stores = {} }: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

/** Throws `usage` for an unknown store, without its name: a token may stand in its place. */
export function knownStore(name: string, saved: SavedSettings, place = 'The argument'): SavedStore {
  const store = savedStore(saved, name)
  if (store) return store
  throw usageError(`${place} does not name a saved store`, 'List them with: plants stores list')
}
