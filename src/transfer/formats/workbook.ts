import { inputError, must, PlantsError, usageError } from '../../platform/errors.js'
import { checkArchive, damaged, tooLarge } from './archive.js'
import { cellOf, type Shown, shownIn } from './cells.js'
import {
  type Cells,
  Chunk,
  type FieldRules,
  type FormatInput,
  type FormatReader,
  type Header,
  type InputOptions,
  isTooLarge,
  maxRecordBytes,
  readWhole,
  recordTooLarge,
} from './chunk.js'
import { findHeader, headerAt, listOf, maxHeaderRows, rejectNames } from './header.js'
import {
  DamageError,
  LimitError,
  type PostedRow,
  type RowsRequest,
  type WantedFormats,
  WorkbookThread,
} from './workbook-thread.js'

/** Throws `input` for a damaged archive, and if the sheet is not clear. */
export async function openWorkbook(
  input: FormatInput,
  options: InputOptions,
): Promise<FormatReader> {
  const { name, signal } = input
  const bytes = await readWhole(input.blocks, maxPacked)
  if (!bytes) throw inputError(`${name} is larger than ${maxPacked} bytes`, 'Save the sheet as CSV')
  const shown = shownIn(checkArchive(bytes, name))
  const thread = new WorkbookThread(
    bytes,
    { maxRecordLength: maxRecordBytes, maxLength: maxText },
    signal,
  )
  try {
    const book = new Book(thread, name, await askFor(name, () => thread.ask('sheets', undefined)))
    return { ...(await openSheet(book, shown, options)), close: () => thread.close() }
  } catch (error) {
    thread.close()
    throw error
  }
}

async function openSheet(
  book: Book,
  shown: Set<Shown>,
  options: InputOptions,
): Promise<FormatReader> {
  const { source, names } = book
  const isOnly = names.length === 1
  const isRejects = isOnly && (await book.firstRows(0)).records[0]?.[0] === rejectNames[0]
  if (!isRejects) refuseUnused(options, source)
  const rules = isRejects ? { ...options.rules, columns: undefined } : options.rules
  const wanted = isRejects ? undefined : options.sheet
  const index = wanted === undefined ? await sheetOfPlants(book, rules) : namedSheet(book, wanted)
  const rows = await book.firstRows(index)
  if (rows.records.length === 0)
    return { format: 'xlsx', chunks: book.chunksOf(index, 0, Infinity) }
  const found = findHeader(rows, rules)
  const { header, skipped } = headerAt(found, rows, rules, source)
  const first = found === -1 ? 0 : must(rows.lines[must(found)])
  await book.readFormats(index, wantedFormats(header, shown))
  return {
    format: 'xlsx',
    header,
    skipped,
    chunks: book.chunksOf(index, first, header.names.length),
  }
}

/** The formats that say more than the values, of the cells of fields. */
function wantedFormats({ columns }: Header, shown: Set<Shown>): WantedFormats[] {
  return Array.from(columns, ([field, column]) => {
    const types = [
      ...(shown.has('exponent') && field === 'id' ? ['number' as const] : []),
      ...(shown.has('elapsed') ? ['date' as const] : []),
      ...(shown.has('elapsed') || shown.has('date') ? ['time' as const] : []),
    ]
    return { column, types }
  })
}

class Book {
  readonly #thread: WorkbookThread
  readonly source: string
  /** The names of its sheets. */
  readonly names: readonly string[]
  readonly #isFrom1904: boolean

  constructor(
    thread: WorkbookThread,
    source: string,
    { names, isFrom1904 }: { names: string[]; isFrom1904: boolean },
  ) {
    if (names.length === 0)
      throw inputError(
        `${source} is a ZIP archive without a sheet of Excel`,
        'Save it as .xlsx, or as CSV',
      )
    this.#thread = thread
    this.source = source
    this.names = names
    this.#isFrom1904 = isFrom1904
  }

  /** In which a header is searched. */
  async firstRows(index: number, maxRows?: number): Promise<Chunk<Cells>> {
    for (let from = 0; ; ) {
      const { rows, isLast } = await this.#read({
        index,
        from,
        to: from + rowsAtOnce,
        width: Infinity,
        maxRows,
      })
      const chunk = this.#chunkOf(rows, from)
      if (chunk.records.length > 0 || isLast) return chunk.slice(0, maxHeaderRows)
      from += rows.length
    }
  }

  async readFormats(index: number, wanted: WantedFormats[]): Promise<void> {
    await this.#ask(index, () => this.#thread.ask('readFormats', { index, wanted }))
  }

  async *chunksOf(index: number, after: number, width: number): AsyncGenerator<Chunk> {
    let from = after
    let isLast = false
    while (!isLast) {
      const read = await this.#read({
        index,
        from,
        to: from + rowsAtOnce,
        width,
        maxRows: undefined,
      })
      const chunk = this.#chunkOf(read.rows, from)
      if (chunk.records.length > 0) yield chunk
      from += read.rows.length
      isLast = read.isLast
    }
  }

  #read(request: RowsRequest): Promise<{ rows: PostedRow[]; isLast: boolean }> {
    return this.#ask(request.index, () => this.#thread.ask('rows', request))
  }

  #ask<T>(index: number, action: () => Promise<T>): Promise<T> {
    return askFor(
      this.source,
      action,
      `Sheet ${listOf([must(this.names[index])])} of ${this.source}`,
    )
  }

  /** Leaves out blank rows. */
  #chunkOf(rows: readonly PostedRow[], from: number): Chunk<Cells> {
    const chunk = new Chunk<Cells>()
    for (const [index, row] of rows.entries()) {
      const line = from + index + 1
      const record = row?.map((cell) => cellOf(cell, this.#isFrom1904)) ?? []
      while (record.length > 0 && record.at(-1) === undefined) record.pop()
      if (record.length === 0 && row) continue
      const texts = record.map((cell) => (typeof cell === 'object' ? cell.text : cell))
      if (!row || isTooLarge(texts.join(''))) chunk.add([], line, recordTooLarge)
      else chunk.add(record, line)
    }
    return chunk
  }
}

async function askFor<T>(source: string, action: () => Promise<T>, what = source): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (error instanceof LimitError) throw tooLarge(source)
    throw error instanceof DamageError ? damaged(what, error) : error
  }
}

function refuseUnused(options: InputOptions, source: string): void {
  const unused = (['format', 'encoding', 'delimiter'] as const).find(
    (name) => options[name] !== undefined,
  )
  if (unused !== undefined)
    throw usageError(
      `${source} is a workbook, which has no ${unused} to choose`,
      `Leave out --${unused}`,
    )
}

function namedSheet({ names, source }: Book, wanted: string): number {
  const plain = (name: string) => name.trim().toLowerCase()
  const exact = names.indexOf(wanted)
  const found = exact === -1 ? names.findIndex((name) => plain(name) === plain(wanted)) : exact
  const index = found === -1 ? Number(wanted) - 1 : found
  if (names[index] !== undefined) return index
  throw inputError(`${source} has no sheet ${listOf([wanted])}`, `Its sheets are ${listOf(names)}`)
}

/** The only sheet, or the only one with the columns of plants. A chart cannot be read as one. */
async function sheetOfPlants(book: Book, rules: FieldRules): Promise<number> {
  const { names, source } = book
  if (names.length === 1) return 0
  const found: number[] = []
  for (const index of names.slice(0, maxSearched).keys()) {
    const rows = await book.firstRows(index, rowsAtOnce).catch(ignoreDamage)
    if (rows && findHeader(rows, rules) !== undefined) found.push(index)
  }
  if (found.length === 1) return must(found[0])
  const which = found.length > 0 ? found.map((index) => must(names[index])) : names
  throw inputError(
    `${found.length > 0 ? 'Several' : 'None'} of the sheets of ${source} have the columns of plants: ${listOf(which)}`,
    'Choose one with --sheet NAME, and its columns with --map',
  )
}

/** Rethrows the reason of the signal, and that a workbook is too large. */
function ignoreDamage(error: unknown): undefined {
  if (!(error instanceof PlantsError && error.cause instanceof DamageError)) throw error
}

const rowsAtOnce = 2000
/** Sheets. */
const maxSearched = 100
const maxPacked = 67_108_864
const maxText = 1_073_741_824
