/*
 * Reads the rows of one sheet from the elements of its XML. Programs write rows and cells in their
 * order, but need not: each row and each cell may say where it is.
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
import { type CellContext, type RawCell, readCell } from './cells.js'
import { DamageError } from './damage.js'
import { maxColumns, maxRows, parseColumn } from './references.js'
import { StringCollector } from './texts.js'
import type { Attributes, ElementHandler } from './xml.js'

export interface RowOptions {
  /** The file, for messages. */
  file: string
  context: CellContext
  /** Cells from this column on are ignored. */
  width: number
  /** Gets the reference of each range of merged cells, after all rows. */
  onMergedCells?: ((reference: string) => void) | undefined
}

/** Gathers the rows of a sheet (ECMA-376 part 1, 18.3.1.73) in chunks, without empty rows. */
export class RowReader implements ElementHandler {
  #chunk = new RawChunk<Cells>()
  readonly #file: string
  readonly #context: CellContext
  readonly #width: number
  readonly #onMergedCells: RowOptions['onMergedCells']
  readonly #inlineString = new StringCollector()
  #isInData = false
  /** How many elements of an extension (`extLst`) are open. An extension has no cells. */
  #ignoredDepth = 0
  #rowNumber = 0
  readonly #rowNumbers = new Set<number>()
  #row: Cell[] | undefined
  /** The length of all strings of the row, in UTF-16 units. */
  #rowLength = 0
  /** Whether the row has a cell to the right of the header. */
  #hasSurplus = false
  /** The column of the next cell, from 0 on, unless the cell has a reference such as `AB7`. */
  #column = 0
  #cell: RawCell | undefined
  /** The open element of the cell, to which the next characters belong: `v` or `is`. */
  #openContent: 'value' | 'inlineString' | undefined
  #value = ''

  constructor({ file, context, width, onMergedCells }: RowOptions) {
    this.#file = file
    this.#context = context
    this.#width = width
    this.#onMergedCells = onMergedCells
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

  openElement(name: string, attributes: Attributes): void {
    if (name === 'sheetData') this.#isInData = true
    else if (this.#ignoredDepth > 0 || this.#isExtension(name)) this.#ignoredDepth += 1
    else if (this.#cell) this.#openInCell(name, this.#cell)
    else if (name === 'c' && this.#row) this.#openCell(attributes)
    else if (name === 'row' && this.#isInData) this.#openRow(attributes['r'])
    else if (name === 'mergeCell') this.#onMergedCells?.(attributes['ref'] ?? '')
  }

  addText(text: string): void {
    if (this.#ignoredDepth > 0) return
    if (this.#openContent === 'inlineString') this.#inlineString.addText(text)
    else if (this.#openContent === 'value') this.#value += text
    // A cell may have a million texts, so only their length is compared here. `#closeRow` measures
    // the row in bytes.
    const { length } =
      this.#openContent === 'inlineString' ? this.#inlineString.content : this.#value
    if (length > maxRecordBytes) throw this.#createSizeError()
  }

  closeElement(name: string): void {
    if (this.#ignoredDepth > 0) this.#ignoredDepth -= 1
    else if (name === 'c' && this.#cell) this.#closeCell(this.#cell)
    else if (this.#cell) this.#closeInCell(name, this.#cell)
    else if (name === 'row' && this.#row) this.#closeRow(this.#row)
    else if (name === 'sheetData') this.#isInData = false
  }

  /** A sheet, a row or a cell may have an extension. In a value or a string, it is damage. */
  #isExtension(name: string): boolean {
    return name === 'extLst' && this.#openContent === undefined
  }

  /** @param reference the number of the row; a row without one follows the row before it */
  #openRow(reference: string | undefined): void {
    if (this.#row) throw new DamageError(`row ${this.#rowNumber} contains another row`)
    const rowNumber = reference === undefined ? this.#rowNumber + 1 : Number(reference)
    if (rowNumber > maxRows) throw new DamageError(`it has more than ${maxRows} rows`)
    if (!Number.isInteger(rowNumber) || rowNumber < 1 || this.#rowNumbers.has(rowNumber))
      throw new DamageError(`a row after row ${this.#rowNumber} says that it is row ${reference}`)
    this.#rowNumber = rowNumber
    this.#rowNumbers.add(rowNumber)
    this.#row = []
    this.#rowLength = 0
    this.#column = 0
    this.#hasSurplus = false
  }

  #closeRow(row: Cell[]): void {
    this.#row = undefined
    const chunk = this.#chunk
    if (this.#hasSurplus) chunk.surplusRows += 1
    chunk.characters += this.#rowLength + row.length + 1
    // A UTF-16 unit has at most three bytes in UTF-8, so most rows need not be measured.
    if (this.#rowLength > maxRecordBytes / 3 && isTooLarge(joinStrings(row)))
      throw this.#createSizeError()
    if (row.length === 0 && !this.#hasSurplus) return
    // A row has all cells of the header. Those that are not saved take no room in the array.
    if (Number.isFinite(this.#width)) row.length = this.#width
    chunk.add(row, this.#rowNumber)
  }

  #openCell({ r: reference, t: type = 'n', s: format = '0' }: Attributes): void {
    if (reference !== undefined) this.#column = this.#parseReference(reference)
    if (this.#row?.[this.#column] !== undefined)
      throw new DamageError(`row ${this.#rowNumber} has two cells in one column`)
    this.#cell = {
      type,
      format: Number(format),
      hasFormula: false,
      value: undefined,
      inlineString: undefined,
    }
  }

  /** @throws {DamageError} if a reference such as `AB7` is not valid, or names another row */
  #parseReference(reference: string): number {
    const [, letters = '', row] = /^([A-Z]{1,3})(\d{1,7})$/.exec(reference) ?? []
    if (Number(row) === this.#rowNumber) return parseColumn(letters)
    throw new DamageError(`row ${this.#rowNumber} has a cell with an invalid reference`)
  }

  #openInCell(name: string, cell: RawCell): void {
    if (this.#openContent === 'inlineString') this.#inlineString.openElement(name)
    else if (this.#openContent === 'value') throw new DamageError('a cell value contains elements')
    else if (name === 'f') cell.hasFormula = true
    else if (name === 'v') this.#openValue(cell)
    else if (name === 'is') this.#openInlineString(cell)
  }

  #openValue(cell: RawCell): void {
    if (cell.value !== undefined) throw new DamageError('a cell has two values')
    cell.value = ''
    this.#value = ''
    this.#openContent = 'value'
  }

  #openInlineString(cell: RawCell): void {
    if (cell.inlineString !== undefined) throw new DamageError('a cell has two inline strings')
    cell.inlineString = ''
    this.#inlineString.reset()
    this.#openContent = 'inlineString'
  }

  #closeInCell(name: string, cell: RawCell): void {
    if (this.#openContent === 'inlineString' && name !== 'is') {
      this.#inlineString.closeElement(name)
      return
    }
    if (this.#openContent === 'inlineString') cell.inlineString = this.#inlineString.content
    if (this.#openContent === 'value') cell.value = this.#value
    this.#openContent = undefined
  }

  #closeCell(cell: RawCell): void {
    this.#cell = undefined
    this.#addCell(readCell(cell, this.#context))
  }

  #addCell(cell: Cell): void {
    const column = this.#column
    this.#column += 1
    if (column >= maxColumns)
      throw new DamageError(`row ${this.#rowNumber} has more than ${maxColumns} cells`)
    if (cell === undefined || !this.#row) return
    this.#rowLength += (typeof cell === 'string' ? cell : cell.text).length
    if (this.#rowLength > maxRecordBytes) throw this.#createSizeError()
    if (column >= this.#width) {
      this.#hasSurplus = true
      return
    }
    // The cells before this one that the workbook does not save take no room in the array.
    this.#row[column] = cell
  }

  #createSizeError(): Error {
    return createBrokenRecordError(this.#file, this.#rowNumber, recordTooLargeReason)
  }
}

function joinStrings(row: Cells): string {
  return row.map((cell) => (typeof cell === 'object' ? cell.text : cell)).join('')
}
