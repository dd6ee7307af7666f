import type { Cell } from '../chunk.js'
import { spreadsheetError } from '../write.js'
import { DamageError } from './damage.js'
import { formatDate } from './dates.js'
import type { SharedStrings } from './shared-strings.js'
import type { DateKind } from './styles.js'
import { unescapeText } from './texts.js'

/** What a workbook knows about the cells of all its sheets. */
export interface CellContext {
  sharedStrings: SharedStrings
  /** By the index of the format that a cell names. */
  dateKinds: readonly DateKind[]
  is1904: boolean
}

/** A cell as it is in the file (ECMA-376 part 1, 18.3.1.4). */
export interface RawCell {
  type: string
  format: number
  hasFormula: boolean
  /** The content of `v`. Undefined if there is none. */
  value: string | undefined
  /** The content of `is`. Undefined if there is none. */
  inlineText: string | undefined
}

/** Reads a cell by its type: only a cell of the type of errors has an error. */
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

/** The value of a formula may be an empty text, but not an empty number. */
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

/** A number has plain digits, and a date is in ISO 8601. */
function readNumber(value: string, format: number, context: CellContext): Cell {
  const { dateKinds } = context
  // Without its format, a date would be a number.
  if (format !== 0 && !(format < dateKinds.length))
    throw new DamageError(`the format of a cell (${format}) is missing`)
  const kind = dateKinds[format]
  if (kind === undefined && plainInteger.test(value)) return value
  if (!anyNumber.test(value))
    return { text: '#NUM!', reason: 'is not a number in the workbook, although its cell says so' }
  const number = Number(value)
  if (kind === undefined) return formatNumber(number)
  const impossible = { text: '#NUM!', reason: 'is a date that does not exist in the calendar' }
  return formatDate(number, kind, context) ?? impossible
}

function formatNumber(number: number): Cell {
  const text = String(number)
  if (Math.abs(number) > Number.MAX_SAFE_INTEGER)
    return { text, reason: 'is a number above 2^53, which has lost digits. Format it as text' }
  if (!text.includes('e')) return text
  return number.toLocaleString('en', { useGrouping: false, maximumSignificantDigits: 17 })
}

/** A rejects file gets an error, which an import rejects again until it is corrected. */
const unsavedFormula: Cell = {
  text: '#N/A',
  reason:
    'is unknown because the formula has no saved value: ' +
    'open the workbook in a spreadsheet, and save it',
}

const plainInteger = /^(?:0|-?[1-9]\d{0,14})$/
/** A double of XML Schema, without NaN and INF, which spreadsheets do not write. */
const anyNumber = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i
