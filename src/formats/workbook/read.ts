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
import { maxUnpackedBytes } from '../limits.js'
import { foldLabel, listNames } from '../names.js'
import {
  type Cell,
  type Cells,
  type FormatInput,
  type FormatOptions,
  type HeaderFinder,
  type HeaderLocation,
  maxHeadRows,
  type Row,
  type TableHead,
  type TableReader,
} from '../reader.js'
import { Archive } from './archive.js'
import { createTooLargeError, DamageError, explainDamage } from './damage.js'
import { createCompoundFileError, identifyWorkbook, isCompoundFile } from './identify.js'
import { readOpenDocument } from './opendocument.js'
import { mergesRecords } from './references.js'
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
  options: FormatOptions,
  finder: HeaderFinder,
): Promise<TableReader> {
  const { name: file, signal } = input
  const bytes = await gatherBytes(input)
  if (isCompoundFile(bytes)) throw createCompoundFileError(file, bytes)
  try {
    const archive = await Archive.open(bytes, file, signal)
    const workbook = await workbookReaders[await identifyWorkbook(archive)](archive)
    const reader = new WorkbookReader(archive, workbook, options, finder)
    const table = await reader.openTable()
    // A file was examined before this, which has found any damage. A pipe cannot be examined, so
    // its rows are read to the end here.
    if (input.isReadOnce) for await (const _ of (await reader.openTable()).batches);
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
  /** The number of cells in the first rows of all sheets that were read, with the empty ones. */
  #headCells = 0

  constructor(
    private readonly archive: Archive,
    private readonly workbook: Workbook,
    private readonly options: FormatOptions,
    private readonly finder: HeaderFinder,
  ) {}

  async openTable(): Promise<TableReader> {
    const { sheets } = this.workbook
    const candidates = this.#findSheets(sheets)
    const { sheet, head, heads } = await this.#chooseSheet(candidates)
    const { row = -1, readColumns = [], width = Infinity } = this.#findHeader(head) ?? {}
    const headerLine = head[row]?.line ?? 0
    const mergedCells: { firstRange?: string } = {}
    const onMergedCells = (reference: string) => {
      if (mergedCells.firstRange === undefined && mergesRecords(reference, headerLine, readColumns))
        mergedCells.firstRange = reference
    }
    const laterSheets = candidates.slice(candidates.indexOf(sheet) + 1)
    return {
      type: 'table',
      head,
      heads,
      batches: this.#readRows(sheet, { width, onMergedCells }),
      workbook: {
        sheet: sheet.name,
        sheets: sheets.map(describeSheet),
        otherSheet: await this.#findSheet(laterSheets),
        mergedCells,
      },
    }
  }

  /**
   * Chooses the first sheet that has the columns. If no sheet has them, it chooses the one that
   * looks most like a list, and the error about missing columns then names the columns of that
   * sheet.
   */
  async #chooseSheet(
    sheets: readonly Sheet[],
  ): Promise<{ sheet: Sheet; head: readonly Row[]; heads: TableHead[] }> {
    const candidates: { sheet: Sheet; head: readonly Row[]; tableHead: TableHead }[] = []
    for (const sheet of sheets) {
      const head = await this.#readHead(sheet)
      const tableHead = { sheet: sheet.name, rows: listCells(head) }
      if (this.#findHeader(head)) return { sheet, head, heads: [tableHead] }
      candidates.push({ sheet, head, tableHead })
    }
    const heads = candidates.map(({ tableHead }) => tableHead)
    const ratings = heads.map(({ rows }) => this.finder.rateTable(rows))
    return { ...assertDefined(candidates[ratings.indexOf(Math.max(...ratings))]), heads }
  }

  /** Finds the name of the first sheet that has the columns. */
  async #findSheet(sheets: readonly Sheet[]): Promise<string | undefined> {
    for (const sheet of sheets) if (this.#findHeader(await this.#readHead(sheet))) return sheet.name
    return undefined
  }

  /** Finds the sheet that `--sheet` names, or else the visible ones. */
  #findSheets(sheets: readonly Sheet[]): Sheet[] {
    const { sheet: requestedSheet } = this.options
    return requestedSheet === undefined
      ? findVisibleSheets(sheets, this.archive.file)
      : [findSheet(requestedSheet, sheets, this.archive.file)]
  }

  #findHeader(head: readonly Row[]): HeaderLocation | undefined {
    return this.finder.findHeader(listCells(head))
  }

  /** Reads the first rows of a sheet. They may be out of order in the file. */
  async #readHead(sheet: Sheet): Promise<Row[]> {
    const rows: Row[] = []
    const batches = sheet.head
      ? [sheet.head]
      : this.#readRows(sheet, { width: Infinity }, maxHeadRows)
    for await (const batch of batches) {
      rows.push(...batch)
      if (rows.length >= maxHeadRows) break
    }
    rows.sort((a, b) => a.line - b.line)
    return rows.slice(0, maxHeadRows).map((row) => ({ ...row, cells: this.#fillRow(row.cells) }))
  }

  /** Adds the empty cells that are not saved. Thousands of sheets may lack millions of them. */
  #fillRow(row: Cells): Cells {
    this.#headCells += row.length
    if (this.#headCells > maxHeadCells) throw createTooLargeError(this.archive.file)
    return Object.assign(Array<Cell>(row.length).fill(undefined), row)
  }

  /** @param batchRows a batch is yielded when it has this many rows, or when it is full */
  async *#readRows(
    sheet: Sheet,
    options: Omit<RowOptions, 'file'>,
    batchRows = Infinity,
  ): AsyncGenerator<readonly Row[]> {
    const { name, path } = sheet
    if (path === undefined)
      throw createInputError(
        `The sheet ${listNames([name])} has no cells`,
        'Choose another sheet with --sheet',
      )
    const rows = this.workbook.createRowReader(sheet, { file: this.archive.file, ...options })
    try {
      for await (const _ of parsePart(this.archive, path, rows))
        if (rows.isFull || rows.length >= batchRows) yield rows.takeRows()
    } catch (error) {
      if (!(error instanceof DamageError)) throw error
      const reason = `in the sheet ${listNames([name])}, ${error.message}`
      throw explainDamage(this.archive.file, new DamageError(reason, { cause: error }))
    }
    yield rows.takeRows()
  }
}

function listCells(rows: readonly Row[]): Cells[] {
  return rows.map(({ cells }) => cells)
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
    sheets.find(({ name }) => foldLabel(name) === foldLabel(requestedSheet)) ??
    visibleSheets[Number(requestedSheet) - 1]
  if (sheet) return sheet
  throw createInputError(
    `${file} has no sheet ${listNames([requestedSheet])}`,
    `Choose one of its sheets with --sheet: ${sheets.map(describeSheet).join(', ')}`,
  )
}

function describeSheet({ name, isHidden }: Sheet): string {
  return isHidden ? `${listNames([name])} (hidden)` : listNames([name])
}

/** A sheet has at most 16,384 columns. Few workbooks have even one sheet that is so wide. */
const maxHeadCells = 8_388_608
