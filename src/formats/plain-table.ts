/*
 * Scans a table for plain rows. A plain row is one line, and has as many cells as the header. Each
 * cell is either in quotes as a whole, or has neither quotes nor spaces at its ends.
 * `plain-chunk.ts` says why plain rows are treated differently.
 */

import { assertDefined } from '../errors.js'
import { carriageReturn, hash, lineFeed, quote } from '../platform/ascii.js'
import type { Cells, Chunk, Header } from './chunk.js'
import { type FieldOffsets, type PlainFormat, scanId } from './plain-chunk.js'
import { parseRows, type Table } from './table.js'

/** @returns undefined if no row of the table would be plain */
export function createPlainTableFormat(
  table: Table,
  { columns, names, unnamedColumns }: Header,
): PlainFormat<Cells> | undefined {
  const { delimiter, lineEnd, hasQuotes } = table
  const idColumn = columns.get('id')
  const nameColumn = columns.get('name')
  // A table without a tag uses the offsets after the last column, which stay 0: an empty cell.
  const tagColumn = columns.get('tag') ?? names.length
  const isScannable = hasQuotes && lineEnd === '\n' && /^[,;\t|]$/.test(delimiter)
  if (!isScannable || idColumn === undefined || nameColumn === undefined) return undefined
  const delimiterCode = delimiter.charCodeAt(0)
  // The offsets of all cells of a row are set again for each row.
  const starts = new Int32Array(names.length + 1)
  const ends = new Int32Array(names.length + 1)

  const scanRow = (text: string, rowStart: number, fields: FieldOffsets): number | undefined => {
    let start = rowStart
    let end: number | undefined = rowStart
    for (let column = 0; column < names.length; column += 1) {
      if (column > 0 && text.charCodeAt(start - 1) !== delimiterCode) return undefined
      end = findCellEnd(text, start, delimiterCode)
      if (end === undefined) return undefined
      starts[column] = start
      ends[column] = end
      start = end + 1
    }
    // A row with a cell in a column without a name is not plain, because that needs a warning.
    if (unnamedColumns.some((column) => starts[column] !== ends[column])) return undefined
    fields.idStart = assertDefined(starts[idColumn])
    fields.idEnd = assertDefined(ends[idColumn])
    fields.nameStart = assertDefined(starts[nameColumn])
    fields.nameEnd = assertDefined(ends[nameColumn])
    fields.tagStart = assertDefined(starts[tagColumn])
    fields.tagEnd = assertDefined(ends[tagColumn])
    return adaptOffsets(text, fields) ? skipLineEnd(text, end) : undefined
  }
  const parse = (text: string, line: number, chunk: Chunk<Cells>): void => {
    parseRows({ ...table, line, remainder: '' }, text, false, chunk)
  }
  return { scanRow, readField: readCell, parse }
}

/**
 * Adapts the offsets of a row, so that they mean the same as in the general parser: the quotes of
 * an id do not belong to it, and an empty tag in quotes is no tag.
 *
 * @returns false if the row has no valid id, or no name
 */
function adaptOffsets(text: string, fields: FieldOffsets): boolean {
  if (fields.tagEnd - fields.tagStart === 2 && text.startsWith('""', fields.tagStart))
    fields.tagEnd = fields.tagStart
  if (text.charCodeAt(fields.idStart) === quote) {
    fields.idStart += 1
    fields.idEnd -= 1
  }
  fields.id = scanId(text, fields.idStart, fields.idEnd)
  const quoteLength = text.charCodeAt(fields.nameStart) === quote ? 2 : 0
  return !Number.isNaN(fields.id) && fields.nameEnd - fields.nameStart > quoteLength
}

function skipLineEnd(text: string, index: number): number | undefined {
  const lineEnd = text.charCodeAt(index) === carriageReturn ? index + 1 : index
  return text.charCodeAt(lineEnd) === lineFeed ? lineEnd + 1 : undefined
}

/** @returns the index after the cell; undefined if the cell is not read as it is written */
function findCellEnd(text: string, start: number, delimiter: number): number | undefined {
  return text.charCodeAt(start) === quote
    ? findQuotedEnd(text, start)
    : findUnquotedEnd(text, start, delimiter)
}

/** @returns the index after the closing quote; undefined if the cell has a line end */
function findQuotedEnd(text: string, start: number): number | undefined {
  for (let index = start + 1; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === lineFeed || code === carriageReturn) return undefined
    if (code !== quote) continue
    if (text.charCodeAt(index + 1) !== quote) return index + 1
    index += 1
  }
  return undefined
}

function findUnquotedEnd(text: string, start: number, delimiter: number): number | undefined {
  let index = start
  for (; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    if (code === delimiter || code === lineFeed || code === carriageReturn) break
    if (code === quote) return undefined
  }
  if (index === start) return index
  const firstCode = text.charCodeAt(start)
  // The error of a formula begins with a number sign.
  const isPlain =
    firstCode !== hash && !mayBeSpace(firstCode) && !mayBeSpace(text.charCodeAt(index - 1))
  return isPlain ? index : undefined
}

/** Whether `trim` may remove the character. It may be true for a character that `trim` keeps. */
function mayBeSpace(code: number): boolean {
  if (code < 0xa0) return code <= 0x20
  return code === 0xa0 || code === 0x1680 || isUnicodeSpace(code)
}

function isUnicodeSpace(code: number): boolean {
  return (code >= 0x2000 && code <= 0x205f) || code === 0x3000 || code === 0xfeff
}

function readCell(text: string, start: number, end: number): string {
  if (text.charCodeAt(start) !== quote) return text.slice(start, end)
  const cell = text.slice(start + 1, end - 1)
  return cell.includes('"') ? cell.replaceAll('""', '"') : cell
}
