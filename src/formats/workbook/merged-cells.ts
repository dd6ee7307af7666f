import type { Header } from '../chunk.js'
import { parseRange } from './references.js'

/**
 * Finds merged cells of which only the first has a value, so that records lack theirs. A sheet
 * lists its merged cells after all rows.
 */
export class MergedCells {
  /** The first range below the header that has a column of a field. */
  firstRange: string | undefined
  #header: Header | undefined

  setHeader(header: Header): void {
    this.#header = header
  }

  /** Adds the reference of a range, such as `C2:C4`. A reference that is not valid is ignored. */
  add(reference: string): void {
    const range = parseRange(reference)
    if (!range || !this.#header || this.firstRange !== undefined) return
    const { columns, line = 0 } = this.#header
    const hasField = [...columns.values()]
      .flat()
      .some((column) => column >= range.firstColumn && column <= range.lastColumn)
    if (hasField && range.lastRow > line) this.firstRange = reference
  }
}
