import { plantFields } from '../../plant/fields.js'
import { parseInt64 } from '../../plant/json.js'
import { noText } from '../../plant/rows.js'
import { shorten } from '../../platform/escape.js'
import { type Chunk, maxRecordBytes, type RecordRange, reason } from './chunk.js'
import type { Format, ReaderState } from './format.js'
import { LineReader } from './line-reader.js'
import { digitsEnd, readId, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'
import { type Columns, findHeader, maxTitles, parseCells } from './table-header.js'

const columnNames = plantFields.map(({ name }) => name)

/**
 * A table (RFC 4180) with a delimiter and a header that are detected from its first lines. Lines end with LF or CRLF, and blank lines are
 * skipped. An unquoted empty cell, or a missing cell at the end of a row, is a missing field.
 */
export const csv: Format = {
  detect: ({ bytes, start }) => {
    const [first = '', ...others] = bytes.toString('utf8', start).split('\n', maxTitles)
    return !first.startsWith('<') && (!/[{}[\]:]/.test(first) || [first, ...others].some((line) => /[,;\t|]/.test(line)))
  },
  read: (mapper) => new CsvReader(mapper, mapper.rules.delimiter),
  write: { record: 'csv', head: `${columnNames.join(',')}\n`, between: '\n', foot: '' },
}

/** CSV with tabs as delimiters. It is never detected, because CSV detects the tab. */
export const tsv: Format = {
  detect: () => false,
  read: (mapper) => new CsvReader(mapper, mapper.rules.delimiter ?? '\t'),
  write: { record: 'tsv', head: `${columnNames.join('\t')}\n`, between: '\n', foot: '' },
}

class CsvReader extends LineReader {
  /** by default detected */
  readonly #delimiter: string | undefined
  header: Buffer | undefined
  #columns: Columns | undefined

  constructor(mapper: RecordMapper, delimiter: string | undefined) {
    super(mapper)
    this.#delimiter = delimiter
  }

  override read(chunk: Chunk, isLast: boolean): number {
    if (this.#columns) return super.read(chunk, isLast, 0, this.#columns.delimiter)
    const { bytes } = chunk
    let start = 0
    while (bytes[start] === lineFeed || (bytes[start] === carriageReturn && bytes[start + 1] === lineFeed)) start += 1
    const columns = this.#readHeader(bytes.subarray(start), isLast, this.#delimiter)
    if (!columns && isLast) return bytes.length
    const end = start + (columns?.end ?? 0)
    this.countLines(bytes, 0, end)
    return columns ? super.read(chunk, isLast, end, columns.delimiter) : end
  }

  override save(): ReaderState {
    return this.#columns ? { ...super.save(), header: `${this.header}`, delimiter: this.#columns.delimiter } : super.save()
  }

  override restore(state: ReaderState): void {
    super.restore(state)
    const { header, delimiter } = state
    this.#columns = undefined
    if (header !== undefined) this.#readHeader(Buffer.from(String(header)), true, String(delimiter))
  }

  /** Reads everything before the first row. Returns undefined if more bytes are needed. */
  #readHeader(bytes: Buffer, isLast: boolean, delimiter: string | undefined): Columns | undefined {
    this.#columns = findHeader(bytes, isLast, this.mapper.rules, delimiter)
    this.header = this.#columns && Buffer.from(bytes.subarray(0, this.#columns.end))
    return this.#columns
  }

  protected addFast(chunk: Chunk, start: number, line: number): number {
    return this.#columns ? readPlainRow(chunk, start, line, this.#columns) : unread
  }

  protected add(text: string, chunk: Chunk, range: RecordRange): void {
    if (!this.#columns) return
    const { names, id, delimiter } = this.#columns
    const cells = parseCells(text, delimiter)
    while (cells.length > 0 && cells.at(-1) === undefined) cells.pop()
    if (cells.length === 0) return // a blank row of a spreadsheet
    const idText = cells[id] ?? ''
    if (cells.length > names.length) {
      const row = `The row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}`
      chunk.addInvalid(reason('malformed', `${row}, but the header has ${names.length}`), range)
    } else if (/^-?\d+([.,]\d+)?e[-+]?\d+$/i.test(idText)) {
      const was = `was ${JSON.stringify(shorten(idText))}: a spreadsheet may have rounded it`
      chunk.addInvalid(reason('invalid', `Invalid plant: id must have all its digits, but ${was}`), range)
    } else this.mapper.add(recordOf(cells, this.#columns), range, chunk)
  }
}

function recordOf(cells: (string | undefined)[], { keys, id, texts, others }: Columns): Record<string, unknown> {
  const record: Record<string, unknown> = Object.create(null) // a column may be named __proto__
  for (const other of others) if (cells[other]) record[keys[other] ?? ''] = cells[other]
  for (const column of [id, ...texts]) {
    const text = cells[column]
    if (text !== undefined) record[keys[column] ?? ''] = column === id ? (parseInt64(text) ?? text) : text
  }
  return record
}

/** Reads a row without quotes into the columns of a chunk, and returns the start of the next row; `unread` if its cells must be parsed. */
function readPlainRow(chunk: Chunk, start: number, line: number, columns: Columns): number {
  const { bytes, rows } = chunk
  const { starts, id, texts, others, required } = columns
  const delimiter = columns.delimiter.charCodeAt(0)
  const feed = bytes.indexOf(lineFeed, start)
  const textEnd = feed > start && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
  if (textEnd <= start || textEnd - start > maxRecordBytes || !findCells(bytes, start, textEnd, starts, delimiter)) return unread
  const startOf = (cell: number) => starts[cell] ?? 0
  const endOf = (cell: number) => (starts[cell + 1] ?? 0) - 1
  const isEmpty = (cell: number) => endOf(cell) === startOf(cell)
  if (!others.every(isEmpty) || required.some(isEmpty) || digitsEnd(bytes, startOf(id)) !== endOf(id)) return unread
  const row = rows.next()
  if (!readId(rows, row, startOf(id), endOf(id))) {
    rows.length = row
    return unread
  }
  for (const [field, column] of rows.texts.entries()) {
    const cell = texts[field] ?? -1
    const hasText = cell >= 0 && endOf(cell) > startOf(cell)
    column.start[row] = hasText ? startOf(cell) : noText
    column.end[row] = hasText ? endOf(cell) : noText
  }
  chunk.setRange(start, feed + 1, line)
  return feed + 1
}

/** Finds the starts of the cells of a row, and of one after the last. Returns false for a different number of cells, a quote or U+0000. */
function findCells(bytes: Buffer, start: number, end: number, starts: Uint32Array, delimiter: number): boolean {
  const count = starts.length - 1
  let cell = 0
  starts[0] = start
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]
    if (byte === 0 || byte === quote) return false
    if (byte !== delimiter) continue
    cell += 1
    if (cell >= count) return false
    starts[cell] = at + 1
  }
  starts[count] = end + 1
  return cell === count - 1
}

const [lineFeed, carriageReturn, quote] = [0x0a, 0x0d, 0x22]
