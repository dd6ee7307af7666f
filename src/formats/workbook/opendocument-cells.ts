/*
 * Converts a cell of an OpenDocument spreadsheet to a string, by the same rules as a cell of an
 * Excel workbook.
 */
import { type Cell, UnusableCell } from '../reader.js'
import { spreadsheetError } from '../write.js'
import { impossibleDate, readBoolean, readError, readPlainNumber, unsavedFormula } from './cells.js'
import { DamageError } from './damage.js'
import { formatXmlDate, formatXmlDuration } from './dates.js'
import type { Attributes } from './xml.js'

/** A cell as it is stored in the file (ISO/IEC 26300-1, 9.1.4). */
export interface OpenDocumentCell {
  attributes: Attributes
  /** What is displayed; undefined if the cell has no paragraph. */
  text: string | undefined
  /** An element of the text that is not read, such as a field. */
  unreadElement: string | undefined
}

/** @throws {DamageError} if the type of the cell is not valid */
export function readOpenDocumentCell(cell: OpenDocumentCell): Cell {
  const { attributes, text } = cell
  const { 'office:value-type': type, 'calcext:value-type': repeatedType = type } = attributes
  if (isError(cell)) return readError(text ?? '')
  // LibreOffice saves the type twice, because the standard has no type for an error, and reads the
  // second one. Of several values, it reads the last.
  const values = valueAttributes.filter((name) => attributes[name] !== undefined)
  if (repeatedType !== type || values.length > 1) throw new DamageError('a cell has two types')
  // LibreOffice saves the empty string of a formula as an empty paragraph without a type.
  if (type === undefined && hasFormula(cell)) return text === '' ? undefined : unsavedFormula
  return type === undefined || type === 'string' ? readString(cell) : readValue(cell, type)
}

function hasFormula({ attributes }: OpenDocumentCell): boolean {
  return attributes['table:formula'] !== undefined
}

/** LibreOffice marks errors. Older programs save an error as a formula with the number 0. */
function isError(cell: OpenDocumentCell): boolean {
  const { attributes, text = '' } = cell
  if (attributes['calcext:value-type'] === 'error') return true
  return hasFormula(cell) && (spreadsheetError.test(text) || /^Err:\d{3}$/.test(text))
}

function readString(cell: OpenDocumentCell): Cell {
  const { attributes, text, unreadElement } = cell
  const string = attributes['office:string-value'] || text
  if (string === undefined && hasFormula(cell)) return unsavedFormula
  if (unreadElement !== undefined)
    return new UnusableCell('#VALUE!', `contains the element ${unreadElement}, which is not read`)
  return string?.trim() || undefined
}

function readValue(cell: OpenDocumentCell, type: string): Cell {
  const valueName = valueNames.get(type)
  if (valueName === undefined) throw new DamageError(`a cell has the unknown type ${type}`)
  const value = cell.attributes[valueName]?.trim() ?? ''
  if (value === '' && hasFormula(cell)) return unsavedFormula
  switch (type) {
    case 'boolean':
      return readBoolean(value)
    case 'date':
      return formatXmlDate(value) ?? impossibleDate
    case 'time':
      return formatXmlDuration(value) ?? impossibleDate
    default:
      return isTruthValue(cell, value) ? readBoolean(value) : readPlainNumber(value)
  }
}

/** LibreOffice saves the result of `=A1=B1` as a number, and shows TRUE or its translation. */
function isTruthValue(cell: OpenDocumentCell, value: string): boolean {
  return hasFormula(cell) && /^[01]$/.test(value) && /^\p{L}+$/u.test(cell.text ?? '')
}

/** The attribute that has the value, by the type of the cell. */
const valueNames = new Map([
  ['float', 'office:value'],
  ['percentage', 'office:value'],
  ['currency', 'office:value'],
  ['boolean', 'office:boolean-value'],
  ['date', 'office:date-value'],
  ['time', 'office:time-value'],
])

const valueAttributes = [...new Set(valueNames.values())]
