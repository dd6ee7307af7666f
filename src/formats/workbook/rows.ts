/*
 * Reads the rows of one sheet from the events of its XML.
 *
 * There are two ways to a row. `xml.ts` first asks `readPlainItem` whether a row has nothing but
 * values and inline texts; nearly all rows are like this, and regular expressions read them three
 * times as fast as a parser. Any other row, such as one with a formula or with formatted text,
 * comes element by element (`openElement`, `addText`, `closeElement`). Both ways end in the same
 * `#openRow`, `#addCell` and `#closeRow`, so they cannot differ in what they check.
 */
import {
  type Cell,
  type Cells,
  Chunk,
  createBrokenRecord,
  isTooLarge,
  maxRecordBytes,
  recordTooLarge,
} from '../chunk.js'
import { type CellContext, type RawCell, readCell } from './cells.js'
import { DamageError } from './damage.js'
import { plainText, TextCollector } from './texts.js'
import type { Attributes, ElementHandler } from './xml.js'

interface RowOptions {
  /** The file, for messages. */
  file: string
  context: CellContext
  /** Cells from this column on are ignored. */
  width: number
}

/** Gathers the rows of a sheet (ECMA-376 part 1, 18.3.1.73) in chunks, without empty rows. */
export class RowReader implements ElementHandler {
  #chunk = new Chunk<Cells>()
  readonly #file: string
  readonly #context: CellContext
  readonly #width: number
  readonly #text = new TextCollector()
  #isInData = false
  /** How deep the parser is in an extension (`extLst`), which has no cell of the table. */
  #ignoredDepth = 0
  #rowNumber = 0
  #row: Cell[] | undefined
  /** The length of all texts of the row, in UTF-16 units. */
  #rowLength = 0
  /** Whether the row has a cell to the right of the header. */
  #hasSurplus = false
  /** The column of the next cell, from 0 on, unless the cell has a reference such as `AB7`. */
  #column = 0
  #cell: RawCell | undefined
  /** The open element of the cell to which the next text belongs: `v` or `is`. */
  #openContent: 'value' | 'text' | undefined
  #value = ''

  constructor({ file, context, width }: RowOptions) {
    this.#file = file
    this.#context = context
    this.#width = width
  }

  get isFull(): boolean {
    return this.#chunk.isFull
  }

  /** Returns the rows that were read since the last call. */
  takeChunk(): Chunk<Cells> {
    const chunk = this.#chunk
    this.#chunk = new Chunk()
    return chunk
  }

  readonly list = {
    parent: 'sheetData',
    item: 'row',
    readPlainItem: (text: string, start: number) => this.#readPlainRow(text, start),
  }

  openElement(name: string, attributes: Attributes): void {
    if (name === 'sheetData') this.#isInData = true
    else if (this.#ignoredDepth > 0 || this.#isExtension(name)) this.#ignoredDepth += 1
    else if (this.#cell) this.#openInCell(name, this.#cell)
    else if (name === 'c' && this.#row) this.#openCell(attributes)
    else if (name === 'row' && this.#isInData) this.#openRow(attributes['r'])
  }

  addText(text: string): void {
    if (this.#ignoredDepth > 0) return
    if (this.#openContent === 'text') this.#text.addText(text)
    else if (this.#openContent === 'value') this.#value += text
    this.#assertSize(this.#openContent === 'text' ? this.#text.text : this.#value)
  }

  closeElement(name: string): void {
    if (this.#ignoredDepth > 0) this.#ignoredDepth -= 1
    else if (name === 'c' && this.#cell) this.#closeCell(this.#cell)
    else if (this.#cell) this.#closeInCell(name, this.#cell)
    else if (name === 'row' && this.#row) this.#closeRow(this.#row)
    else if (name === 'sheetData') this.#isInData = false
  }

  /** An extension belongs to a sheet, a row or a cell. In a value or a text, it would be damage. */
  #isExtension(name: string): boolean {
    return name === 'extLst' && this.#openContent === undefined
  }

  /** @param reference the number of the row; a row without one follows the row before it */
  #openRow(reference: string | undefined): void {
    if (this.#row) throw new DamageError(`row ${this.#rowNumber} has another row`)
    const number = reference === undefined ? this.#rowNumber + 1 : Number(reference)
    if (number > maxRows) throw new DamageError(`it has more than ${maxRows} rows`)
    if (!Number.isInteger(number) || number <= this.#rowNumber)
      throw new DamageError(`a row after row ${this.#rowNumber} says that it is row ${reference}`)
    this.#rowNumber = number
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
    if (this.#rowLength > maxRecordBytes / 3) this.#assertSize(joinTexts(row))
    if (row.length > 0 || this.#hasSurplus) chunk.add(row, this.#rowNumber)
  }

  #openCell({ r: reference, t: type = 'n', s: format = '0' }: Attributes): void {
    if (reference !== undefined) {
      const [, letters, row] = /^([A-Z]{1,3})(\d{1,7})$/.exec(reference) ?? []
      this.#moveTo(letters, row)
    }
    this.#cell = createRawCell(type, format)
  }

  /**
   * Moves to the column of a cell reference, such as `AB7`, which must be to the right of the cell
   * before and in this row.
   *
   * @param row undefined if the reference is not valid, which is damage as well
   */
  #moveTo(letters = '', row?: string): void {
    const column = parseColumn(letters)
    if (Number(row) !== this.#rowNumber || column < this.#column)
      throw new DamageError(`row ${this.#rowNumber} has a cell with a wrong place`)
    this.#column = column
  }

  #openInCell(name: string, cell: RawCell): void {
    if (this.#openContent === 'text') this.#text.openElement(name)
    else if (this.#openContent === 'value') throw new DamageError('a value has elements')
    else if (name === 'f') cell.hasFormula = true
    else if (name === 'v') this.#openValue(cell)
    else if (name === 'is') this.#openText(cell)
  }

  #openValue(cell: RawCell): void {
    if (cell.value !== undefined) throw new DamageError('a cell has two values')
    cell.value = ''
    this.#value = ''
    this.#openContent = 'value'
  }

  #openText(cell: RawCell): void {
    if (cell.inlineText !== undefined) throw new DamageError('a cell has two texts')
    cell.inlineText = ''
    this.#text.reset()
    this.#openContent = 'text'
  }

  #closeInCell(name: string, cell: RawCell): void {
    if (this.#openContent === 'text' && name !== 'is') {
      this.#text.closeElement(name)
      return
    }
    if (this.#openContent === 'text') cell.inlineText = this.#text.text
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
    while (this.#row.length < column) this.#row.push(undefined)
    this.#row.push(cell)
  }

  #assertSize(text: string): void {
    if (isTooLarge(text)) throw this.#createSizeError()
  }

  #createSizeError(): Error {
    return createBrokenRecord(this.#file, this.#rowNumber, recordTooLarge)
  }

  /**
   * Reads a row whose cells have nothing but values and inline texts without markup.
   *
   * @returns the index after the row; undefined if the row has anything else, or does not end in
   * `text`. Then its cells are forgotten, and the parser reads the row from its beginning.
   */
  #readPlainRow(text: string, start: number): number | undefined {
    plainRow.lastIndex = start
    const row = plainRow.exec(text)
    if (!row) return undefined
    const rowNumberBefore = this.#rowNumber
    this.#openRow(row[1])
    plainRowEnd.lastIndex = this.#readPlainCells(text, plainRow.lastIndex)
    if (this.#row && plainRowEnd.test(text)) {
      this.#closeRow(this.#row)
      return plainRowEnd.lastIndex
    }
    this.#row = undefined
    this.#rowNumber = rowNumberBefore
    return undefined
  }

  /** @returns the index after the last plain cell */
  #readPlainCells(text: string, start: number): number {
    let end = start
    for (;;) {
      plainCell.lastIndex = end
      const parts = plainCell.exec(text)
      if (!parts) return end
      end = plainCell.lastIndex
      const [, letters, row, format, type, value, inlineText] = parts
      if (letters !== undefined) this.#moveTo(letters, row)
      const cell = createRawCell(type, format, value, inlineText)
      this.#addCell(readCell(cell, this.#context))
    }
  }
}

function joinTexts(row: Cells): string {
  return row.map((cell) => (typeof cell === 'object' ? cell.text : cell)).join('')
}

function createRawCell(type = 'n', format = '0', value?: string, inlineText?: string): RawCell {
  return { type, format: Number(format), hasFormula: false, value, inlineText }
}

/** Converts the letters of a column to its number from 0 on: `A` is 0, and `AB` is 27. */
function parseColumn(letters: string): number {
  let column = 0
  for (let index = 0; index < letters.length; index += 1)
    column = column * 26 + letters.charCodeAt(index) - 64
  return column - 1
}

/*
 * The expressions for a plain row. What they accept must be well-formed XML, because no parser sees
 * it: an attribute that is repeated is not, so `attribute` looks ahead for its name. They match at
 * one place only (flag `y`).
 */
const attribute = `(?: (?!r=)([\\w:]+)="[ !#-%'-;=?-~]*"(?![^>]* \\2=))`
const plainRow = RegExp(`<row(?: r="(\\d{1,7})")?${attribute}*>`, 'y')
const plainRowEnd = /<\/row>[ \t\r\n]*/y
const plainAttributes = '(?: r="([A-Z]{1,3})(\\d{1,7})")?(?: s="(\\d{1,6})")?(?: t="(\\w{1,9})")?'
const plainInlineText = `<is><t(?: xml:space="preserve")?>(${plainText})</t></is>`
const plainCell = RegExp(
  `<c${plainAttributes}(?:/>|>(?:<v>(${plainText})</v>|${plainInlineText})?</c>)`,
  'y',
)

/** The size of a sheet in Excel and LibreOffice. */
const maxRows = 1_048_576
const maxColumns = 16_384
