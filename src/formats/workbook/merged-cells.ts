/*
 * Finds the fields that records lack because cells of a sheet are merged.
 *
 * Only the first of the merged cells has the value. A reader sees the others as empty. A sheet
 * lists its merged ranges after all of its rows, and there may be a million of them. So
 * `MergedCells` keeps no ranges. It keeps one byte for each row, which says what fields the row
 * has. When a range is read, it is compared with the rows, and only the fields that some record
 * lacks are kept.
 */
import type { FieldName } from '../../plant/fields.js'
import type { Cells, Header } from '../chunk.js'
import { maxRows, parseRange, type Range } from './references.js'

interface FieldColumn {
  field: FieldName
  column: number
  /** The bit of the field in `#filledFields`. */
  bit: number
}

export class MergedCells {
  /** The fields that records lack. They are known when the sheet is read to its end. */
  readonly fields = new Set<FieldName>()
  #fieldColumns: readonly FieldColumn[] = []
  #headerRow = 0
  /**
   * The byte of a row has the bits of the fields whose cells are not empty. The row of a record has
   * at least one bit.
   */
  #filledFields = new Uint8Array(1024)
  /**
   * How many rows may still be compared. Merged ranges never overlap, so those of the three columns
   * have this many rows at most. A damaged sheet may have ranges that overlap a million times.
   */
  #remainingRows = 3 * maxRows

  /** Sets the columns to look at. It must be called before the first row is added. */
  setHeader({ columns, line = 0 }: Header): void {
    this.#headerRow = line
    this.#fieldColumns = Array.from(columns, ([field, column], index) => ({
      field,
      column,
      bit: 1 << index,
    }))
  }

  addRow(rowNumber: number, row: Cells): void {
    let filledFields = 0
    for (const { column, bit } of this.#fieldColumns)
      if (row[column] !== undefined) filledFields |= bit
    if (filledFields === 0) return
    this.#growTo(rowNumber)
    this.#filledFields[rowNumber] = filledFields
  }

  /** Adds merged cells, after all rows. A reference that is not valid is ignored. */
  addRange(reference: string): void {
    const range = parseRange(reference)
    if (!range || range.firstRow <= this.#headerRow || this.#isBlank(range)) return
    for (const { field, column, bit } of this.#fieldColumns) {
      const isInRange = column >= range.firstColumn && column <= range.lastColumn
      if (isInRange && !this.fields.has(field) && this.#hidesField(range, bit))
        this.fields.add(field)
    }
  }

  #growTo(rowNumber: number): void {
    const { length } = this.#filledFields
    if (rowNumber < length) return
    const doubledLength = Math.min(2 * length, maxRows + 1)
    const grown = new Uint8Array(Math.max(rowNumber + 1, doubledLength))
    grown.set(this.#filledFields)
    this.#filledFields = grown
  }

  /** Whether the merged cells have no value. That of a column that is not read is not known. */
  #isBlank({ firstColumn, firstRow }: Range): boolean {
    const firstField = this.#fieldColumns.find(({ column }) => column === firstColumn)
    return firstField !== undefined && !this.#hasField(firstRow, firstField.bit)
  }

  /** Whether a range covers several records, at least one of which lacks the field. */
  #hidesField({ firstRow, lastRow }: Range, bit: number): boolean {
    let recordCount = 0
    let isFieldMissing = false
    const end = Math.min(lastRow + 1, this.#filledFields.length, firstRow + this.#remainingRows)
    for (let row = firstRow; row < end; row += 1) {
      this.#remainingRows -= 1
      if (this.#filledFields[row] === 0) continue
      recordCount += 1
      isFieldMissing ||= !this.#hasField(row, bit)
      if (recordCount > 1 && isFieldMissing) return true
    }
    return false
  }

  #hasField(row: number, bit: number): boolean {
    return ((this.#filledFields[row] ?? 0) & bit) !== 0
  }
}
