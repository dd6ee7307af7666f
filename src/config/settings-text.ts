import { isUtf8 } from 'node:buffer'
import { isObject, isString } from '../plant/json.js'
import { getSetting, listSettings, type Scope } from './setting-table.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'

/**
 * Parses the settings without zod, because every start reads them, and zod takes longer to load
 * than the rest of the program.
 *
 * @returns undefined for an invalid file, whose problems `explainInvalidSettings` describes
 */
export function parseSettings(bytes: Buffer): SavedSettings | undefined {
  const value = isUtf8(bytes) ? parseJsonText(decodeSettings(bytes)) : undefined
  return isSavedSettings(value) ? value : undefined
}

/** Returns the parsed JSON, or undefined for a string that is not JSON. */
export function parseJsonText(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Decodes the settings without the byte order mark, with which editors of Windows begin a file. */
export function decodeSettings(bytes: Buffer): string {
  return bytes.toString().replace(/^\uFEFF/, '')
}

/** Returns true for the same values as `settingsSchema` accepts, which a test checks. */
export function isSavedSettings(value: unknown): value is SavedSettings {
  if (!isObject(value) || value['version'] !== 1 || !hasSettings(value, 'user')) return false
  const { stores, tokens } = value
  return (
    isSection(stores, (store) => isString(store['address']) && hasSettings(store, 'store')) &&
    isSection(tokens, ({ token, savedAt }) => isString(token) && isString(savedAt))
  )
}

function hasSettings(values: Record<string, unknown>, scope: Scope): boolean {
  return listSettings(scope).every((name) => {
    const value = values[name]
    return (
      value === undefined || typeof value === (getSetting(name).isSwitch ? 'boolean' : 'string')
    )
  })
}

function isSection(
  section: unknown,
  isEntry: (entry: Record<string, unknown>) => boolean,
): boolean {
  if (section === undefined) return true
  if (!isObject(section) || Object.hasOwn(section, '__proto__')) return false
  return Object.values(section).every((entry) => isObject(entry) && isEntry(entry))
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
