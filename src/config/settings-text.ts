import { isUtf8 } from 'node:buffer'
import { isObject } from '../plant/json.js'
import { getSetting, listSettings, type Scope } from './setting-table.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'

/** Next to the settings while they are changed. Empty, it stands for no file. */
export function toCopyPath(settingsPath: string): string {
  return `${settingsPath}.copy`
}

/** Of the file that is locked while settings are changed. It stays. */
export function toLockPath(settingsPath: string): string {
  return `${settingsPath}.lock`
}

/**
 * Undefined for an invalid file: `explainInvalidSettings` says why. Every start reads the file,
 * so it is accepted without zod, which takes longer to load than all the rest.
 */
export function parseSettings(bytes: Buffer): SavedSettings | undefined {
  const value = isUtf8(bytes) ? parseJsonText(decodeSettings(bytes)) : undefined
  return isSavedSettings(value) ? value : undefined
}

/** Undefined for what is not JSON. */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Without a byte order mark, which editors of Windows write. */
export function decodeSettings(bytes: Buffer): string {
  return bytes.toString().replace(/^\uFEFF/, '')
}

/** Accepts what `settingsSchema` accepts. */
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

function isString(value: unknown): boolean {
  return typeof value === 'string'
}

/** A name may also be that of a property that every object inherits. */
export function findSavedStore(
  { stores = {} }: SavedSettings,
  name: string,
): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}
