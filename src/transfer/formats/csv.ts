import { parseInt64 } from '../../plant/exact-json.js'
import { missingText, noText, type PlantRows } from '../../plant/rows.js'
import { shorten } from '../../platform/escape.js'
import { must } from '../../platform/values.js'
import { type Chunk, maxRecordBytes, type Reason, type RecordRange, reason } from './chunk.js'
import type { Format, ReaderState } from './format.js'
import { LineReader } from './line-reader.js'
import { digitsEnd, readId, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'
import { type Columns, findHeader, maxTitles, parseCells } from './table-header.js'

/**
 * A table (RFC 4180) whose delimiter and header are detected. Lines end with LF, CRLF or CR; blank lines are skipped.
 * Unquoted cells are trimmed; an empty one, or a missing one at the end of a row, is no text.
 */
export const csv: Format = {
  detect: ({ bytes, start }) => {
    const [first = '', ...others] = bytes.toString('utf8', start).split(/\r\n?|\n/, maxTitles)
    return (
      !first.startsWith('<') && (!/[{}[\]:]/.test(first) || [first, ...others].some((line) => /[,;\t|]/.test(line)))
    )
  },
  read: (mapper) => new CsvReader(mapper, 'table', mapper.rules.delimiter),
}

/** Never detected, because CSV detects the tab. */
export const tsv: Format = {
  detect: () => false,
  read: (mapper) => new CsvReader(mapper, 'table', mapper.rules.delimiter ?? '\t'),
}

/** The text of a formula without a saved value, which no plant can have. */
export const unsavedFormula = '\0'

/** The CSV of a sheet of a workbook. */
export const sheet: Format = {
  detect: () => false,
  read: (mapper) => new CsvReader(mapper, 'sheet', ','),
}

class CsvReader extends LineReader {
  readonly #delimiter: string | undefined
  header: Buffer | undefined
  #columns: Columns | undefined

  constructor(mapper: RecordMapper, kind: 'table' | 'sheet', delimiter: string | undefined) {
    super(mapper, kind)
    this.#delimiter = delimiter
  }

  override read(chunk: Chunk, isLast: boolean): number {
    if (this.#columns) return super.read(chunk, isLast, 0, this.#columns.delimiter)
    const { bytes } = chunk
    let start = 0
    while (bytes[start] === lineFeed || bytes[start] === carriageReturn) start += 1
    // it may be cut off its LF
    if (start > 0 && start === bytes.length && bytes[start - 1] === carriageReturn && !isLast) start -= 1
    this.skipLines(bytes, 0, start)
    const columns = this.#readHeader(bytes.subarray(start), isLast, this.#delimiter)
    if (!columns && isLast) return bytes.length
    const end = start + (columns?.end ?? 0)
    this.skipLines(bytes, start, end)
    return columns ? super.read(chunk, isLast, end, columns.delimiter) : end
  }

  override save(): ReaderState {
    return this.#columns
      ? { ...super.save(), header: `${this.header}`, delimiter: this.#columns.delimiter }
      : super.save()
  }

  override restore(state: ReaderState): void {
    super.restore(state)
    const { header, delimiter } = state
    this.#columns = undefined
    if (header !== undefined) this.#readHeader(Buffer.from(String(header)), true, String(delimiter))
  }

  #readHeader(bytes: Buffer, isLast: boolean, delimiter: string | undefined): Columns | undefined {
    const lineAt = (end: number) => this.lineAt(bytes, 0, end)
    this.#columns = findHeader(bytes, { isLast, rules: this.mapper.rules, given: delimiter, lineAt })
    this.header = this.#columns && Buffer.from(bytes.subarray(0, this.#columns.end))
    return this.#columns
  }

  protected addFast(chunk: Chunk, start: number, line: number): number {
    return this.#columns ? readPlainRow(chunk, start, line, this.#columns) : unread
  }

  protected add(text: string, chunk: Chunk, range: RecordRange): void {
    if (!this.#columns) return
    const { names, id, delimiter } = this.#columns
    const cells = parseCells(text, delimiter, id)
    if (this.kind === 'sheet') cells.splice(names.length) // such as a note beside the table
    while (cells.length > 0 && cells.at(-1) === undefined) cells.pop()
    if (cells.length === 0) return // a blank row of a spreadsheet
    const why = whyInvalid(cells, this.#columns)
    if (why) chunk.addInvalid(why, range)
    else this.mapper.add(recordOf(cells, this.#columns), range, chunk)
  }
}

function whyInvalid(cells: (string | undefined)[], { names, id, texts }: Columns): Reason | undefined {
  if (cells.length > names.length) {
    const row = `The row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}`
    return reason('malformed', `${row}, but the header has ${names.length}`)
  }
  if ([id, ...texts].some((column) => cells[column] === unsavedFormula)) {
    const what = 'a formula has no saved value. Open the workbook in a spreadsheet program, and save it'
    return reason('invalid', `Invalid plant: ${what}`)
  }
  const idText = cells[id] ?? ''
  if (!/^-?(\d+([.,]\d+)?e[-+]?\d{2,}|\d{1,3}(\.\d{3})+)$/i.test(idText)) return undefined
  const isRounded = /e/i.test(idText)
  const why = isRounded ? 'a spreadsheet may have rounded it' : 'in some countries, the point groups thousands'
  const rule = `id must ${isRounded ? 'have all its digits' : 'be in digits only'}`
  return reason('invalid', `Invalid plant: ${rule}, but was ${JSON.stringify(shorten(idText))}: ${why}`)
}

function recordOf(
  cells: (string | undefined)[],
  { keys, id, texts, required, others }: Columns,
): Record<string, unknown> {
  const record: Record<string, unknown> = Object.create(null) // a column may be named __proto__
  for (const other of others) {
    if (other >= cells.length) break // a header can have many more columns than a row
    if (cells[other]) record[must(keys[other])] = cells[other]
  }
  const idText = cells[id]
  if (idText !== undefined) record[must(keys[id])] = parseInt64(idText) ?? idText
  // An empty cell has no text, which only an optional field may have.
  const textOf = (column: number) => cells[column] ?? (required.includes(column) ? undefined : null)
  for (const column of texts) if (column >= 0) record[must(keys[column])] = textOf(column)
  return record
}

/** Returns `unread` if the cells must be parsed, such as for quotes and spaces around them. */
function readPlainRow(chunk: Chunk, start: number, line: number, columns: Columns): number {
  const { bytes, rows } = chunk
  const { starts, id, others, required } = columns
  const end = findCells(bytes, start, starts, columns.delimiter.charCodeAt(0))
  if (end === unread || end - start > maxRecordBytes) return unread
  const startOf = (cell: number) => must(starts[cell])
  const endOf = (cell: number) => must(starts[cell + 1]) - 1
  const isEmpty = (cell: number) => endOf(cell) === startOf(cell)
  if (!others.every(isEmpty) || required.some(isEmpty) || digitsEnd(bytes, startOf(id)) !== endOf(id)) return unread
  const row = rows.next()
  if (!readId(rows, row, startOf(id), endOf(id)) || !readTexts(rows, row, columns)) {
    rows.length = row
    return unread
  }
  const next = bytes[end] === carriageReturn && bytes[end + 1] === lineFeed ? end + 2 : end + 1
  chunk.setRange(start, next, line)
  return next
}

/** Returns false for a space at the ends of a cell. */
function readTexts(rows: PlantRows, row: number, { starts, texts }: Columns): boolean {
  for (const [field, column] of rows.texts.entries()) {
    const cell = must(texts[field])
    const start = cell < 0 ? missingText : must(starts[cell])
    const end = cell < 0 ? missingText : must(starts[cell + 1]) - 1
    const isEmpty = cell >= 0 && end === start
    if (end > start && (isBlank(rows.bytes[start]) || isBlank(rows.bytes[end - 1]))) return false
    column.start[row] = isEmpty ? noText : start
    column.end[row] = isEmpty ? noText : end
  }
  return true
}

/** Sets `starts`. Returns the end of the row; `unread` for an empty row, another number of cells, a quote or U+0000. */
function findCells(bytes: Buffer, start: number, starts: Uint32Array, delimiter: number): number {
  const count = starts.length - 1
  let cell = 0
  starts[0] = start
  for (let at = start; ; at += 1) {
    const byte = bytes[at]
    if (byte === delimiter) {
      cell += 1
      if (cell >= count) return unread
      starts[cell] = at + 1
    } else if (byte === undefined || (byte <= quote && isSpecial(byte))) {
      const isEnd = byte === lineFeed || byte === carriageReturn
      if (!isEnd || at === start || cell < count - 1) return unread
      starts[count] = at + 1
      return at
    }
  }
}

function isSpecial(byte: number): boolean {
  return byte === lineFeed || byte === carriageReturn || byte === quote || byte === 0
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab
}

const [tab, lineFeed, carriageReturn, space, quote] = [0x09, 0x0a, 0x0d, 0x20, 0x22]
