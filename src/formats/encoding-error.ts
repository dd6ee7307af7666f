/*
 * Builds the error for an input that is not in the expected encoding. The error says which line is
 * wrong, and in which encoding the input most likely is.
 *
 * The wrong line is found by decoding each line again. `detect-encoding.ts` proposes encodings, and
 * the rest of the file is decoded in each of them. The hint names an encoding only if it decodes
 * the whole file. Two programs may have written lines of one file in two encodings. No encoding
 * decodes such a file, so the hint names none.
 */
import { isUtf8 } from 'node:buffer'
import { PlantsError } from '../errors.js'
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
import { assertNoControlCharacter } from './foreign-files.js'
import {
  cutExcerpt,
  type DisputedLine,
  describeDisputedLine,
  findDisputedLine,
} from './telling-lines.js'
import {
  findPartlyUtf8Line,
  findUtf8Line,
  findUtf8LineInMixture,
  type Utf8Lines,
} from './utf8-lines.js'

export interface TextEncoding {
  /** The name of a decoder, as `findEncoding` returns it. */
  encoding: string
  /**
   * What has decided the encoding. A byte order mark or a rejects file overrules `--encoding`, so a
   * hint to add the option helps only for `option` and `default`.
   */
  source: 'mark' | 'rejects file' | 'option' | 'default'
}

/** The bytes of an input are not in the expected encoding. */
export class EncodingError extends PlantsError {
  /** The names for `--encoding` that decode the whole input, the most likely one first. */
  readonly encodings: readonly string[]
  /** A line by which a person can choose one of `encodings` if another line is not enough. */
  readonly disputedLine: DisputedLine | undefined

  constructor(
    message: string,
    hint: string,
    encodings: readonly string[] = [],
    disputedLine?: DisputedLine,
  ) {
    super('input', message, { hint })
    this.encodings = encodings
    this.disputedLine = disputedLine
  }
}

/** The bytes that could not be decoded, and where they are in the input. */
interface DecodingFailure extends TextEncoding {
  /** The name of the input, for messages. */
  name: string
  /** The number of the line with which `bytes` begins. */
  line: number
  /** How many bytes of this line are before `bytes`. They could be decoded. */
  lineOffset: number
  /**
   * The number of the first line with letters beyond ASCII that were decoded. It is `line` if these
   * letters are in the part of a long line that earlier blocks had.
   */
  foreignLine: number | undefined
  /** Bytes that begin with a character, some of which are not in the encoding. */
  bytes: Buffer
  /** The blocks after `bytes`; undefined for a pipe, because an import still needs its blocks. */
  laterBlocks: AsyncIterable<Buffer> | undefined
}

export async function createEncodingError(failure: DecodingFailure): Promise<EncodingError> {
  const { name, encoding, source, bytes, laterBlocks } = failure
  if (isUnicode(encoding) && encoding !== 'utf-8') return createUnicodeError(failure)
  const { line, lineOffset, offset, lineBytes } = await findUndecodableLine(failure)
  assertNoControlCharacter(lineBytes, name, line)
  const isUtf8Expected = encoding === 'utf-8'
  const label = isUtf8Expected ? 'UTF-8' : encoding
  const position = isUtf8Expected
    ? `line ${line}, byte ${lineOffset + findInvalidByte(lineBytes)}`
    : `line ${line}`
  const message = `${name} is not ${label} (${position})`
  const isChangeable = source === 'option' || source === 'default'
  if (!isChangeable) return new EncodingError(message, correctLineHint)
  const utf8Letters = isUtf8Expected ? describeUtf8Letters(failure, line) : undefined
  if (utf8Letters !== undefined) return createMixedEncodingError(message, utf8Letters)
  const encodings = await findEncodings(bytes.subarray(offset), laterBlocks ?? [])
  const [likelyEncoding, ...furtherEncodings] = encodings
  if (likelyEncoding === undefined) return new EncodingError(message, seeEncodingsHint)
  const mixedLine = isUtf8Expected ? await findUtf8Line(bytes, likelyEncoding) : undefined
  if (mixedLine)
    return createMixedEncodingError(message, `line ${failure.line + mixedLine.index} is`)
  const reading = `line ${line} reads: ${await readExcerpt(lineBytes, likelyEncoding)}`
  const disputedLine = await findDisputedLine(bytes.subarray(offset), line, [
    likelyEncoding,
    ...furtherEncodings,
  ])
  const disputedReading = disputedLine ? `. ${describeDisputedLine(disputedLine)}` : ''
  // Of a pipe, only these bytes were tried, and several encodings may decode them alike.
  const furtherHint = laterBlocks === undefined ? describeFurtherEncodings(furtherEncodings) : ''
  const hint = isUtf8Expected
    ? `Use --encoding ${likelyEncoding}${furtherHint}`
    : `Import it with its own command and --encoding ${likelyEncoding}, or correct that line`
  return new EncodingError(
    `${message}. In ${likelyEncoding}, the most likely encoding, ${reading}${disputedReading}`,
    hint,
    encodings,
    disputedLine,
  )
}

/**
 * Creates the error for an input that is read in the encoding of `--encoding`, although all of its
 * lines, or some of them, are UTF-8.
 *
 * @param failure.line the number of the line with which the examined bytes begin
 */
export function createUtf8Error(
  failure: Pick<DecodingFailure, 'name' | 'encoding' | 'line'> & Utf8Lines,
): EncodingError {
  const { name, encoding, line, index, isAllUtf8 } = failure
  const lineNumber = line + index
  const lineReading = `line ${lineNumber} reads: ${cutExcerpt(failure.text)}`
  if (isAllUtf8)
    return new EncodingError(
      `${name} is UTF-8, not ${encoding}. In UTF-8, ${lineReading}`,
      'Import it without --encoding, with its own command if other files need that option',
    )
  return new EncodingError(
    `${name} is only partly in ${encoding}. In UTF-8, ${lineReading}`,
    'Correct the file so that all its lines are UTF-8, and leave out --encoding',
  )
}

/** Creates the error for an input with letters of UTF-8 and letters of another encoding. */
function createMixedEncodingError(message: string, utf8Letters: string): EncodingError {
  return new EncodingError(
    `${message}, but ${utf8Letters}`,
    'Correct the lines that are not UTF-8. With --encoding, the other lines would be wrong',
  )
}

/**
 * Describes where an input has letters of UTF-8, although other letters of it are not UTF-8.
 *
 * @param undecodableLine the number of the first line that is not UTF-8
 * @returns a clause; undefined if no letters are UTF-8, except by chance
 */
function describeUtf8Letters(
  { foreignLine, line, bytes }: DecodingFailure,
  undecodableLine: number,
): string | undefined {
  if (foreignLine === undecodableLine) return `other letters of line ${foreignLine} are`
  if (foreignLine !== undefined) return `line ${foreignLine} is`
  const index = findUtf8LineInMixture(bytes)
  if (index !== undefined) return `line ${line + index} is`
  const partlyIndex = findPartlyUtf8Line(bytes)
  return partlyIndex === undefined ? undefined : `other letters of line ${line + partlyIndex} are`
}

/** Describes the encodings after the most likely one, as the next sentence of a hint. */
function describeFurtherEncodings(encodings: readonly string[]): string {
  if (encodings.length === 0) return ''
  const names = encodings.slice(0, maxFurtherEncodings)
  return `. If that line reads wrong, try ${names.join(' or ')}`
}

const maxFurtherEncodings = 3

const correctLineHint = 'Correct that line, or save the file as UTF-8'
const seeEncodingsHint =
  'Use --encoding NAME, with a name from plants import --help, or save the file as UTF-8'

function createUnicodeError({ name, encoding, line, bytes }: DecodingFailure): EncodingError {
  const decodedText = decodeLeniently(bytes, encoding)
  const invalidLine = line + countLineFeeds(decodedText, decodedText.indexOf('\ufffd'))
  return new EncodingError(`${name} is not ${encoding} (line ${invalidLine})`, correctLineHint)
}

/**
 * Finds the first line that cannot be decoded. The bytes can be divided at line feeds, because LF
 * is the same byte in every encoding except UTF-16 and UTF-32, which `createUnicodeError` handles.
 */
async function findUndecodableLine({ encoding, line, lineOffset, bytes }: DecodingFailure) {
  const position = { line, lineOffset, offset: 0 }
  for (const lineBytes of splitLines(bytes)) {
    if (!(await isDecodable(lineBytes, encoding))) return { ...position, lineBytes }
    position.line += 1
    position.lineOffset = 0
    position.offset += lineBytes.length
  }
  // Each line can be decoded alone, but the lines cannot be decoded together: in ISO-2022-JP, a
  // line can switch the alphabet of the lines after it.
  return { line, lineOffset, offset: 0, lineBytes: bytes }
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
 * Finds the first invalid character of a line of UTF-8.
 *
 * @returns the position of the character in the line, in bytes from 1 on
 */
function findInvalidByte(lineBytes: Buffer): number {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let validBytes = findInvalidBlock(lineBytes)
  try {
    for (const byte of lineBytes.subarray(validBytes))
      validBytes += Buffer.byteLength(decoder.decode(Buffer.of(byte), { stream: true }))
  } catch {
    // The invalid character begins after the valid ones.
  }
  return validBytes + 1
}

/**
 * Finds the first block of a line that is not UTF-8. To decode a line of 64 MiB byte by byte takes
 * ten seconds.
 *
 * @returns the index of the first byte of the block, with which a character begins
 */
function findInvalidBlock(lineBytes: Buffer): number {
  let start = 0
  while (start < lineBytes.length) {
    let end = start + 65_536
    while (isContinuation(lineBytes[end])) end += 1
    if (!isUtf8(lineBytes.subarray(start, end))) return start
    start = end
  }
  return start
}

/** Whether a byte continues a character of UTF-8 (RFC 3629, 3). */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x80 && byte < 0xc0
}

/**
 * Finds the encodings that decode the bytes and all blocks after them. Reading the rest of a file
 * takes time, but otherwise an import with the proposed encoding could fail at a later line.
 */
async function findEncodings(
  bytes: Buffer,
  laterBlocks: AsyncIterable<Buffer> | readonly Buffer[],
): Promise<readonly string[]> {
  const sample = [bytes]
  let sampleBytes = bytes.length
  let candidates: readonly CandidateEncoding[] | undefined
  for await (const block of laterBlocks) {
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

interface CandidateEncoding {
  encoding: string
  decoder: StrictDecoder
}

async function listCandidates(bytes: Buffer): Promise<CandidateEncoding[]> {
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

async function readExcerpt(lineBytes: Buffer, encoding: string): Promise<string> {
  return cutExcerpt(await decodeBytes(lineBytes, encoding))
}
