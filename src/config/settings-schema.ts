/*
 * The shape of the settings file. Every start checks it, so it is checked without zod, which takes
 * longer to load than the rest of the program.
 */
import { isObject, isString } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { getSetting, listSettings, type Scope, type SettingName } from './setting-table.js'
import { isStoreName } from './store-name.js'

// Unknown keys are accepted everywhere, and stay in the file: a newer version may have written
// them.
type SavedValues = { [name in SettingName]?: string | boolean }

export type SavedStore = SavedValues & { address: string }

/** The settings file. Stores are keyed by name, tokens by the address of their store. */
export type SavedSettings = SavedValues & {
  version: 1
  stores?: Record<string, SavedStore>
  tokens?: Record<string, { token: string; savedAt: string }>
}

type Fields = Record<string, unknown>

export function isSavedSettings(value: unknown): value is SavedSettings {
  return findSettingsProblems(value).length === 0
}

/** Returns a sentence for each invalid value, without the value, which may be a token. */
export function findSettingsProblems(value: unknown): string[] {
  if (!isObject(value)) return ['the document must be an object']
  // A file of another version may have another shape, so only its version is reported.
  if (value['version'] !== 1) return ['version must be 1']
  return [
    ...findValueProblems(value, 'user', ''),
    ...findSectionProblems(value, 'stores', isStoreName, (store, path) => [
      ...findStringProblems(store, ['address'], path),
      ...findValueProblems(store, 'store', path),
    ]),
    ...findSectionProblems(value, 'tokens', isLoginAddress, (token, path) =>
      findStringProblems(token, ['token', 'savedAt'], path),
    ),
  ]
}

/** Checks the settings that can be saved for all stores, or with one store. */
function findValueProblems(fields: Fields, scope: Scope, path: string): string[] {
  const savedNames = listSettings(scope).filter((name) => fields[name] !== undefined)
  return savedNames.flatMap((name) => {
    if (!getSetting(name).isSwitch) return findStringProblems(fields, [name], path)
    return typeof fields[name] === 'boolean' ? [] : [`${path}${name} must be true or false`]
  })
}

function findStringProblems(fields: Fields, names: readonly string[], path: string): string[] {
  return names
    .filter((name) => !isString(fields[name]))
    .map((name) => `${path}${name} must be a string`)
}

/**
 * Checks the entries of `stores` or `tokens`. A key that is neither the name of a store nor the
 * address of a service may be a token that was pasted in the wrong place: it becomes `***`.
 */
function findSectionProblems(
  settings: Fields,
  section: 'stores' | 'tokens',
  isKey: (key: string) => boolean,
  findEntryProblems: (entry: Fields, path: string) => string[],
): string[] {
  const entries = settings[section]
  if (entries === undefined) return []
  if (!isObject(entries)) return [`${section} must be an object`]
  if (Object.hasOwn(entries, '__proto__')) return [`${section} must not have the key __proto__`]
  return Object.entries(entries).flatMap(([key, entry]) => {
    const path = `${section}.${isKey(key) ? key : '***'}`
    return isObject(entry) ? findEntryProblems(entry, `${path}.`) : [`${path} must be an object`]
  })
}
