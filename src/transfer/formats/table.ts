import { spreadsheetError } from '../../plant/records.js'
import {
  brokenRecord,
  type Cell,
  type Cells,
  Chunk,
  isTooLarge,
  maxRecordBytes,
  recordTooLarge,
} from './chunk.js'

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
 * Returns the rows that the text completes, without blank ones: RFC 4180 for a cell that begins with a quote. Any other is
 * trimmed, and may have quotes. Throws `input` for an open quote, and above 1 MiB.
 */
export function parseRows(table: Table, text: string, isEnd: boolean): Chunk<Cells> {
  const { name, delimiter, lineEnd } = table
  const all = table.rest + text + (isEnd ? lineEnd : '')
  const rows = new Chunk<Cells>()
  let at = 0
  for (let end = all.indexOf(lineEnd); end !== -1; end = all.indexOf(lineEnd, at)) {
    const first = all.slice(at, end)
    const row = first.includes('"')
      ? quotedRow(all, at, end, table)
      : { cells: first.split(delimiter).map(plainCell), end }
    if (!row) break
    const whole = row.end === end ? first : all.slice(at, row.end)
    if (isTooLarge(whole)) throw brokenRecord(name, table.line, recordTooLarge)
    if (row.cells.some((cell) => cell !== undefined)) rows.add(row.cells, table.line)
    table.line += row.end === end ? 1 : whole.split(lineEnd).length
    at = row.end + 1
  }
  const rest = all.slice(at)
  table.rest = rest
  if (isEnd ? rest !== '' : rest.length > maxRecordBytes) {
    const reason = rest.includes(lineEnd) ? 'A quote is not closed' : recordTooLarge
    throw brokenRecord(name, table.line, reason)
  }
  return rows
}

/** Undefined if it goes on after the text. @param firstEnd of the first line */
function quotedRow(text: string, start: number, firstEnd: number, { delimiter, lineEnd }: Table) {
  const cells: Cell[] = []
  let lineFeed = firstEnd
  for (let at = start; ; at += 1) {
    const close = text[at] === '"' ? closingQuote(text, at + 1) : at
    if (close === -1) return undefined
    if (lineFeed < close) lineFeed = text.indexOf(lineEnd, close)
    if (lineFeed === -1) return undefined
    // A row without another delimiter would be searched to the end of the text.
    const next = text.slice(close, lineFeed).indexOf(delimiter)
    const end = next === -1 ? lineFeed : close + next
    const isQuoted = close > at && text.slice(close + 1, end).trim() === ''
    // Text after a quote that is closed in another line: rather, that one begins a cell, and this one is open.
    if (!isQuoted && text.slice(at, close).includes(lineEnd)) return undefined
    const quoted = isQuoted ? text.slice(at + 1, close).replaceAll('""', '"') : ''
    cells.push(isQuoted ? quoted || undefined : plainCell(text.slice(at, end)))
    if (end === lineFeed) return { cells, end }
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
