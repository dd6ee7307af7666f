/*
 * Says what is wrong with a settings file that `parseSettings` did not accept. A start with valid
 * settings does not load this file, because it loads zod.
 */
import { isUtf8 } from 'node:buffer'
import { locateSyntaxError } from '../plant/json-syntax.js'
import { findSettingsProblems } from './settings-schema.js'
import { decodeSettings, parseJsonText } from './settings-text.js'

/** A person corrects one value after the other, so more sentences would not help. */
const maxProblems = 5

/** Says why settings are not accepted, such as `invalid: version must be 1`. */
export function explainInvalidSettings(bytes: Buffer): string {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const json = decodeSettings(bytes)
  const value = parseJsonText(json)
  // Only the position is shown: a description would quote the settings, which may contain a token.
  if (value === undefined) return `not JSON (${locateSyntaxError(json)})`
  return `invalid: ${findSettingsProblems(value).slice(0, maxProblems).join('; ')}`
}
