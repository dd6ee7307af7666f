import type { FormatName } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import {
  type Cells,
  Chunk,
  type FieldRules,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  prepend,
  skipRecords,
} from './chunk.js'
import { findHeader, headerAt, likelyHeader, maxHeaderRows } from './header.js'
import { readArray, readNdjson } from './json.js'
import { readTable, TableParser } from './table.js'
import { type Lines, markedEncoding, readLines, toUtf8 } from './text.js'

/** Throws `malformed` for an unknown format, an unreadable workbook, and a table without a header. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, head } = input
  if (/^PK(?:\x03\x04|\x05\x06)/.test(head.toString('latin1', 0, 4))) {
    const { openWorkbook } = await import('./workbook.js')
    return openWorkbook(input, options)
  }
  if (head.toString('latin1', 0, 4) === '\xd0\xcf\x11\xe0')
    throw malformed(`${name} is an old workbook (.xls), or has a password`, 'Save it as .xlsx, without a password')
  const marked = markedEncoding(head)
  const isRejects = /^(?:"?|\{\s*")rejected_line\b/.test(new TextDecoder(marked).decode(head))
  if (options.sheet !== undefined && !isRejects)
    throw malformed(`${name} is not a workbook, so --sheet does not apply`, 'Leave out --sheet')
  const encoding = marked ?? (isRejects ? undefined : options.encoding) ?? 'utf-8'
  const start = new TextDecoder(encoding).decode(head).trimStart()
  const format = options.format ?? detectFormat(start, name, options)
  const blocks = toUtf8(input.blocks, encoding, name)
  if (format === 'json') return { format, chunks: readArray(blocks, name) }
  if (format === 'ndjson') return { format, chunks: readNdjson(blocks) }
  const rules = isRejects ? { ...options.rules, columns: undefined } : options.rules
  const delimiter = options.delimiter ?? (format === 'tsv' ? '\t' : undefined)
  return { ...(await openTable(blocks, name, rules, delimiter)), format }
}

function detectFormat(start: string, name: string, { delimiter, rules }: InputOptions): FormatName {
  const [line = '', next] = start.split(/\r?\n/, 2)
  const ending = /\.(?<ending>ndjson|jsonl|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups?.['ending']?.toLowerCase()
  const isNamed = ending !== undefined || delimiter !== undefined || rules.columns !== undefined
  const isObject = line.trim() === '{' && next !== undefined // over several lines
  if (line.includes('\0') || (!isNamed && (line.startsWith('<') || isObject)))
    throw malformed(
      `${name} is not CSV, TSV, NDJSON or JSON`,
      'Save a workbook as .xlsx. A text in UTF-16 needs --encoding utf-16le',
    )
  if (ending === 'csv' || ending === 'tsv') return ending
  if (delimiter !== undefined || rules.columns) return 'csv'
  if (ending !== undefined || line === '' || line.startsWith('{')) return 'ndjson'
  return line.startsWith('[') ? 'json' : 'csv'
}

const delimiters = [',', ';', '\t', '|']

/** What a delimiter makes of the first rows. */
interface Trial {
  delimiter: string
  parser: TableParser
  rows: Chunk<Cells>
}

/** Reads up to the header, or a row of `--columns`. */
async function openTable(
  blocks: AsyncIterable<Buffer>,
  name: string,
  rules: FieldRules,
  given: string | undefined,
): Promise<Omit<FormatReader, 'format'>> {
  const lines = readLines(blocks)
  let read: Lines[] = []
  const trials = (given ? [given] : delimiters).map((delimiter): Trial => {
    return { delimiter, parser: new TableParser(delimiter, name), rows: new Chunk() }
  })
  for (;;) {
    const { value, done } = await lines.next()
    if (value) read.push(value)
    if (value) for (const { parser, rows } of trials) parser.parse(value, rows, maxHeaderRows)
    const { delimiter, parser, rows, index } = bestOf(trials, rules)
    const isOver = ({ parser, rows }: Trial) => parser.isBroken || rows.records.length === maxHeaderRows
    if (trials.every(({ parser, rows }) => rows.records.length === 0 && !parser.isOpen)) read = [] // blank lines
    if (!done && index === undefined && !trials.every(isOver)) continue
    if (index === undefined) parser.end()
    if (rows.records.length === 0) return { chunks: readTable(lines, parser) } // which are at their end
    const header = headerAt(index, rows, rules, name)
    const chunks = readTable(prepend(read, lines), new TableParser(delimiter, name))
    return { ...header, delimiter, chunks: skipRecords(chunks, must(index) + 1) }
  }
}

/** Which has the first header; of several, and for a message, which divides its row into the most cells. */
function bestOf(trials: readonly Trial[], rules: FieldRules) {
  const found = trials.map((trial) => {
    const { records, lines } = trial.rows
    const index = findHeader(trial.rows, rules)
    const row = Math.max(0, index ?? likelyHeader(records))
    const line = index === undefined ? Number.MAX_VALUE : must(lines[row])
    return { ...trial, index, line, width: trial.parser.isBroken ? -1 : (records[row]?.length ?? 0) }
  })
  return must(found.toSorted((one, other) => one.line - other.line || other.width - one.width)[0])
}
