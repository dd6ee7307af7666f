/*
 * Parses the settings file. Every start does, so its shape is checked without zod, which takes longer
 * to load than the rest of the program.
 */
import { isUtf8 } from 'node:buffer'
import { isObject, isString } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { getSetting, listSettings, type Scope, type SettingName } from './setting-table.js'

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

/** A person corrects one value after the other, so more sentences would not help. */
const maxProblems = 5

/** @returns undefined for an invalid file, which `explainInvalidSettings` explains */
export function parseSettings(bytes: Buffer): SavedSettings | undefined {
  const value = isUtf8(bytes) ? parseJsonText(decodeSettings(bytes)) : undefined
  return isSavedSettings(value) ? value : undefined
}

/** Says why settings are not accepted, such as `invalid: version must be 1`. */
export async function explainInvalidSettings(bytes: Buffer): Promise<string> {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const json = decodeSettings(bytes)
  const value = parseJsonText(json)
  if (value !== undefined)
    return `invalid: ${findSettingsProblems(value).slice(0, maxProblems).join('; ')}`
  // Only the position is shown: a description would quote the settings, which may contain a token.
  const { locateSyntaxError } = await import('../plant/json-syntax.js')
  return `not JSON (${locateSyntaxError(json)})`
}

/** Returns the parsed JSON, or undefined for a string that is not JSON. */
function parseJsonText(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Decodes the settings without the byte order mark, with which editors of Windows begin a file. */
function decodeSettings(bytes: Buffer): string {
  return bytes.toString().replace(/^\uFEFF/, '')
}

function isSavedSettings(value: unknown): value is SavedSettings {
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

/**
 * Finds a saved store. A name such as `constructor` finds none, although every object inherits such
 * a property.
 */
export function findSavedStore(
  { stores = {} }: SavedSettings,
  name: string,
): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}

/**
 * Returns true for a string that can be the name of a saved store. Wherever an address is expected,
 * such a string is a name: `--store garden` means the saved store, and a file of that name is
 * `./garden`. `local` is the default store, so nothing can be saved under it.
 */
export function isStoreName(value: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(value) && value !== 'local'
}
