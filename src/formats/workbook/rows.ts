/*
 * Reads the rows of one sheet from the elements of its XML. Programs write rows and cells in their
 * order, but need not: each row and each cell may say where it is.
 */
import { maxRecordBytes } from '../limits.js'
import { type CellContext, type RawCell, readCell } from './cells.js'
import { DamageError } from './damage.js'
import { maxRows, parseColumn } from './references.js'
import { RowBuilder, type RowOptions } from './row-builder.js'
import { isStringText } from './texts.js'
import type { Attributes, ElementHandler } from './xml.js'

/** Reads the rows of a sheet (ECMA-376 part 1, 18.3.1.73). */
export class RowReader extends RowBuilder implements ElementHandler {
  readonly #onMergedCells: RowOptions['onMergedCells']
  readonly #rowNumbers = new Set<number>()
  #cell: RawCell | undefined

  constructor(
    options: RowOptions,
    private readonly context: CellContext,
  ) {
    super(options)
    this.#onMergedCells = options.onMergedCells
  }

  openElement(name: string, attributes: Attributes, parents: readonly string[]): void {
    // An extension has no cells.
    if (parents.includes('extLst')) return
    if (this.#cell) this.#openInCell(name, this.#cell)
    else if (name === 'c' && this.row) this.#openCell(attributes)
    else if (name === 'row' && parents.includes('sheetData')) this.#openRow(attributes['r'])
    else if (name === 'mergeCell') this.#onMergedCells?.(attributes['ref'] ?? '')
  }

  addText(text: string, parents: readonly string[]): void {
    const cell = this.#cell
    if (!cell || parents.includes('extLst')) return
    if (parents.at(-1) === 'v') cell.value += text
    else if (isStringText(parents)) cell.inlineString += text
    // A cell may have a million texts, so only their length is compared here. `endRow` measures
    // the row in bytes.
    const { value = '', inlineString = '' } = cell
    if (Math.max(value.length, inlineString.length) > maxRecordBytes) throw this.createSizeError()
  }

  closeElement(name: string, parents: readonly string[]): void {
    if (parents.includes('extLst')) return
    if (name === 'c' && this.#cell) this.#closeCell(this.#cell)
    else if (name === 'row' && this.row) this.endRow(this.row)
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
    if (name === 'f') cell.hasFormula = true
    else if (name === 'is') cell.inlineString = ''
    if (name !== 'v') return
    if (cell.value !== undefined) throw new DamageError('a cell has two values')
    cell.value = ''
  }

  #closeCell(cell: RawCell): void {
    this.#cell = undefined
    this.addCell(readCell(cell, this.context))
  }
}
