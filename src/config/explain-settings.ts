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
  const text = decodeSettings(bytes)
  const value = parseJsonText(text)
  if (value === undefined) return `not JSON (${locateJsonError(text)})`
  return `invalid: ${findSettingsProblems(value).slice(0, maxProblems).join('; ')}`
}

/**
 * Finds where the text stops being JSON, such as `line 2, column 5`. V8's messages usually name the
 * position, and those of other engines never do. The message itself is not shown, because it quotes
 * the text, which may be a token.
 */
function locateJsonError(text: string): string {
  const position = readPosition(text)
  if (position === undefined) return `line ${findUnreadableLine(text)}`
  const lines = text.slice(0, position).split('\n')
  return `line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
}

function readPosition(text: string): number | undefined {
  try {
    JSON.parse(text)
    return undefined
  } catch (error) {
    const digits = / at position (?<digits>\d+)/.exec(String(error))?.groups?.['digits']
    return digits === undefined ? undefined : Number(digits)
  }
}

/**
 * Returns the number of the line in which the text stops being the beginning of JSON. For a text
 * that only ends too early, this is its last line.
 */
function findUnreadableLine(text: string): number {
  const lines = text.trimEnd().split('\n')
  const index = lines.findIndex(
    (_, lastIndex) => !isJsonBeginning(lines.slice(0, lastIndex + 1).join('\n')),
  )
  return (index === -1 ? lines.length - 1 : index) + 1
}

/**
 * Whether the first lines of a text can be the beginning of JSON: `{"stores": {"garden":` is one,
 * because it becomes JSON with a value and the brackets `}}`. Strings are left out first, because
 * they may contain brackets.
 */
function isJsonBeginning(text: string): boolean {
  const closers: string[] = []
  for (const bracket of text.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[[\]{}]/g) ?? []) {
    if (bracket === '{') closers.unshift('}')
    else if (bracket === '[') closers.unshift(']')
    else closers.shift()
  }
  const beginning = text.trimEnd()
  const completedBeginning = beginning.endsWith(':')
    ? `${beginning}null`
    : beginning.replace(/,$/, '')
  return (
    completedBeginning === '' || parseJsonText(completedBeginning + closers.join('')) !== undefined
  )
}
