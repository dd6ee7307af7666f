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

interface TableFormat {
  delimiter: string
  /** LF, which may follow a CR, or CR alone. */
  lineEnd: string
}

/**
 * The rows of a table, from texts that end anywhere: RFC 4180 for a cell that begins with a quote. Any other is trimmed,
 * and may have quotes. A row without quotes, as almost all are, is split at once.
 */
export class TableParser {
  readonly #format: TableFormat
  readonly #name: string
  /** The line of the next row. */
  #line = 1
  /** The beginning of a row that the next text completes. */
  #rest = ''

  constructor(format: TableFormat, name: string) {
    this.#format = format
    this.#name = name
  }

  /** The rows that the text completes, without blank ones. Throws `input` for an open quote, and above 1 MiB. */
  parse(text: string, isEnd: boolean): Chunk<Cells> {
    const { delimiter, lineEnd } = this.#format
    const all = this.#rest + text + (isEnd ? lineEnd : '')
    const rows = new Chunk<Cells>()
    let at = 0
    for (let end = all.indexOf(lineEnd); end !== -1; end = all.indexOf(lineEnd, at)) {
      const line = all.slice(at, end)
      const row = line.includes('"')
        ? this.#quotedRow(all, at, end)
        : { cells: line.split(delimiter).map(plainCell), end }
      if (!row) break
      const whole = row.end === end ? line : all.slice(at, row.end)
      if (isTooLarge(whole)) throw brokenRecord(this.#name, this.#line, recordTooLarge)
      if (row.cells.some((cell) => cell !== undefined)) rows.add(row.cells, this.#line)
      this.#line += row.end === end ? 1 : whole.split(lineEnd).length
      at = row.end + 1
    }
    this.#rest = all.slice(at)
    if (isEnd ? this.#rest !== '' : this.#rest.length > maxRecordBytes)
      throw brokenRecord(
        this.#name,
        this.#line,
        this.#rest.includes(lineEnd) ? 'A quote is not closed' : recordTooLarge,
      )
    return rows
  }

  /** Undefined if it goes on after the text. @param firstEnd of the first line */
  #quotedRow(text: string, start: number, firstEnd: number) {
    const { delimiter, lineEnd } = this.#format
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
