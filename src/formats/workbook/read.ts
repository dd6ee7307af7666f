/*
 * Reads a workbook (ECMA-376) as a table.
 *
 * A workbook is a ZIP archive of XML parts. To get from bytes to rows, `archive.ts` unpacks a part,
 * `xml.ts` parses the part block by block, `sheets.ts` lists the sheets and reads what all sheets
 * share, and `rows.ts` reads the rows of one sheet. `cells.ts` converts each cell to a string.
 *
 * The whole archive is in memory, because a ZIP archive has its directory at its end. Of the
 * unpacked parts, only the shared strings and the formats of cells stay in memory.
 *
 * An import opens a workbook twice with this reader. The first time, it examines the workbook: it
 * reads the whole sheet, so that damage is found before anything is stored. The second time, it
 * imports the rows. docs/design/decisions.md says why a workbook is read twice.
 */
import { assertDefined, createInputError, PlantsError } from '../../errors.js'
import {
  type Cell,
  type Cells,
  Chunk,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  maxUnpackedBytes,
  type UnreadSheet,
} from '../chunk.js'
import { foldName, listNames } from '../columns.js'
import {
  countFilledCells,
  createReader,
  findHeader,
  maxHeaderRows,
  type TableHead,
} from '../header.js'
import { Archive } from './archive.js'
import type { CellContext } from './cells.js'
import { createTooLargeError, DamageError, explainDamage } from './damage.js'
import { assertWorkbook, createCompoundFileError, isCompoundFile } from './identify.js'
import { MergedCells } from './merged-cells.js'
import { type RowOptions, RowReader } from './rows.js'
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
  return useReader(input, options, async (reader) => {
    const table = await reader.openTable()
    // A file was examined before this, which has found any damage. A pipe cannot be examined, so
    // its rows are read to the end here.
    if (input.isReadOnce) for await (const _ of (await reader.openTable()).chunks);
    return table
  })
}

/**
 * Reads the first rows of the sheet that the options name, or else of each visible sheet. It does
 * not matter which columns a sheet has.
 */
export async function readSheetHeads(
  input: FormatInput,
  options: InputOptions,
): Promise<TableHead[]> {
  return useReader(input, options, (reader) => reader.readHeads())
}

async function useReader<T>(
  input: FormatInput,
  options: InputOptions,
  read: (reader: WorkbookReader) => Promise<T>,
): Promise<T> {
  const { name: file, signal } = input
  const bytes = await gatherBytes(input)
  if (isCompoundFile(bytes)) throw createCompoundFileError(file, bytes)
  try {
    const archive = await Archive.open(bytes, file, signal)
    await assertWorkbook(archive, file)
    return await read(new WorkbookReader(archive, file, options))
  } catch (error) {
    throw explainDamage(file, error)
  }
}

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

/** A sheet that may have the plants. */
interface SheetCandidate {
  sheet: Sheet
  /** The first rows, one of which may be the header. */
  head: Chunk<Cells>
}

class WorkbookReader {
  readonly #archive: Archive
  readonly #file: string
  readonly #options: InputOptions
  /**
   * An import opens its first file, and keeps it open while it examines all files. Two workbooks
   * would then have their shared strings in memory at once. So the garbage collector may free the
   * strings of the open workbook. If it has done so, they are read again before the rows.
   */
  #context: WeakRef<CellContext> | undefined
  /** The number of cells in the first rows of all sheets that were read, with the empty ones. */
  #headCells = 0

  constructor(archive: Archive, file: string, options: InputOptions) {
    this.#archive = archive
    this.#file = file
    this.#options = options
  }

  async openTable(): Promise<FormatReader> {
    const workbook = await this.#readWorkbook()
    const { sheet, head } = await this.#chooseSheet(workbook)
    const mergedCells = new MergedCells()
    const rows = this.#readTable(sheet, this.#countColumns(head), mergedCells)
    const source = {
      name: this.#file,
      sheet: sheet.name,
      sheets: workbook.sheets.map(describeSheet),
    }
    const reader = createReader(head, rows, this.#options, source)
    // No row is read before this function has returned.
    if (reader.header) mergedCells.setHeader(reader.header)
    const unreadSheets = await this.#findUnreadSheets(workbook, sheet)
    return { ...reader, unreadSheets, mergedFields: mergedCells.fields }
  }

  async readHeads(): Promise<TableHead[]> {
    const workbook = await this.#readWorkbook()
    const heads: TableHead[] = []
    for (const sheet of this.#findSheets(workbook))
      heads.push({ sheet: sheet.name, rows: await this.#readHead(sheet, workbook.context) })
    return heads
  }

  async #readWorkbook(): Promise<Workbook> {
    const workbook = await readWorkbook(this.#archive, this.#file)
    this.#context = new WeakRef(workbook.context)
    return workbook
  }

  async *#readTable(
    sheet: Sheet,
    width: number,
    mergedCells: MergedCells,
  ): AsyncGenerator<Chunk<Cells>> {
    const context = this.#context?.deref() ?? (await this.#readWorkbook()).context
    yield* this.#readRows(sheet, { width, context, mergedCells })
  }

  /**
   * Chooses the first sheet that has the columns. If no sheet has them, it chooses the widest one,
   * and the error about missing columns then names the columns of that sheet.
   */
  async #chooseSheet(workbook: Workbook): Promise<SheetCandidate> {
    let widestSheet: (SheetCandidate & { width: number }) | undefined
    for (const sheet of this.#findSheets(workbook)) {
      const head = await this.#readHead(sheet, workbook.context)
      if (this.#hasColumns(head)) return { sheet, head }
      const width = measureWidth(head)
      // Thousands of sheets may have wide heads, so only one is kept.
      if (!widestSheet || width > widestSheet.width) widestSheet = { sheet, head, width }
    }
    return assertDefined(widestSheet)
  }

  /** Finds the sheets with rows that are not read, so that a warning can name them. */
  async #findUnreadSheets(
    { sheets, context }: Workbook,
    chosenSheet: Sheet,
  ): Promise<UnreadSheet[]> {
    const unreadSheets: UnreadSheet[] = []
    for (const sheet of sheets) {
      if (sheet === chosenSheet || sheet.path === undefined) continue
      const head = await this.#tryToReadHead(sheet, context)
      if (head?.length === 0) continue
      const hasColumns = head !== undefined && this.#hasColumns(head)
      unreadSheets.push({ name: sheet.name, isHidden: sheet.isHidden, hasColumns })
    }
    return unreadSheets
  }

  /**
   * Reads the first rows of a sheet that is not imported, so damage in it does not matter.
   *
   * @returns undefined if the sheet is damaged
   */
  async #tryToReadHead(sheet: Sheet, context: CellContext): Promise<Chunk<Cells> | undefined> {
    try {
      return await this.#readHead(sheet, context)
    } catch (error) {
      if (error instanceof PlantsError && error.kind === 'input') return undefined
      throw error
    }
  }

  #findSheets({ sheets }: Workbook): Sheet[] {
    const { sheet: requestedSheet } = this.#options
    return requestedSheet === undefined
      ? findVisibleSheets(sheets, this.#file)
      : [findSheet(requestedSheet, sheets, this.#file)]
  }

  #hasColumns(head: Chunk<Cells>): boolean {
    return findHeader(head, this.#options) !== undefined
  }

  /**
   * Counts the columns of the table. Cells to the right of them, such as a remark next to the list,
   * are ignored.
   */
  #countColumns(head: Chunk<Cells>): number {
    const { columns } = this.#options
    if (columns) return columns.length
    const location = findHeader(head, this.#options)
    return (location && head.records[location.row]?.length) ?? Infinity
  }

  async #readHead(sheet: Sheet, context: CellContext): Promise<Chunk<Cells>> {
    const head = new Chunk<Cells>()
    const chunks = this.#readRows(sheet, { width: Infinity, context }, maxHeaderRows)
    for await (const { records, lines } of chunks) {
      for (const [index, row] of records.entries())
        head.add(this.#fillRow(row), assertDefined(lines[index]))
      if (head.length >= maxHeaderRows) break
    }
    return head.slice(0, maxHeaderRows)
  }

  /** Adds the empty cells that are not saved. Thousands of sheets may lack millions of them. */
  #fillRow(row: Cells): Cells {
    this.#headCells += row.length
    if (this.#headCells > maxHeadCells) throw createTooLargeError(this.#file)
    return Object.assign(Array<Cell>(row.length).fill(undefined), row)
  }

  /** @param chunkRows a chunk is yielded when it has this many rows, or when it is full */
  async *#readRows(
    { name, path }: Sheet,
    options: Omit<RowOptions, 'file'>,
    chunkRows = Infinity,
  ): AsyncGenerator<Chunk<Cells>> {
    if (path === undefined)
      throw createInputError(
        `The sheet ${listNames([name])} has no cells`,
        'Choose another sheet with --sheet',
      )
    const rows = new RowReader({ file: this.#file, ...options })
    try {
      for await (const _ of parsePart(this.#archive, path, rows)) {
        if (rows.isFull || rows.length >= chunkRows) yield rows.takeChunk()
      }
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

/** Counts the cells of the widest row: a list is wider than a page of notes. */
function measureWidth({ records }: Chunk<Cells>): number {
  return Math.max(0, ...records.map((row) => countFilledCells(row)))
}

/** A sheet has at most 16,384 columns. Few workbooks have even one sheet that is so wide. */
const maxHeadCells = 8_388_608
