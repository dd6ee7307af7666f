import { isUtf8 } from 'node:buffer'
import { inputError } from '../errors.js'
import { truncate } from '../platform/escape.js'
import { assertKeys } from './assert-keys.js'
import { Chunk, type FormatInput, type FormatReader, type InputOptions, peek } from './chunk.js'
import { decodeText, EncodingError, type TextEncoding } from './decode-text.js'
import {
  decodeLeniently,
  findEncoding,
  findMarkedEncoding,
  findUnmarkedUnicode,
} from './encoding.js'
import type { TableHead } from './header.js'
import { readDocument, readNdjson } from './json.js'
import { openTable, readTableHead } from './open-table.js'
import type { FormatName } from './write.js'

/** Throws `input` for what has no format, or not the columns. */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, signal } = input
  if (hasWorkbookStart(input)) return openArchive(input, options)
  const { format, isRejects, isArray, ...encoding } = await detectFormat(input, options)
  const texts = decodeText(input, encoding)
  if (format === 'csv' || format === 'tsv')
    return openTable(texts, format, isRejects ? chooseForRejects(options) : options, name)
  if (format === 'ndjson' && isArray && options.format === undefined)
    throw inputError(
      `${name} is not NDJSON: it begins with an array`,
      'To read it as one JSON text, add --format json',
    )
  const chunks = format === 'json' ? readDocument(texts, name, signal, options) : readNdjson(texts)
  const { first = new Chunk(), all } = await peek(chunks)
  assertKeys(first, options, { name, isArray })
  return { format, chunks: all }
}

/** A rejects file has a header and quotes, whatever its input had. */
function chooseForRejects(options: InputOptions): InputOptions {
  return { ...options, columns: undefined, quotes: true }
}

/**
 * Reads the first rows of a table, or of each visible sheet of a workbook, whatever columns it has.
 * Returns none for JSON.
 */
export async function readTableHeads(
  input: FormatInput,
  options: InputOptions,
): Promise<TableHead[]> {
  if (hasWorkbookStart(input)) {
    const { readSheetHeads } = await import('./workbook/read.js')
    return readSheetHeads(input, options)
  }
  const { format, ...encoding } = await detectFormat(input, options)
  if (format !== 'csv' && format !== 'tsv') return []
  return [await readTableHead(decodeText(input, encoding), format, options, input.name)]
}

/**
 * Throws `input` for bytes of another encoding. A workbook is read to its end, as an import does.
 */
export async function assertEncoding(input: FormatInput, options: InputOptions): Promise<void> {
  const parts = hasWorkbookStart(input)
    ? (await openArchive(input, options)).chunks
    : decodeText(input, await detectFormat(input, options))
  for await (const _ of parts);
}

/** Whether an import reads the text as UTF-8. */
export async function isReadAsUtf8(input: FormatInput, options: InputOptions): Promise<boolean> {
  if (hasWorkbookStart(input)) return false
  return (await detectFormat(input, options)).encoding === 'utf-8'
}

/** Whether it is an archive, or a compound file, in which Office keeps what has a password. */
export function hasWorkbookStart({ head }: FormatInput): boolean {
  return /^(?:PK(?:\x03\x04|\x05\x06)|\xd0\xcf\x11\xe0)/.test(head.toString('latin1', 0, 4))
}

async function openArchive(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { openWorkbook } = await import('./workbook/read.js')
  return openWorkbook(input, options)
}

/** What is no list, by its first bytes as Latin-1. */
const others: readonly [start: RegExp, what: string][] = [
  [/^SQLite format 3/, 'an SQLite database'],
  [/^(?:\xef\xbb\xbf)?\s*<[!?a-z]/i, 'HTML or XML'],
]

const saveIt = 'Save it as CSV, JSON or .xlsx'

export async function detectFormat(
  { name, head }: Pick<FormatInput, 'name' | 'head'>,
  options: InputOptions,
): Promise<TextEncoding & { format: FormatName; isRejects: boolean; isArray: boolean }> {
  const bytes = head.toString('latin1', 0, 1000)
  for (const [start, what] of others)
    if (start.test(bytes)) throw inputError(`${name} is ${what}`, saveIt)
  const marked = findMarkedEncoding(head)
  const rejects = /^(?:"?|(?<brace>\{)\s*")rejected_line\b/.exec(
    decodeLeniently(head, marked ?? 'utf-8'),
  )
  // A spreadsheet may have saved rejects in the encoding of the input.
  const isWritten = rejects !== null && isUtf8(head.subarray(0, head.lastIndexOf('\n') + 1))
  const { encoding, source } = await chooseEncoding(marked, isWritten, options)
  const ofRejects = rejects && (rejects.groups?.['brace'] ? 'ndjson' : 'csv')
  if (marked === undefined) assertByteOrder(name, head, encoding)
  const start = decodeLeniently(head, encoding).trimStart()
  const format = ofRejects ?? options.format ?? guessFormat(start, name, options)
  return { format, encoding, source, isRejects: rejects !== null, isArray: start.startsWith('[') }
}

async function chooseEncoding(
  marked: string | undefined,
  isWritten: boolean,
  { encoding: named }: InputOptions,
): Promise<TextEncoding> {
  if (marked !== undefined) return { encoding: marked, source: 'mark' }
  if (isWritten) return { encoding: 'utf-8', source: 'rejects file' }
  if (named === undefined) return { encoding: 'utf-8', source: 'default' }
  return { encoding: await findEncoding(named), source: 'option' }
}

/** In UTF-16 and UTF-32, ASCII characters have zeros, which no other text has. */
function assertByteOrder(name: string, head: Buffer, encoding: string): void {
  const likely = findUnmarkedUnicode(head)
  if (likely === undefined || likely === encoding) return
  const [line = ''] = decodeLeniently(head.subarray(0, 4000), likely)
    .trim()
    .split(/[\r\n]/, 1)
  throw new EncodingError(
    `${name} is not ${encoding === 'utf-8' ? 'UTF-8' : encoding}. ` +
      `It is most likely ${likely} without a byte order mark, and begins: ${truncate(line, 60)}`,
    `Add --encoding ${likely}`,
    [likely],
  )
}

function guessFormat(start: string, name: string, options: InputOptions): FormatName {
  if (start.slice(0, 1000).includes('\0')) throw inputError(`${name} is a binary file`, saveIt)
  const { ending } = /\.(?<ending>ndjson|jsonl|json|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups ?? {}
  const named = ending?.toLowerCase()
  if (named === 'csv' || named === 'tsv') return named
  if (options.delimiter !== undefined || options.columns) return 'csv'
  if (named === 'ndjson' || named === 'jsonl' || start === '') return 'ndjson'
  if (start.startsWith('{')) return isOneOfLines(start) ? 'ndjson' : 'json'
  return start.startsWith('[') || named === 'json' ? 'json' : 'csv'
}

/**
 * Whether an object ends in its first line, as in NDJSON. A line that is longer than the first
 * block is rather a whole document without line feeds, such as an answer of a service.
 */
function isOneOfLines(start: string): boolean {
  const isLong = start.length >= maxFirstLineBytes && !start.includes('\n')
  return !isLong && !/^.*[^}\s]\s*\n/.test(start)
}

const maxFirstLineBytes = 65_000
