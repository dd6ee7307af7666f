/*
 * Detects the format and the encoding of an input, and opens it for an import.
 *
 * Both are detected in the first block of an input, because a pipe cannot be read again. A workbook
 * is known by its first bytes. The format of a text is decided by the beginning of a rejects file,
 * or else by an option, or else by the ending of the file name, or else by the beginning of the
 * text, which also tells NDJSON from JSON in a file with the ending `.json`.
 */
import { isUtf8 } from 'node:buffer'
import { createUsageError } from '../errors.js'
import { parseJson } from '../plant/json.js'
import { decodeText } from './decode-text.js'
import {
  decodeLeniently,
  findEncoding,
  findEndOfCharacters,
  findMarkedEncoding,
} from './encoding.js'
import type { TextEncoding } from './encoding-error.js'
import { assertNoForeignFile, assertNoNul } from './foreign-files.js'
import { openDocument, openNdjson } from './json.js'
import { openTable } from './open-table.js'
import type { FormatInput, FormatOptions, FormatReader, HeaderFinder } from './reader.js'
import { type FormatName, findNamedFormat } from './write.js'

type OpenText = (...parameters: Parameters<typeof openTable>) => Promise<FormatReader>

const textFormats: Readonly<Record<FormatName, OpenText>> = {
  ndjson: openNdjson,
  json: openDocument,
  csv: openTable,
  tsv: (texts, options, ...rest) =>
    openTable(texts, { ...options, delimiter: options.delimiter ?? '\t' }, ...rest),
}

/**
 * Opens an input, and reads its first records.
 *
 * @throws {PlantsError} `input` if the format is unknown, or the file is damaged
 */
export async function openFormat(
  input: FormatInput,
  options: FormatOptions,
  finder: HeaderFinder,
): Promise<FormatReader> {
  if (hasWorkbookStart(input)) return openArchive(input, options, finder)
  const { format, isRejects, ...textEncoding } = await detectFormat(input, options)
  const texts = decodeText(input, textEncoding)
  // A rejects file has quotes, and no outermost object, even if its input was otherwise.
  const formatOptions = isRejects ? { ...options, quotes: true, key: undefined } : options
  return textFormats[format](texts, formatOptions, input, finder)
}

/**
 * Reads an input to its end, and stores nothing.
 *
 * @throws {PlantsError} `input` if bytes are not in the encoding, or a workbook is damaged
 */
export async function assertEncoding(
  input: FormatInput,
  options: FormatOptions,
  finder: HeaderFinder,
): Promise<void> {
  const content = hasWorkbookStart(input)
    ? (await openArchive(input, options, finder)).batches
    : decodeText(input, await detectFormat(input, options))
  for await (const _ of content);
}

/**
 * Reads an input to its end, in a fraction of the time that `assertEncoding` takes.
 *
 * @returns false for a workbook, another encoding, and bytes that are not UTF-8
 */
export async function isUtf8Text(input: FormatInput, options: FormatOptions): Promise<boolean> {
  if (hasWorkbookStart(input)) return false
  const { encoding } = await detectFormat(input, options)
  if (encoding !== 'utf-8') return false
  let remainder: Buffer = Buffer.alloc(0)
  for await (const block of input.blocks) {
    const bytes = remainder.length === 0 ? block : Buffer.concat([remainder, block])
    const end = findEndOfCharacters(bytes)
    if (!isUtf8(bytes.subarray(0, end))) return false
    remainder = bytes.subarray(end)
  }
  return remainder.length === 0
}

/**
 * Whether the input begins like a ZIP archive, as workbooks do, or like a compound file, in which
 * Office stores documents that have a password.
 */
export function hasWorkbookStart({ head }: FormatInput): boolean {
  return /^(?:PK(?:\x03\x04|\x05\x06)|\xd0\xcf\x11\xe0)/.test(head.toString('latin1', 0, 4))
}

async function openArchive(
  input: FormatInput,
  options: FormatOptions,
  finder: HeaderFinder,
): Promise<FormatReader> {
  if (options.key !== undefined) throw createKeyError(input.name)
  const { openWorkbook } = await import('./workbook/read.js')
  return openWorkbook(input, options, finder)
}

function createKeyError(name: string): Error {
  return createUsageError(`${name} is not JSON, so it has no list under a key`, 'Leave out --key')
}

/**
 * Detects the format and the encoding of a text. A byte order mark overrules the options, and so
 * does the beginning of a rejects file, because this program has written it.
 */
export async function detectFormat(
  { name, head }: Pick<FormatInput, 'name' | 'head'>,
  options: FormatOptions,
): Promise<TextEncoding & { format: FormatName; isRejects: boolean }> {
  if (options.format === undefined) assertNoForeignFile(name, head)
  const markedEncoding = findMarkedEncoding(head)
  const rejects = examineRejects(head, markedEncoding)
  const isUtf8Rejects = rejects?.isUtf8 ?? false
  const { encoding, source } = await chooseEncoding(markedEncoding, isUtf8Rejects, options)
  const text = decodeLeniently(head, encoding)
  const format = rejects?.format ?? options.format ?? guessFormat(text, name, options)
  if (options.key !== undefined && !rejects && format !== 'json') throw createKeyError(name)
  return { format, encoding, source, isRejects: rejects !== undefined }
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
  { encoding: label }: FormatOptions,
): Promise<TextEncoding> {
  if (markedEncoding !== undefined) return { encoding: markedEncoding, source: 'mark' }
  if (isUtf8Rejects) return { encoding: 'utf-8', source: 'rejects file' }
  if (label === undefined) return { encoding: 'utf-8', source: 'default' }
  return { encoding: await findEncoding(label), source: 'option' }
}

/** @param decodedText the beginning of the text */
function guessFormat(decodedText: string, name: string, options: FormatOptions): FormatName {
  assertNoNul(decodedText, name)
  const text = decodedText.trimStart()
  const namedFormat = findNamedFormat(name)
  // Many programs call NDJSON `.json`, so the text decides between these two.
  if (namedFormat !== undefined && namedFormat !== 'json') return namedFormat
  if (text === '') return 'ndjson'
  if (namedFormat === 'json') return guessJsonFormat(text, options) ?? 'json'
  const isTable = options.delimiter !== undefined || options.columns !== undefined
  return (isTable ? undefined : guessJsonFormat(text, options)) ?? 'csv'
}

/**
 * Guesses the format of JSON by its beginning. JSON5 begins like JSON, and the error about its
 * syntax says so.
 *
 * @returns undefined for a text that does not begin like JSON
 */
function guessJsonFormat(text: string, { key }: FormatOptions): FormatName | undefined {
  const isArray = /^\[\s*(?:["\-\d\]{[]|true\b|false\b|null\b|$)/.test(text)
  if (isArray || /^(?:\/\/|\/\*)[\s\S]*?\n\s*[[{]/.test(text)) return 'json'
  if (!/^\{\s*(?:["\w']|\}|$)/.test(text)) return undefined
  return key === undefined && beginsWithWholeObject(text) ? 'ndjson' : 'json'
}

/**
 * Whether the first line is a whole object, as in NDJSON. If the line ends with any other character
 * than `}`, such as `{` or `,`, its object continues in the next line, and it may have several
 * objects. A long text without a line feed counts as one JSON document, such as a response of a
 * service.
 */
function beginsWithWholeObject(text: string): boolean {
  const [line = ''] = text.split('\n', 1)
  if (line.length === text.length && text.length >= minDocumentCharacters) return false
  const mayHaveSeveral = /\}\s*\{/.test(line) && 'isInvalid' in parseJson(line)
  return /\}\s*$/.test(line) && !mayHaveSeveral
}

const minDocumentCharacters = 65_000
