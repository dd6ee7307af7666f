/*
 * Converts a cell to the string that a person would type into a CSV file.
 *
 * A cell may be displayed otherwise than it is stored: a date is stored as a number of days with a
 * format, and a formula with the value that the spreadsheet computed when it last saved the
 * workbook. A stored value may differ from what the person has typed: an id above 2^53 has lost
 * digits. Such a cell gets the reason for which its record is rejected.
 */
import { type Cell, UnusableCell } from '../reader.js'
import { spreadsheetError } from '../write.js'
import { DamageError } from './damage.js'
import { formatDate } from './dates.js'
import type { DateKind } from './styles.js'
import { unescapeString } from './texts.js'

/** What the cells of all sheets of a workbook share. */
export interface CellContext {
  sharedStrings: readonly string[]
  /** The kind of date that a number is, by the index of the format that the cell has. */
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
  inlineString: string | undefined
}

/**
 * Converts a cell to a string. The type of the cell decides what its value means: `#N/A` is an
 * error in a cell of type `e`, and may be the name of a plant in a cell of type `s`.
 *
 * @throws {DamageError} if the type and the content do not fit together
 */
export function readCell(raw: RawCell, context: CellContext): Cell {
  const { type, value } = raw
  if (raw.hasFormula && !hasSavedValue(raw)) return unsavedFormula
  if (type === 'inlineStr' ? value : raw.inlineString !== undefined)
    throw new DamageError('the content of a cell does not fit its type')
  if (type === 'inlineStr') return readString(raw.inlineString)
  if (type === 'str') return readString(value)
  const trimmedValue = value?.trim()
  if (type === 'e') return readError(trimmedValue ?? '')
  if (!trimmedValue) return undefined
  switch (type) {
    case 's':
      return readSharedString(trimmedValue, context)
    case 'n':
      return readNumber(trimmedValue, raw.format, context)
    case 'b':
      return readBoolean(trimmedValue)
    case 'd':
      return trimmedValue.replace(/T00:00:00(?:\.0+)?Z?$/, '')
    default:
      throw new DamageError(`a cell has the unknown type ${type}`)
  }
}

/**
 * Whether the cell of a formula has a value. A program that cannot compute, such as a library that
 * writes workbooks, saves formulas without values. An empty string is a value, as of `=""`, but an
 * empty number is not.
 */
function hasSavedValue({ type, value, inlineString }: RawCell): boolean {
  if (type === 'str') return value !== undefined
  return Boolean(value) || inlineString !== undefined
}

function readString(escapedString = ''): Cell {
  return unescapeString(escapedString).trim() || undefined
}

function readSharedString(index: string, { sharedStrings }: CellContext): Cell {
  const string = /^\d{1,9}$/.test(index) ? sharedStrings[Number(index)] : undefined
  if (string === undefined) throw new DamageError(`the shared string ${index} is missing`)
  return string.trim() || undefined
}

export function readError(code: string): Cell {
  const text = spreadsheetError.test(code) ? code : '#VALUE!'
  return new UnusableCell(text, `is the error value ${text}`)
}

export function readBoolean(value: string): Cell {
  if (value === '1' || value === 'true') return 'TRUE'
  if (value === '0' || value === 'false') return 'FALSE'
  return new UnusableCell('#VALUE!', 'is neither true nor false in the workbook')
}

function readNumber(value: string, format: number, context: CellContext): Cell {
  const { dateKinds } = context
  // If the format is unknown, nobody knows whether 45292 is a number or the first day of 2024.
  if (format !== 0 && !(format < dateKinds.length))
    throw new DamageError(`the format of a cell (${format}) is missing`)
  const kind = dateKinds[format]
  if (kind === undefined) return readPlainNumber(value)
  if (!anyNumber.test(value)) return notANumber
  return formatDate(Number(value), kind, context) ?? impossibleDate
}

/** Formats a number in plain digits, never as `1e21`. */
export function readPlainNumber(value: string): Cell {
  if (plainInteger.test(value)) return value
  if (!anyNumber.test(value)) return notANumber
  const number = Number(value)
  // LibreOffice saves 15 digits of a number from 2^53 on: 2^53 is 9.00719925474099E+015.
  const isRounded = /e/i.test(value) && Math.abs(number) >= 9_007_199_254_740_990
  if (isRounded || Math.abs(number) > Number.MAX_SAFE_INTEGER)
    // Plain digits would look like an id, and the rejects file could be imported with a wrong id.
    return new UnusableCell(
      number.toExponential().toUpperCase(),
      'is a number from 2^53 on, which has lost digits. Format the cell as text, and enter the number again',
    )
  const text = String(number)
  if (!text.includes('e')) return text
  return number.toLocaleString('en', { useGrouping: false, maximumSignificantDigits: 17 })
}

const notANumber = new UnusableCell(
  '#NUM!',
  'is not a number, although its cell in the workbook has that type',
)

export const impossibleDate = new UnusableCell(
  '#NUM!',
  'is a date that does not exist in the calendar',
)

/**
 * The rejects file has `#N/A` for such a cell. An import of the rejects file rejects `#N/A` again,
 * so the record is not stored before somebody has entered the value.
 */
export const unsavedFormula = new UnusableCell(
  '#N/A',
  'is unknown because the formula has no saved value',
  true,
)

/** Matches an integer of at most 15 digits, which a double represents exactly. */
const plainInteger = /^(?:0|-?[1-9]\d{0,14})$/
/** Matches a double of XML Schema, except NaN and INF, which spreadsheets do not write. */
const anyNumber = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i
