/*
 * Opens a table of text: it finds the delimiter and the header in the first 64 KiB, and then reads
 * the rows below the header.
 *
 * Neither the name of a file nor its first line tells the delimiter: a title may have commas, and
 * in half of Europe, Excel writes semicolons into `.csv`. So the first rows are parsed once with
 * each delimiter, and the delimiter with which a header is found is chosen (`chooseTrial`).
 */

import { assertDefined, createInputError, PlantsError } from '../errors.js'
import { type Cells, Chunk, type FormatReader, type InputOptions, prepend } from './chunk.js'
import { findLineEnd } from './encoding.js'
import {
  countFilledCells,
  createReader,
  findHeader,
  findLikeliestHeader,
  maxHeaderRows,
  type TableHead,
} from './header.js'
import { parseRows, type Table } from './table.js'
import type { FormatName } from './write.js'

/** The length of the start of a table in which its header is looked for, in UTF-16 units. */
const headLength = 65_536

/** The beginning of a table, in which the delimiter and the header are looked for. */
interface TableStart {
  /** At least `headLength` units, or the whole table. */
  text: string
  /** Whether the text is the whole table. */
  isWhole: boolean
  lineEnd: string
}

export async function openTable(
  texts: AsyncGenerator<string>,
  format: FormatName,
  options: InputOptions,
  name: string,
): Promise<FormatReader> {
  const start = await readStart(texts)
  const trial = chooseTrial(start, format, options, name)
  assertDelimiter(trial, start, format, options, name)
  const { rows, delimiter } = trial
  const table = createTable(name, delimiter, start, options)
  const chunks = readChunks(table, prepend([start.text], texts))
  return createReader(rows, chunks, options, { name, delimiter })
}

/** Reads the first rows of a table, whatever its columns are. */
export async function readTableHead(
  texts: AsyncGenerator<string>,
  format: FormatName,
  options: InputOptions,
  name: string,
): Promise<TableHead> {
  const { rows, delimiter } = chooseTrial(await readStart(texts), format, options, name)
  return { rows, delimiter }
}

function createTable(
  name: string,
  delimiter: string,
  { lineEnd }: TableStart,
  { quotes = true }: InputOptions,
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
  const head = text.slice(0, headLength)
  // The last line always ends with a line feed, which `decodeText` adds.
  const lineEnd = findLineEnd(head.slice(0, -1))
  return { text, isWhole: text.length < headLength, lineEnd }
}

/** The first rows as one of the delimiters divides them. */
interface DelimiterTrial {
  delimiter: string
  rows: Chunk<Cells>
  /** The trial with the lowest rank is chosen; `rateHeader` says how it is rated. */
  rank: number
  /** The number of cells of the header, or of the row that looks most like one. */
  width: number
}

/** Chooses the delimiter with which a header comes first, and, of several, has the most cells. */
function chooseTrial(
  start: TableStart,
  format: FormatName,
  options: InputOptions,
  name: string,
): DelimiterTrial {
  const { text, isWhole, lineEnd } = start
  const chosenDelimiter = format === 'tsv' ? '\t' : options.delimiter
  const delimiters = chosenDelimiter === undefined ? [',', ';', '\t', '|'] : [chosenDelimiter]
  const head = isWhole ? text + lineEnd : text.slice(0, headLength)
  const trials = delimiters.map((delimiter) => {
    const table = createTable(name, delimiter, start, options)
    const rows = parseRows(table, head, false).slice(0, maxHeaderRows)
    return { delimiter, rows, ...rateHeader(rows, options) }
  })
  trials.sort((a, b) => a.rank - b.rank || b.width - a.width)
  const trial = assertDefined(trials[0])
  if (trial.rows.records.length === 0 && !isWhole)
    throw createInputError(
      `${name} has no row in its first 64 KiB`,
      'Put the header at the beginning',
    )
  return trial
}

/** The cells have another character between them than the option or the format says. */
export class DelimiterError extends PlantsError {
  constructor(message: string, hint: string) {
    super('input', message, { hint })
  }
}

/**
 * Checks the delimiter that an option or the format of the file has fixed.
 *
 * @throws {DelimiterError} if it leads to no header or divides no row, and another delimiter does
 */
function assertDelimiter(
  { delimiter, rows, rank, width }: DelimiterTrial,
  start: TableStart,
  format: FormatName,
  options: InputOptions,
  name: string,
): void {
  const isFixed = format === 'tsv' || options.delimiter !== undefined
  const { columns } = options
  const isReadable = columns ? columns.length === 1 : findHeader(rows, options) !== undefined
  if (!isFixed || isReadable) return
  const otherOptions = { ...options, delimiter: undefined }
  const otherTrial = chooseTrial(start, 'csv', otherOptions, name)
  // A cell may contain the wrong delimiter. Then the right one leads to a header.
  const isDividedBetter = width > 1 ? otherTrial.rank < rank : otherTrial.width > 1
  if (!isDividedBetter) return
  const message = `${name} has ${describeDelimiter(otherTrial.delimiter)} between its cells, not ${describeDelimiter(delimiter)}`
  const formatHint = options.format === 'tsv' ? 'Replace --format tsv with' : 'Add'
  const hint = format === 'tsv' ? `${formatHint} --format csv` : 'Leave out --delimiter'
  throw new DelimiterError(message, hint)
}

const delimiterNouns: Readonly<Record<string, string>> = {
  ',': 'commas',
  ';': 'semicolons',
  '\t': 'tabs',
  '|': 'vertical bars',
}

function describeDelimiter(delimiter: string): string {
  return delimiterNouns[delimiter] ?? JSON.stringify(delimiter)
}

/**
 * Rates how likely a delimiter is the right one, by the header that was found with it.
 *
 * - The rank of a header with the needed names is its row: of two such headers, the first is right.
 * - A header that was only guessed has the rank 0, so that only its width is compared. By its row,
 *   the comma of a title such as "Stock, 2026" would win against the semicolons of the table below.
 * - Without a header, the rank is higher than any row.
 */
function rateHeader(
  rows: Chunk<Cells>,
  options: InputOptions,
): Pick<DelimiterTrial, 'rank' | 'width'> {
  const location = findHeader(rows, options)
  const { records } = rows
  if (!location || location.isGuessed) {
    const width = countFilledCells(records[findLikeliestHeader(records)])
    return { rank: location ? 0 : maxHeaderRows, width }
  }
  // With `--columns`, no row is the header, and the first row has the width.
  const header = records[location.row] ?? records[0]
  return { rank: location.row, width: header?.length ?? 0 }
}

/** Reads the rows of the texts in chunks. */
async function* readChunks(
  table: Table,
  texts: AsyncIterable<string>,
): AsyncGenerator<Chunk<Cells>> {
  let chunk = new Chunk<Cells>()
  // A text waits until the next text is there, because the last text is parsed differently.
  let waitingText = ''
  for await (const text of texts) {
    parseRows(table, waitingText, false, chunk)
    chunk.characters += waitingText.length
    waitingText = text
    if (!chunk.isFull) continue
    yield chunk
    chunk = new Chunk()
  }
  yield parseRows(table, waitingText, true, chunk)
}
