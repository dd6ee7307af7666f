/*
 * Reads the rows of one sheet from the elements of its XML. Programs write rows and cells in their
 * order, but need not: each row and each cell may say where it is.
 */
import { maxRecordBytes } from '../limits.js'
import { type CellContext, type RawCell, readCell } from './cells.js'
import { DamageError } from './damage.js'
import { maxRows, parseColumn } from './references.js'
import { RowBuilder, type RowOptions } from './row-builder.js'
import { StringCollector } from './texts.js'
import type { Attributes, ElementHandler } from './xml.js'

/** Reads the rows of a sheet (ECMA-376 part 1, 18.3.1.73). */
export class RowReader extends RowBuilder implements ElementHandler {
  readonly #onMergedCells: RowOptions['onMergedCells']
  readonly #inlineString = new StringCollector()
  #isInData = false
  /** How many elements of an extension (`extLst`) are open. An extension has no cells. */
  #ignoredDepth = 0
  readonly #rowNumbers = new Set<number>()
  #cell: RawCell | undefined
  /** The open element of the cell, to which the next characters belong: `v` or `is`. */
  #openContent: 'value' | 'inlineString' | undefined
  #value = ''

  constructor(
    options: RowOptions,
    private readonly context: CellContext,
  ) {
    super(options)
    this.#onMergedCells = options.onMergedCells
  }

  openElement(name: string, attributes: Attributes): void {
    if (name === 'sheetData') this.#isInData = true
    else if (this.#ignoredDepth > 0 || name === 'extLst') this.#ignoredDepth += 1
    else if (this.#cell) this.#openInCell(name, this.#cell)
    else if (name === 'c' && this.row) this.#openCell(attributes)
    else if (name === 'row' && this.#isInData) this.#openRow(attributes['r'])
    else if (name === 'mergeCell') this.#onMergedCells?.(attributes['ref'] ?? '')
  }

  addText(text: string): void {
    if (this.#ignoredDepth > 0) return
    if (this.#openContent === 'inlineString') this.#inlineString.addText(text)
    else if (this.#openContent === 'value') this.#value += text
    // A cell may have a million texts, so only their length is compared here. `endRow` measures
    // the row in bytes.
    const { length } =
      this.#openContent === 'inlineString' ? this.#inlineString.content : this.#value
    if (length > maxRecordBytes) throw this.createSizeError()
  }

  closeElement(name: string): void {
    if (this.#ignoredDepth > 0) this.#ignoredDepth -= 1
    else if (name === 'c' && this.#cell) this.#closeCell(this.#cell)
    else if (this.#cell) this.#closeInCell(name, this.#cell)
    else if (name === 'row' && this.row) this.endRow(this.row)
    else if (name === 'sheetData') this.#isInData = false
  }

  /** @param reference the number of the row; a row without one follows the row before it */
  #openRow(reference: string | undefined): void {
    const rowNumber = reference === undefined ? this.rowNumber + 1 : Number(reference)
    if (rowNumber > maxRows) throw new DamageError(`it has more than ${maxRows} rows`)
    if (!Number.isInteger(rowNumber) || rowNumber < 1 || this.#rowNumbers.has(rowNumber))
      throw new DamageError(`a row after row ${this.rowNumber} says that it is row ${reference}`)
    this.#rowNumbers.add(rowNumber)
    this.beginRow(rowNumber)
  }

  #openCell({ r: reference, t: type = 'n', s: format = '0' }: Attributes): void {
    if (reference !== undefined) this.column = this.#parseReference(reference)
    if (this.row?.[this.column] !== undefined)
      throw new DamageError(`row ${this.rowNumber} has two cells in one column`)
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
    if (Number(row) === this.rowNumber) return parseColumn(letters)
    throw new DamageError(`row ${this.rowNumber} has a cell with an invalid reference`)
  }

  #openInCell(name: string, cell: RawCell): void {
    if (this.#openContent === 'inlineString') this.#inlineString.openElement(name)
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
    this.addCell(readCell(cell, this.context))
  }
}
