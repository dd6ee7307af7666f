/*
 * Proposes `--columns` and `--delimiter` for a table in which no header was found, and checks the
 * names of `--columns` against the table. A proposal must work when it is followed to the letter,
 * so it has as many names as the table has columns.
 */
import { createInputError, type PlantsError } from '../errors.js'
import { quoteWord } from '../platform/shell.js'
import type { Cells, InputOptions } from './chunk.js'
import { assignsIds, findColumns, findMissingFields, foldName, readNames } from './columns.js'

/** The first rows of a table in which no header was found. */
export interface TableSample {
  rows: readonly Cells[]
  /** The cells of the row that looks most like a header. */
  names: readonly string[]
  /** The number of the line of this row. */
  line: number
  /** The delimiter of a table in a text; undefined for a workbook. */
  delimiter: string | undefined
  /** The number of rows that were searched for a header, if the table has more. */
  searchedRows: number | undefined
}

/**
 * Lists the hints about the columns of a table, the most helpful one first.
 *
 * @param mapHint the hint for a table with a header
 * @param otherHints hints about the ids and the tags
 */
export function listColumnHints(
  sample: TableSample,
  options: InputOptions,
  mapHint: string,
  otherHints: readonly string[],
): string[] {
  const { rows, names, line, searchedRows } = sample
  if (isAligned(rows)) return [alignedHint]
  const headerDelimiter = findHeaderDelimiter(sample, options)
  // The delimiter is right. Each row is read as one cell, because the whole row is in quotes.
  const isQuotedRow = sample.delimiter && headerDelimiter === formatDelimiter(sample.delimiter)
  if (isQuotedRow) return [quotedRowsHint]
  if (headerDelimiter !== undefined)
    return [`To divide line ${line} at ${headerDelimiter}, add --delimiter ${headerDelimiter}`]
  const noHeader =
    searchedRows === undefined
      ? 'If the table has no header'
      : `If the table has no header, or has it below row ${searchedRows}`
  const rowDelimiter = findRowDelimiter(sample, options)
  if (rowDelimiter !== undefined) {
    const { delimiter, width } = rowDelimiter
    const columns = proposeColumns(width, options, rows)
    return [`${noHeader}, add --delimiter ${delimiter} --columns ${columns}`]
  }
  if (isListOfNames(rows)) {
    const idOption = proposeIdOption(options)
    return [
      `If line ${line} is a plant, add --columns name${idOption}`,
      `If it is a header, add --map name=1${idOption}`,
    ]
  }
  const columnsHint = `${noHeader}, add ${describeColumnsOption(rows, options)}`
  return [mapHint, columnsHint, ...listDelimiterHints(names, sample, options), ...otherHints]
}

/**
 * Checks that `--columns` names as many columns as the table has.
 *
 * @throws {PlantsError} `input` for surplus cells in the first row, or for names in a table with
 * only one column, which has the names of plants
 */
export function assertColumnCount(
  names: readonly string[],
  rows: readonly Cells[],
  options: InputOptions,
  source: string,
): void {
  const [firstRow = []] = rows
  const width = firstRow.length
  if (isHeader(firstRow, names))
    throw createInputError(
      `The first row of ${source} is a header, because it has the given names of columns`,
      'Leave out --columns',
    )
  if (width > names.length) throw createSurplusError(names, rows, options, source)
  if (names.length === 1 || options.ifExists === 'update' || !isListOfNames(rows)) return
  throw createInputError(
    `${source} has only one column, but names are given for ${names.length}`,
    `Name only this column: --columns name${proposeIdOption(options)}`,
  )
}

/** Whether the cells of a row are the names of its columns. */
function isHeader(row: Cells, names: readonly string[]): boolean {
  const cells = readNames(row)
  const isName = (name: string, column: number) => foldName(name) === foldName(cells[column] ?? '')
  return names.some(Boolean) && names.every((name, column) => name === '' || isName(name, column))
}

function createSurplusError(
  names: readonly string[],
  rows: readonly Cells[],
  options: InputOptions,
  source: string,
): PlantsError {
  const [firstRow = []] = rows
  const width = firstRow.length
  const columns = quoteWord(proposeColumns(width, options, rows, names))
  const areDivided = names.some((name) => /\b(?:id|name|tag)[\s;|]+(?:id|name|tag)\b/.test(name))
  return createInputError(
    `The first row of ${source} has ${width} cells, but names are given for only ${names.length}`,
    areDivided
      ? 'Separate the names by commas, such as --columns id,name,tag'
      : `Name ${width} columns, and leave the names of those empty that are not read: --columns ${columns}`,
  )
}

/** Returns names for all columns of a table, such as `id,name,tag,,`. The given ones are first. */
function proposeColumns(
  width: number,
  options: InputOptions,
  rows: readonly Cells[],
  givenNames: readonly string[] = [],
): string {
  const isIdFirst = beginsWithIds(rows) && !givenNames.includes('id')
  const firstNames = isIdFirst ? ['id', ...givenNames] : givenNames
  const hasIds = isIdFirst || (!assignsIds(options) && hasDigit(rows))
  const fields = hasIds ? ['id', 'name', 'tag'] : ['name', 'tag']
  const names = [...firstNames, ...fields.filter((field) => !firstNames.includes(field))]
  const emptyNames = Array.from({ length: Math.max(0, width - names.length) }, () => '')
  return [...names, ...emptyNames].slice(0, Math.max(width, hasIds ? 2 : 1)).join()
}

/** Whether each row begins with an integer, which is no name of a plant. */
function beginsWithIds(rows: readonly Cells[]): boolean {
  return rows.every((row) => /^\s*-?\d+(?!\S)/.test(readNames(row)[0] ?? ''))
}

/** Whether any cell has a digit: without one, no cell can be an id. */
function hasDigit(rows: readonly Cells[]): boolean {
  return rows.some((row) => readNames(row).some((cell) => /\d/.test(cell)))
}

function describeColumnsOption(rows: readonly Cells[], options: InputOptions): string {
  const width = measureWidth(rows)
  const idOption = hasDigit(rows) ? '' : proposeIdOption(options)
  if (width <= maxProposedColumns)
    return `--columns ${proposeColumns(width, options, rows)}${idOption}`
  return `--columns with ${width} names, such as id,name,tag, which may be empty after the last comma`
}

const maxProposedColumns = 12

/** Whether spaces align the columns, as in the output of `plants list` on a terminal. */
function isAligned(rows: readonly Cells[]): boolean {
  const isAlignedRow = (row: Cells) => /\S {2,}\S/.test(readNames(row)[0] ?? '')
  return measureWidth(rows) === 1 && rows.length > 1 && rows.every(isAlignedRow)
}

const alignedHint =
  'The columns are aligned with spaces, and no delimiter divides them: save the list as CSV'

const quotedRowsHint =
  'To remove the quotes around each row, pipe the file through this, and import the output with -: ' +
  `sed -E 's/^"//; s/"[[:space:]]*$//; s/""/"/g'`

function proposeIdOption(options: InputOptions): string {
  return assignsIds(options) ? '' : ' --by-name'
}

function measureWidth(rows: readonly Cells[]): number {
  return Math.max(0, ...rows.map((row) => row.length))
}

/** Whether a table has one column, and no number in it. */
function isListOfNames(rows: readonly Cells[]): boolean {
  return measureWidth(rows) === 1 && rows.every((row) => !/^\s*-?\d/.test(readNames(row)[0] ?? ''))
}

/**
 * Finds a character that divides the only cell of the likeliest header into the names that an
 * import needs, as in `id name tag`.
 *
 * @returns the value for `--delimiter`
 */
function findHeaderDelimiter(sample: TableSample, options: InputOptions): string | undefined {
  const { names, delimiter } = sample
  const [text, ...otherNames] = names
  if (delimiter === undefined || text === undefined || otherNames.length > 0) return undefined
  const characters = new Set(text.match(/[^\w"\r\n\0\x80-\uffff]/g))
  const character = [...characters].find((character) => {
    const columns = findColumns(text.split(character), options, new Map())
    return findMissingFields(columns, options).length === 0
  })
  return character && formatDelimiter(character)
}

/**
 * Finds the character that follows a number in each row, as in `1 Rose red`.
 *
 * @returns the value for `--delimiter`, and the number of columns to which it leads
 */
function findRowDelimiter({ rows, delimiter }: TableSample, options: InputOptions) {
  const isDivided = delimiter === undefined || options.delimiter !== undefined
  if (isDivided || measureWidth(rows) !== 1) return undefined
  const texts = rows.map((row) => readNames(row)[0] ?? '')
  const characters = new Set(texts.map((text) => /^-?\d+([ :;|~^/#])[^\s:;|]/.exec(text)?.[1]))
  const [character, ...otherCharacters] = characters
  if (character === undefined || otherCharacters.length > 0) return undefined
  const width = Math.max(...texts.map((text) => text.split(character).length))
  return { delimiter: formatDelimiter(character), width }
}

/** Mentions `--delimiter` if cells of the likeliest header have other delimiters in them. */
function listDelimiterHints(
  names: readonly string[],
  { delimiter }: TableSample,
  options: InputOptions,
): string[] {
  const isText = delimiter !== undefined && delimiter !== '\t'
  const isPlain = !isText || !names.some((name) => /[;|\t]|\w,\w/.test(name))
  if (isPlain) return []
  const advice = options.delimiter === undefined ? 'name it with' : 'leave out'
  return [`If another character is between the cells, ${advice} --delimiter`]
}

function formatDelimiter(character: string): string {
  return character === '\t' ? 'tab' : quoteWord(character)
}
