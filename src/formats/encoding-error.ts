/*
 * Builds the error for an input that is not in the expected encoding. The error says which line is
 * wrong, and how the first line with letters beyond ASCII reads in the likely encodings, so that a
 * person sees which of them is right.
 */
import { isUtf8 } from 'node:buffer'
import { PlantsError } from '../errors.js'
import { truncate } from '../platform/escape.js'
import {
  countLineEnds,
  decodeLeniently,
  isUtf16,
  type LineEnd,
  splitLines,
  tryDecodeBytes,
} from './encoding.js'
import { guessEncodings } from './guess-encoding.js'

export interface TextEncoding {
  /** The name of a decoder, as `findEncoding` returns it. */
  encoding: string
  /**
   * What has decided the encoding. A byte order mark or a rejects file overrules `--encoding`, so a
   * hint to add the option helps only for `option` and `default`.
   */
  source: 'mark' | 'rejects file' | 'option' | 'default'
}

/** The first line of an input with letters beyond ASCII. */
export interface ForeignLine {
  /** The number of the line, from 1 on. */
  line: number
  bytes: Buffer
}

/** The bytes of an input are not in the expected encoding. */
export class EncodingError extends PlantsError {
  constructor(
    message: string,
    options: { hint: string; details?: readonly string[] },
    /** The names for `--encoding` that decode the input, the most likely one first. */
    readonly encodings: readonly string[] = [],
    readonly foreignLine?: ForeignLine,
  ) {
    super('input', message, options)
  }
}

/** The bytes that could not be decoded, and where they are in the input. */
interface DecodingFailure extends TextEncoding {
  /** The name of the input, for messages. */
  name: string
  /** The number of the line with which `bytes` begins. */
  line: number
  lineEnd: LineEnd
  foreignLine: ForeignLine | undefined
  /** Bytes that begin with a character, some of which are not in the encoding. */
  bytes: Buffer
  /** The blocks after `bytes`; none for a pipe, which may never end. */
  laterBlocks: AsyncIterable<Buffer> | readonly Buffer[]
}

export async function createEncodingError(failure: DecodingFailure): Promise<EncodingError> {
  const { name, encoding, source, laterBlocks } = failure
  const { line, bytes } = await findUndecodableLine(failure)
  const message = `${name} is not ${encoding === 'utf-8' ? 'UTF-8' : encoding} (line ${line})`
  const isChangeable = source === 'option' || source === 'default'
  if (!isChangeable || isUtf16(encoding))
    return new EncodingError(message, { hint: 'Correct that line, or save the file as UTF-8' })
  const foreignLine = failure.foreignLine ?? { line, bytes }
  const sample = await gatherSample(failure.bytes, laterBlocks)
  const encodings = await guessEncodings(sample)
  const details = await describeReadings(foreignLine, encodings)
  const hint =
    details.length > 0
      ? 'Add --encoding with the name of the encoding in which that line reads right'
      : 'Open the file in the program that wrote it, and save it as UTF-8'
  return new EncodingError(message, { hint, details }, encodings, foreignLine)
}

/** Creates the error for a text of UTF-8 that `--encoding` would decode to wrong letters. */
export function createUtf8Error(name: string, encoding: string): EncodingError {
  const hint = 'Import it without --encoding'
  return new EncodingError(`${name} is UTF-8, not ${encoding}`, { hint })
}

/**
 * Describes how a line reads in up to three encodings. Of encodings that decode the line to the
 * same text, only the most likely one is shown.
 */
async function describeReadings(
  { line, bytes }: ForeignLine,
  encodings: readonly string[],
): Promise<string[]> {
  const excerpts = new Set<string>()
  const details: string[] = []
  for (const encoding of encodings) {
    const text = await tryDecodeBytes(bytes, encoding)
    const excerpt = text === undefined ? '' : cutExcerpt(text)
    if (excerpt === '' || excerpts.has(excerpt)) continue
    excerpts.add(excerpt)
    details.push(`line ${line} in ${encoding}: ${excerpt}`)
    if (details.length === maxReadings) break
  }
  return details
}

const maxReadings = 3

/**
 * Cuts a line to the characters around its first letter beyond ASCII, by which a person sees
 * whether the encoding is right.
 */
function cutExcerpt(text: string): string {
  const [firstLine = ''] = text.trimStart().split(/[\r\n]/, 1)
  const start = Math.max(0, firstLine.search(/[^\0-\x7f]/) - excerptLength / 2)
  const excerpt = firstLine.slice(start).trim().replaceAll('\t', '  ')
  return `${start === 0 ? '' : '…'}${truncate(excerpt, excerptLength)}`
}

const excerptLength = 60

/**
 * Finds the first line that cannot be decoded. The bytes can be divided at the ends of lines,
 * because these are the same bytes in every encoding except UTF-16.
 */
async function findUndecodableLine(failure: DecodingFailure): Promise<ForeignLine> {
  const { encoding, lineEnd, bytes } = failure
  let { line } = failure
  if (isUtf16(encoding)) {
    const text = decodeLeniently(bytes, encoding)
    return { line: line + countLineEnds(text, lineEnd, text.indexOf('\ufffd')), bytes }
  }
  for (const lineBytes of splitLines(bytes, lineEnd)) {
    const isDecodable =
      encoding === 'utf-8'
        ? isUtf8(lineBytes)
        : (await tryDecodeBytes(lineBytes, encoding)) !== undefined
    if (!isDecodable) return { line, bytes: lineBytes }
    line += 1
  }
  // Each line can be decoded alone, but the lines cannot be decoded together: in ISO-2022-JP, a
  // line can switch the alphabet of the lines after it.
  return { line: failure.line, bytes }
}

/**
 * Gathers whole lines of the bytes and of the blocks after them, about 1 MiB or more. An encoding
 * that decodes them all is unlikely to fail at a later line.
 */
async function gatherSample(
  bytes: Buffer,
  laterBlocks: DecodingFailure['laterBlocks'],
): Promise<Buffer> {
  const blocks = [bytes]
  let sampleBytes = bytes.length
  for await (const block of laterBlocks) {
    if (sampleBytes > maxSampleBytes) break
    blocks.push(block)
    sampleBytes += block.length
  }
  const sample = Buffer.concat(blocks)
  // In a file of an old Mac, there is no line feed.
  return sampleBytes > maxSampleBytes ? sample.subarray(0, sample.lastIndexOf('\n')) : sample
}

const maxSampleBytes = 1_048_576
