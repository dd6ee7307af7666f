/*
 * Finds the header of a table: its row, and the columns that have the fields of plants.
 *
 * A table need not begin with its header. A spreadsheet may have a title and a date above it, so
 * the first 20 rows are searched for the first one that names all needed columns. If `--map` gives
 * the columns by their numbers, no names identify the header. Then the row that looks most like a
 * header is used (`findLikeliestHeader`), and a warning shows this row. An error about missing
 * columns shows the same row. With `--columns`, the table has no header.
 */
import { assertDefined, createInputError, type PlantsError } from '../errors.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import { quoteWord } from '../platform/shell.js'
import {
  type Cells,
  type FormatReader,
  type Header,
  type InputOptions,
  type RawChunk,
  readFields,
  type Sample,
  type TableHead,
} from './chunk.js'
import {
  type ColumnFinder,
  type ColumnNumbers,
  createColumnFinder,
  findColumnNumbers,
  findMissingNames,
  findUnreadNames,
  foldName,
  isRejectsName,
  readNames,
  type WantedName,
} from './columns.js'
import { ColumnsError, createMissingFieldsError, describeColumns } from './sample.js'
import { TableFields } from './table-fields.js'

export const maxHeaderRows = 20

/** Where a table comes from. */
interface TableSource {
  /** The file, for messages. */
  name: string
  delimiter?: string | undefined
  /** The sheet of a workbook. */
  sheet?: string
  /** The first rows of each sheet that may have the plants; by default, those of the table. */
  heads?: readonly TableHead[]
  /**
   * All sheets of the workbook, as a message lists them: in quotes, and whether they are hidden.
   */
  sheets?: readonly string[]
}

/**
 * Creates the reader of the rows below the header.
 *
 * @param firstRows the first rows of the table, one of which is the header
 * @param rows all rows of the table, the first ones included
 * @throws {PlantsError} `input` if the header lacks a column, or has one twice
 */
export function createReader(
  firstRows: RawChunk<Cells>,
  rows: AsyncIterable<RawChunk<Cells>>,
  options: InputOptions,
  source: TableSource,
): FormatReader {
  const sample: Sample = { noun: 'column', heads: source.heads ?? [{ rows: firstRows }] }
  const header =
    firstRows.length === 0 ? undefined : parseHeader(firstRows, options, { ...source, sample })
  const fields = new TableFields(header, options.ifExists === 'update')
  return {
    ...(header && { header }),
    delimiter: source.delimiter,
    sample,
    fields,
    chunks: readFields(rows, fields),
  }
}

interface HeaderLocation {
  /** The index among the first rows; -1 if `--columns` names the columns instead of a header. */
  row: number
  /**
   * Whether the row was only guessed. `--map` has numbers for all needed columns, so no name
   * confirms that the row is the header.
   */
  isGuessed: boolean
  numbers: ColumnNumbers
}

/** Finds the first row that has the needed columns. */
export function findHeader(
  { records }: RawChunk<Cells>,
  options: InputOptions,
): HeaderLocation | undefined {
  if (records.length === 0) return undefined
  const likeliestRow = findLikeliestHeader(records)
  const numbers = findMappedNumbers(records, likeliestRow, options)
  const hasNames = (names: readonly string[]) =>
    findMissingColumns(names, numbers, options).length === 0
  if (options.columns)
    return hasNames(options.columns) ? { row: -1, isGuessed: false, numbers } : undefined
  const hasColumns = (row: Cells = []) => hasNames(readNames(row))
  // If `--map` has numbers for all needed columns, any row would have them.
  const isGuessed =
    numbers.size > 0 && findMissingNames((name) => numbers.has(name), options).length === 0
  if (isGuessed)
    return hasColumns(records[likeliestRow]) ? { row: likeliestRow, isGuessed, numbers } : undefined
  const row = records.findIndex(hasColumns)
  return row === -1 ? undefined : { row, isGuessed, numbers }
}

function findMissingColumns(
  names: readonly string[],
  numbers: ColumnNumbers,
  options: InputOptions,
): WantedName[] {
  const findColumns = createColumnFinder(names, numbers)
  return findMissingNames((name) => findColumns(name).length > 0, options)
}

/**
 * Finds the columns that `--map` gives by their numbers. `--map id=1` means the column with the
 * name `1` if there is one. Only the likeliest header and the rows above it can have such a name:
 * in a row below, `1` may be the id of the first plant.
 */
function findMappedNumbers(
  records: readonly Cells[],
  likeliestRow: number,
  options: InputOptions,
): ColumnNumbers {
  const names = options.columns ?? records.slice(0, likeliestRow + 1).flatMap(readNames)
  return findColumnNumbers(names, options)
}

/**
 * Returns the index of the row that looks most like a header.
 *
 * This is the first of the rows with the most filled cells, because a title above the header has
 * fewer cells. If this widest row has a number, it is most likely a plant: the header may lack the
 * name of a column, or the plant may have an extra cell. Then the header is the widest row above
 * that has no numbers, and at least half as many cells. In a rejects file, it is the first row.
 */
export function findLikeliestHeader(records: readonly Cells[]): number {
  if (readNames(records[0]).some(isRejectsName)) return 0
  const counts = records.slice(0, maxHeaderRows).map(countFilledCells)
  const width = Math.max(...counts)
  const widestRow = counts.indexOf(width)
  if (!hasNumber(records[widestRow])) return widestRow
  const countsAbove = counts
    .slice(0, widestRow)
    .map((count, row) => (hasNumber(records[row]) ? 0 : count))
  const widthAbove = Math.max(0, ...countsAbove)
  return widthAbove >= Math.max(2, width / 2) ? countsAbove.indexOf(widthAbove) : widestRow
}

/**
 * Rates how much the first rows look like a list: by the number of rows with several cells below a
 * row of different names.
 */
export function rateTable({ records }: RawChunk<Cells>): number {
  const headerRow = findLikeliestHeader(records)
  const names = readNames(records[headerRow]).filter(Boolean)
  if (names.length === 0 || new Set(names).size < names.length) return 0
  return 1 + records.slice(headerRow + 1).filter((row) => countFilledCells(row) > 1).length
}

function hasNumber(row: Cells = []): boolean {
  return row.some((cell) => typeof cell === 'string' && /^-?\d+(?:[.,]\d+)*$/.test(cell))
}

function countFilledCells(row: Cells = []): number {
  return row.filter((cell) => cell !== undefined).length
}

type SampledSource = TableSource & { sample: Sample }

function parseHeader(rows: RawChunk<Cells>, options: InputOptions, source: SampledSource): Header {
  if (options.columns) assertColumnCount(options.columns, rows, source.name)
  const location = findHeader(rows, options)
  if (!location) throw createHeaderError(rows, options, source)
  const { row, isGuessed, numbers } = location
  const names = row === -1 ? assertDefined(options.columns) : readNames(rows.records[row])
  const columns = chooseColumns(createColumnFinder(names, numbers), options, source)
  const unreadNames = findUnreadNames(names, columns, options)
  const line = rows.lines[row]
  // A rejects file always begins with its header.
  const mayBePlant = isGuessed || (options.map.name && mayBeValues(names, rows.records[row]))
  const guessedLine = mayBePlant && !names.some(isRejectsName) ? line : undefined
  const rowsAbove = countRowsAbove(row, rows)
  return { names, columns, unreadNames, line, guessedLine, rowsAbove }
}

/** A header with a number, or with one cell that `--map` names, is most likely the first plant. */
function mayBeValues(names: readonly string[], row: Cells = []): boolean {
  return names.length === 1 || hasNumber(row)
}

/** Counts the rows above the header that may be plants. A title has only one cell. */
function countRowsAbove(headerRow: number, { records }: RawChunk<Cells>): number {
  return records.slice(0, Math.max(0, headerRow)).filter((row) => countFilledCells(row) > 1).length
}

/** Creates the error with the row that looks most like a header, and the columns that it lacks. */
function createHeaderError(
  { records, lines }: RawChunk<Cells>,
  options: InputOptions,
  source: SampledSource,
): PlantsError {
  const row = findLikeliestHeader(records)
  const names = options.columns ?? readNames(records[row])
  const missingNames = findMissingColumns(names, findMappedNumbers(records, row, options), options)
  if (options.columns) return createMissingFieldsError(missingNames, options, { ...source, names })
  const ownNames = describeColumns(records, row).map(({ name }) => name)
  const headerSource = { ...source, names: ownNames, line: lines[row] }
  return createMissingFieldsError(missingNames, options, headerSource)
}

/** @throws {PlantsError} `input` if `--columns` cannot be the names of the columns */
function assertColumnCount(
  names: readonly string[],
  { records: [firstRow = []] }: RawChunk<Cells>,
  source: string,
): void {
  const cells = readNames(firstRow).map(foldName)
  const isHeader =
    names.some(Boolean) &&
    names.every((name, column) => {
      return name === '' || foldName(name) === cells[column]
    })
  if (isHeader)
    throw createInputError(
      `The first row of ${source} is a header, because it has the given names of columns`,
      'Leave out --columns',
    )
  if (cells.length > names.length) {
    const allNames = `${names.join()}${','.repeat(cells.length - names.length)}`
    throw createInputError(
      `The first row of ${source} has ${cells.length} cells, but names are given for only ${names.length}`,
      `Name all columns, and leave the names of those empty that are not read: --columns ${quoteWord(allNames)}`,
    )
  }
}

/** @throws {PlantsError} `input` if a field may be in several columns, or has one twice */
function chooseColumns(
  findColumns: ColumnFinder,
  { map }: InputOptions,
  { name: source, sample }: SampledSource,
): Map<FieldName, number[]> {
  const chosenColumns = new Map<FieldName, number[]>()
  for (const field of fieldNames) {
    const columns: number[] = []
    for (const candidates of (map[field] ?? [field]).map(findColumns)) {
      if (candidates.length > 1)
        throw new ColumnsError(
          `Several columns of ${source} could be the ${field}: ${candidates.map((column) => column + 1).join(', ')}`,
          `Choose one by its number: --map ${field}=NUMBER`,
          sample,
        )
      columns.push(...candidates)
    }
    if (new Set(columns).size < columns.length)
      throw createInputError(
        `One column of ${source} is named twice for the ${field}`,
        'Name each column once with --map',
      )
    if (columns.length > 0) chosenColumns.set(field, columns)
  }
  return chosenColumns
}
