import type { FormatName } from '../../plant/records.js'
import { inputError, must, usageError } from '../../platform/errors.js'
import {
  Chunk,
  type FieldRules,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  maxRecordBytes,
  prepend,
  type RawRecord,
  skipRecords,
  untilLast,
} from './chunk.js'
import { findHeader, headerAt, maxHeaderRows } from './header.js'
import { readDocument, readNdjson } from './json.js'
import { TableParser } from './table.js'
import { decoded, markedEncoding } from './text.js'

/** Throws `input` for an unknown format, an unreadable workbook, and a table without a header. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, blocks, signal } = input
  if (isArchive(input)) {
    const { openWorkbook } = await import('./workbook.js')
    return withoutEmptyRows(await openWorkbook(input, options))
  }
  const { format, encoding, isRejects } = detectFormat(input, options)
  if (options.sheet !== undefined && !isRejects)
    throw usageError(`${name} is not a workbook, so it has no sheets`, 'Leave out --sheet')
  const texts = decoded(blocks, encoding, name)
  if (format === 'ndjson') return { format, chunks: readNdjson(texts) }
  if (format === 'json') return { format, chunks: readDocument(texts, name, signal) }
  const rules = isRejects ? { ...options.rules, columns: undefined } : options.rules
  const delimiter = format === 'tsv' ? '\t' : options.delimiter
  const possible = delimiter === undefined ? delimiters : [delimiter]
  return withoutEmptyRows({ format, ...(await openTable(texts, name, rules, possible)) })
}

/** Reads all. Throws `input` if it is not of its encoding. */
export async function assertEncoding(input: FormatInput, options: InputOptions): Promise<void> {
  const { blocks, name } = input
  const parts = isArchive(input)
    ? blocks
    : decoded(blocks, detectFormat(input, options).encoding, name)
  for await (const _ of parts);
}

function isArchive({ head }: FormatInput): boolean {
  return head.toString('latin1', 0, 4) === 'PK\x03\x04'
}

/** What people take for a list most often, and is none, by its first bytes as Latin-1. */
const others: readonly [start: RegExp, what: string, hint: string][] = [
  [/^\xd0\xcf\x11\xe0/, 'an old workbook (.xls)', 'Save it as .xlsx'],
  [/^SQLite format 3/, 'an SQLite database', 'If it is a store, name it with --store'],
  [
    /^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|table|meta|\?xml)\b/i,
    'HTML or XML',
    'If it shows a table, save that as .xlsx',
  ],
]

function detectFormat({ name, head }: FormatInput, { format, encoding, ...rest }: InputOptions) {
  const bytes = head.toString('latin1', 0, 1000)
  for (const [start, what, hint] of others)
    if (start.test(bytes)) throw inputError(`${name} is ${what}`, hint)
  const marked = markedEncoding(head)
  const isRejects = /^(?:"?|\{\s*")rejected_line\b/.test(new TextDecoder(marked).decode(head))
  const chosen = marked ?? (isRejects ? undefined : encoding) ?? 'utf-8'
  const start = new TextDecoder(chosen).decode(head).trimStart()
  if (start.slice(0, 1000).includes('\0'))
    throw inputError(
      `${name} is a binary file`,
      'Save it as CSV, JSON or .xlsx. If it is a text in UTF-16: --encoding utf-16le',
    )
  return { format: format ?? formatOf(start, name, rest), encoding: chosen, isRejects }
}

function formatOf(
  start: string,
  name: string,
  { delimiter, rules }: Pick<InputOptions, 'delimiter' | 'rules'>,
): FormatName {
  const { ending } = /\.(?<ending>ndjson|jsonl|json|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups ?? {}
  const named = ending?.toLowerCase()
  if (named === 'csv' || named === 'tsv') return named
  if (delimiter !== undefined || rules.columns) return 'csv'
  if (named === 'ndjson' || named === 'jsonl' || start === '') return 'ndjson'
  const goesOn = /^.*[^}\s]\s*\n/.test(start) // after its first line
  if (start.startsWith('{')) return goesOn ? 'json' : 'ndjson'
  return start.startsWith('[') || named === 'json' ? 'json' : 'csv'
}

const delimiters = [',', ';', '\t', '|']

/** Of the delimiters, the one whose first rows have the header, and divides it into the most cells. */
async function openTable(
  texts: AsyncGenerator<string>,
  name: string,
  rules: FieldRules,
  possible: readonly string[],
): Promise<Omit<FormatReader, 'format'>> {
  let text = ''
  let isWhole = false
  for (const length of headLengths) {
    while (text.length < length && !isWhole) {
      const { value = '', done = false } = await texts.next()
      text += value
      isWhole = done
    }
    const head = text.slice(0, length)
    const lineEnd = head.includes('\r') && !head.includes('\n') ? '\r' : '\n'
    const trials = possible.map((delimiter) => {
      const rows = new TableParser({ delimiter, lineEnd }, name)
        .parse(isWhole ? head + lineEnd : head, false)
        .slice(0, maxHeaderRows)
      const index = findHeader(rows, rules)
      const width = rows.records[Math.max(0, index ?? 0)]?.length ?? 0
      return { delimiter, rows, index, rank: (index ?? maxHeaderRows) * 1e9 - width }
    })
    const { delimiter, rows, index } = must(trials.toSorted((a, b) => a.rank - b.rank)[0])
    if (rows.records.length === 0 && !isWhole) continue
    const parser = new TableParser({ delimiter, lineEnd }, name)
    const chunks = rowsOf(prepend([text], texts), parser)
    if (rows.records.length === 0) return { chunks }
    const header = headerAt(index, rows, rules, name)
    return { header, delimiter, chunks: skipRecords(chunks, must(index) + 1) }
  }
  throw inputError(`${name} begins without a row`, 'Begin it with its header')
}

/** A header can have many thousand columns. */
const headLengths = [65_536, 2 * maxRecordBytes]

async function* rowsOf(texts: AsyncIterable<string>, parser: TableParser): AsyncGenerator<Chunk> {
  for await (const { text, isLast } of untilLast(texts)) yield parser.parse(text, isLast)
}

function withoutEmptyRows(reader: FormatReader): FormatReader {
  const { header, chunks } = reader
  if (!header) return reader
  const columns = [...header.columns.values()]
  const isEmpty = (row: RawRecord) => columns.every((column) => row?.[column] === undefined)
  async function* filledRows(): AsyncGenerator<Chunk> {
    for await (const { records, lines } of chunks) {
      const filled = new Chunk()
      for (const [index, row] of records.entries())
        if (isEmpty(row)) filled.emptyRows += 1
        else filled.add(row, must(lines[index]))
      yield filled
    }
  }
  return { ...reader, chunks: filledRows() }
}
