/*
 * Parses the rows of a table: CSV (RFC 4180), TSV, and what people and programs make of them.
 *
 * In RFC 4180, quotes are only around a whole cell. Lists of plants also have quotes within a cell,
 * such as `"Peace" rose` or `Rosa 'Peace' 6"`, of which no character must be lost. So quotes have
 * the meaning of RFC 4180 only if a cell begins with a quote, and only spaces follow the closing
 * quote. docs/design/decisions.md says why no library reads the tables.
 *
 * A line without quotes is split at the delimiter. Any other row is parsed by `parseRowByCells`,
 * which also finds the lines that continue the row.
 */
import { countLineEnds, type LineEnd } from './encoding.js'
import {
  createBrokenRecordError,
  isTooLarge,
  maxRecordBytes,
  recordTooLargeReason,
} from './limits.js'
import { type Cell, type Cells, type Row, UnusableCell } from './reader.js'
import { spreadsheetError } from './write.js'

export interface Table {
  /** The name of the input, for messages. */
  name: string
  delimiter: string
  /** LF, or CR in files of old Macs. A CR before an LF is trimmed as white space. */
  lineEnd: LineEnd
  /** Whether a quote at the beginning of a cell has the meaning of RFC 4180. */
  hasQuotes: boolean
  /** The line in which the next row begins. */
  line: number
  /** The text of the next row so far. The rest of the row is in a later text. */
  remainder: string
}

type ParsedRow = Pick<Row, 'cells' | 'lineCount'> & { text: string }

/**
 * Parses the rows that end in the text, and keeps the beginning of the next row in the table. Rows
 * without any value are left out.
 *
 * A cell in quotes keeps its spaces, but no line ends at its ends: `" Peace "`. A cell with text
 * after its closing quote is read as it is written: `"Peace" rose`. Any other cell is trimmed, and
 * may have quotes.
 *
 * @param isEnd whether this is the last text of the table
 * @throws {PlantsError} `input` for a quote that is not closed, and a row above 1 MiB
 */
export function parseRows(table: Table, text: string, isEnd: boolean): Row[] {
  const { name, lineEnd } = table
  const rows: Row[] = []
  const wholeText = table.remainder + text + (isEnd ? lineEnd : '')
  const mayHaveQuotes = table.hasQuotes && wholeText.includes('"')
  let start = 0
  for (let end = wholeText.indexOf(lineEnd); end !== -1; end = wholeText.indexOf(lineEnd, start)) {
    const line = wholeText.slice(start, end)
    const row =
      !mayHaveQuotes || !line.includes('"')
        ? { cells: split(line, table.delimiter), text: line, lineCount: 1 }
        : parseRowByCells(wholeText, start, line, table)
    if (!row) break
    if (isTooLarge(row.text)) throw createBrokenRecordError(name, table.line, recordTooLargeReason)
    const { cells, text: rowText, lineCount } = row
    // A spread of the row would take a fifth of the time of an import.
    if (cells.some((cell) => cell !== undefined))
      rows.push({
        cells,
        line: table.line,
        text: rowText,
        lineCount,
        characters: rowText.length + 1,
        hasIgnoredCells: false,
      })
    table.line += row.lineCount
    start += row.text.length + 1
  }
  table.remainder = wholeText.slice(start)
  assertRemainder(table, isEnd)
  return rows
}

/**
 * Checks the text of a row that has not ended yet. If the row is too long, the reason may be a
 * quote that is not closed, because then all later lines belong to the same cell.
 */
function assertRemainder({ name, lineEnd, line, remainder }: Table, isEnd: boolean): void {
  const isAllowed = isEnd ? remainder === '' : remainder.length <= maxRecordBytes
  if (isAllowed) return
  if (!remainder.includes(lineEnd)) throw createBrokenRecordError(name, line, recordTooLargeReason)
  throw createBrokenRecordError(
    name,
    line,
    'A quote is not closed',
    'Close it, or add --no-quotes if quotes are ordinary characters in this table',
  )
}

/** Splits a line without quotes. This takes a quarter of the time of `String.split`. */
function split(line: string, delimiter: string): Cells {
  const cells: Cell[] = []
  let start = 0
  for (let end = line.indexOf(delimiter); end !== -1; end = line.indexOf(delimiter, start)) {
    cells.push(readPlainCell(line.slice(start, end)))
    start = end + 1
  }
  cells.push(readPlainCell(line.slice(start)))
  // An array that grows has room for 17 cells, and its copy only for its cells.
  return cells.slice()
}

/**
 * Parses a row cell by cell. If a line ends within quotes, the row continues in the next line. So
 * `row` is the part of the text that is known to belong to the row, and `closeQuotes` extends it by
 * lines. All indexes are indexes in `row`, except `start`, where the row begins in the text.
 *
 * @returns undefined if the row does not end in the text
 */
function parseRowByCells(
  text: string,
  start: number,
  firstLine: string,
  { delimiter, lineEnd }: Table,
): ParsedRow | undefined {
  const cells: Cell[] = []
  let row = firstLine
  let cellStart = 0
  for (;;) {
    const contentStart = skipSpaces(row, cellStart, delimiter)
    const hasQuote = row[contentStart] === '"'
    // The delimiter is looked for after the closing quote, or from the start of any other cell on.
    const closing = hasQuote
      ? closeQuotes(row, contentStart, text, start, lineEnd)
      : { row, closeIndex: contentStart }
    if (!closing) return undefined
    row = closing.row
    const { closeIndex } = closing
    const end = findEndOfCell(row, delimiter, closeIndex)
    const isQuoted = hasQuote && row.slice(closeIndex + 1, end).trim() === ''
    // The cell begins with a quote, the next quote is in a later line, and more characters follow.
    // Most likely, the next quote begins a cell of a later row, and this quote is never closed. So
    // the row counts as incomplete, which leads to the error about a quote that is not closed.
    if (!isQuoted && row.slice(cellStart, closeIndex).includes(lineEnd)) return undefined
    const cell = isQuoted
      ? unquote(row.slice(contentStart + 1, closeIndex))
      : readPlainCell(row.slice(cellStart, end))
    cells.push(cell)
    if (end === row.length) return { cells, text: row, lineCount: countLineEnds(row, lineEnd) + 1 }
    cellStart = end + 1
  }
}

/** Returns the index of the first character from `start` on that is not a space. */
function skipSpaces(row: string, start: number, delimiter: string): number {
  let index = start
  while (isSpace(row.charAt(index)) && row[index] !== delimiter) index += 1
  return index
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\t' || character === '\u00a0'
}

/**
 * Returns the index of the quote that closes a cell. Two quotes stand for one within the cell.
 *
 * @param openIndex the index of the quote that opens the cell
 * @returns undefined if no quote closes the cell in the text
 */
function findClosingQuote(text: string, openIndex: number): number | undefined {
  let closeIndex = text.indexOf('"', openIndex + 1)
  while (closeIndex !== -1 && text[closeIndex + 1] === '"')
    closeIndex = text.indexOf('"', closeIndex + 2)
  return closeIndex === -1 ? undefined : closeIndex
}

/**
 * Finds the quote that closes the one at `openIndex`. If it is in a later line, the row is extended
 * to the end of that line.
 *
 * @param start the index in the text where the row begins
 * @returns undefined if the line with the closing quote does not end in the text
 */
function closeQuotes(
  row: string,
  openIndex: number,
  text: string,
  start: number,
  lineEnd: string,
): { row: string; closeIndex: number } | undefined {
  const textIndex = findClosingQuote(text, start + openIndex)
  if (textIndex === undefined) return undefined
  const closeIndex = textIndex - start
  if (closeIndex < row.length) return { row, closeIndex }
  const end = text.indexOf(lineEnd, textIndex)
  return end === -1 ? undefined : { row: text.slice(start, end), closeIndex }
}

function findEndOfCell(row: string, delimiter: string, from: number): number {
  const end = row.indexOf(delimiter, from)
  return end === -1 ? row.length : end
}

/** Reads the content of a cell in quotes, which programs write because of line ends at its ends. */
function unquote(quotedContent: string): Cell {
  const content = quotedContent.includes('"') ? quotedContent.replaceAll('""', '"') : quotedContent
  return content.replace(/^[\r\n]+|(?<![\r\n])[\r\n]+$/g, '') || undefined
}

const numberSign = 35

/** Reads a cell without quotes. Only such a cell can have the error of a formula. */
function readPlainCell(cell: string): Cell {
  const content = cell.trim()
  if (content.charCodeAt(0) === numberSign && spreadsheetError.test(content))
    return new UnusableCell(content, `is the error value ${content}`)
  return content || undefined
}
