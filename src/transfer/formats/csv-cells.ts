import { isUtf8 } from 'node:buffer'
import { CsvError, parse } from 'csv-parse/sync'
import type { Row } from './csv-rows.js'
import { notUtf8 } from './json-text.js'
import { RecordError } from './record-error.js'

/** The cells of each of some rows that follow one another, or why it has none. */
export function readCells(bytes: Buffer, rows: readonly Row[], delimiter: string): readonly (readonly string[] | RecordError)[] {
  const text = join(bytes, rows)
  // A call for each row would take fifty times as long; it is left to the rows among which one is broken.
  const cells = isUtf8(text) ? parseRows(text, delimiter) : undefined
  if (cells?.length === rows.length) return cells
  return rows.map((row) => cellsOf(bytes.subarray(row.start, row.textEnd), delimiter))
}

/** Whether a cell of a whole row has quotes. */
export function isCellQuoted(bytes: Buffer, { start, textEnd }: Row, index: number, delimiter: number): boolean {
  let at = start
  for (let cell = 0; cell < index; cell += 1) {
    let isInQuotes = false
    for (; at < textEnd && (isInQuotes || bytes[at] !== delimiter); at += 1) if (bytes[at] === quote) isInQuotes = !isInQuotes
    at += 1
  }
  return at < textEnd && bytes[at] === quote
}

function join(bytes: Buffer, rows: readonly Row[]): Buffer {
  const [first, last] = [rows[0], rows.at(-1)]
  if (!first || !last) return Buffer.alloc(0)
  const isOnePiece = rows.every((row, index) => index === 0 || row.start === rows[index - 1]?.end)
  if (isOnePiece) return bytes.subarray(first.start, last.textEnd)
  return Buffer.concat(rows.map((row) => bytes.subarray(row.start, row === last ? row.textEnd : row.end)))
}

function cellsOf(text: Buffer, delimiter: string): readonly string[] | RecordError {
  if (!isUtf8(text)) return notUtf8()
  const rows = parseRows(text, delimiter)
  return rows?.length === 1 && rows[0] ? rows[0] : new RecordError('malformed', 'Not CSV: its quotes do not fit')
}

/** Nothing when the parser does not take them for rows. */
function parseRows(text: Buffer, delimiter: string): string[][] | undefined {
  try {
    return parse(text, { delimiter, record_delimiter: ['\r\n', '\n'], relax_column_count: true })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    return undefined
  }
}

const quote = 0x22
