/*
 * Decodes the text of an input block by block. If bytes are not of the encoding, the error says in
 * which line they are, and in which encoding the text most likely is.
 *
 * The text itself is decoded in a simple loop. Most of this file is about the error. It finds the
 * line by decoding each line again, asks `detect-encoding.ts` for likely encodings, and decodes
 * the remaining file in each of them: the hint names an encoding only if the import would then get
 * to the end of the file.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { PlantsError } from '../errors.js'
import { truncate } from '../platform/escape.js'
import type { FormatInput } from './chunk.js'
import { detectEncodings } from './detect-encoding.js'
import {
  countLineFeeds,
  createStrictDecoder,
  decodeBytes,
  decodeLeniently,
  getUnitBytes,
  isUnicode,
  type StrictDecoder,
  splitLines,
  UndecodableError,
} from './encoding.js'

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

type TextInput = Pick<FormatInput, 'name' | 'blocks' | 'isReadOnce'>

/**
 * Yields the text without a byte order mark, and with a line feed at its end, so that its last line
 * ends like all others.
 *
 * @throws {EncodingError} if bytes are not of the encoding
 */
export async function* decodeText(
  { name, blocks, isReadOnce }: TextInput,
  { encoding, source }: TextEncoding,
): AsyncGenerator<string> {
  const decoder = await createStrictDecoder(encoding)
  let line = 1
  // The decoded bytes of the line that the next block continues are kept for an error.
  let lineStart: Buffer = Buffer.alloc(0)
  let text = ''
  let remainder: Buffer = Buffer.alloc(0)
  const decode = async (section: Buffer, isEnd = false): Promise<string> => {
    try {
      return decoder.write(section) + (isEnd ? decoder.end() : '')
    } catch (error) {
      if (!(error instanceof UndecodableError)) throw error
      const bytes = Buffer.concat([lineStart, section])
      const following = isReadOnce ? [] : blocks
      throw await createEncodingError({ name, encoding, source, line, bytes, following })
    }
  }
  for await (const block of blocks) {
    // Each text waits for the next block, because only the last one loses its Ctrl-Z.
    if (text !== '') yield text
    const bytes = remainder.length === 0 ? block : Buffer.concat([remainder, block])
    const end = findDecodableEnd(bytes, encoding)
    const section = bytes.subarray(0, end)
    text = await decode(section)
    remainder = bytes.subarray(end)
    line += countLineFeeds(text)
    lineStart = findLineStart(lineStart, section, encoding)
  }
  yield `${omitEndOfFile(`${text}${await decode(remainder, true)}`)}\n`
}

/** Omits Ctrl-Z, with which programs for DOS end a file. */
function omitEndOfFile(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Finds how many of the bytes can be decoded now. The others wait for the next block.
 *
 * If a block ends within a character, iconv-lite can lose the last character of the block. So an
 * encoding that is not Unicode is decoded in whole lines. So is UTF-8, where a block has a line
 * feed, because joining bytes takes less than joining texts. The decoders of Unicode keep an
 * incomplete character themselves, and only the bytes of a UTF-16 or UTF-32 unit must be together.
 */
function findDecodableEnd(bytes: Buffer, encoding: string): number {
  const linesEnd = bytes.lastIndexOf('\n') + 1
  if (!isUnicode(encoding) || (encoding === 'utf-8' && linesEnd > 0)) return linesEnd
  return bytes.length - (bytes.length % getUnitBytes(encoding))
}

/**
 * Returns the bytes of the line that is not complete yet. Only UTF-8 needs them, whose error has
 * the number of the byte in its line: UTF-16 and UTF-32 have no such error, and all other encodings
 * are decoded in whole lines.
 */
function findLineStart(lineStart: Buffer, section: Buffer, encoding: string): Buffer {
  if (encoding !== 'utf-8') return lineStart
  const end = section.lastIndexOf('\n') + 1
  return end === 0 ? Buffer.concat([lineStart, section]) : section.subarray(end)
}

interface UndecodableText extends TextEncoding {
  /** The name of the input, for messages. */
  name: string
  /** The number of the line with which `bytes` begins. */
  line: number
  /** Bytes from the beginning of a line on, of which some are not of the encoding. */
  bytes: Buffer
  /** The blocks after these bytes; empty for a pipe, of which no block must be lost. */
  following: AsyncIterable<Buffer> | readonly Buffer[]
}

async function createEncodingError(text: UndecodableText): Promise<EncodingError> {
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
  if (!isChangeable || (isUtf8Expected && isMostlyUtf8(bytes)))
    return new EncodingError(failure, correctLine)
  const encodings = await findEncodings(bytes.subarray(offset), following)
  const [likelyEncoding] = encodings
  if (likelyEncoding === undefined) return new EncodingError(failure, seeEncodings)
  const excerpt = await readExcerpt(lineBytes, likelyEncoding)
  const hint = isUtf8Expected
    ? `Add --encoding ${likelyEncoding}`
    : `Use --encoding ${likelyEncoding}, or correct that line`
  return new EncodingError(
    `${failure}. In ${likelyEncoding}, the most likely encoding, line ${line} reads: ${excerpt}`,
    hint,
    encodings,
  )
}

const correctLine = 'Correct that line, or save the file as UTF-8'
const seeEncodings =
  'Add --encoding NAME, with a name from docs/encodings.md, or save the file as UTF-8'

function createUnicodeError({ name, encoding, line, bytes }: UndecodableText): EncodingError {
  const text = decodeLeniently(bytes, encoding)
  const invalidLine = line + countLineFeeds(text, text.indexOf('\ufffd'))
  return new EncodingError(`${name} is not ${encoding} (line ${invalidLine})`, correctLine)
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
 * Whether most of the lines that are not ASCII are UTF-8. Then the file is UTF-8 with a few damaged
 * lines, and another encoding would read all the others wrong.
 */
function isMostlyUtf8(bytes: Buffer): boolean {
  let surplus = 0
  for (const line of splitLines(bytes)) {
    if (!isUtf8(line)) surplus -= 1
    else if (!isAscii(line)) surplus += 1
  }
  return surplus > 0
}

/**
 * Finds the encodings in which the bytes and everything after them can be decoded. Reading the
 * remaining file takes time, but without that, the import that the hint proposes could fail again.
 */
async function findEncodings(
  bytes: Buffer,
  following: UndecodableText['following'],
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
  const text = (await decodeBytes(line, encoding)).trim().replaceAll('\t', '  ')
  const start = Math.max(0, text.search(/[^\0-\x7f]/) - excerptLength / 2)
  return `${start === 0 ? '' : '…'}${truncate(text.slice(start), excerptLength)}`
}

const excerptLength = 60
