import { parseInt64 } from '../../plant/json.js'
import { PlantsError } from '../../platform/errors.js'
import { isCellQuoted, readCells } from './csv-cells.js'
import { type Columns, carriageReturns, readHeader } from './csv-header.js'
import { CsvRows, type NoRow, type Row } from './csv-rows.js'
import type { Format, FormatState } from './format.js'
import type { FieldRules, Intake } from './intake.js'
import type { Place, Portion } from './portion.js'
import { RecordError } from './record-error.js'

/**
 * A table with a header (RFC 4180): CSV, or TSV with the same quotes. Lines end with LF or CRLF, and blank ones are skipped.
 * An empty cell without quotes is a field that is not there; a name is always there.
 */
export class Csv implements Format {
  /** the header as it came, with its line break; empty before it was read */
  header: Buffer = Buffer.alloc(0)
  readonly #intake: Intake
  readonly #rules: FieldRules
  readonly #delimiter: ',' | '\t'
  readonly #rows: CsvRows
  #columns: Columns | undefined

  constructor(intake: Intake, rules: FieldRules, delimiter: ',' | '\t') {
    this.#intake = intake
    this.#rules = rules
    this.#delimiter = delimiter
    this.#rows = new CsvRows(delimiter.charCodeAt(0))
  }

  /** @throws {PlantsError} `malformed` when the header cannot be used */
  read(portion: Portion, range: { start: number; end: number }, isLast: boolean): number {
    let group: (Row | NoRow)[] = []
    let groupEnd = range.start + groupSize
    const end = this.#rows.read(portion.bytes, range, isLast, (found) => {
      if (this.#columns === undefined) return this.#takeHeader(portion.bytes, found)
      group.push(found)
      if (found.end < groupEnd) return true
      this.#takeAll(group, portion, this.#columns)
      group = []
      groupEnd = found.end + groupSize
      return !portion.isFull
    })
    if (this.#columns) this.#takeAll(group, portion, this.#columns)
    return end
  }

  save(): FormatState {
    return { ...this.#rows.save(), header: this.header.toString() }
  }

  restore(state: FormatState): void {
    const header = Buffer.from(String(state['header']))
    this.header = header
    this.#columns = undefined
    const rows = new CsvRows(this.#delimiter.charCodeAt(0))
    rows.read(header, { start: 0, end: header.length }, true, (found) => this.#takeHeader(header, found))
    this.#rows.restore(state)
  }

  #takeHeader(bytes: Buffer, found: Row | NoRow): true {
    if ('error' in found && bytes.subarray(found.start, found.end).includes('\r')) throw carriageReturns()
    const [cells] = 'error' in found ? [found.error] : readCells(bytes, [found], this.#delimiter)
    if (cells === undefined || cells instanceof RecordError) {
      const hint = 'The first line must name the columns, for example: id,name,tag'
      throw new PlantsError('malformed', `The header cannot be read: ${cells?.message}`, { hint })
    }
    this.#columns = readHeader(cells, this.#rules)
    this.header = Buffer.from(bytes.subarray(found.start, found.end))
    return true
  }

  #takeAll(group: readonly (Row | NoRow)[], portion: Portion, columns: Columns): void {
    const rows = group.filter((found) => 'textEnd' in found)
    const cells = readCells(portion.bytes, rows, this.#delimiter).values()
    for (const found of group) {
      const result = 'textEnd' in found ? cells.next().value : found.error
      if (result === undefined || result instanceof RecordError) portion.addProblem(result, placeOf(found))
      else if ('textEnd' in found) this.#take(result, found, portion, columns)
    }
  }

  #take(cells: readonly string[], row: Row, portion: Portion, columns: Columns): void {
    const { names, others } = columns
    if (cells.length !== names.length) {
      const error = new RecordError(
        'malformed',
        `The row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}, but the header has ${names.length}`,
      )
      return void portion.addProblem(error, placeOf(row))
    }
    const filled = others.filter((index) => cells[index] !== '').map((index) => [names[index], cells[index]])
    const value: Record<string, unknown> = Object.create(null) // where every name is just a name
    for (const [other = '', cell] of filled) value[other] = cell
    const isThere = (index: number) => cells[index] !== '' || this.#isQuoted(index, row, portion)
    const [id, name, tag] = [cells[columns.id], cells[columns.name], cells[columns.tag]]
    if (id !== undefined && isThere(columns.id)) value[names[columns.id] ?? ''] = parseInt64(id) ?? id
    value[names[columns.name] ?? ''] = name
    if (tag !== undefined && isThere(columns.tag)) value[names[columns.tag] ?? ''] = tag
    this.#intake.take(value, placeOf(row), portion)
  }

  #isQuoted(index: number, row: Row, portion: Portion): boolean {
    return row.isQuoted && isCellQuoted(portion.bytes, row, index, this.#delimiter.charCodeAt(0))
  }
}

function placeOf({ start, end, line }: Row | NoRow): Place {
  return { start, end, line }
}

/** bytes that are parsed at once: enough that a call costs little, and few enough that their cells do not grow old */
const groupSize = 65_536
