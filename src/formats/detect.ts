/*
 * Detects the format and the encoding of an input, and opens it for an import.
 *
 * Everything is detected in the first block of an input, because a pipe cannot be read again. A
 * workbook begins with the bytes of an archive. For any other input, an option decides the format,
 * or else the ending of the file name, or else the first character of the text.
 */
import { isUtf8 } from 'node:buffer'
import { assertKeys, assertNoRowLines, NoListError } from './assert-keys.js'
import { Chunk, type FormatInput, type FormatReader, type InputOptions, peek } from './chunk.js'
import { findColumns } from './columns.js'
import { decodeText } from './decode-text.js'
import { decodeLeniently, findEncoding, findMarkedEncoding, findUnmarkedUtf16 } from './encoding.js'
import { createUtf16Error, type TextEncoding } from './encoding-error.js'
import {
  assertNoForeignFile,
  assertNoNul,
  beginsWithSql,
  createDumpError,
} from './foreign-files.js'
import type { TableHead } from './header.js'
import { readDocument, readNdjson } from './json.js'
import { openTable, readTableHead } from './open-table.js'
import type { FormatName } from './write.js'

/**
 * Opens an input, and checks that its first records have the fields of plants.
 *
 * @throws {PlantsError} `input` if the format is unknown, or columns or keys are missing
 */
export async function openFormat(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { name, signal } = input
  if (hasWorkbookStart(input)) return openArchive(input, options)
  const { format, isRejects, text, ...encoding } = await detectFormat(input, options)
  const texts = decodeText(input, encoding)
  if (isTableFormat(format))
    return openTable(
      texts,
      fixDelimiter(format, options),
      isRejects ? adaptToRejectsFile(options) : options,
      name,
    )
  const isArray = text.startsWith('[')
  if (isArray) assertNoRowLines(text, name, options)
  if (format === 'ndjson' && isArray && (options.format === undefined || /^\[\s*\{/.test(text)))
    throw new NoListError(
      `${name} is not NDJSON: it begins with an array`,
      proposeFormat('json', name, options),
    )
  const chunks = format === 'json' ? readDocument(texts, name, signal, options) : readNdjson(texts)
  const { first = new Chunk(), all } = await peek(chunks)
  assertKeys(first, options, { name, isArray })
  return { format, chunks: all }
}

function fixDelimiter(format: FormatName, { delimiter }: InputOptions): string | undefined {
  return format === 'tsv' ? '\t' : delimiter
}

/**
 * Adapts the options to a rejects file. A rejects file is imported with the options of its input,
 * but has a header and quotes even if the input had neither.
 */
function adaptToRejectsFile(options: InputOptions): InputOptions {
  return { ...options, columns: undefined, quotes: true }
}

/**
 * Reads the first rows of a table, or of each visible sheet of a workbook, whatever its columns
 * are. It returns an empty array for JSON.
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
  if (!isTableFormat(format)) return []
  const texts = decodeText(input, encoding)
  return [await readTableHead(texts, fixDelimiter(format, options), options, input.name)]
}

/**
 * Reads an input to its end, and stores nothing.
 *
 * @throws {PlantsError} `input` if bytes are not in the encoding, or a workbook is damaged
 */
export async function assertEncoding(input: FormatInput, options: InputOptions): Promise<void> {
  const content = hasWorkbookStart(input)
    ? (await openArchive(input, options)).chunks
    : decodeText(input, await detectFormat(input, options))
  for await (const _ of content);
}

/** Whether an import decodes the input as UTF-8. */
export async function isReadAsUtf8(input: FormatInput, options: InputOptions): Promise<boolean> {
  if (hasWorkbookStart(input)) return false
  return (await detectFormat(input, options)).encoding === 'utf-8'
}

/**
 * Whether the input begins like a ZIP archive, as workbooks do, or like a compound file, in which
 * Office stores documents that have a password.
 */
export function hasWorkbookStart({ head }: FormatInput): boolean {
  return /^(?:PK(?:\x03\x04|\x05\x06)|\xd0\xcf\x11\xe0)/.test(head.toString('latin1', 0, 4))
}

async function openArchive(input: FormatInput, options: InputOptions): Promise<FormatReader> {
  const { openWorkbook } = await import('./workbook/read.js')
  return openWorkbook(input, options)
}

/**
 * Detects the format and the encoding of a text. A byte order mark overrules the options, and so
 * does the beginning of a rejects file, because this program has written it.
 *
 * @returns `text` is the beginning of the text, without white space before it
 */
export async function detectFormat(
  { name, head }: Pick<FormatInput, 'name' | 'head'>,
  options: InputOptions,
): Promise<TextEncoding & { format: FormatName; isRejects: boolean; text: string }> {
  assertNoForeignFile(name, head)
  const markedEncoding = findMarkedEncoding(head)
  const rejects = examineRejects(head, markedEncoding)
  const isUtf8Rejects = rejects?.isUtf8 ?? false
  const { encoding, source } = await chooseEncoding(markedEncoding, isUtf8Rejects, options)
  const unmarkedEncoding = markedEncoding === undefined ? findUnmarkedUtf16(head) : undefined
  if (unmarkedEncoding !== undefined && unmarkedEncoding !== encoding)
    throw await createUtf16Error(name, head, unmarkedEncoding, encoding)
  const decodedText = decodeLeniently(head, encoding)
  const text = decodedText.trimStart()
  if (!rejects && options.format) assertFormatFits(text, name, options.format, options)
  const format = rejects?.format ?? options.format ?? guessFormat(decodedText, name, options)
  const isRejects = rejects !== undefined
  return { format, encoding, source, isRejects, text }
}

/**
 * Examines the beginning of a rejects file. This program has written the file in UTF-8, but since
 * then, a spreadsheet may have saved it in the encoding of the input.
 *
 * @returns undefined for a file that is no rejects file
 */
function examineRejects(
  head: Buffer,
  markedEncoding: string | undefined,
): { format: FormatName; isUtf8: boolean } | undefined {
  const text = decodeLeniently(head, markedEncoding ?? 'utf-8')
  const match = /^(?:"?|(?<brace>\{)\s*")rejected_line\b/.exec(text)
  if (!match) return undefined
  // The first block may end within a character, so only its whole lines are examined.
  const wholeLines = head.subarray(0, head.lastIndexOf('\n') + 1)
  return { format: match.groups?.['brace'] ? 'ndjson' : 'csv', isUtf8: isUtf8(wholeLines) }
}

async function chooseEncoding(
  markedEncoding: string | undefined,
  isUtf8Rejects: boolean,
  { encoding: label }: InputOptions,
): Promise<TextEncoding> {
  if (markedEncoding !== undefined) return { encoding: markedEncoding, source: 'mark' }
  if (isUtf8Rejects) return { encoding: 'utf-8', source: 'rejects file' }
  if (label === undefined) return { encoding: 'utf-8', source: 'default' }
  return { encoding: await findEncoding(label), source: 'option' }
}

/** @param decodedText the beginning of the text */
function guessFormat(decodedText: string, name: string, options: InputOptions): FormatName {
  assertNoNul(decodedText, name)
  const text = decodedText.trimStart()
  if (beginsWithSql(text)) throw createDumpError(name)
  const namedFormat = findNamedFormat(name)
  const hasTableOption = options.delimiter !== undefined || options.columns !== undefined
  if (!isTableFormat(namedFormat) && hasTableOption && !jsonStart.test(text)) return 'csv'
  if (namedFormat) assertFormatFits(text, name, namedFormat, options)
  if (isTableFormat(namedFormat)) return namedFormat
  if (namedFormat === 'ndjson' || text === '') return 'ndjson'
  // Many programs call NDJSON `.json`, so the text decides between these two.
  if (text.startsWith('{')) return beginsWithWholeObject(text) ? 'ndjson' : 'json'
  if (text.startsWith('[') || namedFormat === 'json') return 'json'
  if (/\.sql(?:\.gz)?$/i.test(name)) throw createDumpError(name)
  return 'csv'
}

export function isTableFormat(format: FormatName | undefined): format is 'csv' | 'tsv' {
  return format === 'csv' || format === 'tsv'
}

/** An object with a key, or an array of such objects. */
const jsonStart = /^(?:\[\s*)?\{\s*"/

function findNamedFormat(name: string): FormatName | undefined {
  const { ending } = /\.(?<ending>ndjson|jsonl|json|csv|tsv)(?:\.gz)?$/i.exec(name)?.groups ?? {}
  const format = ending?.toLowerCase()
  return format === 'jsonl' ? 'ndjson' : (format as FormatName | undefined)
}

/**
 * @param format the format that an option or the name of the file says
 * @throws {NoListError} for JSON instead of a table, or a table instead of JSON
 */
function assertFormatFits(
  text: string,
  name: string,
  format: FormatName,
  options: InputOptions,
): void {
  const isTableExpected = isTableFormat(format)
  if (isTableExpected && jsonStart.test(text)) {
    const jsonFormat = text.startsWith('{') && beginsWithWholeObject(text) ? 'ndjson' : 'json'
    throw new NoListError(`${name} is JSON, not a table`, proposeFormat(jsonFormat, name, options))
  }
  // A line of NDJSON that is not JSON is only one rejected record.
  const isRow = format === 'json' && /^[^{}[\]\r\n]*[,;|\t]/.test(text)
  if (isRow || (!isTableExpected && beginsWithHeader(text, options)))
    throw new NoListError(`${name} is a table, not JSON`, proposeFormat('csv', name, options))
}

/** Proposes how to read a text in its real format. Other files may have another one. */
function proposeFormat(
  format: FormatName,
  name: string,
  { format: wrongFormat }: InputOptions,
): string {
  if (wrongFormat === undefined) return `Add --format ${format}`
  const namedFormat = findNamedFormat(name) ?? format
  // The text decides between NDJSON and JSON in a file named `.json`.
  const isNamedRight = namedFormat === format || (namedFormat === 'json' && format === 'ndjson')
  return isNamedRight
    ? 'Leave out --format'
    : `Replace --format ${wrongFormat} with --format ${format}`
}

/** Whether the first line has the name of a column that an import needs, and a delimiter. */
function beginsWithHeader(text: string, options: InputOptions): boolean {
  const [line = ''] = text.slice(0, 4000).split(/[\r\n]/, 1)
  const names = line.split(/[,;|\t]/).map((name) => name.replaceAll('"', ''))
  const isJson = /^[{[]/.test(line)
  return !isJson && names.length > 1 && findColumns(names, options, new Map()).size > 0
}

/**
 * Whether the first line is a whole object, as in NDJSON. If the line ends with any other character
 * than `}`, such as `{` or `,`, its object continues in the next line. A long text without a line
 * feed counts as one JSON document, such as a response of a service.
 */
function beginsWithWholeObject(text: string): boolean {
  const isLong = text.length >= minDocumentCharacters && !text.includes('\n')
  return !isLong && !/^.*[^}\s]\s*\n/.test(text)
}

const minDocumentCharacters = 65_000
