/*
 * Reads the value of a cell as an import needs it: as the text that a person would type.
 *
 * A cell may be displayed otherwise than it is stored: a date is a number of days with a format,
 * and a formula has the value that the spreadsheet computed when it last saved the workbook. Where
 * the stored value is no longer what the person sees, such as an id above 2^53 that has lost
 * digits, the cell gets a reason to be rejected instead of a wrong text.
 */
import type { Cell } from '../chunk.js'
import { spreadsheetError } from '../write.js'
import { DamageError } from './damage.js'
import { formatDate } from './dates.js'
import type { SharedStrings } from './shared-strings.js'
import type { DateKind } from './styles.js'
import { unescapeText } from './texts.js'

/** What the cells of all sheets of a workbook share. */
export interface CellContext {
  sharedStrings: SharedStrings
  /** What a number stands for, by the index of the format that its cell names. */
  dateKinds: readonly DateKind[]
  is1904: boolean
}

/** A cell as it is stored in the file (ECMA-376 part 1, 18.3.1.4). */
export interface RawCell {
  type: string
  format: number
  hasFormula: boolean
  /** The content of the element `v`; undefined if the cell has no such element. */
  value: string | undefined
  /** The content of the element `is`; undefined if the cell has no such element. */
  inlineText: string | undefined
}

/**
 * Converts a cell to its text. The type decides, not the text: `#N/A` is an error only in a cell of
 * type `e`, and in a cell with a text it may be the name of a plant.
 *
 * @throws {DamageError} if the type and the content do not fit together
 */
export function readCell(raw: RawCell, context: CellContext): Cell {
  const { type, value } = raw
  if (raw.hasFormula && !hasSavedValue(raw)) return unsavedFormula
  if (type === 'inlineStr') return readText(raw.inlineText ?? value)
  if (raw.inlineText !== undefined) throw new DamageError('a cell with a text has another type')
  if (type === 'str') return readText(value)
  const trimmed = value?.trim()
  if (type === 'e') return readError(trimmed ?? '')
  if (!trimmed) return undefined
  switch (type) {
    case 's':
      return readSharedText(trimmed, context)
    case 'n':
      return readNumber(trimmed, raw.format, context)
    case 'b':
      return readBoolean(trimmed)
    case 'd':
      return trimmed.replace(/T00:00:00(?:\.0+)?Z?$/, '')
    default:
      throw new DamageError(`a cell has the unknown type ${type}`)
  }
}

/**
 * A program that cannot compute, such as a library that writes workbooks, saves formulas without
 * their values. `=""` has a value, too, which is an empty string; an empty number is none.
 */
function hasSavedValue({ type, value, inlineText }: RawCell): boolean {
  if (type === 'str') return value !== undefined
  return Boolean(value) || inlineText !== undefined
}

function readText(text = ''): Cell {
  return unescapeText(text).trim() || undefined
}

function readSharedText(index: string, { sharedStrings }: CellContext): Cell {
  const text = /^\d{1,9}$/.test(index) ? sharedStrings.get(Number(index)) : undefined
  if (text === undefined) throw new DamageError(`the shared text ${index} is missing`)
  return text.trim() || undefined
}

function readError(code: string): Cell {
  const text = spreadsheetError.test(code) ? code : '#VALUE!'
  return { text, reason: `is the error value ${text}` }
}

function readBoolean(value: string): Cell {
  if (value === '1' || value === 'true') return 'TRUE'
  if (value === '0' || value === 'false') return 'FALSE'
  return { text: '#VALUE!', reason: 'is neither true nor false in the workbook' }
}

/** Writes a number in plain digits, never as `1e21`, and a date in ISO 8601. */
function readNumber(value: string, format: number, context: CellContext): Cell {
  const { dateKinds } = context
  // If the format is unknown, nobody knows whether 45292 is a number or the first day of 2024.
  if (format !== 0 && !(format < dateKinds.length))
    throw new DamageError(`the format of a cell (${format}) is missing`)
  const kind = dateKinds[format]
  if (kind === undefined && plainInteger.test(value)) return value
  if (!anyNumber.test(value))
    return {
      text: '#NUM!',
      reason: 'is not a number, although its cell in the workbook has that type',
    }
  const number = Number(value)
  if (kind === undefined) return formatNumber(number)
  const impossible = { text: '#NUM!', reason: 'is a date that does not exist in the calendar' }
  return formatDate(number, kind, context) ?? impossible
}

function formatNumber(number: number): Cell {
  const text = String(number)
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER)
    return {
      text,
      reason:
        'is a number from 2^53 on, which has lost digits. Format the cell as text, and enter the number again',
    }
  if (!text.includes('e')) return text
  return number.toLocaleString('en', { useGrouping: false, maximumSignificantDigits: 17 })
}

/**
 * The rejects file gets `#N/A` in this cell. An import rejects that again, so that the record is
 * not stored without its value before somebody has corrected it.
 */
const unsavedFormula: Cell = {
  text: '#N/A',
  reason:
    'is unknown because the formula has no saved value: ' +
    'open the workbook in a spreadsheet, and save it',
}

/** An integer of at most 15 digits is what it looks like: a double holds it exactly. */
const plainInteger = /^(?:0|-?[1-9]\d{0,14})$/
/** This is the double of XML Schema, but without NaN and INF, which spreadsheets do not write. */
const anyNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
