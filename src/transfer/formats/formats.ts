import { isUtf8 } from 'node:buffer'
import type { FormatName } from '../../plant/records.js'
import { inputError, must } from '../../platform/errors.js'
import {
  Chunk,
  type FormatInput,
  type FormatReader,
  type InputOptions,
  prepend,
  untilLast,
} from './chunk.js'
import { assertKeys, findHeader, maxHeaderRows, readerOf } from './header.js'
import { readDocument, readNdjson } from './json.js'
import { TableParser } from './table.js'
import { decoded, encodingOf, isUnicode, markedEncoding } from './text.js'

/** Throws `input` for an unknown format, an unreadable workbook, and a table without a header. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, blocks, signal } = input
  if (isArchive(input)) {
    const { openWorkbook } = await import('./workbook.js')
    return openWorkbook(input, options)
  }
  const { format, encoding, isRejects } = detectFormat(input, options)
  const texts = decoded(blocks, encoding, name)
  if (format === 'csv' || format === 'tsv')
    return openTable(texts, format, isRejects ? { ...options, columns: undefined } : options, name)
  const chunks = format === 'json' ? readDocument(texts, name, signal) : readNdjson(texts)
  const { value: first = new Chunk() } = await chunks.next()
  assertKeys(first, options, name)
  return { format, chunks: prepend([first], chunks) }
}

/** Throws `input` for what is not of its encoding. */
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
const others: readonly [start: RegExp, what: string][] = [
  [/^\xd0\xcf\x11\xe0/, 'an old workbook (.xls)'],
  [/^SQLite format 3/, 'an SQLite database'],
  [/^(?:\xef\xbb\xbf)?\s*<[!?a-z]/i, 'HTML or XML'],
]

const saveIt = 'Save it as CSV, JSON or .xlsx'

function detectFormat({ name, head }: FormatInput, options: InputOptions) {
  const { format, encoding } = options
  const bytes = head.toString('latin1', 0, 1000)
  for (const [start, what] of others)
    if (start.test(bytes)) throw inputError(`${name} is ${what}`, saveIt)
  const marked = markedEncoding(head)
  const isRejects = /^(?:"?|\{\s*")rejected_line\b/.test(new TextDecoder(marked).decode(head))
  // A spreadsheet may have saved it in the encoding of the input.
  const isWritten = isRejects && isUtf8(head.subarray(0, head.lastIndexOf('\n') + 1))
  const chosen = marked ?? (isWritten || !encoding ? 'utf-8' : encodingOf(encoding))
  const start = new TextDecoder(isUnicode(chosen) ? chosen : 'latin1').decode(head).trimStart()
  if (start.slice(0, 1000).includes('\0'))
    throw inputError(
      `${name} is a binary file`,
      `${saveIt}. If it is a text in UTF-16: --encoding utf-16le`,
    )
  return { format: format ?? formatOf(start, name, options), encoding: chosen, isRejects }
}

function formatOf(start: string, name: string, options: InputOptions): FormatName {
  const { ending } = /\.(?<ending>ndjson|jsonl|json|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups ?? {}
  const named = ending?.toLowerCase()
  if (named === 'csv' || named === 'tsv') return named
  if (options.delimiter !== undefined || options.columns) return 'csv'
  if (named === 'ndjson' || named === 'jsonl' || start === '') return 'ndjson'
  const goesOn = /^.*[^}\s]\s*\n/.test(start)
  if (start.startsWith('{')) return goesOn ? 'json' : 'ndjson'
  return start.startsWith('[') || named === 'json' ? 'json' : 'csv'
}

/** Of the delimiters, the one whose first rows have the header, and divides it into the most cells. */
async function openTable(
  texts: AsyncGenerator<string>,
  format: FormatName,
  options: InputOptions,
  name: string,
): Promise<FormatReader> {
  let text = ''
  let isWhole = false
  while (text.length < headLength && !isWhole) {
    const { value = '', done = false } = await texts.next()
    text += value
    isWhole = done
  }
  const head = text.slice(0, headLength)
  const lineEnd = head.includes('\r') && !head.includes('\n') ? '\r' : '\n'
  const chosen = format === 'tsv' ? '\t' : options.delimiter
  const trials = (chosen === undefined ? [',', ';', '\t', '|'] : [chosen]).map((delimiter) => {
    const rows = new TableParser({ delimiter, lineEnd }, name)
      .parse(isWhole ? text + lineEnd : head, false)
      .slice(0, maxHeaderRows)
    const index = findHeader(rows, options)
    const width = rows.records[Math.max(0, index ?? 0)]?.length ?? 0
    return { delimiter, rows, rank: (index ?? maxHeaderRows) * 1e9 - width }
  })
  const { delimiter, rows } = must(trials.toSorted((a, b) => a.rank - b.rank)[0])
  if (rows.records.length === 0 && !isWhole)
    throw inputError(`${name} has no row in its first 64 KiB`, 'Begin it with its header')
  const parser = new TableParser({ delimiter, lineEnd }, name)
  const chunks = rowsOf(prepend([text], texts), parser)
  return readerOf({ format, delimiter }, rows, chunks, options, name)
}

const headLength = 65_536

async function* rowsOf(texts: AsyncIterable<string>, parser: TableParser) {
  for await (const { text, isLast } of untilLast(texts)) yield parser.parse(text, isLast)
}
