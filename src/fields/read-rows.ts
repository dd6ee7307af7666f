/*
 * Reads the fields of plants from the rows of a table: CSV, TSV or a sheet of a workbook.
 */
import { type Cell, type Cells, type Row, UnusableCell } from '../formats/reader.js'
import type { Chunk } from './chunk.js'
import type { Header } from './header.js'
import { isRoundedNumber, parseIdCell } from './parse-id-cell.js'

export class RowReader {
  readonly #width: number
  readonly #headerLine: number
  readonly #idColumn: number
  readonly #nameColumns: readonly number[]
  readonly #tagColumn: number

  constructor(
    { names, columns, line = 0 }: Header,
    private readonly isUpdate: boolean,
  ) {
    this.#width = names.length
    this.#headerLine = line
    this.#idColumn = columns.get('id')?.[0] ?? -1
    this.#nameColumns = columns.get('name') ?? []
    this.#tagColumn = columns.get('tag')?.[0] ?? -1
  }

  /** Adds a row below the header to a chunk, unless it has no id, no name and no tag. */
  read(row: Row, chunk: Chunk): void {
    const { cells, line, lineCount, hasIgnoredCells } = row
    if (line <= this.#headerLine) return
    if (hasIgnoredCells) chunk.rowsWithIgnoredCells += 1
    if (lineCount > 1) chunk.multilineRow ??= line
    chunk.characters += row.characters
    const idCell = cells[this.#idColumn]
    const tag = cells[this.#tagColumn]
    const name = this.#readName(cells)
    if (idCell === undefined && tag === undefined && (name ?? undefined) === undefined) {
      chunk.emptyRows += 1
      return
    }
    const record = row.text ?? cells
    const id = typeof idCell === 'string' ? readId(idCell) : idCell
    if (this.#hasSurplusCells(cells)) {
      const message = `The row has ${cells.length} cells, but the header has ${this.#width}`
      chunk.addProblem({ kind: 'input', message, cause: 'surplusCells', id, name }, record, line)
      return
    }
    const hasTag = this.#tagColumn !== -1 && this.#tagColumn < cells.length
    chunk.add(id, name, tag === undefined && hasTag ? null : tag, record, line)
  }

  #hasSurplusCells(cells: Cells): boolean {
    const width = this.#width
    return cells.length > width && cells.slice(width).some((cell) => cell !== undefined)
  }

  /**
   * A row of a text that is shorter than the header lacks its last cells. An update must not
   * shorten a name of which it has only a part.
   *
   * @returns null if the cells are empty, and undefined if the row lacks them
   */
  #readName(cells: Cells): unknown {
    const columns = this.#nameColumns
    const [column] = columns
    if (column === undefined) return undefined
    if (columns.length === 1) return column < cells.length ? (cells[column] ?? null) : undefined
    const isMissing = (nameColumn: number) => nameColumn >= cells.length
    if (this.isUpdate ? columns.some(isMissing) : columns.every(isMissing)) return undefined
    return joinNames(columns.map((nameColumn) => cells[nameColumn])) ?? null
  }
}

/** Reads an id. A cell that is no integer is returned as it is, or with the reason. */
function readId(cell: string): bigint | Cell {
  const id = parseIdCell(cell)
  if (typeof id === 'bigint' || !isRoundedNumber(id)) return id
  return new UnusableCell(cell, 'is a number that a spreadsheet has rounded. Enter all its digits')
}

/**
 * Joins the values of several columns or keys to a name, without the empty ones. A value that is no
 * string makes the whole name invalid.
 */
export function joinNames(values: readonly unknown[]): unknown {
  const filledValues = values.filter((value) => (value ?? '') !== '')
  const invalidValue = filledValues.find((value) => typeof value !== 'string')
  return invalidValue ?? (filledValues.join(' ') || undefined)
}
