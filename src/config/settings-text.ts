import { isUtf8 } from 'node:buffer'
import {
  findSettingsProblems,
  isSavedSettings,
  type SavedSettings,
  type SavedStore,
} from './settings-schema.js'

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
