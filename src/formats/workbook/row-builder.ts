/*
 * Builds the rows of one sheet from its cells.
 */
import {
  type Cell,
  type Cells,
  createBrokenRecordError,
  isTooLarge,
  maxRecordBytes,
  RawChunk,
  recordTooLargeReason,
} from '../chunk.js'
import { DamageError } from './damage.js'
import { maxColumns } from './references.js'

export interface RowOptions {
  /** The file, for messages. */
  file: string
  /** Cells from this column on are ignored. */
  width: number
  /** Gets the reference of each range of merged cells, such as `C2:C4`. */
  onMergedCells?: ((reference: string) => void) | undefined
}

/** Gathers the rows of a sheet in chunks, without empty rows. */
export class RowBuilder {
  /** The column of the next cell, from 0 on. */
  protected column = 0
  /** The number of the row, from 1 on. */
  protected rowNumber = 0
  /** The open row. Cells that the workbook does not save take no room in the array. */
  protected row: Cell[] | undefined
  #chunk = new RawChunk<Cells>()
  readonly #file: string
  readonly #width: number
  /** The length of all strings of the row, in UTF-16 units. */
  #rowLength = 0
  /** Whether the row has a cell to the right of the header. */
  #hasSurplus = false

  constructor({ file, width }: RowOptions) {
    this.#file = file
    this.#width = width
  }

  get isFull(): boolean {
    return this.#chunk.isFull
  }

  /** The number of rows that were read since the last call of `takeChunk`. */
  get length(): number {
    return this.#chunk.length
  }

  /** Returns the rows that were read since the last call. */
  takeChunk(): RawChunk<Cells> {
    const chunk = this.#chunk
    this.#chunk = new RawChunk()
    return chunk
  }

  protected beginRow(rowNumber: number): void {
    this.rowNumber = rowNumber
    this.row = []
    this.#rowLength = 0
    this.column = 0
    this.#hasSurplus = false
  }

  protected endRow(row: Cell[]): void {
    this.row = undefined
    const chunk = this.#chunk
    // A UTF-16 unit has at most three bytes in UTF-8, so most rows need not be measured.
    if (this.#rowLength > maxRecordBytes / 3 && isTooLarge(joinStrings(row)))
      throw this.createSizeError()
    chunk.characters += this.#rowLength + row.length + 1
    if (row.length === 0 && !this.#hasSurplus) return
    if (this.#hasSurplus) chunk.surplusRows += 1
    // A row has all cells of the header. Those that are not saved take no room in the array.
    if (Number.isFinite(this.#width)) row.length = this.#width
    chunk.add(row, this.rowNumber)
  }

  protected addCell(cell: Cell): void {
    const column = this.column
    this.column += 1
    if (column >= maxColumns)
      throw new DamageError(`row ${this.rowNumber} has more than ${maxColumns} cells`)
    if (cell === undefined || !this.row) return
    const { length } = typeof cell === 'string' ? cell : cell.text
    this.#rowLength += length
    if (this.#rowLength > maxRecordBytes) throw this.createSizeError()
    if (column < this.#width) this.row[column] = cell
    else this.#hasSurplus = true
  }

  protected createSizeError(): Error {
    return createBrokenRecordError(this.#file, this.rowNumber, recordTooLargeReason)
  }
}

function joinStrings(row: Cells): string {
  return row.map((cell) => (typeof cell === 'object' ? cell.text : cell)).join('')
}
