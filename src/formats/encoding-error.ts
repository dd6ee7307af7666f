/*
 * Builds the error for a text that is not in the encoding in which it is read. It says in which
 * line that is, and in which encoding the text most likely is.
 *
 * The line is found by decoding each line again. `detect-encoding.ts` proposes encodings, and the
 * remaining file is decoded in each of them: the hint names an encoding only if the import would
 * then get to the end of the file. A text with lines of UTF-8 and lines of another encoding has no
 * encoding that reads it, so the hint names none.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { PlantsError } from '../errors.js'
import { truncate } from '../platform/escape.js'
import { detectEncodings } from './detect-encoding.js'
import {
  countLineFeeds,
  createStrictDecoder,
  decodeBytes,
  decodeLeniently,
  isUnicode,
  type StrictDecoder,
  splitLines,
  UndecodableError,
} from './encoding.js'
import { findUtf8Line, type Utf8Lines } from './utf8-lines.js'

export interface TextEncoding {
  /** The name of a decoder, as `findEncoding` returns it. */
  encoding: string
  /**
   * What decides the encoding. A hint to add `--encoding` helps only if that is the option or the
   * default: a mark, or the beginning of a rejects file, overrules the option.
   */
  source: 'mark' | 'rejects file' | 'option' | 'default'
}

/** The bytes of a text are not of the encoding in which it is read. */
export class EncodingError extends PlantsError {
  /** Names for `--encoding` with which the text can be read, the most likely first. */
  readonly encodings: readonly string[]

  constructor(message: string, hint: string, encodings: readonly string[] = []) {
    super('input', message, { hint })
    this.encodings = encodings
  }
}

interface UndecodableText extends TextEncoding {
  /** The name of the input, for messages. */
  name: string
  /** The number of the line with which `bytes` begins. */
  line: number
  /** The first line before these bytes that has letters beyond ASCII. */
  foreignLine: number | undefined
  /** Bytes from the beginning of a line on, of which some are not of the encoding. */
  bytes: Buffer
  /** The blocks after these bytes; undefined for a pipe, of which no block must be lost. */
  following: AsyncIterable<Buffer> | undefined
}

export async function createEncodingError(text: UndecodableText): Promise<EncodingError> {
  const { name, encoding, source, bytes, following } = text
  if (isUnicode(encoding) && encoding !== 'utf-8') return createUnicodeError(text)
  const { line, offset, lineBytes } = await findUndecodableLine(text)
  const isUtf8Expected = encoding === 'utf-8'
  const label = isUtf8Expected ? 'UTF-8' : encoding
  const position = isUtf8Expected
    ? `line ${line}, byte ${findInvalidByte(lineBytes)}`
    : `line ${line}`
  const failure = `${name} is not ${label} (${position})`
  const isChangeable = source === 'option' || source === 'default'
  if (!isChangeable) return new EncodingError(failure, correctLine)
  const utf8Line = isUtf8Expected ? findLineOfUtf8File(text) : undefined
  if (utf8Line !== undefined) return createMixedError(failure, utf8Line)
  const encodings = await findEncodings(bytes.subarray(offset), following ?? [])
  const [likelyEncoding, ...furtherEncodings] = encodings
  if (likelyEncoding === undefined) return new EncodingError(failure, seeEncodings)
  const mixedLine = isUtf8Expected ? await findUtf8Line(bytes, likelyEncoding) : undefined
  if (mixedLine) return createMixedError(failure, text.line + mixedLine.index)
  const excerpt = await readExcerpt(lineBytes, likelyEncoding)
  // Only the beginning of a pipe is known, and several encodings may read its few letters alike.
  const furtherHint = following === undefined ? describeFurther(furtherEncodings) : ''
  const hint = isUtf8Expected
    ? `Add --encoding ${likelyEncoding}${furtherHint}`
    : `Use --encoding ${likelyEncoding}, or correct that line`
  return new EncodingError(
    `${failure}. In ${likelyEncoding}, the most likely encoding, line ${line} reads: ${excerpt}`,
    hint,
    encodings,
  )
}

/**
 * Creates the error for a text that is read in the encoding of `--encoding`, and is UTF-8, or has
 * lines of UTF-8.
 *
 * @param text.line the number of the line with which the examined bytes begin
 */
export function createUtf8Error(
  text: Pick<UndecodableText, 'name' | 'encoding' | 'line'> & Utf8Lines,
): EncodingError {
  const { name, encoding, line, index, isWhole } = text
  const number = line + index
  const reading = `line ${number} reads: ${cutExcerpt(text.text)}`
  if (isWhole)
    return new EncodingError(
      `${name} is UTF-8, not ${encoding}. In UTF-8, ${reading}`,
      'Import it with its own command, without --encoding',
    )
  return new EncodingError(
    `${name} is only partly in ${encoding}. In UTF-8, ${reading}`,
    'Correct the file so that all its lines are UTF-8, and leave out --encoding',
  )
}

/** Creates the error for a text of which some lines are UTF-8, and others are not. */
function createMixedError(failure: string, utf8Line: number): EncodingError {
  return new EncodingError(
    `${failure}, but line ${utf8Line} is`,
    'Correct the lines that are not UTF-8. With --encoding, the other lines would be wrong',
  )
}

/**
 * Finds a line by which the text is UTF-8 with a few damaged lines: another encoding would read all
 * the others wrong.
 *
 * @returns undefined unless most of the lines that are not ASCII are UTF-8
 */
function findLineOfUtf8File({ foreignLine, line, bytes }: UndecodableText): number | undefined {
  if (foreignLine !== undefined) return foreignLine
  let surplus = 0
  let number = line
  let firstLine: number | undefined
  for (const lineBytes of splitLines(bytes)) {
    if (!isUtf8(lineBytes)) surplus -= 1
    else if (!isAscii(lineBytes)) {
      surplus += 1
      firstLine ??= number
    }
    number += 1
  }
  return surplus > 0 ? firstLine : undefined
}

/** Lists a few more encodings for a hint. */
function describeFurther(encodings: readonly string[]): string {
  if (encodings.length === 0) return ''
  const names = encodings.slice(0, maxListed)
  return `. If that line reads wrong, try ${names.join(' or ')}`
}

const maxListed = 3

const correctLine = 'Correct that line, or save the file as UTF-8'
const seeEncodings =
  'Add --encoding NAME, with a name from plants import --help, or save the file as UTF-8'

function createUnicodeError({
  name,
  encoding,
  source,
  line,
  bytes,
}: UndecodableText): EncodingError {
  const text = decodeLeniently(bytes, encoding)
  const invalidLine = line + countLineFeeds(text, text.indexOf('\ufffd'))
  const isOption = source === 'option' && isUtf8(bytes)
  const hint = isOption ? 'It may be UTF-8: leave out --encoding' : correctLine
  return new EncodingError(`${name} is not ${encoding} (line ${invalidLine})`, hint)
}

/**
 * Decodes line by line until one fails. This can divide the bytes at line feeds, because LF is the
 * same byte in every encoding but UTF-16 and UTF-32, which `createUnicodeError` handles.
 */
async function findUndecodableLine({ encoding, line, bytes }: UndecodableText) {
  let number = line
  let offset = 0
  for (const lineBytes of splitLines(bytes)) {
    if (!(await isDecodable(lineBytes, encoding))) return { line: number, offset, lineBytes }
    number += 1
    offset += lineBytes.length
  }
  // Every line is valid, but not all of them together: in ISO-2022-JP, a line can switch the
  // alphabet of the lines after it.
  return { line, offset: 0, lineBytes: bytes }
}

async function isDecodable(bytes: Buffer, encoding: string): Promise<boolean> {
  if (encoding === 'utf-8') return isUtf8(bytes)
  return canDecodeNext(await createStrictDecoder(encoding), bytes, true)
}

function canDecodeNext(decoder: StrictDecoder, bytes: Buffer, isEnd = false): boolean {
  try {
    decoder.write(bytes)
    if (isEnd) decoder.end()
    return true
  } catch (error) {
    if (error instanceof UndecodableError) return false
    throw error
  }
}

/**
 * Finds the first invalid character of a line.
 *
 * @returns the number of its first byte, from 1 on
 */
function findInvalidByte(line: Buffer): number {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let validBytes = 0
  try {
    for (let at = 0; at < line.length; at += 1)
      validBytes += Buffer.byteLength(decoder.decode(line.subarray(at, at + 1), { stream: true }))
  } catch {
    // The invalid character begins after the valid ones.
  }
  return validBytes + 1
}

/**
 * Finds the encodings in which the bytes and everything after them can be decoded. Reading the
 * remaining file takes time, but without that, the import that the hint proposes could fail again.
 */
async function findEncodings(
  bytes: Buffer,
  following: AsyncIterable<Buffer> | readonly Buffer[],
): Promise<readonly string[]> {
  const sample = [bytes]
  let sampleBytes = bytes.length
  let candidates: readonly Candidate[] | undefined
  for await (const block of following) {
    if (candidates) candidates = candidates.filter(({ decoder }) => canDecodeNext(decoder, block))
    else {
      sample.push(block)
      sampleBytes += block.length
      if (sampleBytes >= minSampleBytes) candidates = await listCandidates(Buffer.concat(sample))
    }
  }
  candidates ??= await listCandidates(Buffer.concat(sample))
  return candidates
    .filter(({ decoder }) => canDecodeNext(decoder, Buffer.alloc(0), true))
    .map(({ encoding }) => encoding)
}

const minSampleBytes = 131_072
const maxCandidates = 8

interface Candidate {
  encoding: string
  decoder: StrictDecoder
}

async function listCandidates(bytes: Buffer): Promise<Candidate[]> {
  const encodings = await detectEncodings(bytes)
  const candidates = await Promise.all(
    encodings.slice(0, maxCandidates).map(async (encoding) => ({
      encoding,
      decoder: await createStrictDecoder(encoding),
    })),
  )
  // The next block may continue the last character, so the decoders are not asked to end.
  return candidates.filter(({ decoder }) => canDecodeNext(decoder, bytes))
}

/** Reads the text around the first letter beyond ASCII, by which a person sees what is right. */
async function readExcerpt(line: Buffer, encoding: string): Promise<string> {
  return cutExcerpt(await decodeBytes(line, encoding))
}

function cutExcerpt(line: string): string {
  const text = line.trim().replaceAll('\t', '  ')
  const start = Math.max(0, text.search(/[^\0-\x7f]/) - excerptLength / 2)
  return `${start === 0 ? '' : '…'}${truncate(text.slice(start), excerptLength)}`
}

const excerptLength = 60
