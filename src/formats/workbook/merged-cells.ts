import { parseRange } from './references.js'

/**
 * Finds merged cells of which only the first has a value, so that records lack theirs. A sheet
 * lists its merged cells after all rows.
 */
export class MergedCells {
  /** The first range below the header that has a column of the records. */
  firstRange: string | undefined

  /** @param columns the indexes of the columns that are read */
  constructor(
    private readonly headerLine: number,
    private readonly columns: readonly number[],
  ) {}

  /** Adds the reference of a range, such as `C2:C4`. A reference that is not valid is ignored. */
  add(reference: string): void {
    if (this.firstRange !== undefined) return
    const range = parseRange(reference)
    if (!range || range.lastRow <= this.headerLine) return
    const { firstColumn, lastColumn } = range
    const isRead = this.columns.some((column) => column >= firstColumn && column <= lastColumn)
    if (isRead) this.firstRange = reference
  }
}
