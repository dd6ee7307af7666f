import { parseJson } from '../../plant/exact-json.js'
import type { FormatName } from '../../plant/records.js'
import { inputError, must, usageError } from '../../platform/errors.js'
import {
  type Cell,
  type Cells,
  Chunk,
  type FieldRules,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  type Misencoded,
  prepend,
  skipRecords,
} from './chunk.js'
import { findHeader, headerAt, likelyHeader, maxHeaderRows } from './header.js'
import { assertRecord, isOpen, readDocument, readNdjson } from './json.js'
import { refuseBinary, refuseText, refuseUtf16 } from './signatures.js'
import { findLineEnd, readTable, TableParser, type TableSource, widthOf } from './table.js'
import { isAllUtf8, type Lines, markedEncoding, readLines, toUtf8 } from './text.js'

/** Throws `input` for an unknown format, an unreadable workbook, and a table without a header. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  if (isArchive(input)) {
    refuseBinary(input.head, input.name)
    const { openWorkbook } = await import('./workbook.js')
    return openWorkbook(input, options)
  }
  const { name } = input
  const { format, start, encoding, isRejects, misencoded } = detectFormat(input, options)
  if (options.sheet !== undefined && !isRejects)
    throw usageError(`${name} is not a workbook, so it has no sheets`, 'Leave out --sheet')
  const blocks = toUtf8(input.blocks, encoding)
  const source = { name, misencoded }
  // An object over several lines is one record, whose line says more than its index.
  if (format === 'json')
    return {
      format: start.startsWith('{') ? 'ndjson' : format,
      chunks: readDocument(blocks, source, options.rules),
    }
  if (format === 'ndjson') return { format, chunks: readNdjson(blocks, encoding) }
  const rules = isRejects ? { ...options.rules, columns: undefined } : options.rules
  return { ...(await openTable(blocks, source, rules, delimitersOf(format, options))), format }
}

/**
 * Reads all of a table or a JSON document.
 *
 * @returns whether a line may be of another encoding, which `assertEncoding` finds
 */
export async function isMisencoded(input: FormatInput, options: InputOptions): Promise<boolean> {
  if (isArchive(input)) return false
  const { format, encoding } = detectFormat(input, options)
  return format !== 'ndjson' && !(await isAllUtf8(toUtf8(input.blocks, encoding)))
}

/** Throws `input` for the first line that is not of the encoding. */
export async function assertEncoding(input: FormatInput, options: InputOptions): Promise<void> {
  const { format, encoding, misencoded } = detectFormat(input, options)
  const text = toUtf8(input.blocks, encoding)
  const { hasCr, blocks } = await findLineEnd(text, delimitersOf(format, options))
  for await (const { first, invalid } of readLines(blocks, format !== 'json' && hasCr))
    for (const index of invalid) throw misencoded(first + index)
}

function isArchive({ head }: FormatInput): boolean {
  return /^PK(?:\x03\x04|\x05\x06)/.test(head.toString('latin1', 0, 4))
}

interface Detected {
  format: FormatName
  /** The text without white space in front. */
  start: string
  encoding: string
  isRejects: boolean
  misencoded: Misencoded
}

/** Throws `input` for an input that has none of the formats. */
function detectFormat({ name, head }: FormatInput, options: InputOptions): Detected {
  refuseBinary(head, name)
  const marked = markedEncoding(head)
  const isRejects = /^(?:"?|\{\s*")rejected_line\b/.test(new TextDecoder(marked).decode(head))
  const encoding = marked ?? (isRejects ? undefined : options.encoding) ?? 'utf-8'
  const start = new TextDecoder(encoding).decode(head).trimStart()
  const format = options.format ?? formatOf(head, start, name, options)
  const mayDiffer = encoding === 'utf-8' && marked === undefined && !isRejects
  const misencoded = (line: number) =>
    inputError(
      `${name} is not ${encoding === 'utf-8' ? 'UTF-8' : encoding} in line ${line}`,
      mayDiffer
        ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
        : 'Correct that line, or save the file as UTF-8',
    )
  return { format, start, encoding, isRejects, misencoded }
}

function formatOf(
  head: Buffer,
  start: string,
  name: string,
  { delimiter, encoding, rules }: InputOptions,
): FormatName {
  const ending = /\.(?<ending>ndjson|jsonl|json|csv|tsv)(?:\.gz)?$/i
    .exec(name)
    ?.groups?.['ending']?.toLowerCase()
  if (encoding === undefined) refuseUtf16(head, name)
  refuseText(
    start,
    name,
    ending !== undefined || delimiter !== undefined || rules.columns !== undefined,
  )
  if (ending === 'csv' || ending === 'tsv') return ending
  if (delimiter !== undefined || rules.columns) return 'csv'
  if (ending === 'ndjson' || ending === 'jsonl' || start === '') return 'ndjson'
  if (start.startsWith('{'))
    return isDocument(start, name, rules, ending === 'json') ? 'json' : 'ndjson'
  return start.startsWith('[') || ending === 'json' ? 'json' : 'csv'
}

/** Whether the object that begins is not whole in its first line. */
function isDocument(start: string, source: string, rules: FieldRules, isNamed: boolean): boolean {
  const feed = start.indexOf('\n')
  const line = feed === -1 ? start : start.slice(0, feed)
  const parsed = parseJson(line)
  if ('reason' in parsed) return isOpen(line) && (isNamed || feed !== -1)
  if (start.trimEnd() === line.trimEnd()) assertRecord(parsed.value, source, rules)
  return false
}

const delimiters = [',', ';', '\t', '|']

function delimitersOf(format: FormatName, { delimiter }: InputOptions): readonly string[] {
  if (delimiter !== undefined) return [delimiter]
  return format === 'tsv' ? ['\t'] : delimiters
}

/** What a delimiter makes of the first rows. */
interface Trial {
  delimiter: string
  parser: TableParser
  rows: Chunk<Cells>
}

/** Reads up to the header, or a row of `columns`. */
async function openTable(
  text: AsyncIterable<Buffer>,
  source: TableSource,
  rules: FieldRules,
  possible: readonly string[],
): Promise<Omit<FormatReader, 'format'>> {
  const { hasCr, blocks } = await findLineEnd(text, possible)
  const lines = readLines(blocks, hasCr)
  let read: Lines[] = []
  const trials = possible.map((delimiter): Trial => {
    return {
      delimiter,
      parser: new TableParser(delimiter, source, { isWide: true }),
      rows: new Chunk(),
    }
  })
  for (;;) {
    const { value, done } = await lines.next()
    if (value) read.push(value)
    if (value) for (const { parser, rows } of trials) parser.parse(value, rows, maxHeaderRows)
    const { delimiter, parser, rows, index } = bestOf(trials, rules)
    const isOver = ({ parser, rows }: Trial) =>
      parser.isBroken || rows.records.length === maxHeaderRows
    if (trials.every(({ parser, rows }) => rows.records.length === 0 && !parser.isOpen)) read = [] // blank lines
    if (!done && index === undefined && !trials.every(isOver)) continue
    if (index === undefined) parser.end()
    if (rows.records.length === 0) return { chunks: readTable(lines, parser) } // which are at their end
    const header = headerAt(index, rows, rules, source.name)
    const chunks = readTable(prepend(read, lines), new TableParser(delimiter, source))
    const body = skipRecords(chunks, must(index) + 1)
    return {
      ...header,
      delimiter,
      chunks: delimiter === '|' && !rules.columns ? withoutRule(body) : body,
    }
  }
}

/** Without the row that Markdown and psql write below a header, such as `---|:--` or `---+---`. */
async function* withoutRule(chunks: AsyncIterable<Chunk>): AsyncGenerator<Chunk> {
  let isFirst = true
  for await (const chunk of chunks) {
    const [row] = chunk.records
    const isRule = isFirst && typeof row === 'object' && row.length > 0 && row.every(isDashes)
    isFirst = false
    const rest = isRule ? chunk.slice(1, Infinity) : chunk
    if (rest.records.length > 0) yield rest
  }
}

function isDashes(cell: Cell): boolean {
  return cell === undefined || (typeof cell === 'string' && /^(?::-+:?|-+:|-[-+]+)$/.test(cell))
}

/** Which has the first header; of several, and for a message, which divides its row into the most cells. */
function bestOf(trials: readonly Trial[], rules: FieldRules) {
  const found = trials.map((trial) => {
    const { records, lines } = trial.rows
    const index = findHeader(trial.rows, rules)
    const row = Math.max(0, index ?? likelyHeader(records))
    const line = index === undefined ? Number.MAX_VALUE : must(lines[row])
    return {
      ...trial,
      index,
      line,
      width: trial.parser.isBroken ? -1 : widthOf(records[row] ?? []),
    }
  })
  return must(found.toSorted((one, other) => one.line - other.line || other.width - one.width)[0])
}
