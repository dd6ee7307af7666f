/*
 * Reads a workbook as a table: one of Excel (ECMA-376), or an OpenDocument spreadsheet.
 *
 * A workbook is a ZIP archive of XML parts. To get from bytes to rows, `archive.ts` unpacks a part,
 * `xml.ts` parses the part block by block, `sheets.ts` lists the sheets and reads what all sheets
 * share, and `rows.ts` reads the rows of one sheet. `cells.ts` converts each cell to a string.
 * `opendocument.ts` does what `sheets.ts` and `rows.ts` do.
 *
 * The whole archive is in memory, because a ZIP archive has its directory at its end. Of the
 * unpacked parts, only the shared strings and the formats of cells stay in memory.
 *
 * An import opens a workbook twice with this reader. The first time, it examines the workbook: it
 * reads the whole sheet, so that damage is found before anything is stored. The second time, it
 * imports the rows. docs/design/decisions.md says why a workbook is read twice.
 */
import { assertDefined, createInputError } from '../../errors.js'
import {
  type Cell,
  type Cells,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  maxUnpackedBytes,
  RawChunk,
  type TableHead,
} from '../chunk.js'
import { foldName, listNames } from '../columns.js'
import { createReader, findHeader, maxHeaderRows, rateTable } from '../header.js'
import { Archive } from './archive.js'
import { createTooLargeError, DamageError, explainDamage } from './damage.js'
import { createCompoundFileError, identifyWorkbook, isCompoundFile } from './identify.js'
import { MergedCells } from './merged-cells.js'
import { readOpenDocument } from './opendocument.js'
import type { RowOptions } from './row-builder.js'
import { readWorkbook, type Sheet, type Workbook } from './sheets.js'
import { parsePart } from './xml.js'

/**
 * Opens the sheet that the options name, or else the first visible sheet that has the columns.
 *
 * @throws {PlantsError} `input` for a damaged workbook, or if no sheet has the columns
 */
export async function openWorkbook(
  input: FormatInput,
  options: InputOptions,
): Promise<FormatReader> {
  const { name: file, signal } = input
  const bytes = await gatherBytes(input)
  if (isCompoundFile(bytes)) throw createCompoundFileError(file, bytes)
  try {
    const archive = await Archive.open(bytes, file, signal)
    const workbook = await workbookReaders[await identifyWorkbook(archive, file)](archive, file)
    const reader = new WorkbookReader(archive, workbook, file, options)
    const table = await reader.openTable()
    // A file was examined before this, which has found any damage. A pipe cannot be examined, so
    // its rows are read to the end here.
    if (input.isReadOnce) for await (const _ of (await reader.openTable()).chunks);
    return table
  } catch (error) {
    throw explainDamage(file, error)
  }
}

const workbookReaders = { xlsx: readWorkbook, ods: readOpenDocument }

async function gatherBytes({ name, blocks }: FormatInput): Promise<Buffer> {
  const gatheredBlocks: Buffer[] = []
  let lengthBytes = 0
  for await (const block of blocks) {
    lengthBytes += block.length
    if (lengthBytes > maxUnpackedBytes) throw createTooLargeError(name)
    gatheredBlocks.push(block)
  }
  return Buffer.concat(gatheredBlocks)
}

class WorkbookReader {
  readonly #archive: Archive
  readonly #workbook: Workbook
  readonly #file: string
  readonly #options: InputOptions
  /** The number of cells in the first rows of all sheets that were read, with the empty ones. */
  #headCells = 0

  constructor(archive: Archive, workbook: Workbook, file: string, options: InputOptions) {
    this.#archive = archive
    this.#workbook = workbook
    this.#file = file
    this.#options = options
  }

  async openTable(): Promise<FormatReader> {
    const { sheets } = this.#workbook
    const candidates = this.#findSheets(sheets)
    const { sheet, head, heads } = await this.#chooseSheet(candidates)
    const mergedCells = new MergedCells()
    const rows = this.#readRows(sheet, {
      width: this.#countColumns(head),
      onMergedCells: (reference) => mergedCells.add(reference),
    })
    const source = {
      name: this.#file,
      sheet: sheet.name,
      heads,
      sheets: sheets.map(describeSheet),
    }
    const reader = createReader(head, rows, this.#options, source)
    // No row is read before this function has returned.
    if (reader.header) mergedCells.setHeader(reader.header)
    const laterSheets = candidates.slice(candidates.indexOf(sheet) + 1)
    return { ...reader, otherSheet: await this.#findSheet(laterSheets), mergedCells }
  }

  /**
   * Chooses the first sheet that has the columns. If no sheet has them, it chooses the one that
   * looks most like a list, and the error about missing columns then names the columns of that
   * sheet.
   */
  async #chooseSheet(
    sheets: readonly Sheet[],
  ): Promise<{ sheet: Sheet; head: RawChunk<Cells>; heads: TableHead[] }> {
    const heads: TableHead[] = []
    for (const sheet of sheets) {
      const head = await this.#readHead(sheet)
      const tableHead = { sheet: sheet.name, rows: head }
      if (this.#hasColumns(head)) return { sheet, head, heads: [tableHead] }
      heads.push(tableHead)
    }
    const ratings = heads.map(({ rows }) => rateTable(rows))
    const index = ratings.indexOf(Math.max(...ratings))
    return {
      sheet: assertDefined(sheets[index]),
      head: assertDefined(heads[index]).rows,
      heads,
    }
  }

  /** Finds the name of the first sheet that has the columns. */
  async #findSheet(sheets: readonly Sheet[]): Promise<string | undefined> {
    for (const sheet of sheets) if (this.#hasColumns(await this.#readHead(sheet))) return sheet.name
    return undefined
  }

  /** Finds the sheet that `--sheet` names, or else the visible ones. */
  #findSheets(sheets: readonly Sheet[]): Sheet[] {
    const { sheet: requestedSheet } = this.#options
    return requestedSheet === undefined
      ? findVisibleSheets(sheets, this.#file)
      : [findSheet(requestedSheet, sheets, this.#file)]
  }

  #hasColumns(head: RawChunk<Cells>): boolean {
    return findHeader(head, this.#options) !== undefined
  }

  /**
   * Counts the columns of the table. Cells to the right of them, such as a remark next to the list,
   * are ignored.
   */
  #countColumns(head: RawChunk<Cells>): number {
    const { columns } = this.#options
    if (columns) return columns.length
    const location = findHeader(head, this.#options)
    return (location && head.records[location.row]?.length) ?? Infinity
  }

  /** Reads the first rows of a sheet. They may be out of order in the file. */
  async #readHead(sheet: Sheet): Promise<RawChunk<Cells>> {
    const rows: { line: number; row: Cells }[] = []
    const chunks = sheet.head
      ? [sheet.head]
      : this.#readRows(sheet, { width: Infinity }, maxHeaderRows)
    for await (const { records, lines } of chunks) {
      for (const [index, row] of records.entries())
        rows.push({ line: assertDefined(lines[index]), row })
      if (rows.length >= maxHeaderRows) break
    }
    rows.sort((a, b) => a.line - b.line)
    const head = new RawChunk<Cells>()
    for (const { row, line } of rows.slice(0, maxHeaderRows)) head.add(this.#fillRow(row), line)
    return head
  }

  /** Adds the empty cells that are not saved. Thousands of sheets may lack millions of them. */
  #fillRow(row: Cells): Cells {
    this.#headCells += row.length
    if (this.#headCells > maxHeadCells) throw createTooLargeError(this.#file)
    return Object.assign(Array<Cell>(row.length).fill(undefined), row)
  }

  /** @param chunkRows a chunk is yielded when it has this many rows, or when it is full */
  async *#readRows(
    sheet: Sheet,
    options: Omit<RowOptions, 'file'>,
    chunkRows = Infinity,
  ): AsyncGenerator<RawChunk<Cells>> {
    const { name, path } = sheet
    if (path === undefined)
      throw createInputError(
        `The sheet ${listNames([name])} has no cells`,
        'Choose another sheet with --sheet',
      )
    const rows = this.#workbook.createRowReader(sheet, { file: this.#file, ...options })
    try {
      for await (const _ of parsePart(this.#archive, path, rows))
        if (rows.isFull || rows.length >= chunkRows) yield rows.takeChunk()
    } catch (error) {
      if (!(error instanceof DamageError)) throw error
      const reason = `in the sheet ${listNames([name])}, ${error.message}`
      throw explainDamage(this.#file, new DamageError(reason, { cause: error }))
    }
    yield rows.takeChunk()
  }
}

/** Finds the sheets with cells that a person sees in a spreadsheet. */
function findVisibleSheets(sheets: readonly Sheet[], file: string): Sheet[] {
  const visibleSheets = sheets.filter(({ isHidden, path }) => !isHidden && path !== undefined)
  if (visibleSheets.length > 0) return visibleSheets
  const hint =
    sheets.length === 0
      ? 'Choose another file'
      : `Choose a hidden sheet with --sheet: ${sheets.map(describeSheet).join(', ')}`
  throw createInputError(`${file} has no visible sheet with cells`, hint)
}

/** Finds a sheet by its name, or by its number from 1 on, which counts only visible sheets. */
function findSheet(requestedSheet: string, sheets: readonly Sheet[], file: string): Sheet {
  const visibleSheets = sheets.filter(({ isHidden }) => !isHidden)
  const sheet =
    sheets.find(({ name }) => name === requestedSheet) ??
    sheets.find(({ name }) => foldName(name) === foldName(requestedSheet)) ??
    visibleSheets[Number(requestedSheet) - 1]
  if (sheet) return sheet
  const names = sheets.map(describeSheet).join(', ')
  const isHiddenNumber = visibleSheets.length < sheets.length && /^\d+$/.test(requestedSheet)
  const numberAdvice = isHiddenNumber ? '. A number counts only the visible sheets' : ''
  throw createInputError(
    `${file} has no sheet ${listNames([requestedSheet])}`,
    `Choose one of its sheets with --sheet: ${names}${numberAdvice}`,
  )
}

function describeSheet({ name, isHidden }: Sheet): string {
  return isHidden ? `${listNames([name])} (hidden)` : listNames([name])
}

/** A sheet has at most 16,384 columns. Few workbooks have even one sheet that is so wide. */
const maxHeadCells = 8_388_608
