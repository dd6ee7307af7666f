/*
 * Says what is wrong with a settings file that `parseSettings` did not accept. A start with valid
 * settings does not load this file, because it loads zod.
 */
import { isUtf8 } from 'node:buffer'
import { findSettingsProblems } from './settings-schema.js'
import { decodeSettings, parseJsonText } from './settings-text.js'

/** A person corrects one value after the other, so more sentences would not help. */
const maxProblems = 5

/** Says why settings are not accepted, such as `invalid: version must be 1`. */
export function explainInvalidSettings(bytes: Buffer): string {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const json = decodeSettings(bytes)
  const value = parseJsonText(json)
  if (value === undefined) return `not JSON (${locateJsonError(json)})`
  return `invalid: ${findSettingsProblems(value).slice(0, maxProblems).join('; ')}`
}

/**
 * Finds where the settings stop being JSON, such as `line 2, column 5`. The messages of V8 usually
 * name the position, and the messages of other engines never do. The message itself is not shown,
 * because it quotes the settings, which may contain a token.
 */
function locateJsonError(json: string): string {
  const position = readPosition(json)
  if (position === undefined) return `line ${findUnreadableLine(json)}`
  const lines = json.slice(0, position).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
}

function readPosition(json: string): number | undefined {
  try {
    JSON.parse(json)
    return undefined
  } catch (error) {
    const digits = / at position (?<digits>\d+)/.exec(String(error))?.groups?.['digits']
    return digits === undefined ? undefined : Number(digits)
  }
}

/**
 * Returns the number of the line, from 1 on, in which the settings stop being the beginning of
 * JSON. For settings that only end too early, this is the last line.
 */
function findUnreadableLine(json: string): number {
  const lines = json.trimEnd().split('\n')
  const index = lines.findIndex(
    (_, lastIndex) => !isJsonBeginning(lines.slice(0, lastIndex + 1).join('\n')),
  )
  return (index === -1 ? lines.length - 1 : index) + 1
}

/**
 * Returns true if lines can be the beginning of JSON. `{"stores": {"garden":` is such a beginning,
 * because it becomes JSON with a value and the brackets `}}`. Strings are left out first, because
 * they may contain brackets.
 */
function isJsonBeginning(json: string): boolean {
  const closers: string[] = []
  for (const bracket of json.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[[\]{}]/g) ?? []) {
    if (bracket === '{') closers.unshift('}')
    else if (bracket === '[') closers.unshift(']')
    else closers.shift()
  }
  const beginning = json.trimEnd()
  const completedBeginning = beginning.endsWith(':')
    ? `${beginning}null`
    : beginning.replace(/,$/, '')
  return (
    completedBeginning === '' || parseJsonText(completedBeginning + closers.join('')) !== undefined
  )
}
