/*
 * Finds the effective value of each setting, where it comes from, and the address of the store.
 * docs/settings.md has the order of the sources.
 */
import { createUsageError, PlantsError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { type Address, addressForms } from '../stores/address.js'
import { parseAddress } from '../stores/kinds.js'
import {
  getSetting,
  type SettingName,
  type SettingValue,
  toOptionKey,
  toSettingText,
} from './setting-table.js'
import type { SettingsFile } from './settings-file.js'
import {
  findSavedStore,
  isStoreName,
  type SavedSettings,
  type SavedStore,
} from './settings-schema.js'

export interface SettingSource {
  value: string | undefined
  source: 'flag' | 'variable' | 'store' | 'saved' | 'default'
  /** Where the value was set, such as `--timeout` or `timeout in /home/…/settings.json`. */
  origin: string
}

/**
 * The settings that are in effect. A setting has the value of the first place that gives one: the
 * option, the environment variable, the saved store, the settings that are saved for all stores,
 * and the default. The settings of a saved store count only if the user chose the store by its
 * saved name, because the token command of the store must not run for another address.
 */
export class EffectiveSettings {
  readonly file: SettingsFile
  /** The saved name of the store; undefined if it was chosen by its address, or is `local`. */
  readonly storeName: string | undefined
  readonly #options: object
  readonly #io: Io

  /** @param sources.options those of the command line, by commander's names, such as `caCert` */
  constructor({ options, io, file }: { options: object; io: Io; file: SettingsFile }) {
    this.file = file
    this.#options = options
    this.#io = io
    const name = this.getValue('store') ?? ''
    this.storeName =
      isStoreName(name) && findSavedStore(file.savedSettings, name) ? name : undefined
  }

  /** Finds the value of a setting, not parsed yet, with its source. */
  findSource(name: SettingName): SettingSource {
    const { storeName } = this
    const { savedSettings, path } = this.file
    const { default: defaultValue, variable = '', scopes } = getSetting(name)
    const store = storeName === undefined ? undefined : findSavedStore(savedSettings, storeName)
    const option = Reflect.get(this.#options, toOptionKey(name))
    const places = [
      { value: option, source: 'flag', origin: `--${name}` },
      { value: this.#readVariable(variable), source: 'variable', origin: variable },
      { value: store?.[name], source: 'store', origin: `stores.${storeName}.${name} in ${path}` },
      {
        // A setting of one store, such as its token command, must not apply to all of them.
        value: scopes.includes('user') ? savedSettings[name] : undefined,
        source: 'saved',
        origin: `${name} in ${path}`,
      },
    ] as const
    for (const { value, source, origin } of places) {
      const text = toSettingText(value)
      if (text !== undefined) return { value: text, source, origin }
    }
    const value = typeof defaultValue === 'string' ? defaultValue : undefined
    return { value, source: 'default', origin: 'default' }
  }

  /** An empty PLANTS_STORE is an error, because otherwise the default store would be changed. */
  #readVariable(variable: string): string | undefined {
    const text = this.#io.env[variable]?.trim()
    return variable === 'PLANTS_STORE' ? text : text || undefined
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

  /** How long to wait for a store or the settings, in milliseconds. */
  get timeoutMs(): number {
    return this.getValue('timeout') ?? 0
  }

  /**
   * @param setting the name or the address of a store; by default, that of the setting `store`
   * @throws {PlantsError} `usage` for an unknown store
   */
  async findAddress(setting: SettingSource = this.findSource('store')): Promise<Address> {
    const { value = 'local', origin, source } = setting
    const { savedSettings, path } = this.file
    const isArgument = source === 'flag'
    const isName = isStoreName(value)
    const nameSource = {
      origin: isArgument ? undefined : origin,
      hint: source === 'saved' ? chooseStoreHint : addressForms,
    }
    const addressOrigin = isName ? `stores.${value}.address in ${path}` : origin
    const address = isName ? getSavedStore(value, savedSettings, nameSource).address : value
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
    return 'password' in address ? address.name : storeValue
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
 * @param options.origin where the name comes from, unless it is an argument of this command line
 * @param options.hint what to do, if it is not to list the saved stores
 * @throws {PlantsError} `usage` for an unknown store. The message repeats the name only if it is a
 *   plain word, because somebody may have pasted a token instead of it.
 */
export function getSavedStore(
  name: string,
  saved: SavedSettings,
  {
    origin,
    hint = 'List the saved stores with: plants stores list',
  }: { origin?: string | undefined; hint?: string | undefined } = {},
): SavedStore {
  const store = findSavedStore(saved, name)
  if (store) return store
  const subject = origin === undefined ? 'No saved store' : `${origin} names a store, but none`
  throw createUsageError(`${subject} is called ${isPlainWord(name) ? name : 'that'}`, hint)
}
