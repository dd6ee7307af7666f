/*
 * Finds the header of a table: its row, and the columns that have the fields of plants.
 *
 * A table need not begin with its header. A spreadsheet may have a title and a date above it, so
 * the first 20 rows are searched for the first one that names all needed columns. If `--map` gives
 * the columns by their numbers, no names identify the header. Then the row that looks most like a
 * header is used (`findLikeliestHeader`), and a warning shows this row. An error about missing
 * columns shows the same row. With `--columns`, the table has no header.
 */
import { createInputError, type PlantsError } from '../errors.js'
import { foldLabel } from '../formats/names.js'
import {
  type Cells,
  type HeaderFinder,
  type HeaderLocation,
  maxHeadRows,
  type TableReader,
} from '../formats/reader.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import { quoteWord } from '../platform/shell.js'
import {
  type ColumnFinder,
  type ColumnNumbers,
  createColumnFinder,
  type FieldColumns,
  findColumnNumbers,
  findUnreadNames,
  readNames,
} from './columns.js'
import { looksLikePlant } from './guess-columns.js'
import { ColumnsError, createMissingFieldsError, type Sample } from './missing-fields.js'
import { type FieldOptions, findMissingNames, listWantedNames, type WantedName } from './options.js'
import { isRejectsHeader, isRejectsName } from './rejects-names.js'

/** The header of a table, and the columns that were found in it. */
export interface Header {
  /** The names of all columns. */
  names: readonly string[]
  columns: FieldColumns
  /** The names of the columns that are not read, for a warning. */
  unreadNames: readonly string[]
  /** The line of the header; undefined if `--columns` names the columns instead. */
  line?: number | undefined
  /** The line of a header that may be the first plant, because only `--map` says what it names. */
  guessedLine?: number | undefined
  /** How many rows above the header may be plants, because they have several filled cells. */
  rowsAbove: number
}

/** Creates what tells a reader of tables which row is the header. */
export function createHeaderFinder(options: FieldOptions): HeaderFinder {
  return { findHeader: (rows) => findHeader(rows, options), rateTable }
}

interface FoundHeader extends HeaderLocation {
  names: readonly string[]
  findColumns: ColumnFinder
}

/** Finds the first row that has the needed columns. */
export function findHeader(rows: readonly Cells[], options: FieldOptions): FoundHeader | undefined {
  if (rows.length === 0) return undefined
  const givenNames = getGivenNames(rows, options)
  const likeliestRow = findLikeliestHeader(rows)
  const numbers = findMappedNumbers(rows, likeliestRow, options)
  const hasColumns = (names: readonly string[]) =>
    findMissingColumns(names, numbers, options).length === 0
  const build = (row: number, source: HeaderLocation['source'], names: readonly string[]) => {
    if (!hasColumns(names)) return undefined
    const findColumns = createColumnFinder(names, numbers)
    const readColumns = listWantedNames(options).flatMap(({ name }) => [...findColumns(name)])
    return { row, source, names, findColumns, readColumns, width: names.length }
  }
  if (givenNames) return build(-1, 'option', givenNames)
  // If `--map` has numbers for all needed columns, any row would have them.
  const hasNumbers =
    numbers.size > 0 && findMissingNames((name) => numbers.has(name), options).length === 0
  if (hasNumbers) return build(likeliestRow, 'numbers', readNames(rows[likeliestRow]))
  const row = rows.findIndex((candidate) => hasColumns(readNames(candidate)))
  return row === -1 ? undefined : build(row, 'names', readNames(rows[row]))
}

/** Returns the names that `--columns` gives. A rejects file has a header even if its input had none. */
function getGivenNames(
  [firstRow]: readonly Cells[],
  { columns }: FieldOptions,
): readonly string[] | undefined {
  return isRejectsHeader(firstRow) ? undefined : columns
}

function findMissingColumns(
  names: readonly string[],
  numbers: ColumnNumbers,
  options: FieldOptions,
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
  rows: readonly Cells[],
  likeliestRow: number,
  options: FieldOptions,
): ColumnNumbers {
  const names = getGivenNames(rows, options) ?? rows.slice(0, likeliestRow + 1).flatMap(readNames)
  return findColumnNumbers(names, options)
}

/**
 * Returns the index of the row that looks most like a header.
 *
 * This is the first of the rows with the most filled cells, because a title above the header has
 * fewer cells. If this widest row looks like a plant, the header may lack the name of a column, or
 * the plant may have an extra cell. Then the header is the widest row above that does not, and has
 * at least half as many cells. If there is none, the table most likely has no header, and this is
 * the first row, as in a rejects file.
 */
export function findLikeliestHeader(rows: readonly Cells[]): number {
  if (readNames(rows[0]).some(isRejectsName)) return 0
  const counts = rows.slice(0, maxHeadRows).map(countHeaderCells)
  const width = Math.max(...counts)
  const widestRow = counts.indexOf(width)
  if (!mayBePlant(rows[widestRow])) return widestRow
  const countsAbove = counts
    .slice(0, widestRow)
    .map((count, row) => (mayBePlant(rows[row]) ? 0 : count))
  const widthAbove = Math.max(0, ...countsAbove)
  if (widthAbove >= Math.max(2, width / 2)) return countsAbove.indexOf(widthAbove)
  return mayBePlant(rows[0]) ? 0 : widestRow
}

/** Counts the filled cells, and the empty first cell of a header as R writes it above the rows. */
function countHeaderCells(row: Cells, index: number, rows: readonly Cells[]): number {
  const count = countFilledCells(row)
  const lacksOnlyFirst = row[0] === undefined && count === row.length - 1
  return lacksOnlyFirst && row.length === rows[index + 1]?.length ? row.length : count
}

/**
 * Rates how much the first rows look like a list: by the number of rows with several cells below a
 * row of different names.
 */
export function rateTable(rows: readonly Cells[]): number {
  const headerRow = findLikeliestHeader(rows)
  const names = readNames(rows[headerRow]).filter(Boolean)
  if (names.length === 0 || new Set(names).size < names.length) return 0
  return 1 + rows.slice(headerRow + 1).filter((row) => countFilledCells(row) > 1).length
}

function mayBePlant(row: Cells | undefined): boolean {
  return looksLikePlant(readNames(row))
}

function countFilledCells(row: Cells = []): number {
  return row.filter((cell) => cell !== undefined).length
}

/**
 * Reads the header of a table.
 *
 * @param name the file, for messages
 * @returns undefined for a table without rows
 * @throws {PlantsError} `input` if the header lacks a column, or has one twice
 */
export function readHeader(
  reader: TableReader,
  options: FieldOptions,
  name: string,
): Header | undefined {
  const { head, heads } = reader
  if (head.length === 0) return undefined
  const sample: Sample = { noun: 'column', heads }
  const rows = head.map(({ cells }) => cells)
  const givenNames = getGivenNames(rows, options)
  if (givenNames) assertGivenNames(givenNames, rows, name)
  const header = findHeader(rows, options)
  if (!header) throw createHeaderError(reader, options, name, sample)
  const { row, source, names, findColumns } = header
  const columns = chooseColumns(findColumns, options, name, sample)
  const unreadNames = findUnreadNames(names, columns, options)
  const line = head[row]?.line
  // A header with a number, or with one cell that `--map` names, is most likely the first plant.
  const isLikePlant = names.length === 1 || mayBePlant(rows[row])
  const isGuess = source === 'numbers' || (options.map.name && isLikePlant)
  // A rejects file always begins with its header.
  const guessedLine = isGuess && !names.some(isRejectsName) ? line : undefined
  return { names, columns, unreadNames, line, guessedLine, rowsAbove: countRowsAbove(row, rows) }
}

/** Counts the rows above the header that may be plants. A title has only one cell. */
function countRowsAbove(headerRow: number, rows: readonly Cells[]): number {
  return rows.slice(0, Math.max(0, headerRow)).filter((row) => countFilledCells(row) > 1).length
}

/** Creates the error with the row that looks most like a header, and the columns that it lacks. */
function createHeaderError(
  { head, workbook }: TableReader,
  options: FieldOptions,
  name: string,
  sample: Sample,
): PlantsError {
  const rows = head.map(({ cells }) => cells)
  const row = findLikeliestHeader(rows)
  const givenNames = getGivenNames(rows, options)
  const names = givenNames ?? readNames(rows[row])
  const missingNames = findMissingColumns(names, findMappedNumbers(rows, row, options), options)
  const source = { name, sample, sheet: workbook?.sheet, sheets: workbook?.sheets }
  const ownHeader = givenNames
    ? { rows: [givenNames], headerRow: 0 }
    : { rows, headerRow: row, line: head[row]?.line }
  return createMissingFieldsError(missingNames, options, { ...source, ...ownHeader })
}

/** @throws {PlantsError} `input` if `--columns` cannot be the names of the columns */
function assertGivenNames(
  names: readonly string[],
  [firstRow = []]: readonly Cells[],
  source: string,
): void {
  const cells = readNames(firstRow).map(foldLabel)
  const isHeader =
    names.some(Boolean) &&
    names.every((name, column) => name === '' || foldLabel(name) === cells[column])
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
  { map }: FieldOptions,
  source: string,
  sample: Sample,
): FieldColumns {
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
