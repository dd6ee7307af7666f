import { isUtf8 } from 'node:buffer'
import { type KnownField, plantFields, textFields } from '../../plant/fields.js'
import { parseInt64 } from '../../plant/json.js'
import { noText } from '../../plant/rows.js'
import { malformed, type PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { type Chunk, maxRecordBytes, notUtf8, type RecordRange } from './chunk.js'
import type { Format, Head, ReaderState } from './format.js'
import { LineReader, Rows } from './line-reader.js'
import { digitsEnd, readId, unread } from './plant-object.js'
import type { FieldRules, RecordMapper } from './record-mapper.js'

const columnNames = plantFields.map(({ name }) => name)

/**
 * A table with a header (RFC 4180). Lines end with LF or CRLF, and blank ones are skipped. An empty cell without quotes is a field
 * that is not there; a name is always there.
 */
export const csv: Format = {
  detect: (head) => {
    const names = headerOf(head)
    return names.includes(',') || !/[;|]/.test(names)
  },
  read: (mapper) => new CsvReader(mapper, ','),
  write: { record: 'csv', head: `${columnNames.join(',')}\n`, between: '\n', foot: '' },
}

/** The same with tabs, and the same quotes. */
export const tsv: Format = {
  detect: (head) => headerOf(head).includes('\t'),
  read: (mapper) => new CsvReader(mapper, '\t'),
  write: { record: 'tsv', head: `${columnNames.join('\t')}\n`, between: '\n', foot: '' },
}

/** The first line without the cells in quotes. */
function headerOf({ bytes, start }: Head): string {
  const line = bytes.toString('utf8', start).split('\n', 1)[0] ?? ''
  return line.replace(/"(?:[^"]|"")*"/g, '')
}

class CsvReader extends LineReader {
  /** the header as it came, with its line break; empty before it was read */
  header: Buffer = Buffer.alloc(0)
  readonly #delimiter: ',' | '\t'
  #columns: Columns | undefined

  constructor(mapper: RecordMapper, delimiter: ',' | '\t') {
    super(mapper, delimiter)
    this.#delimiter = delimiter
  }

  override save(): ReaderState {
    return { ...super.save(), header: this.header.toString() }
  }

  override restore(state: ReaderState): void {
    const bytes = Buffer.from(String(state['header']))
    const rows = new Rows(bytes, true, this.#delimiter)
    if (bytes.length > 0 && rows.find(0)) this.#takeHeader(bytes, rows, 0)
    super.restore(state)
  }

  protected override takeFast(chunk: Chunk, start: number, line: number): number {
    return this.#columns ? readPlainRow(chunk, { start, line }, this.#columns, this.#delimiter.charCodeAt(0)) : unread
  }

  protected take(rows: Rows, chunk: Chunk, range: RecordRange): void {
    const { bytes } = chunk
    const text = bytes.subarray(range.start, rows.textEnd)
    if (this.#columns === undefined) this.#takeHeader(bytes, rows, range.start)
    else if (rows.error) chunk.addInvalid(rows.error, range)
    else if (!isUtf8(text)) chunk.addInvalid(notUtf8, range)
    else this.#takeCells(parseCells(text.toString(), this.#delimiter), chunk, range, this.#columns)
  }

  /** @throws {PlantsError} `malformed` when the header cannot be used */
  #takeHeader(bytes: Buffer, rows: Rows, start: number): void {
    const text = bytes.subarray(start, rows.textEnd)
    if (rows.error !== undefined && text.includes('\r')) throw carriageReturns()
    const error = rows.error ?? (isUtf8(text) ? undefined : notUtf8)
    if (error)
      throw malformed(`The header cannot be read: ${error.message}`, 'The first line must name the columns, for example: id,name,tag')
    const names = parseCells(text.toString(), this.#delimiter).map((name) => name ?? '')
    this.#columns = readHeader(names, this.mapper.rules)
    this.header = Buffer.from(bytes.subarray(start, rows.end))
  }

  #takeCells(cells: (string | undefined)[], chunk: Chunk, range: RecordRange, columns: Columns): void {
    const { length } = columns.names
    if (cells.length !== length) {
      const message = `The row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}, but the header has ${length}`
      chunk.addInvalid({ kind: 'malformed', message }, range)
    } else this.mapper.add(recordOf(cells, columns), range, chunk)
  }
}

function recordOf(cells: (string | undefined)[], { names, id, texts, others }: Columns): Record<string, unknown> {
  const record: Record<string, unknown> = Object.create(null) // where every name is just a name
  for (const other of others) if (cells[other]) record[names[other] ?? ''] = cells[other]
  const idText = cells[id]
  if (idText !== undefined) record[names[id] ?? ''] = parseInt64(idText) ?? idText
  for (const [field, { isRequired }] of textFields.entries()) {
    const column = texts[field] ?? -1
    const text = cells[column] ?? (isRequired ? '' : undefined)
    if (text !== undefined) record[names[column] ?? ''] = text
  }
  return record
}

/** The cells of a valid row without its line break; an empty one without quotes is undefined. */
function parseCells(text: string, delimiter: string): (string | undefined)[] {
  const cells: (string | undefined)[] = []
  for (let at = 0; ; at += 1) {
    let end: number
    if (text[at] === '"') {
      end = text.indexOf('"', at + 1)
      while (text[end + 1] === '"') end = text.indexOf('"', end + 2)
      cells.push(text.slice(at + 1, end).replaceAll('""', '"'))
      end += 1
    } else {
      const found = text.indexOf(delimiter, at)
      end = found === -1 ? text.length : found
      cells.push(end === at ? undefined : text.slice(at, end))
    }
    if (end >= text.length) return cells
    at = end
  }
}

/** Reads a line without quotes into the columns of a chunk, and gives where the next one begins; `unread` for one that needs its cells parsed. */
function readPlainRow(chunk: Chunk, { start, line }: Omit<RecordRange, 'end'>, columns: Columns, delimiter: number): number {
  const { bytes, rows } = chunk
  const { starts, id, texts, others } = columns
  const feed = bytes.indexOf(lineFeed, start)
  const textEnd = feed > start && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
  if (textEnd <= start || textEnd - start > maxRecordBytes || !findCells(bytes, start, textEnd, starts, delimiter)) return unread
  const startOf = (cell: number) => starts[cell] ?? 0
  const endOf = (cell: number) => (starts[cell + 1] ?? 0) - 1
  if (others.some((other) => endOf(other) > startOf(other)) || digitsEnd(bytes, startOf(id)) !== endOf(id)) return unread
  const row = rows.next()
  if (!readId(rows, row, startOf(id), endOf(id))) {
    rows.length = row
    return unread
  }
  for (const [field, column] of rows.texts.entries()) {
    const cell = texts[field] ?? -1
    const isThere = textFields[field]?.isRequired || (cell >= 0 && endOf(cell) > startOf(cell))
    column.start[row] = isThere ? startOf(cell) : noText
    column.end[row] = isThere ? endOf(cell) : noText
  }
  chunk.setRange(start, feed + 1, line)
  return feed + 1
}

/** Finds where the cells of a row without quotes begin, and one more after it. False for another number of cells, a quote, and U+0000. */
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

interface Columns {
  names: readonly string[]
  /** the column of the id; -1 where records are numbered */
  id: number
  /** the column of each of `textFields`; -1 for one that is not there */
  texts: readonly number[]
  others: readonly number[]
  /** where the cells of the row that is read begin, and one more after it */
  starts: Uint32Array
}

/** Finds the fields in the names of columns, exactly as they are. Throws `malformed` for a field that is missing, or there twice. */
function readHeader(names: readonly string[], rules: FieldRules): Columns {
  const known = new Set<string>()
  const repeated = names.find((name) => name !== '' && known.size === known.add(name).size)
  if (repeated !== undefined)
    throw malformed(`The header has the column ${JSON.stringify(shorten(repeated))} twice`, 'Give each column a name of its own')
  if (names.some((name) => name.includes('\r'))) throw carriageReturns()
  const [id = -1, ...texts] = plantFields.map((field) => columnOf(field, names, rules))
  const others = names.map((_, index) => index).filter((index) => index !== id && !texts.includes(index))
  return { names, id, texts, others, starts: new Uint32Array(names.length + 1) }
}

/** Lines end with LF or CRLF. A carriage return alone ended them before 2001; today it is a character like others, so it is not guessed at. */
function carriageReturns(): PlantsError {
  return malformed('The header holds a carriage return, as if lines ended with that alone', "Make them line feeds first: tr '\\r' '\\n'")
}

function columnOf({ name: field, isRequired }: KnownField, names: readonly string[], { map, idFrom }: FieldRules): number {
  const wanted = map[field]
  const index = names.indexOf(wanted ?? field)
  const isOptional = wanted === undefined && (!isRequired || (field === 'id' && idFrom !== undefined))
  if (index !== -1 || isOptional) return index
  const what = wanted === undefined ? field : `${JSON.stringify(shorten(wanted))} for ${field}`
  const shown = names.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : ''
  const alike = names.find((name) => name.trim().toLowerCase() === field)
  const hint = `Say which column holds it: --map ${alike === undefined ? `${field}=COLUMN` : shellWord(`${field}=${alike}`)}`
  throw malformed(
    `The header has no column ${what}, only ${shown.join(', ')}${more}`,
    field === 'id' ? `${hint}. Or number the rows: --id-from 1` : hint,
  )
}
