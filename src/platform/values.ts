import { PlantsError } from './errors.js'
import { shorten } from './escape.js'

/** What a value can be, where shells can complete it: one of some words, or of what is called so. */
export type Values = readonly string[] | 'file' | 'store' | 'saved-store' | 'setting' | 'setting-value'

/** Reads a whole number from 1 to 2^53 - 1. */
export function parseCount(flag: string, text: string): number {
  const count = /^[1-9]\d{0,15}$/.test(text) ? parseInt(text, 10) : Number.NaN
  if (!Number.isSafeInteger(count)) throw invalidValue(flag, 'a whole number from 1 to 9007199254740991', text, '10')
  return count
}

/** Reads a whole number from 1 to 1024. */
export function parseConcurrency(flag: string, text: string): number {
  const count = /^[1-9]\d{0,3}$/.test(text) ? parseInt(text, 10) : Number.NaN
  if (!(count <= 1024)) throw invalidValue(flag, 'a whole number from 1 to 1024', text, '64')
  return count
}

/** Reads a duration from 0 to an hour. */
export function parseRetry(flag: string, text: string): number {
  const milliseconds = durationOf(text)
  if (!(milliseconds <= 3_600_000)) throw invalidValue(flag, 'a duration from 0 to 1h', text, '10s')
  return milliseconds
}

/** Reads a duration up to a hundred years. */
export function parseLife(flag: string, text: string): number {
  const milliseconds = /[a-z]$/.test(text) ? durationOf(text) : Number.NaN // who writes 90 means days, and would get seconds
  if (!(milliseconds >= 1) || milliseconds > 36_525 * 86_400_000)
    throw invalidValue(flag, 'a duration with its unit, such as 90d or 12h, up to 36525d', text, '90d')
  return milliseconds
}

/** Reads a duration that a timer can take: from 1 ms to 24 days. */
export function parseTimer(flag: string, text: string): number {
  const milliseconds = durationOf(text)
  if (!(milliseconds >= 1) || milliseconds > 2_073_600_000) throw invalidValue(flag, 'a duration from 1ms to 24d', text, '30s')
  return milliseconds
}

/** Reads a whole number from 0 to 65535. */
export function parsePort(flag: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? parseInt(text, 10) : Number.NaN
  if (!(port <= 65_535)) throw invalidValue(flag, 'a port from 0 to 65535', text, '4010')
  return port
}

/** Reads a size such as `1MiB`, `16KiB` or `65536`, in bytes. */
export function parseSize(flag: string, text: string): number {
  const [, amount = '', unit = ''] = /^([1-9]\d{0,11})(B|KiB|MiB|GiB)?$/i.exec(text) ?? []
  const bytes = parseInt(amount, 10) * ({ kib: 1024, mib: 1_048_576, gib: 1_073_741_824 }[unit.toLowerCase()] ?? 1)
  if (!(bytes <= 1_073_741_824)) throw invalidValue(flag, 'a size up to 1GiB, such as 1MiB, 16KiB or 65536', text, '1MiB')
  return bytes
}

/** Reads a duration such as `30s`, `500ms`, `2m`, `90d` or `1.5` (seconds), in milliseconds. */
export function parseDuration(flag: string, text: string): number {
  const milliseconds = durationOf(text)
  if (Number.isNaN(milliseconds)) throw invalidValue(flag, 'a duration such as 30s, 500ms or 2m', text, '30s')
  return milliseconds
}

function durationOf(text: string): number {
  const [, amount = '', unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)?$/.exec(text) ?? []
  return Math.round(parseFloat(amount) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit] ?? 0))
}

export function parseOutput(flag: string, text: string): 'text' | 'json' {
  if (text !== 'text' && text !== 'json') throw invalidValue(flag, 'text or json', text, 'json')
  return text
}

/** Reads yes or no, as people write it in a variable. */
export function parseSwitch(name: string, text: string): boolean {
  if (['1', 'true', 'yes', 'on'].includes(text.toLowerCase())) return true
  if (['0', 'false', 'no', 'off'].includes(text.toLowerCase())) return false
  throw invalidValue(name, 'true or false', text, 'true')
}

/** Reads what must not be empty. */
export function parseText(flag: string, text: string): string {
  if (text === '') throw new PlantsError('malformed', `${flag} is empty`, { hint: `Give it a value, or leave it out` })
  if (text.includes('\0')) throw new PlantsError('malformed', `${flag} holds U+0000`, { hint: 'Leave that character out' })
  return text
}

/** Reads the path of a base url: "" or "/v1", without a slash at its end. */
export function parseBasePath(flag: string, text = ''): string {
  const path = text.replace(/\/+$/, '')
  const rule = 'a path that begins with "/" and has only letters, digits, ".", "_", "~" and "-" between its slashes'
  if (!/^(\/[\w.~-]+)*$/.test(path) || /\/\.{1,2}(\/|$)/.test(path)) throw invalidValue(flag, rule, text, '/v1')
  return path
}

export function parseChoice<Word extends string>(flag: string, text: string, words: readonly Word[]): Word {
  const word = words.find((candidate) => candidate === text)
  if (word === undefined) throw invalidValue(flag, `one of ${words.join(', ')}`, text, words[0] ?? '')
  return word
}

export function invalidValue(name: string, rule: string, text: string, example: string): PlantsError {
  const message = `${name} must be ${rule}, but was ${JSON.stringify(shorten(text))}`
  return new PlantsError('malformed', message, { hint: `For example: ${name.startsWith('-') ? `${name} ` : ''}${example}` })
}
