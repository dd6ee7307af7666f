import { isUtf8 } from 'node:buffer'
import { type KnownField, plantFields, textFields } from '../../plant/fields.js'
import { parseInt64 } from '../../plant/json.js'
import { noText } from '../../plant/rows.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { type Chunk, notUtf8, type RecordRange } from './chunk.js'
import { CsvRows, parseCells } from './csv-rows.js'
import type { Format, FormatReader, Head, ReaderState } from './format.js'
import { digitsEnd, readId } from './plant-object.js'
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

class CsvReader implements FormatReader {
  /** the header as it came, with its line break; empty before it was read */
  header: Buffer = Buffer.alloc(0)
  readonly #mapper: RecordMapper
  readonly #delimiter: ',' | '\t'
  #columns: Columns | undefined
  #line = 1
  /** inside a row that is too long to be kept */
  #isSkipping = false

  constructor(mapper: RecordMapper, delimiter: ',' | '\t') {
    this.#mapper = mapper
    this.#delimiter = delimiter
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const rows = new CsvRows(bytes, isLast, this.#delimiter)
    const textEnd = isLast ? bytes.length : bytes.lastIndexOf(lineFeed) + 1
    const isFast = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, textEnd))
    let at = 0
    while (at < bytes.length && !chunk.isFull) {
      const isRest = this.#isSkipping
      if (isRest) rows.skip(at)
      else if (!rows.find(at)) break
      this.#isSkipping = rows.isCut
      const range = { start: at, end: rows.end, line: this.#line }
      if (isRest) chunk.addInvalid(undefined, range)
      else if (rows.textEnd > at) this.#take(rows, chunk, range, isFast)
      this.#line += countLines(bytes, at, rows)
      at = rows.end
    }
    return at
  }

  save(): ReaderState {
    return { line: this.#line, isSkipping: this.#isSkipping, header: this.header.toString() }
  }

  restore({ line, isSkipping, header }: ReaderState): void {
    const bytes = Buffer.from(String(header))
    const rows = new CsvRows(bytes, true, this.#delimiter)
    if (bytes.length > 0 && rows.find(0)) this.#takeHeader(bytes, rows, 0)
    this.#line = Number(line)
    this.#isSkipping = isSkipping === true
  }

  #take(rows: CsvRows, chunk: Chunk, range: RecordRange, isFast: boolean): void {
    const { bytes } = chunk
    const text = bytes.subarray(range.start, rows.textEnd)
    if (this.#columns === undefined) this.#takeHeader(bytes, rows, range.start)
    else if (rows.error) chunk.addInvalid(rows.error, range)
    else if (!isFast || !rows.isPlain || !readPlainRow(chunk, range, rows.textEnd, this.#columns, this.#delimiter.charCodeAt(0)))
      if (isUtf8(text)) this.#takeCells(parseCells(text.toString(), this.#delimiter), chunk, range, this.#columns)
      else chunk.addInvalid(notUtf8, range)
  }

  /** @throws {PlantsError} `malformed` when the header cannot be used */
  #takeHeader(bytes: Buffer, rows: CsvRows, start: number): void {
    const text = bytes.subarray(start, rows.textEnd)
    if (rows.error !== undefined && text.includes('\r')) throw carriageReturns()
    const error = rows.error ?? (isUtf8(text) ? undefined : notUtf8)
    if (error) {
      const hint = 'The first line must name the columns, for example: id,name,tag'
      throw new PlantsError('malformed', `The header cannot be read: ${error.message}`, { hint })
    }
    const names = parseCells(text.toString(), this.#delimiter).map((name) => name ?? '')
    this.#columns = readHeader(names, this.#mapper.rules)
    this.header = Buffer.from(bytes.subarray(start, rows.end))
  }

  #takeCells(cells: (string | undefined)[], chunk: Chunk, range: RecordRange, columns: Columns): void {
    const { length } = columns.names
    if (cells.length !== length) {
      const message = `The row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}, but the header has ${length}`
      chunk.addInvalid({ kind: 'malformed', message }, range)
    } else this.#mapper.add(recordOf(cells, columns), range, chunk)
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

/** How many lines a row ends. */
function countLines(bytes: Buffer, start: number, { end, isPlain }: CsvRows): number {
  if (isPlain) return bytes[end - 1] === lineFeed ? 1 : 0
  let count = 0
  for (let at = bytes.indexOf(lineFeed, start); at !== -1 && at < end; at = bytes.indexOf(lineFeed, at + 1)) count += 1
  return count
}

/** Reads a row without quotes, in UTF-8, into the columns of a chunk. False, and adds nothing, for one that needs its cells parsed. */
function readPlainRow(chunk: Chunk, { start, end, line }: RecordRange, textEnd: number, columns: Columns, delimiter: number): boolean {
  const { bytes, rows } = chunk
  const { starts, id, texts, others } = columns
  if (!findCells(bytes, start, textEnd, starts, delimiter)) return false
  const startOf = (cell: number) => starts[cell] ?? 0
  const endOf = (cell: number) => (starts[cell + 1] ?? 0) - 1
  if (others.some((other) => endOf(other) > startOf(other)) || digitsEnd(bytes, startOf(id)) !== endOf(id)) return false
  const row = rows.next()
  if (!readId(rows, row, startOf(id), endOf(id))) {
    rows.length = row
    return false
  }
  for (const [field, column] of rows.texts.entries()) {
    const cell = texts[field] ?? -1
    const isThere = textFields[field]?.isRequired || (cell >= 0 && endOf(cell) > startOf(cell))
    column.start[row] = isThere ? startOf(cell) : noText
    column.end[row] = isThere ? endOf(cell) : noText
  }
  chunk.setRange(start, end, line)
  return true
}

/** Finds where the cells of a row without quotes begin, and one more after it. False for another number of cells, and for U+0000. */
function findCells(bytes: Buffer, start: number, end: number, starts: Uint32Array, delimiter: number): boolean {
  const count = starts.length - 1
  let cell = 0
  starts[0] = start
  for (let at = start; at < end; at += 1) {
    if (bytes[at] === 0) return false
    if (bytes[at] !== delimiter) continue
    cell += 1
    if (cell >= count) return false
    starts[cell] = at + 1
  }
  starts[count] = end + 1
  return cell === count - 1
}

const lineFeed = 0x0a

/** What the columns of a table hold. */
interface Columns {
  names: readonly string[]
  /** the column of the id; -1 where records are numbered */
  id: number
  /** the column of each of `textFields`; -1 for one that is not there */
  texts: readonly number[]
  /** where the other fields are */
  others: readonly number[]
  /** where the cells of the row that is read begin, and one more after it */
  starts: Uint32Array
}

/** Finds the fields in the names of columns, exactly as they are. Throws `malformed` for a field that is missing, or there twice. */
function readHeader(names: readonly string[], rules: FieldRules): Columns {
  const known = new Set<string>()
  const repeated = names.find((name) => name !== '' && known.size === known.add(name).size)
  if (repeated !== undefined) {
    const hint = 'Give each column a name of its own'
    throw new PlantsError('malformed', `The header has the column ${JSON.stringify(shorten(repeated))} twice`, { hint })
  }
  if (names.some((name) => name.includes('\r'))) throw carriageReturns()
  const [id = -1, ...texts] = plantFields.map((field) => columnOf(field, names, rules))
  const others = names.map((_, index) => index).filter((index) => index !== id && !texts.includes(index))
  return { names, id, texts, others, starts: new Uint32Array(names.length + 1) }
}

/** Lines end with LF or CRLF. A carriage return alone ended them before 2001; today it is a character like others, so it is not guessed at. */
function carriageReturns(): PlantsError {
  const hint = "Make them line feeds first: tr '\\r' '\\n'"
  return new PlantsError('malformed', 'The header holds a carriage return, as if lines ended with that alone', { hint })
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
  throw new PlantsError('malformed', `The header has no column ${what}, only ${shown.join(', ')}${more}`, {
    hint: field === 'id' ? `${hint}. Or number the rows: --id-from 1` : hint,
  })
}
