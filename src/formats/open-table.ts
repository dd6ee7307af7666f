/*
 * Opens a table of text: it finds the delimiter in the first 64 KiB, by the header or by the width
 * of the rows, and then reads all rows.
 *
 * Neither the name of a file nor its first line tells the delimiter: a title may have commas, and
 * in half of Europe, Excel writes semicolons into `.csv`. So the first rows are parsed once with
 * each delimiter. The right one leads to a header with the needed columns or, if none does, to the
 * same number of cells in most rows. No single row decides: one cell may have many delimiters.
 */
import { assertDefined, createInputError } from '../errors.js'
import { prepend } from '../platform/generators.js'
import { findLineEnd, type LineEnd } from './encoding.js'
import {
  type FormatInput,
  type FormatOptions,
  type HeaderFinder,
  maxHeadRows,
  type Row,
  type TableReader,
} from './reader.js'
import { parseRows, type Table } from './table.js'

/** The length of the start of a table in which its header is looked for, in UTF-16 units. */
const headLength = 65_536

/** The beginning of a table, in which the delimiter and the header are looked for. */
interface TableStart {
  /** At least `headLength` units, or the whole table. */
  text: string
  /** Whether the text is the whole table. */
  isWhole: boolean
  lineEnd: LineEnd
}

export async function openTable(
  texts: AsyncGenerator<string>,
  options: FormatOptions,
  { name }: FormatInput,
  finder: HeaderFinder,
): Promise<TableReader> {
  const start = await readStart(texts)
  const { rows, delimiter } = chooseDelimiter(start, options, finder, name)
  const create = () => createTable(name, delimiter, start, options)
  const head = rows.slice(0, maxHeadRows)
  return {
    type: 'table',
    head,
    heads: [{ rows: head.map(({ cells }) => cells) }],
    batches: readBatches(create(), prepend([start.text], texts)),
    delimiter,
    parseRow: (text) => parseRows(create(), text, true)[0]?.cells ?? [],
  }
}

function createTable(
  name: string,
  delimiter: string,
  { lineEnd }: TableStart,
  { quotes = true }: FormatOptions,
): Table {
  return { name, delimiter, lineEnd, hasQuotes: quotes, line: 1, remainder: '' }
}

async function readStart(texts: AsyncGenerator<string>): Promise<TableStart> {
  let text = ''
  while (text.length < headLength) {
    const { value, done } = await texts.next()
    if (done) break
    text += value
  }
  // The last line always ends with a line feed, which `decodeText` adds.
  const lineEnd = findLineEnd(text.slice(0, headLength).slice(0, -1))
  return { text, isWhole: text.length < headLength, lineEnd }
}

/** The first rows as one of the delimiters divides them. */
interface DelimiterTrial {
  delimiter: string
  rows: readonly Row[]
  /** The index of the row that is a header with the needed columns; undefined without one. */
  headerRow: number | undefined
  /** The number of cells of the header, or else that of most of the first 100 rows. */
  width: number
  /** How many of the first 100 rows have this number of cells. */
  rowCount: number
}

function chooseDelimiter(
  start: TableStart,
  options: FormatOptions,
  finder: HeaderFinder,
  name: string,
): Pick<DelimiterTrial, 'delimiter' | 'rows'> {
  const { text, isWhole, lineEnd } = start
  const head = isWhole ? text + lineEnd : text.slice(0, headLength)
  const delimiters = options.delimiter === undefined ? [',', ';', '\t', '|'] : [options.delimiter]
  const trials = delimiters.map((delimiter) => {
    const rows = parseRows(createTable(name, delimiter, start, options), head, false)
    return createTrial(delimiter, rows, finder)
  })
  const firstHeaderRow = Math.min(...trials.map(({ headerRow = Infinity }) => headerRow))
  const withHeader = trials.filter(({ headerRow }) => headerRow === firstHeaderRow)
  const candidates = (withHeader.length > 0 ? withHeader : trials).toSorted(
    (a, b) => (withHeader.length > 0 ? 0 : b.rowCount - a.rowCount) || b.width - a.width,
  )
  const trial = assertDefined(candidates[0])
  if (trial.rows.length === 0 && !isWhole)
    throw createInputError(
      `${name} has no row in its first 64 KiB`,
      'Put the header at the beginning',
    )
  return trial
}

function createTrial(
  delimiter: string,
  rows: readonly Row[],
  finder: HeaderFinder,
): DelimiterTrial {
  const location = finder.findHeader(rows.slice(0, maxHeadRows).map(({ cells }) => cells))
  const trial = { delimiter, rows, ...countEqualRows(rows.slice(0, maxComparedRows)) }
  if (location?.source !== 'names') return { ...trial, headerRow: undefined }
  return { ...trial, headerRow: location.row, width: location.width }
}

const maxComparedRows = 100

/** Finds the number of cells, at least two, that most rows have; of equals, the greatest. */
function countEqualRows(rows: readonly Row[]): { width: number; rowCount: number } {
  const counts = new Map<number, number>()
  for (const {
    cells: { length },
  } of rows)
    if (length > 1) counts.set(length, (counts.get(length) ?? 0) + 1)
  const [width = 0, rowCount = 0] =
    [...counts].toSorted((a, b) => b[1] - a[1] || b[0] - a[0])[0] ?? []
  const areMost = rowCount * 2 > rows.length
  return areMost ? { width, rowCount } : { width: 0, rowCount: 0 }
}

/** Reads the rows of each text. */
async function* readBatches(
  table: Table,
  texts: AsyncIterable<string>,
): AsyncGenerator<readonly Row[]> {
  for await (const text of texts) yield parseRows(table, text, false)
  yield parseRows(table, '', true)
}
