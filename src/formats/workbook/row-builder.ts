/*
 * Builds the rows of one sheet from its cells, for the readers of both kinds of workbooks.
 */
import {
  createBrokenRecordError,
  isTooLarge,
  maxRecordBytes,
  maxUnpackedBytes,
  recordTooLargeReason,
} from '../limits.js'
import { type Cell, type Cells, maxBatchCharacters, maxBatchRecords, type Row } from '../reader.js'
import { createTooLargeError, DamageError } from './damage.js'
import { maxColumns, maxRows } from './references.js'

export interface RowOptions {
  /** The file, for messages. */
  file: string
  /** Cells from this column on are ignored. */
  width: number
  /** Gets the reference of each range of merged cells, such as `C2:C4`. */
  onMergedCells?: ((reference: string) => void) | undefined
}

/** Gathers the rows of a sheet, without empty rows. */
export class RowBuilder {
  /** The column of the next cell, from 0 on. */
  protected column = 0
  /** The number of the row, from 1 on. */
  protected rowNumber = 0
  /** The open row. Cells that the workbook does not save take no room in the array. */
  protected row: Cell[] | undefined
  #rows: Row[] = []
  /** The length of the rows since the last call of `takeRows`, in UTF-16 units. */
  protected characters = 0
  readonly #file: string
  readonly #width: number
  /** The length of all strings of the row, in UTF-16 units. */
  #rowLength = 0
  /** Whether the row has a cell to the right of the header. */
  #hasIgnoredCells = false
  /** The length of all cells and rows that the file has once, with a number of repetitions. */
  #repeatedLength = 0

  constructor({ file, width }: RowOptions) {
    this.#file = file
    this.#width = width
  }

  /** Whether there are enough rows for a batch. */
  get isFull(): boolean {
    return this.length >= maxBatchRecords || this.characters >= maxBatchCharacters
  }

  /** The number of rows that were read since the last call of `takeRows`. */
  get length(): number {
    return this.#rows.length
  }

  /** Returns the rows that were read since the last call. */
  takeRows(): Row[] {
    const rows = this.#rows
    this.#rows = []
    this.characters = 0
    return rows
  }

  protected beginRow(rowNumber: number): void {
    this.rowNumber = rowNumber
    this.row = []
    this.#rowLength = 0
    this.column = 0
    this.#hasIgnoredCells = false
  }

  /** @param count how many equal rows follow each other. They share one array. */
  protected endRow(row: Cell[], count = 1): void {
    this.row = undefined
    // A UTF-16 unit has at most three bytes in UTF-8, so most rows need not be measured.
    if (this.#rowLength > maxRecordBytes / 3 && isTooLarge(joinStrings(row)))
      throw this.createSizeError()
    const length = this.#rowLength + row.length + 1
    if (row.length === 0 && !this.#hasIgnoredCells) {
      this.characters += length
      return
    }
    if (this.rowNumber + count - 1 > maxRows)
      throw new DamageError(`it has more than ${maxRows} rows`)
    this.#countRepeated(length, count)
    this.characters += length * count
    // A row has all cells of the header. Those that are not saved take no room in the array.
    if (Number.isFinite(this.#width)) row.length = this.#width
    const hasIgnoredCells = this.#hasIgnoredCells
    for (let index = 0; index < count; index += 1) {
      const line = this.rowNumber + index
      this.#rows.push({
        cells: row,
        line,
        text: undefined,
        lineCount: 1,
        characters: length,
        hasIgnoredCells,
      })
    }
  }

  /** @param count how many equal cells follow each other */
  protected addCell(cell: Cell, count = 1): void {
    const firstColumn = this.column
    this.column += count
    if (this.column > maxColumns)
      throw new DamageError(`row ${this.rowNumber} has more than ${maxColumns} cells`)
    if (cell === undefined || !this.row) return
    const { length } = typeof cell === 'string' ? cell : cell.text
    this.#rowLength += length * count
    if (this.#rowLength > maxRecordBytes) throw this.createSizeError()
    this.#countRepeated(length + 1, count)
    if (this.column > this.#width) this.#hasIgnoredCells = true
    const endColumn = Math.min(this.column, this.#width)
    for (let column = firstColumn; column < endColumn; column += 1) this.row[column] = cell
  }

  protected createSizeError(): Error {
    return createBrokenRecordError(this.#file, this.rowNumber, recordTooLargeReason)
  }

  /** A few bytes of a file can ask for millions of equal cells, so their sum has a limit. */
  #countRepeated(length: number, count: number): void {
    this.#repeatedLength += length * (count - 1)
    if (this.#repeatedLength > maxUnpackedBytes) throw createTooLargeError(this.#file)
  }
}

function joinStrings(row: Cells): string {
  return row.map((cell) => (typeof cell === 'object' ? cell.text : cell)).join('')
}
