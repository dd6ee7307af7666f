/*
 * Parsers of the values of options, environment variables and saved settings. A parser receives the
 * origin of the value, such as `--limit`, for the error of a wrong one.
 */
import { createUsageError, fileHint, finalSlashProblem } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'

/**
 * Creates the parser of an option whose value is a whole number from `min` to `max`.
 *
 * @param noun what the error calls the number, such as `a port`
 */
export function createNumberParser(noun: string, min: number, max: number, example: string) {
  return (origin: string, rawValue: string): number => {
    // With more than 16 digits, no number is a safe integer.
    const number = /^(?:0|[1-9]\d{0,15})$/.test(rawValue) ? parseInt(rawValue, 10) : Number.NaN
    if (number >= min && number <= max) return number
    throw createValueError(origin, `${noun} from ${min} to ${max}`, rawValue, example)
  }
}

/** Parses the value of an option that has no limit by default, such as --limit. */
export const parseCount = createNumberParser('a whole number', 1, Number.MAX_SAFE_INTEGER, '10')

/**
 * Creates the parser of an option whose value is a duration, such as `30s`, `90d` or `1.5`. The
 * parser returns milliseconds.
 *
 * @param rule what the error says of a valid value, such as `a duration from 0 to 1h`
 * @param minMs the shortest valid duration
 * @param maxMs the longest valid duration
 * @param defaultUnit the unit of a number without one; with "", a unit is required
 */
export function createDurationParser(
  rule: string,
  minMs: number,
  maxMs: number,
  example: string,
  defaultUnit = 's',
) {
  return (origin: string, rawValue: string): number => {
    const { amount = '', unit = defaultUnit } = durationPattern.exec(rawValue)?.groups ?? {}
    const milliseconds = Math.round(parseFloat(amount) * (msPerUnit[unit] ?? Number.NaN))
    if (milliseconds >= minMs && milliseconds <= maxMs) return milliseconds
    throw createValueError(origin, rule, rawValue, example)
  }
}

const durationPattern = /^(?<amount>\d{1,9}(?:\.\d{1,3})?)(?<unit>ms|s|m|h|d)?$/

const msPerUnit: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `setTimeout` takes at most 2^31 - 1 ms, which are 24.8 days. A longer time would be 1 ms. */
const longestTimeoutMs = 24 * 86_400_000
const timeoutRule = 'a duration such as 500ms, 30s or 2m, up to 24d'
export const parseTimeout = createDurationParser(timeoutRule, 0, longestTimeoutMs, '30s')

export const outputFormats = ['text', 'json', 'ndjson', 'csv', 'tsv'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** The formats of commands that print no plants. */
export const commonFormats: readonly OutputFormat[] = ['text', 'json', 'ndjson']

export function parseOutput(
  origin: string,
  rawValue: string,
  formats: readonly OutputFormat[] = outputFormats,
): OutputFormat {
  const namesFile = /[./\\]|^(?:excel|xlsx?|ods)$/i.test(rawValue)
  const hint = namesFile ? 'To write plants to a file: plants export plants.xlsx' : undefined
  return parseChoice(origin, rawValue, formats, hint)
}

/** Returns true if the output consists of JSON values: one document, or one value for each line. */
export function isJson(format: string | undefined): boolean {
  return format === 'json' || format === 'ndjson'
}

export function parseSwitch(origin: string, rawValue: string): boolean {
  const lowerCaseText = rawValue.toLowerCase()
  if (['1', 'true', 'yes', 'on'].includes(lowerCaseText)) return true
  if (['0', 'false', 'no', 'off'].includes(lowerCaseText)) return false
  throw createValueError(origin, 'true or false', rawValue)
}

/**
 * Returns the value, which must not be empty. An unset variable of a shell leaves an empty value,
 * and `--store "$UNSET"` must not change the default store.
 */
export function parseNonEmptyString(origin: string, rawValue: string): string {
  const isOption = origin.startsWith('-')
  const hint = isOption ? 'Give a value, or leave the option out' : 'Give a value, or remove it'
  if (rawValue === '') throw createUsageError(`${origin} is empty`, hint)
  if (rawValue.includes('\0'))
    throw createUsageError(`${origin} contains U+0000`, 'Remove that character')
  return rawValue
}

/**
 * Returns the path of a file. A path that ends in a slash would otherwise become a file of the name
 * before it.
 */
export function parseFilePath(origin: string, rawValue: string): string {
  if (rawValue.endsWith('/')) throw createUsageError(`${origin} ${finalSlashProblem}`, fileHint)
  return parseNonEmptyString(origin, rawValue)
}

export function parseChoice<Choice extends string>(
  origin: string,
  rawValue: string,
  choices: readonly Choice[],
  hint?: string,
): Choice {
  const choice = findChoice(choices, rawValue)
  if (choice !== undefined) return choice
  const rule = choices.length === 1 ? choices.join() : `one of ${choices.join(', ')}`
  throw createUsageError(createValueError(origin, rule, rawValue).message, hint)
}

/** Finds the choice that a value names, in upper or lower case. */
export function findChoice<Choice extends string>(
  choices: readonly Choice[],
  rawValue: string | undefined,
): Choice | undefined {
  const lowerCaseText = rawValue?.toLowerCase()
  return choices.find((choice) => choice === lowerCaseText)
}

/**
 * Creates the error of a wrong value: `--port must be a port from 0 to 65535, but was "high"`, with
 * the hint `For example: --port 4010`.
 *
 * @param origin the option, variable or argument that has the value
 * @param example a valid value; a sentence about the option may follow it
 */
export function createValueError(origin: string, rule: string, rawValue: string, example?: string) {
  const message = `${origin} must be ${rule}${isPlainWord(rawValue) ? `, but was "${rawValue}"` : ''}`
  const option = origin.startsWith('-') ? `${origin} ` : ''
  return createUsageError(message, example && `For example: ${option}${example}`)
}
