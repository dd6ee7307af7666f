/*
 * Finds the fields of plants in the rows of a table: CSV, TSV or a sheet of a workbook.
 */
import { assertDefined } from '../errors.js'
import {
  type Cell,
  type Cells,
  Chunk,
  type FieldReader,
  type Header,
  maxUnreadNames,
  type RawChunk,
} from './chunk.js'
import { joinNames } from './columns.js'
import { isRoundedNumber, parseIdCell } from './parse-id-cell.js'

export class TableFields implements FieldReader<Cells> {
  readonly unreadNames: ReadonlySet<string>
  readonly #width: number
  readonly #headerLine: number
  readonly #idColumn: number
  readonly #nameColumns: readonly number[]
  readonly #tagColumn: number
  readonly #isUpdate: boolean

  /** @param header undefined for a table without rows */
  constructor(header: Header = emptyHeader, isUpdate = false) {
    const { names, columns, unreadNames, line = 0 } = header
    this.unreadNames = new Set(unreadNames.slice(0, maxUnreadNames))
    this.#width = names.length
    this.#headerLine = line
    this.#idColumn = columns.get('id')?.[0] ?? -1
    this.#nameColumns = columns.get('name') ?? []
    this.#tagColumn = columns.get('tag')?.[0] ?? -1
    this.#isUpdate = isUpdate
  }

  /** Leaves out the rows above the header, and those without an id, a name and a tag. */
  read({ records: rows, lines, surplusRows, multilineRow }: RawChunk<Cells>): Chunk {
    const chunk = new Chunk()
    chunk.surplusRows = surplusRows
    chunk.multilineRow = multilineRow
    for (let index = 0; index < rows.length; index += 1) {
      const line = assertDefined(lines[index])
      if (line > this.#headerLine) this.#readRow(assertDefined(rows[index]), line, chunk)
    }
    return chunk
  }

  #readRow(row: Cells, line: number, chunk: Chunk): void {
    const idCell = row[this.#idColumn]
    const tag = row[this.#tagColumn]
    const name = this.#readName(row)
    if (idCell === undefined && tag === undefined && (name ?? undefined) === undefined) {
      chunk.emptyRows += 1
      return
    }
    if (row.length > this.#width && row.slice(this.#width).some((cell) => cell !== undefined)) {
      const message = `The row has ${row.length} cells, but the header has ${this.#width}`
      chunk.addProblem({ kind: 'input', message, cause: 'surplusCells' }, row, line)
      return
    }
    chunk.ids.push(typeof idCell === 'string' ? readId(idCell) : idCell)
    chunk.names.push(name)
    const hasTag = this.#tagColumn !== -1 && this.#tagColumn < row.length
    chunk.tags.push(tag === undefined && hasTag ? null : tag)
    chunk.records.push(row)
    chunk.lines.push(line)
  }

  /**
   * A row of a text that is shorter than the header lacks its last cells. An update must not
   * shorten a name of which it has only a part.
   *
   * @returns null if the cells are empty, and undefined if the row lacks them
   */
  #readName(row: Cells): unknown {
    const columns = this.#nameColumns
    const [column] = columns
    if (column === undefined) return undefined
    if (columns.length === 1) return column < row.length ? (row[column] ?? null) : undefined
    const isMissing = (nameColumn: number) => nameColumn >= row.length
    if (this.#isUpdate ? columns.some(isMissing) : columns.every(isMissing)) return undefined
    return joinNames(columns.map((nameColumn) => row[nameColumn])) ?? null
  }
}

const emptyHeader: Header = { names: [], columns: new Map(), unreadNames: [] }

/** Reads an id. A cell that is no integer is returned as it is, or with the reason. */
function readId(cell: string): bigint | Cell {
  const id = parseIdCell(cell)
  if (typeof id === 'bigint' || !isRoundedNumber(id)) return id
  return { text: cell, reason: 'is a number that a spreadsheet has rounded. Enter all its digits' }
}
