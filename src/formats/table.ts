import {
  brokenRecord,
  type Cell,
  type Cells,
  Chunk,
  isTooLarge,
  maxRecordBytes,
  recordTooLarge,
} from './chunk.js'
import { spreadsheetError } from './write.js'

export interface Table {
  name: string
  delimiter: string
  /** LF, which may follow a CR, or CR alone. */
  lineEnd: string
  /** Of the next row, which begins with the rest. */
  line: number
  rest: string
}

/**
 * Adds the rows that the text completes, without blank ones: RFC 4180 for a cell that begins with a
 * quote. Any other is trimmed, and may have quotes. Throws `input` for an open quote, and above 1
 * MiB.
 */
export function parseRows(
  table: Table,
  text: string,
  isEnd: boolean,
  rows = new Chunk<Cells>(),
): Chunk<Cells> {
  const { name, delimiter, lineEnd } = table
  const all = table.rest + text + (isEnd ? lineEnd : '')
  let at = 0
  for (let end = all.indexOf(lineEnd); end !== -1; end = all.indexOf(lineEnd, at)) {
    const first = all.slice(at, end)
    const row = first.includes('"')
      ? quotedRow(all, at, first, table)
      : { cells: first.split(delimiter).map(plainCell), whole: first }
    if (!row) break
    const { cells, whole } = row
    if (isTooLarge(whole)) throw brokenRecord(name, table.line, recordTooLarge)
    if (cells.some((cell) => cell !== undefined)) rows.add(cells, table.line)
    table.line += whole === first ? 1 : whole.split(lineEnd).length
    at += whole.length + 1
  }
  const rest = all.slice(at)
  table.rest = rest
  if (isEnd ? rest !== '' : rest.length > maxRecordBytes) {
    const reason = rest.includes(lineEnd) ? 'A quote is not closed' : recordTooLarge
    throw brokenRecord(name, table.line, reason)
  }
  return rows
}

/** Undefined if it goes on after the text. */
function quotedRow(text: string, start: number, firstLine: string, table: Table) {
  const { delimiter, lineEnd } = table
  const cells: Cell[] = []
  let whole = firstLine
  for (let at = 0; ; at += 1) {
    const close = whole[at] === '"' ? closingQuote(text, start + at + 1) - start : at
    if (close < at) return undefined
    if (close > whole.length) {
      const lineFeed = text.indexOf(lineEnd, start + close)
      if (lineFeed === -1) return undefined
      whole = text.slice(start, lineFeed)
    }
    const next = whole.indexOf(delimiter, close)
    const end = next === -1 ? whole.length : next
    const isQuoted = close > at && whole.slice(close + 1, end).trim() === ''
    // Text after a quote that is closed in another line: rather, that one begins a cell, and this
    // one is open.
    if (!isQuoted && whole.slice(at, close).includes(lineEnd)) return undefined
    const quoted = isQuoted ? whole.slice(at + 1, close).replaceAll('""', '"') : ''
    cells.push(isQuoted ? quoted || undefined : plainCell(whole.slice(at, end)))
    if (end === whole.length) return { cells: cells.slice(), whole } // without room for more cells
    at = end
  }
}

function closingQuote(text: string, start: number): number {
  let close = text.indexOf('"', start)
  while (close !== -1 && text[close + 1] === '"') close = text.indexOf('"', close + 2)
  return close
}

/** Of a cell without quotes, or of a workbook. */
export function plainCell(cell: string): Cell {
  const text = cell.trim()
  if (text.startsWith('#') && spreadsheetError.test(text))
    return { text, reason: `has the error ${text}` }
  return text || undefined
}
