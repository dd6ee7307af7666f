import { shorten } from '../../platform/escape.js'
import type { BadCell, Cell } from './chunk.js'
import { trimWhiteSpace } from './text.js'
import type { PostedCell } from './workbook-thread.js'

/** A text without white space around it, a number in plain digits, a date in ISO 8601. */
export function cellOf(posted: PostedCell, isFrom1904: boolean): Cell {
  const isPlain = posted === null || typeof posted !== 'object' || posted instanceof Date
  const { value, type, format = '' } = isPlain ? { value: posted } : posted
  const shows = format === '' ? undefined : shownBy(format)
  if (type === 'formula') return unsavedFormula
  if (value === null) return undefined
  if (value instanceof Date)
    return dateOf((value.getTime() - Date.UTC(1904)) / msPerDay, shows, isFrom1904)
  if (typeof value === 'number') return numberOf(value, shows)
  const text = typeof value === 'boolean' ? String(value).toUpperCase() : trimWhiteSpace(value)
  if (type === 'error') return { text, reason: `has the error ${shorten(text)}` }
  const serial = shows === 'date' || shows === 'elapsed' ? serialOf(text, isFrom1904) : undefined
  return serial === undefined ? text || undefined : dateOf(serial, shows, isFrom1904)
}

const unsavedFormula: BadCell = {
  text: '',
  reason:
    'is a formula without a saved value. Open the workbook in a spreadsheet program, and save it',
}

function numberOf(value: number, shows: Shown | undefined): Cell {
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    return {
      text: String(value),
      reason: 'is a number above 2^53, which has lost digits. Format it as text',
    }
  const digits = plainDigits(value)
  if (shows !== 'exponent') return digits
  return {
    text: value.toExponential().toUpperCase(),
    reason: `is ${digits}, shown with an exponent, as spreadsheets make of a text like 1E3. Format it as text`,
    digits,
  }
}

function plainDigits(value: number): string {
  const text = String(value)
  const { sign, first, others = '', exponent } = exponential.exec(text)?.groups ?? {}
  return exponent === undefined
    ? text
    : `${sign}0.${'0'.repeat(Number(exponent) - 1)}${first}${others}`
}

/** Of what is written to one digit before the point, and below 1. */
const exponential = /^(?<sign>-?)(?<first>\d)(?:\.(?<others>\d+))?e-(?<exponent>\d+)$/

/** ISO 8601, without a day or a time that there is not; elapsed time in hours. */
function dateOf(serial: number, shows: Shown | undefined, isFrom1904: boolean): Cell {
  const time =
    Math.round((epochOf(isFrom1904) + dayOf(serial, isFrom1904) * msPerDay) / 1000) * 1000
  if (!(time >= Date.UTC(1800) && time < Date.UTC(10_000)))
    return { text: String(serial), reason: 'is a date that is not in the years 1800 to 9999' }
  if (shows === 'elapsed') return elapsedTime(Math.round(serial * secondsPerDay))
  const [day = '', runtime = ''] = new Date(time).toISOString().slice(0, 19).split('T')
  if (day === (isFrom1904 ? '1904-01-01' : '1899-12-30')) return runtime
  return runtime === '00:00:00' ? day : `${day}T${runtime}`
}

function elapsedTime(seconds: number): string {
  const total = Math.abs(seconds)
  const parts = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60]
  return `${seconds < 0 ? '-' : ''}${parts.map((part) => String(part).padStart(2, '0')).join(':')}`
}

const secondsPerDay = 86_400
const msPerDay = 86_400_000

function epochOf(isFrom1904: boolean): number {
  return isFrom1904 ? Date.UTC(1904) : Date.UTC(1899, 11, 31)
}

/** Lotus 1-2-3 took 1900 for a leap year, so that 60 is no day, and 61 is 1900-03-01. */
function dayOf(serial: number, isFrom1904: boolean): number {
  return isFrom1904 || (serial >= 1 && serial < 60) ? serial : serial - 1
}

/** Of a date, a time, or both, in ISO 8601. Undefined for anything else. */
function serialOf(text: string, isFrom1904: boolean): number | undefined {
  const groups = isoDate.exec(text)?.groups
  const { date, time = '00:00' } = groups ?? {}
  const milliseconds = groups ? Date.parse(`${date ?? '1970-01-01'}T${time}Z`) : Number.NaN
  if (Number.isNaN(milliseconds)) return undefined
  if (date === undefined) return milliseconds / msPerDay
  if (!new Date(milliseconds).toISOString().startsWith(date)) return undefined // such as February 30
  const days = (milliseconds - epochOf(isFrom1904)) / msPerDay
  return isFrom1904 || (days >= 0 && days < 60) ? days : days + 1
}

const isoDate =
  /^(?=T?\d)(?<date>\d{4}-\d\d-\d\d)?(?:T?(?<time>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?Z?$/

/** What a number is by the format of its cell, if it is more than a number. */
export type Shown = 'exponent' | 'date' | 'elapsed'

/**
 * By the code of a format (ECMA-376, part 1, 18.8.31), without regard to texts, escaped characters, conditions and
 * colours.
 */
function shownBy(code: string): Shown | undefined {
  const bare = code.replace(/"[^"]*"|[\\_*]./g, '')
  const plain = bare.replace(/\[[^[\]]*\]/g, '')
  if (/\[(?:h+|m+|s+)\]/i.test(bare)) return 'elapsed'
  // A lone `m` may be a month, or a metre.
  const isDate = plain
    .match(/[a-z]+/gi)
    ?.some((letters) => /^[ymdhs]+$/i.test(letters) && !/^mm?$/i.test(letters))
  if (isDate) return 'date'
  return /E[-+]/i.test(plain) ? 'exponent' : undefined
}

/** What some cell may show by the styles of a workbook; all of it if these are not known. */
export function shownIn(styles: string | undefined): Set<Shown> {
  if (styles === undefined || /&#|CDATA/.test(styles))
    return new Set(['exponent', 'date', 'elapsed'])
  const codes = Array.from(
    styles.matchAll(/formatCode\s*=\s*(?:"([^"]*)"|'([^']*)')/g),
    ([, one, other]) => one ?? other,
  )
  const shown = codes.map((code = '') => shownBy(code.replaceAll('&quot;', '"')))
  const ids = Array.from(
    styles.matchAll(/numFmtId\s*=\s*["'](\d+)/g),
    ([, format = '']) => builtIn[format],
  )
  return new Set([...shown, ...ids].filter((one) => one !== undefined))
}

/** By the ids of formats that a workbook need not describe. */
const builtIn: Partial<Record<string, Shown>> = {
  11: 'exponent',
  48: 'exponent',
  46: 'elapsed',
  ...Object.fromEntries([14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 47].map((id) => [id, 'date'])),
}
