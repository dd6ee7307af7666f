import { PlantsError } from './errors.js'
import { parseInt64 } from './json.js'
import { idRule, shorten } from './plant.js'

/** The flags that every command takes, as commander gives them. */
export interface GlobalFlags {
  store?: string
  output?: string
  timeout?: string
  /** false after `--no-input` */
  input?: boolean
  /** false after `--no-color` */
  color?: boolean
}

/** Reads an id in JSON's number grammar, for the flag or argument that has this name. */
export function parseId(name: string, text: string): bigint {
  const id = parseInt64(text)
  if (id === undefined) throw refuse(name, idRule, text, '1')
  return id
}

/** Reads a whole number from 1 to 2^53 - 1. */
export function parseCount(flag: string, text: string): number {
  const count = /^[1-9]\d{0,15}$/.test(text) ? parseInt(text, 10) : Number.NaN
  if (!Number.isSafeInteger(count)) throw refuse(flag, 'a whole number from 1 to 9007199254740991', text, '10')
  return count
}

/** Reads a duration such as `30s`, `500ms`, `2m` or `1.5` (seconds), in milliseconds. */
export function parseDuration(flag: string, text: string): number {
  const [, amount = '', unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text) ?? []
  if (amount === '') throw refuse(flag, 'a duration such as 30s, 500ms or 2m', text, '30s')
  return parseFloat(amount) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit] ?? 0)
}

export function parseOutput(flag: string, text: string): 'text' | 'json' {
  if (text !== 'text' && text !== 'json') throw refuse(flag, 'text or json', text, 'json')
  return text
}

function refuse(name: string, rule: string, text: string, example: string): PlantsError {
  const message = `${name} must be ${rule}, but was ${JSON.stringify(shorten(text))}`
  return new PlantsError('malformed', message, { hint: `For example: ${name.startsWith('-') ? `${name} ` : ''}${example}` })
}
