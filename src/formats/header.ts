/* The header of a table: in which row it is, and which of its columns have the fields. */
import { assertDefined, inputError, type PlantsError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import {
  type Cells,
  Chunk,
  type FormatReader,
  type Header,
  type InputOptions,
  skipRecords,
} from './chunk.js'
import {
  type ColumnNumbers,
  findColumnNumbers,
  findColumns,
  findMissingFields,
  findUnreadNames,
  isRejectsName,
  listNames,
  readNames,
} from './columns.js'

export const maxHeaderRows = 20

/** The first rows of a table or a sheet, one of which may be its header. */
export interface TableHead {
  /** At most 20, with their lines. */
  rows: Chunk<Cells>
  delimiter?: string | undefined
  /** Of a workbook: the name of the sheet. */
  sheet?: string
}

/** Where a table comes from. */
interface TableSource {
  /** The file, for messages. */
  name: string
  delimiter?: string | undefined
  /** Of a workbook: the sheet, and how all sheets are listed. */
  sheet?: string
  sheets?: readonly string[]
}

/**
 * Reads the rows below the header that have an id, a name or a tag. Throws `input` for its columns.
 */
export function createReader(
  first: Chunk<Cells>,
  rows: AsyncIterable<Chunk<Cells>>,
  rules: InputOptions,
  source: TableSource,
): FormatReader {
  const { delimiter } = source
  if (first.records.length === 0) return { chunks: rows, delimiter }
  const place = findHeader(first, rules)
  if (!place) throw createHeaderError(first, rules, source)
  const header = parseHeader(place, first, rules, source)
  const columns = [...header.columns.values()]
  const isEmpty = (row: Cells) => columns.every((column) => row[column] === undefined)
  const chunks = omitEmptyRows(skipRecords(rows, place.row + 1), isEmpty)
  return { header, delimiter, chunks }
}

async function* omitEmptyRows(
  chunks: AsyncIterable<Chunk<Cells>>,
  isEmpty: (row: Cells) => boolean,
): AsyncGenerator<Chunk> {
  for await (const chunk of chunks)
    yield chunk.records.some(isEmpty) ? copyWithoutEmptyRows(chunk, isEmpty) : chunk
}

/** Returns a copy that counts the rows it omits. */
function copyWithoutEmptyRows(
  { records, lines, surplusRows, multilineRow }: Chunk<Cells>,
  isEmpty: (row: Cells) => boolean,
): Chunk<Cells> {
  const copy = new Chunk<Cells>()
  copy.surplusRows = surplusRows
  copy.multilineRow = multilineRow
  for (const [index, row] of records.entries())
    if (isEmpty(row)) copy.emptyRows += 1
    else copy.add(row, assertDefined(lines[index]))
  return copy
}

/** Where the header is. */
interface HeaderPlace {
  /** The index among the first rows; -1 with `--columns`. */
  row: number
  /** Whether it has no names to be found by, because `--map` has numbers for all needed columns. */
  isLikeliest: boolean
  numbers: ColumnNumbers
}

/** Finds the first row that has the needed columns. */
export function findHeader(
  { records }: Chunk<Cells>,
  rules: InputOptions,
): HeaderPlace | undefined {
  if (records.length === 0) return undefined
  const likeliest = findLikeliestHeader(records)
  const numbers = findNumbers(records, likeliest, rules)
  if (rules.columns) return { row: -1, isLikeliest: false, numbers }
  const isLikeliest = numbers.size > 0 && findMissingFields(numbers, rules).length === 0
  const row = records.findIndex(
    (cells, index) =>
      (!isLikeliest || index === likeliest) &&
      findMissingFields(findColumns(readNames(cells), rules, numbers), rules).length === 0,
  )
  return row === -1 ? undefined : { row, isLikeliest, numbers }
}

/**
 * A cell below the likeliest header is no name of a column: `1` may be the id of the first plant.
 */
function findNumbers(
  records: readonly Cells[],
  likeliest: number,
  rules: InputOptions,
): ColumnNumbers {
  const names = rules.columns ?? records.slice(0, likeliest + 1).flatMap(readNames)
  return findColumnNumbers(names, rules)
}

/**
 * Returns the index of the row that looks most like a header: the first with the most filled cells.
 * If that row has a number, it is rather a plant, below a header without a name for one column or
 * with a surplus cell: then it is a row above it without numbers that has at least half as many
 * cells. The header of a rejects file is its first row.
 */
export function findLikeliestHeader(records: readonly Cells[]): number {
  if (readNames(records[0] ?? []).some(isRejectsName)) return 0
  const counts = records.slice(0, maxHeaderRows).map(countFilledCells)
  const width = Math.max(...counts)
  const widest = counts.indexOf(width)
  if (!hasNumber(records[widest])) return widest
  const above = counts.slice(0, widest).map((count, row) => (hasNumber(records[row]) ? 0 : count))
  const most = Math.max(0, ...above)
  return most >= Math.max(2, width / 2) ? above.indexOf(most) : widest
}

function hasNumber(row: Cells = []): boolean {
  return row.some((cell) => typeof cell === 'string' && /^-?\d+(?:[.,]\d+)*$/.test(cell))
}

export function countFilledCells(row: Cells = []): number {
  return row.filter((cell) => cell !== undefined).length
}

function parseHeader(
  { row, numbers }: HeaderPlace,
  rows: Chunk<Cells>,
  rules: InputOptions,
  source: TableSource,
): Header {
  const names =
    row === -1 ? assertDefined(rules.columns) : readNames(assertDefined(rows.records[row]))
  const width = row === -1 ? assertDefined(rows.records[0]).length : 0
  if (width > names.length)
    throw inputError(
      `The first row of ${source.name} has ${width} cells`,
      `Name ${width} columns with --columns`,
    )
  const found = findColumns(names, rules, numbers)
  const missing = findMissingFields(found, rules)
  if (missing.length > 0)
    throw createMissingError(missing, rules, source.name, `it has only ${listNames(names)}`)
  const columns = chooseColumns(found, source.name)
  const unread = findUnreadNames(names, columns, rules)
  // With numbers, the names do not show which row it is. A rejects file begins with its header.
  const isGuessed = numbers.size > 0 && !names.some(isRejectsName)
  const guessedLine = isGuessed ? rows.lines[row] : undefined
  return { names, columns, unread, guessedLine }
}

/** Shows the row that looks most like a header. */
function createHeaderError(
  { records, lines }: Chunk<Cells>,
  rules: InputOptions,
  source: TableSource,
): PlantsError {
  const likeliest = findLikeliestHeader(records)
  const names = readNames(assertDefined(records[likeliest]))
  const found = findColumns(names, rules, findNumbers(records, likeliest, rules))
  const missing = findMissingFields(found, rules)
  const has = describeColumns(names, assertDefined(lines[likeliest]), source)
  return createMissingError(missing, rules, source.name, has)
}

/** How many columns an error shows: one that is not shown can be chosen by its number alone. */
const maxColumns = 40

function describeColumns(
  names: readonly string[],
  line: number,
  { sheet, sheets = [] }: TableSource,
): string {
  const shown = listNames(names, maxColumns)
  if (sheet === undefined) return `line ${line} has only ${shown}`
  const allSheets = sheets.length > 1 ? ` (its sheets: ${sheets.slice(0, 8).join(', ')})` : ''
  return `line ${line} of the sheet ${listNames([sheet])} has only ${shown}${allSheets}`
}

function createMissingError(
  missing: readonly FieldName[],
  rules: InputOptions,
  source: string,
  has: string,
): PlantsError {
  const wanted = listNames(missing.map((field) => rules.map[field] || field))
  return inputError(
    `${source} has no column ${wanted}: ${has}`,
    'Choose columns by name or number with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name. Plants without ids: --id-from next',
  )
}

/** Throws `input` for a field that may be in several columns. */
function chooseColumns(
  found: ReadonlyMap<FieldName, readonly number[]>,
  source: string,
): Map<FieldName, number> {
  const chosen = new Map<FieldName, number>()
  for (const [field, columns] of found) {
    if (columns.length > 1)
      throw inputError(
        `Several columns of ${source} may be the ${field}`,
        `Choose one with --map ${field}=COLUMN, by its number or another name`,
      )
    chosen.set(field, assertDefined(columns[0]))
  }
  return chosen
}
