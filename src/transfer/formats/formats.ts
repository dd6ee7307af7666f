import { delimiters, type FormatName } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import { type Cells, Chunk, maxRecordBytes, skipRecords } from './chunk.js'
import { markedEncoding, toUtf8 } from './encoding.js'
import type { FormatInput, FormatReader, InputOptions } from './format.js'
import { type FieldRules, findHeader, headerOf, maxHeaderRows, missingHeader } from './header.js'
import { readArray } from './json.js'
import { type Lines, readLines } from './lines.js'
import { readNdjson } from './ndjson.js'
import { readTable, TableParser } from './table.js'

/** Throws `malformed` for an unknown format, an unreadable workbook, and a table without a header. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, head } = input
  if (/^PK(?:\x03\x04|\x05\x06)/.test(head.toString('latin1', 0, 4))) {
    const { openWorkbook } = await import('./workbook.js')
    return openWorkbook(input, options)
  }
  const marked = markedEncoding(head)
  const isRejects = /^(?:"?|\{\s*")rejected_line\b/.test(new TextDecoder(marked).decode(head))
  if (options.sheet !== undefined && !isRejects)
    throw malformed(`${name} is no workbook, and has no sheets`, 'Leave out --sheet')
  const encoding = marked ?? (isRejects ? undefined : options.encoding) ?? 'utf-8'
  const start = new TextDecoder(encoding).decode(head).trimStart()
  const format = options.format ?? detectFormat(start, name, options)
  const blocks = toUtf8(input.blocks, encoding, name)
  if (format === 'json') return { format, chunks: readArray(blocks, name) }
  if (format === 'ndjson') return { format, chunks: readNdjson(blocks) }
  const { columns, ...rules } = options.rules
  const delimiter = options.delimiter ?? (format === 'tsv' ? '\t' : undefined)
  const table = await openTable(blocks, name, { ...rules, columns: isRejects ? undefined : columns }, delimiter)
  return { ...table, format }
}

function detectFormat(start: string, name: string, { delimiter, rules }: InputOptions): FormatName {
  const [line = '', next] = start.split(/\r\n?|\n/, 2)
  if (line.includes('\0')) {
    const hint = 'Save an old workbook as .xlsx. For a text in UTF-16, add --encoding utf-16le'
    throw malformed(`${name} is not text: it contains U+0000`, hint)
  }
  const ending = /\.(?<ending>ndjson|jsonl|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups?.['ending']?.toLowerCase()
  if (ending === 'csv' || ending === 'tsv') return ending
  if (delimiter !== undefined || rules.columns) return 'csv'
  if (line.startsWith('<')) throw malformed(`${name} is not CSV, TSV, NDJSON or JSON`, 'See: plants help import')
  if (line.trim() === '{' && next !== undefined)
    throw malformed(
      `${name} is a JSON object over several lines`,
      'Write the plants as an array, or as NDJSON: one on each line',
    )
  if (ending !== undefined || line === '' || line.startsWith('{')) return 'ndjson'
  return line.startsWith('[') ? 'json' : 'csv'
}

/** Reads up to the header, or a row of `--columns`. */
async function openTable(
  blocks: AsyncIterable<Buffer>,
  name: string,
  rules: FieldRules,
  given: string | undefined,
): Promise<Omit<FormatReader, 'format'>> {
  const lines = readLines(blocks, { keepsBreaks: true, maxBytes: maxRecordBytes })
  let read: Lines[] = []
  let trials: DelimiterTrial[] | undefined
  for (;;) {
    const { value, done } = await lines.next()
    if (value) read.push(value)
    trials ??= trialsOf(read, given, name, rules)
    if (value) for (const trial of trials) trial.add(value)
    const { delimiter, index, rows, parser, isFound } = bestOf(trials)
    const isOver = done || trials.every((trial) => trial.isOver)
    if (isFound && (index <= 0 || isOver)) {
      const header = headerOf(rules.columns ?? must(rows.records[index]), rules, name)
      const chunks = readTable(again(read, lines), new TableParser(delimiter, name))
      const skipped = index > 0 && { skipped: { rows: index, header: must(rows.lines[index]) } }
      return { header, delimiter, chunks: skipRecords(chunks, index + 1), ...skipped }
    }
    if (trials.every((trial) => trial.isBlank)) read = []
    if (!isOver) continue // also where another delimiter may have an earlier header
    parser.end()
    if (rows.records.length === 0) return { chunks: noChunks() }
    throw missingHeader(rows, index, rules, name)
  }
}

function trialsOf(read: readonly Lines[], given: string | undefined, name: string, rules: FieldRules) {
  const named = takeDelimiter(read[0]?.texts)
  const known = given ?? named
  return (known ? [known] : delimiters).map((delimiter) => new DelimiterTrial(delimiter, name, rules))
}

/** Which has the first header; of several, and for a message, which divides its row into the most cells. */
function bestOf(trials: readonly DelimiterTrial[]): DelimiterTrial {
  const sorted = trials.toSorted((one, other) => other.width - one.width)
  const [found] = sorted.filter(({ isFound }) => isFound).toSorted((one, other) => one.line - other.line)
  return must(found ?? sorted.find(({ parser }) => !parser.isBroken) ?? sorted[0])
}

/** Takes the line `sep=;`, with which spreadsheets name the delimiter. */
function takeDelimiter(lines: string[] = []): string | undefined {
  const delimiter = /^"?sep=(?<character>[^\r\n])"?[\r\n]/i.exec(lines[0] ?? '')?.groups?.['character']
  if (delimiter !== undefined) lines[0] = ''
  return delimiter
}

/** What a delimiter makes of the first rows. */
class DelimiterTrial {
  readonly delimiter: string
  readonly parser: TableParser
  readonly rows = new Chunk<Cells>()
  readonly #rules: FieldRules
  /** of the header, or of the row that is most likely meant; -1 for that of `--columns` */
  index = 0
  isFound = false

  constructor(delimiter: string, name: string, rules: FieldRules) {
    this.delimiter = delimiter
    this.parser = new TableParser(delimiter, name)
    this.#rules = rules
  }

  add(lines: Lines): void {
    this.parser.parse(lines, this.rows, maxHeaderRows)
    const { records } = this.rows
    const found = this.#rules.columns ? { index: -1, isFound: records.length > 0 } : findHeader(records, this.#rules)
    Object.assign(this, found)
  }

  get width(): number {
    return this.rows.records[Math.max(0, this.index)]?.length ?? 0
  }

  get line(): number {
    return this.rows.lines[Math.max(0, this.index)] ?? Infinity
  }

  /** Whether more lines change nothing. */
  get isOver(): boolean {
    return this.isFound || this.parser.isBroken || this.rows.records.length === maxHeaderRows
  }

  get isBlank(): boolean {
    return this.rows.records.length === 0 && !this.parser.isOpen
  }
}

async function* noChunks(): AsyncGenerator<never> {}

async function* again<T>(read: readonly T[], rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield* read
  yield* rest
}
