/*
 * Decodes the text of an input, block for block, and says of one that is not of its encoding where
 * that is, and which encoding it likely is.
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
  encoding: string
  /** What says so. Only the option and the default can be changed by `--encoding`. */
  source: 'mark' | 'rejects file' | 'option' | 'default'
}

/** A text is not of its encoding. */
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
 * Yields the text without a byte order mark, and with a line feed at the end.
 * @throws EncodingError for bytes of another encoding
 */
export async function* decodeText(
  { name, blocks, isReadOnce }: TextInput,
  { encoding, source }: TextEncoding,
): AsyncGenerator<string> {
  const decoder = await createStrictDecoder(encoding)
  let line = 1
  let lineStart: Buffer = Buffer.alloc(0) // what was read of the line in which a block begins
  let text = ''
  let rest: Buffer = Buffer.alloc(0)
  const decode = async (part: Buffer, isEnd = false): Promise<string> => {
    try {
      return decoder.write(part) + (isEnd ? decoder.end() : '')
    } catch (error) {
      if (!(error instanceof UndecodableError)) throw error
      const bytes = Buffer.concat([lineStart, part])
      const following = isReadOnce ? [] : blocks
      throw await createEncodingError({ name, encoding, source, line, bytes, following })
    }
  }
  for await (const block of blocks) {
    if (text !== '') yield text
    const bytes = rest.length === 0 ? block : Buffer.concat([rest, block])
    const end = findPartEnd(bytes, encoding)
    const part = bytes.subarray(0, end)
    text = await decode(part)
    rest = bytes.subarray(end)
    line += countLineFeeds(text)
    lineStart = findLineStart(lineStart, part, encoding)
  }
  yield `${omitEndOfFile(`${text}${await decode(rest, true)}`)}\n`
}

/** Omits Ctrl-Z, with which programs of DOS end a file. */
function omitEndOfFile(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Where a block begins within a character, iconv-lite can lose its last one: rather, it begins with
 * a line.
 */
function findPartEnd(bytes: Buffer, encoding: string): number {
  if (!isUnicode(encoding)) return bytes.lastIndexOf('\n') + 1
  return bytes.length - (bytes.length % getUnitBytes(encoding))
}

/** Only of UTF-8 can a part end within a line whose bytes count. */
function findLineStart(lineStart: Buffer, part: Buffer, encoding: string): Buffer {
  if (encoding !== 'utf-8') return lineStart
  const end = part.lastIndexOf('\n') + 1
  return end === 0 ? Buffer.concat([lineStart, part]) : part.subarray(end)
}

interface UndecodableText extends TextEncoding {
  name: string
  /** That of the first byte. */
  line: number
  /** From the beginning of a line on. Some of them are not of the encoding. */
  bytes: Buffer
  following: AsyncIterable<Buffer> | readonly Buffer[]
}

async function createEncodingError(text: UndecodableText): Promise<EncodingError> {
  const { name, encoding, source, bytes, following } = text
  if (isUnicode(encoding) && encoding !== 'utf-8') return createUnicodeError(text)
  const { line, offset, lineBytes } = await findUndecodableLine(text)
  const isUtf8Expected = encoding === 'utf-8'
  const what = isUtf8Expected ? 'UTF-8' : encoding
  const position = isUtf8Expected
    ? `line ${line}, byte ${findInvalidByte(lineBytes)}`
    : `line ${line}`
  const failure = `${name} is not ${what} (${position})`
  const isChangeable = source === 'option' || source === 'default'
  if (!isChangeable || (isUtf8Expected && isMostlyUtf8(bytes)))
    return new EncodingError(failure, correctLine)
  const encodings = await findEncodings(bytes.subarray(offset), following)
  const [likely] = encodings
  if (likely === undefined) return new EncodingError(failure, seeEncodings)
  const excerpt = await readExcerpt(lineBytes, likely)
  const hint = isUtf8Expected
    ? `Add --encoding ${likely}`
    : `Use --encoding ${likely}, or correct that line`
  return new EncodingError(
    `${failure}. It is most likely ${likely}, in which line ${line} reads: ${excerpt}`,
    hint,
    encodings,
  )
}

const correctLine = 'Correct that line, or save the file as UTF-8'
const seeEncodings = 'Add --encoding with a name of docs/encodings.md, or save the file as UTF-8'

function createUnicodeError({ name, encoding, line, bytes }: UndecodableText): EncodingError {
  const text = decodeLeniently(bytes, encoding)
  const place = line + countLineFeeds(text, text.indexOf('\ufffd'))
  return new EncodingError(`${name} is not ${encoding} (line ${place})`, correctLine)
}

/** Lines end with the same byte in every encoding here but UTF-16 and UTF-32. */
async function findUndecodableLine({ encoding, line, bytes }: UndecodableText) {
  let number = line
  let offset = 0
  for (const lineBytes of splitLines(bytes)) {
    if (!(await isDecodable(lineBytes, encoding))) return { line: number, offset, lineBytes }
    number += 1
    offset += lineBytes.length
  }
  // A text whose lines depend on each other, as in ISO-2022-JP.
  return { line, offset: 0, lineBytes: bytes }
}

async function isDecodable(bytes: Buffer, encoding: string): Promise<boolean> {
  if (encoding === 'utf-8') return isUtf8(bytes)
  return decodesNext(await createStrictDecoder(encoding), bytes, true)
}

function decodesNext(decoder: StrictDecoder, bytes: Buffer, isEnd = false): boolean {
  try {
    decoder.write(bytes)
    if (isEnd) decoder.end()
    return true
  } catch (error) {
    if (error instanceof UndecodableError) return false
    throw error
  }
}

/** @returns the number of the byte, from 1 on, with which the first invalid character begins */
function findInvalidByte(line: Buffer): number {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let validBytes = 0
  try {
    for (let at = 0; at < line.length; at += 1)
      validBytes += Buffer.byteLength(decoder.decode(line.subarray(at, at + 1), { stream: true }))
  } catch {
    // The character that does not decode begins after those that did.
  }
  return validBytes + 1
}

/** Whether most of the lines that are not ASCII are UTF-8: a few lines are damaged. */
function isMostlyUtf8(bytes: Buffer): boolean {
  let surplus = 0
  for (const line of splitLines(bytes)) {
    if (!isUtf8(line)) surplus -= 1
    else if (!isAscii(line)) surplus += 1
  }
  return surplus > 0
}

/** The rest of a file is read, so that it can be imported as the hint says. */
async function findEncodings(
  bytes: Buffer,
  following: UndecodableText['following'],
): Promise<readonly string[]> {
  const sample = [bytes]
  let sampleLength = bytes.length
  let candidates: readonly Candidate[] | undefined
  for await (const block of following) {
    if (candidates) candidates = candidates.filter(({ decoder }) => decodesNext(decoder, block))
    else {
      sample.push(block)
      sampleLength += block.length
      if (sampleLength >= minSampleBytes) candidates = await listCandidates(Buffer.concat(sample))
    }
  }
  candidates ??= await listCandidates(Buffer.concat(sample))
  return candidates
    .filter(({ decoder }) => decodesNext(decoder, Buffer.alloc(0), true))
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
  // The last character of a block may be continued by the next one.
  return candidates.filter(({ decoder }) => decodesNext(decoder, bytes))
}

/** What is around the first letter beyond ASCII, so that a person sees whether it is right. */
async function readExcerpt(line: Buffer, encoding: string): Promise<string> {
  const text = (await decodeBytes(line, encoding)).trim().replaceAll('\t', '  ')
  const start = Math.max(0, text.search(/[^\0-\x7f]/) - excerptLength / 2)
  return `${start === 0 ? '' : '…'}${truncate(text.slice(start), excerptLength)}`
}

const excerptLength = 60
