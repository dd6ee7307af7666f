/*
 * Opens a table of text: finds its delimiter and its header among its first rows, and reads the
 * rows below.
 */
import { assertDefined, inputError } from '../errors.js'
import { type Cells, type Chunk, type FormatReader, type InputOptions, prepend } from './chunk.js'
import {
  countFilledCells,
  createReader,
  findHeader,
  findLikeliestHeader,
  maxHeaderRows,
  type TableHead,
} from './header.js'
import { ChunkGatherer, type PlainFormat, readsPlainRows } from './plain-chunk.js'
import { createPlainTableFormat } from './plain-table.js'
import { parseRows, type Table } from './table.js'
import type { FormatName } from './write.js'

const headLength = 65_536

/** A text that is at least as long as a head, or whole, with the texts after it. */
interface Start {
  text: string
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
  const { rows, delimiter } = chooseTrial(start, format, options, name)
  const table = createTable(name, delimiter, start, options)
  const chunks = readChunks(table, prepend([start.text], texts), () => plainFormat)
  const reader = createReader(rows, chunks, options, { name, delimiter })
  const isPlain = readsPlainRows(options) && reader.header
  const plainFormat = isPlain ? createPlainTableFormat(table, isPlain) : undefined
  return reader
}

/** Reads the first rows of a table, whatever columns it has. */
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
  { lineEnd }: Start,
  { quotes = true }: InputOptions,
): Table {
  return { name, delimiter, lineEnd, hasQuotes: quotes, line: 1, rest: '' }
}

async function readStart(texts: AsyncGenerator<string>): Promise<Start> {
  let text = ''
  while (text.length < headLength) {
    const { value, done } = await texts.next()
    if (done) break
    text += value
  }
  const head = text.slice(0, headLength)
  const hasLineFeed = head.slice(0, -1).includes('\n') // besides that at the end
  const lineEnd = head.includes('\r') && !hasLineFeed ? '\r' : '\n'
  return { text, isWhole: text.length < headLength, lineEnd }
}

/** The first rows as one delimiter divides them. */
interface Trial {
  delimiter: string
  rows: Chunk<Cells>
  /** In which row the header is; after all if there is none. */
  rank: number
  width: number
}

/** Chooses the delimiter that finds a header first, and divides it into the most cells. */
function chooseTrial(start: Start, format: FormatName, options: InputOptions, name: string): Trial {
  const { text, isWhole, lineEnd } = start
  const chosen = format === 'tsv' ? '\t' : options.delimiter
  const delimiters = chosen === undefined ? [',', ';', '\t', '|'] : [chosen]
  const head = isWhole ? text + lineEnd : text.slice(0, headLength)
  const trials = delimiters.map((delimiter) => {
    const table = createTable(name, delimiter, start, options)
    const rows = parseRows(table, head, false).slice(0, maxHeaderRows)
    return { delimiter, rows, ...rateHeader(rows, options) }
  })
  trials.sort((a, b) => a.rank - b.rank || b.width - a.width)
  const trial = assertDefined(trials[0])
  if (trial.rows.records.length === 0 && !isWhole)
    throw inputError(`${name} has no row in its first 64 KiB`, 'Put the header at the beginning')
  return trial
}

function rateHeader(rows: Chunk<Cells>, options: InputOptions): Pick<Trial, 'rank' | 'width'> {
  const place = findHeader(rows, options)
  const { records } = rows
  // Another delimiter may find a likeliest header before, in a title such as "Stock, 2026".
  if (!place || place.isLikeliest)
    return {
      rank: place ? 0 : maxHeaderRows,
      width: countFilledCells(records[findLikeliestHeader(records)]),
    }
  return { rank: place.row, width: (records[place.row] ?? records[0])?.length ?? 0 }
}

/** @param getPlainFormat is called after the first text, which has the header */
async function* readChunks(
  table: Table,
  texts: AsyncIterable<string>,
  getPlainFormat: () => PlainFormat<Cells> | undefined,
): AsyncGenerator<Chunk<Cells>> {
  const gatherer = new ChunkGatherer<Cells>(getPlainFormat)
  let held = ''
  for await (const text of texts) {
    if (held !== '') yield* readRows(table, held, gatherer)
    held = text
  }
  yield* gatherer.takePlain()
  yield parseRows(table, held, true, gatherer.general)
}

function* readRows(table: Table, text: string, gatherer: ChunkGatherer<Cells>) {
  const whole = table.rest + text
  const end = whole.lastIndexOf(table.lineEnd) + 1
  const rowCount = gatherer.addPlain(whole, end, table.line)
  if (rowCount === undefined) {
    parseRows(table, text, false, gatherer.general)
    gatherer.general.characters += text.length
    return yield* gatherer.takeChunks('general')
  }
  table.line += rowCount
  table.rest = whole.slice(end)
  yield* gatherer.takeChunks('plain')
}
