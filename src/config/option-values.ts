import { usageError } from '../errors.js'

/** Creates the parser of an option whose value is a whole number from `min` to `max`. */
export function createNumberParser(what: string, min: number, max: number, example: string) {
  return (flag: string, text: string): number => {
    const number = /^(?:0|[1-9]\d{0,15})$/.test(text) ? parseInt(text, 10) : Number.NaN
    if (number >= min && number <= max) return number
    throw createValueError(flag, `${what} from ${min} to ${max}`, text, example)
  }
}

export const parseCount = createNumberParser('a whole number', 1, Number.MAX_SAFE_INTEGER, '10')

/**
 * Creates the parser of an option whose value is a duration, such as `30s`, `90d` or `1.5`. It
 * returns milliseconds, from `min` to `max`.
 *
 * @param defaultUnit the unit of a number without one; with "", a unit is required
 */
export function createDurationParser(
  rule: string,
  min: number,
  max: number,
  example: string,
  defaultUnit = 's',
) {
  return (flag: string, text: string): number => {
    const { amount = '', unit = defaultUnit } = durationPattern.exec(text)?.groups ?? {}
    const milliseconds = Math.round(parseFloat(amount) * (msPerUnit[unit] ?? Number.NaN))
    if (milliseconds >= min && milliseconds <= max) return milliseconds
    throw createValueError(flag, rule, text, example)
  }
}

const durationPattern = /^(?<amount>\d{1,9}(?:\.\d{1,3})?)(?<unit>ms|s|m|h|d)?$/

const msPerUnit: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A timer cannot wait for longer than 24.8 days. */
const longestTimeoutMs = 24 * 86_400_000
const timeoutRule = 'a duration such as 500ms, 30s or 2m, up to 24d'
export const parseTimeout = createDurationParser(timeoutRule, 0, longestTimeoutMs, '30s')

export const outputFormats = ['text', 'json', 'ndjson', 'csv', 'tsv'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** The formats of commands that print no plants. */
export const commonFormats: readonly OutputFormat[] = ['text', 'json', 'ndjson']

export function parseOutput(
  flag: string,
  text: string,
  formats: readonly OutputFormat[] = outputFormats,
): OutputFormat {
  return parseChoice(flag, text, formats, 'See: plants --help')
}

export function isJson(format: string | undefined): boolean {
  return format === 'json' || format === 'ndjson'
}

export function parseSwitch(name: string, text: string): boolean {
  const word = text.toLowerCase()
  if (['1', 'true', 'yes', 'on'].includes(word)) return true
  if (['0', 'false', 'no', 'off'].includes(word)) return false
  throw createValueError(name, 'true or false', text)
}

export function parseText(flag: string, text: string): string {
  const isOption = flag.startsWith('-')
  const hint = isOption ? 'Give a value, or leave the option out' : 'Give a value, or remove it'
  if (text === '') throw usageError(`${flag} is empty`, hint)
  if (text.includes('\0')) throw usageError(`${flag} contains U+0000`, 'Remove that character')
  return text
}

export function parseChoice<W extends string>(
  flag: string,
  text: string,
  choices: readonly W[],
  hint?: string,
): W {
  const word = findChoice(choices, text)
  if (word !== undefined) return word
  throw usageError(createValueError(flag, `one of ${choices.join(', ')}`, text).message, hint)
}

/** Finds the choice that a text names, in upper or lower case. */
export function findChoice<W extends string>(
  choices: readonly W[],
  text: string | undefined,
): W | undefined {
  const typed = text?.toLowerCase()
  return choices.find((word) => word === typed)
}

export function createValueError(name: string, rule: string, text: string, example?: string) {
  const message = `${name} must be ${rule}${isPlainWord(text) ? `, but was "${text}"` : ''}`
  const option = name.startsWith('-') ? `${name} ` : ''
  return usageError(message, example && `For example: ${option}${example}`)
}

/**
 * Whether a text is a plain word, which an error may repeat. Anything else may be a secret that was
 * typed in the wrong place.
 */
export function isPlainWord(text: string): boolean {
  return /^[a-z-]{1,20}$/i.test(text)
}
