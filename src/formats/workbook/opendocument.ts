/*
 * Reads the sheets of an OpenDocument spreadsheet (ISO/IEC 26300-1).
 *
 * One part, `content.xml`, has all sheets. It is read once for the list of sheets with the first
 * rows of each, and once more for the rows of the sheet that is imported. Equal cells and rows that
 * follow each other are saved once, with their number: the last row of a sheet is often a million
 * empty ones.
 */
import { maxRecordBytes } from '../limits.js'
import { type Cell, maxHeadRows } from '../reader.js'
import { type Archive, maxKeptBytes } from './archive.js'
import { createTooLargeError, DamageError } from './damage.js'
import { type OpenDocumentCell, readOpenDocumentCell } from './opendocument-cells.js'
import { formatRange } from './references.js'
import { RowBuilder, type RowOptions } from './row-builder.js'
import { maxSheets, type Sheet, type Workbook } from './sheets.js'
import { type Attributes, type ElementHandler, parseWholePart } from './xml.js'

const path = 'content.xml'

export async function readOpenDocument(archive: Archive): Promise<Workbook> {
  const reader = new ContentReader({ file: archive.file, width: Infinity })
  const { sheets } = await parseWholePart(archive, path, reader)
  return {
    sheets,
    createRowReader: (sheet, options) => new ContentReader(options, sheets.indexOf(sheet)),
  }
}

/**
 * Reads the rows of one sheet, or else the first rows of all sheets. Names are compared with their
 * prefixes, which all programs take from the standard.
 */
class ContentReader extends RowBuilder implements ElementHandler {
  readonly keepsPrefixes = true
  readonly sheets: Sheet[] = []
  readonly #hiddenStyles = new Set<string>()
  #style = ''
  #sheet: Omit<Sheet, 'path'> | undefined
  #sheetCount = 0
  #headsLength = 0
  /** How many equal rows the open row stands for. */
  #rowCount = 1
  #cell: OpenDocumentCell | undefined
  /** How many elements are open that have no cells, or no text of a cell. */
  #ignoredDepth = 0

  constructor(
    private readonly options: RowOptions,
    /** The index of the only sheet whose rows are read; undefined for the first rows of all. */
    private readonly sheetIndex?: number,
  ) {
    super(options)
  }

  openElement(name: string, attributes: Attributes, parents: readonly string[]): void {
    if (parents.length === 0 && name !== 'office:document-content')
      throw new DamageError(`${path} has not the root element of OpenDocument`)
    if (this.#ignoredDepth > 0) this.#ignoredDepth += 1
    else if (this.#cell && parents.includes('text:p'))
      this.#openInParagraph(name, attributes, this.#cell)
    else if (this.#cell) this.#openInCell(name, this.#cell)
    else if (this.row) this.#openCell(name, attributes)
    else if (this.#sheet) this.#openInSheet(name, attributes)
    else if (parents.includes('office:spreadsheet')) this.#openSheet(name, attributes)
    else this.#openOutside(name, attributes)
  }

  addText(text: string, parents: readonly string[]): void {
    if (this.#cell && this.#ignoredDepth === 0 && parents.includes('text:p'))
      this.#addToCell(text, this.#cell)
  }

  #addToCell(text: string, cell: OpenDocumentCell): void {
    cell.text = (cell.text ?? '') + text
    if (cell.text.length > maxRecordBytes) throw this.createSizeError()
  }

  closeElement(name: string, parents: readonly string[]): void {
    if (this.#ignoredDepth > 0) this.#ignoredDepth -= 1
    else if (name === 'text:p' || parents.includes('text:p')) return
    else if (this.#cell) this.#closeCell(this.#cell, readOpenDocumentCell(this.#cell))
    else if (this.row) this.#closeRow(this.row)
    else if (name === 'table:table') this.#closeSheet()
  }

  #openOutside(name: string, attributes: Attributes): void {
    if (name === 'style:style') this.#style = attributes['style:name'] ?? ''
    else if (name === 'style:table-properties' && attributes['table:display'] === 'false')
      this.#hiddenStyles.add(this.#style)
    if (this.#hiddenStyles.size > maxSheets) throw createTooLargeError(this.options.file)
  }

  /** Opens a sheet, or ignores what else a spreadsheet has, such as its tracked changes. */
  #openSheet(name: string, attributes: Attributes): void {
    const isRead = this.sheetIndex === undefined || this.sheetIndex === this.#sheetCount
    if (name === 'table:table') this.#sheetCount += 1
    if (this.#sheetCount > maxSheets) throw createTooLargeError(this.options.file)
    if (name !== 'table:table' || !isRead) {
      this.#ignoredDepth = 1
      return
    }
    const { 'table:name': sheet = '', 'table:style-name': style = '' } = attributes
    this.#sheet = { name: sheet, isHidden: this.#hiddenStyles.has(style) }
    this.rowNumber = 0
    this.#rowCount = 1
  }

  #closeSheet(): void {
    const sheet = this.#sheet
    this.#sheet = undefined
    if (!sheet || this.sheetIndex !== undefined) return
    this.#headsLength += this.characters
    const head = this.takeRows()
    if (this.#headsLength > maxKeptBytes) throw createTooLargeError(this.options.file)
    this.sheets.push({ ...sheet, path, head })
  }

  #openInSheet(name: string, attributes: Attributes): void {
    const isRead = this.sheetIndex !== undefined || this.length < maxHeadRows
    if (name === 'table:table-row' && isRead) {
      this.beginRow(this.rowNumber + this.#rowCount)
      this.#rowCount = parseCount(attributes, 'table:number-rows-repeated')
    } else if (!rowGroups.has(name)) this.#ignoredDepth = 1
  }

  #closeRow(row: Cell[]): void {
    const isHead = this.sheetIndex === undefined
    this.endRow(row, isHead ? Math.min(this.#rowCount, maxHeadRows) : this.#rowCount)
  }

  #openCell(name: string, attributes: Attributes): void {
    if (name !== 'table:table-cell' && name !== 'table:covered-table-cell')
      throw new DamageError(`row ${this.rowNumber} contains the element ${name}`)
    this.#cell = { attributes, text: undefined, unreadElement: undefined }
  }

  #closeCell({ attributes }: OpenDocumentCell, cell: Cell): void {
    this.#cell = undefined
    const columns = parseCount(attributes, 'table:number-columns-spanned')
    const rows = parseCount(attributes, 'table:number-rows-spanned')
    if (columns > 1 || rows > 1)
      this.options.onMergedCells?.(formatRange(this.column, this.rowNumber, columns, rows))
    this.addCell(cell, parseCount(attributes, 'table:number-columns-repeated'))
  }

  /** A cell has paragraphs, and may have what is no text of it, such as an annotation. */
  #openInCell(name: string, cell: OpenDocumentCell): void {
    if (name === 'text:p') this.#addToCell(cell.text === undefined ? '' : '\n', cell)
    else {
      this.#ignoredDepth = 1
      if (name.startsWith('text:')) cell.unreadElement = name
    }
  }

  #openInParagraph(name: string, attributes: Attributes, cell: OpenDocumentCell): void {
    if (name === 'text:s') this.#addToCell(' '.repeat(parseCount(attributes, 'text:c')), cell)
    else if (name === 'text:tab') this.#addToCell('\t', cell)
    else if (name === 'text:line-break') this.#addToCell('\n', cell)
    else if (name !== 'text:span' && name !== 'text:a') {
      this.#ignoredDepth = 1
      cell.unreadElement = name
    }
  }
}

/** @throws {DamageError} if the number of equal cells, rows or spaces is not valid */
function parseCount(attributes: Attributes, name: string): number {
  const count = attributes[name] ?? '1'
  if (/^[1-9]\d{0,6}$/.test(count)) return Number(count)
  throw new DamageError(`${name} has the invalid value ${JSON.stringify(count)}`)
}

/** The elements between a sheet and its rows, which show how the rows are grouped. */
const rowGroups = new Set(['table:table-header-rows', 'table:table-rows', 'table:table-row-group'])
