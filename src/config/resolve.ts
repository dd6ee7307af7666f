/*
 * Finds the effective value of each setting, where it comes from, and the address of the store.
 * docs/settings.md has the order of the sources.
 */
import { createUsageError, PlantsError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import { findKind, parseAddress } from '../stores/kinds.js'
import {
  getSetting,
  listSettings,
  type SettingName,
  type SettingValue,
  toOptionKey,
  toSettingText,
} from './setting-table.js'
import type { SettingsFile } from './settings-file.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'
import { findSavedStore } from './settings-text.js'
import { isStoreName } from './store-name.js'

export interface SettingSource {
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** Where the value was set, such as `--timeout` or `timeout in /home/…/settings.json`. */
  origin: string
}

/**
 * The methods of a commander command that keep the value and the source of each option. commander
 * has the sources `cli`, `env`, `config` and `default`. This module adds the source `store` for a
 * value that is saved with one store.
 */
export interface OptionValues {
  getOptionValue(key: string): unknown
  getOptionValueSource(key: string): string | undefined
  setOptionValueWithSource(key: string, value: unknown, source: string): unknown
}

interface SettingSources {
  /** The options of the command line and the variables of the environment. */
  optionValues: OptionValues
  io: Io
  file: SettingsFile
}

/**
 * The settings that are in effect. A setting has the value of the first source that gives one: the
 * option, the environment variable, the saved store, the settings that are saved for all stores,
 * and the default.
 *
 * commander knows the options and the variables already, so the constructor adds the saved values.
 * It adds the settings of a saved store only if the user chose the store by its saved name, because
 * the token command of the store must not run for another address.
 */
export class EffectiveSettings {
  readonly file: SettingsFile
  /** The saved name of the store; undefined if it was chosen by its address, or is `local`. */
  readonly storeName: string | undefined
  readonly #values: OptionValues
  readonly #io: Io

  constructor({ optionValues, io, file }: SettingSources) {
    this.file = file
    this.#values = optionValues
    this.#io = io
    const { savedSettings } = file
    // The settings for all stores come first, because one of them may name the store.
    for (const name of listSettings('user'))
      this.#addSavedValue(name, savedSettings[name], 'config')
    const name = this.getValue('store') ?? ''
    const store = isStoreName(name) ? findSavedStore(savedSettings, name) : undefined
    this.storeName = store && name
    for (const name of listSettings('store')) this.#addSavedValue(name, store?.[name], 'store')
  }

  #addSavedValue(
    name: SettingName,
    value: string | boolean | undefined,
    source: 'config' | 'store',
  ) {
    const key = toOptionKey(name)
    const isOverridden = ['cli', 'env'].includes(this.#values.getOptionValueSource(key) ?? '')
    if (value !== undefined && !isOverridden)
      this.#values.setOptionValueWithSource(key, value, source)
  }

  /** Finds the value of a setting, not parsed yet, with its source. */
  findSource(name: SettingName): SettingSource {
    const { storeName } = this
    const { path } = this.file
    const { variable = '', default: defaultValue } = getSetting(name)
    const key = toOptionKey(name)
    const value = toSettingText(this.#values.getOptionValue(key))
    switch (this.#values.getOptionValueSource(key)) {
      case 'cli':
        return { value, source: 'flag', origin: `--${name}` }
      case 'env':
        return { value, source: 'variable', origin: variable }
      case 'store':
        return { value, source: 'store', origin: `stores.${storeName}.${name} in ${path}` }
      case 'config':
        return { value, source: 'saved', origin: `${name} in ${path}` }
      default: {
        const defaultText = typeof defaultValue === 'string' ? defaultValue : undefined
        return { value: defaultText, source: 'default', origin: 'default' }
      }
    }
  }

  /** @throws {PlantsError} `usage` for an invalid value */
  getValue<Name extends SettingName>(name: Name): SettingValue<Name> | undefined {
    const { value, origin, source } = this.findSource(name)
    if (value === undefined) return undefined
    try {
      // SettingValue is the type that the parser of this setting returns.
      return getSetting(name).parse(origin, value) as SettingValue<Name>
    } catch (error) {
      if (source === 'store') throw addChangeHint(error, formatReplaceStore(this.storeName))
      throw source === 'saved' ? addChangeHint(error, `plants config set ${name} VALUE`) : error
    }
  }

  /** @throws {PlantsError} `usage` for an unknown store */
  findAddress(): Promise<Address> {
    return this.resolveStore(this.findSource('store'))
  }

  /**
   * Finds the address of a store by its name or its address.
   *
   * @throws {PlantsError} `usage` for an unknown store
   */
  async resolveStore({ value = 'local', origin, source }: SettingSource): Promise<Address> {
    const { savedSettings, path } = this.file
    const isArgument = source === 'flag'
    const isName = isStoreName(value)
    const hint = source === 'saved' ? chooseStoreHint : undefined
    const addressOrigin = isName ? `stores.${value}.address in ${path}` : origin
    const address = isName ? getSavedStore(value, savedSettings, { origin, hint }).address : value
    try {
      return await resolveAddress(address, addressOrigin, this.#io, {
        isArgument: isArgument && !isName,
      })
    } catch (error) {
      if (isName) throw addChangeHint(error, formatReplaceStore(value))
      throw source === 'saved' ? addChangeHint(error, 'plants config set store ADDRESS') : error
    }
  }
}

const chooseStoreHint = 'Choose another store with: plants stores use NAME'

function formatReplaceStore(name: string | undefined): string {
  return `plants stores add ${name} ADDRESS --replace`
}

/** The hint for a wrong value that is saved is the command that changes it. */
function addChangeHint(error: unknown, command: string): unknown {
  if (!(error instanceof PlantsError)) return error
  const { kind, message, cause } = error
  return new PlantsError(kind, message, { hint: `Change it with: ${command}`, cause })
}

/**
 * Parses an address. A relative path, and the variables of libpq, are those of this process.
 *
 * @param origin where the address comes from. Messages say this instead of the address, which may
 *   contain a password.
 * @param isArgument whether the address is on the command line, where other users can see a
 *   password
 */
export function resolveAddress(
  storeValue: string,
  origin: string,
  io: Io,
  { isArgument = false, env = io.env } = {},
): Promise<Address> {
  const { resolvePath, findUserName, secrets } = io
  const findDataFolder = async () =>
    env['PLANTS_DATA_DIR'] ? resolvePath(env['PLANTS_DATA_DIR']) : io.findDataFolder()
  return parseAddress(storeValue, origin, {
    resolvePath,
    findDataFolder,
    env,
    findUserName,
    secrets,
    isArgument,
  })
}

/**
 * Formats the setting `store` for output: a saved name stays unchanged, an address loses its
 * password, and any other string becomes `***`, because it may be a token.
 */
export async function formatStore(
  storeValue: string,
  io: Io,
  saved: SavedSettings = { version: 1 },
): Promise<string> {
  if (storeValue === 'local' || (isStoreName(storeValue) && findSavedStore(saved, storeValue)))
    return storeValue
  try {
    // The variables are left out, because a wrong PGPORT would hide an address that is correct.
    const address = await resolveAddress(storeValue, '', io, { env: {} })
    const mayHavePassword = findKind(address).credential === 'password'
    return mayHavePassword ? address.name : storeValue
  } catch (error) {
    if (error instanceof PlantsError) return '***'
    throw error
  }
}

/**
 * Lists the saved stores. An entry whose key is not the name of a store is left out, because no
 * command line can name it.
 */
export function listNamedStores({
  stores = {},
}: SavedSettings): [name: string, store: SavedStore][] {
  return Object.entries(stores).filter(([name]) => isStoreName(name))
}

/**
 * @param options.origin where a value comes from that may also be the path of a file
 * @param options.hint what to do, if it is not to list the saved stores
 * @throws {PlantsError} `usage` for an unknown store. The message repeats the name only if it is a
 *   plain word, because somebody may have pasted a token instead of it.
 */
export function getSavedStore(
  name: string,
  saved: SavedSettings,
  { origin, hint }: { origin?: string; hint?: string | undefined } = {},
): SavedStore {
  const store = findSavedStore(saved, name)
  if (store) return store
  const namePart = isPlainWord(name) ? `: ${name}` : ''
  throw createUsageError(
    `${origin ?? 'The argument'} is not the name of a saved store${namePart}`,
    hint ?? 'List the saved stores with: plants stores list',
  )
}
