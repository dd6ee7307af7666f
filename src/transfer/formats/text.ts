import { isUtf8 } from 'node:buffer'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import { wholeLines } from '../../platform/lines.js'
import { maxChunkRecords, maxRecordBytes } from './chunk.js'

export const commonEncodings = ['utf-8', 'utf-16le', 'windows-1252', 'iso-8859-2', 'shift_jis']

/** The name of the encoding that has this label. */
export function encodingOf(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export function markedEncoding(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, 3) === '\xef\xbb\xbf') return 'utf-8'
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/** Without Unicode's White_Space at both ends. `trim` of JavaScript differs: it knows U+FEFF, but not U+0085. */
export function trimWhiteSpace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isWhiteSpace(text, start)) start += 1
  while (start < end && isWhiteSpace(text, end - 1)) end -= 1
  return end - start === text.length ? text : text.slice(start, end)
}

function isWhiteSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  return /\p{White_Space}/u.test(text.charAt(at))
}

export function collapseWhiteSpace(text: string): string {
  return trimWhiteSpace(text.replace(/\p{White_Space}+/gu, ' '))
}

/**
 * As UTF-8, without a byte order mark, which is in the first block. Bytes of UTF-8 stay as they are. A line that is not
 * of another encoding becomes one that is not UTF-8, so that its reader finds its number.
 */
export async function* toUtf8(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
): AsyncGenerator<Buffer> {
  if (encoding !== 'utf-8') return yield* decoded(blocks, encoding)
  let isFirst = true
  for await (const block of blocks) {
    yield isFirst && markedEncoding(block) === 'utf-8' ? block.subarray(3) : block
    isFirst = false
  }
}

/** Decodes whole lines, in which a failure is found, but one that is too large for a record in parts. */
async function* decoded(blocks: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  let decoder = decoderFor(encoding)
  let rest: Buffer | undefined
  function* decode(bytes: Buffer, isLast: boolean): Generator<Buffer> {
    try {
      // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
      yield Buffer.from(decoder.decode(bytes, { stream: true }) + (isLast ? decoder.decode() : ''))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      decoder = decoderFor(encoding)
      yield* decodedLines(bytes, encoding)
    }
  }
  for await (const block of blocks) {
    const bytes = rest
      ? Buffer.concat([rest, block])
      : markedEncoding(block) === encoding
        ? block.subarray(2)
        : block
    const isTooLarge = bytes.length > 2 * maxRecordBytes
    const end = endOfLines(bytes, encoding) || (isTooLarge ? bytes.length - (bytes.length % 2) : 0)
    if (end > 0) yield* decode(bytes.subarray(0, end), false)
    rest = bytes.subarray(end)
  }
  yield* decode(rest ?? Buffer.alloc(0), true)
}

/** A byte order mark is taken off before: another one is a character. */
function decoderFor(encoding: string) {
  return new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
}

/** A line that is not of the encoding becomes a byte that is not UTF-8, with its line end. */
function* decodedLines(bytes: Buffer, encoding: string): Generator<Buffer> {
  let decoder = decoderFor(encoding)
  let lines = new GrowingBuffer()
  let count = 0
  for (const line of linesOf(bytes, encoding)) {
    try {
      lines.append(Buffer.from(decoder.decode(line, { stream: true }) + decoder.decode()))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      decoder = decoderFor(encoding)
      const lineEnd = line.subarray(
        endOfLines(line, encoding) === line.length ? -widthOf(encoding) : line.length,
      )
      lines.append(Buffer.of(0xff, ...lineEnd.filter((byte) => byte !== 0)))
    }
    count += 1
    if (count % linesAtOnce !== 0) continue
    yield lines.bytes
    lines = new GrowingBuffer()
  }
  yield lines.bytes
}

/** A few milliseconds of work. */
const linesAtOnce = 2000

function* linesOf(bytes: Buffer, encoding: string): Generator<Buffer> {
  let start = 0
  for (let at = 0; at < bytes.length; at += widthOf(encoding)) {
    if (!isLineEnd(bytes, at, encoding)) continue
    yield bytes.subarray(start, at + widthOf(encoding))
    start = at + widthOf(encoding)
  }
  yield bytes.subarray(start)
}

/** The index after the last one. 0 if there is none. */
function endOfLines(bytes: Buffer, encoding: string): number {
  const width = widthOf(encoding)
  let end = bytes.length - (bytes.length % width)
  while (end > 0 && !isLineEnd(bytes, end - width, encoding)) end -= width
  return end
}

/** Except in UTF-16, no encoding has the byte of a line end in another character. */
function isLineEnd(bytes: Buffer, at: number, encoding: string): boolean {
  const code =
    encoding === 'utf-16le' || encoding === 'utf-16be' ? unitAt(bytes, at, encoding) : bytes[at]
  return code === lineFeed || code === carriageReturn
}

function unitAt(bytes: Buffer, at: number, encoding: string): number | undefined {
  if (at + 1 >= bytes.length) return undefined
  return encoding === 'utf-16le' ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at)
}

function widthOf(encoding: string): number {
  return encoding.startsWith('utf-16') ? 2 : 1
}

/** Some thousand lines of a text in UTF-8, without their line ends, except for the CR of a CR LF. */
export interface Lines {
  /** The number of the first one, from 1. */
  first: number
  /** A reader of rows empties it: the generators that it comes through hold the texts until they have the next ones. */
  texts: string[]
  /** The line ends, unless all are LF. */
  ends?: string[]
  /** The indexes of those that are not UTF-8. */
  invalid: Set<number>
}

/**
 * The end of a line that is too large for a record may be missing.
 *
 * @param hasCr whether CR alone ends a line, too; then no text has the CR of a CR LF
 */
export async function* readLines(
  blocks: AsyncIterable<Buffer>,
  hasCr = false,
): AsyncGenerator<Lines> {
  let lines = noLines(1, hasCr)
  const endOf = (block: Buffer) =>
    Math.max(block.lastIndexOf(lineFeed), hasCr ? block.lastIndexOf(carriageReturn) : -1) + 1
  const whole = ended(hasCr ? wholeLineEnds(blocks) : blocks)
  for await (const bytes of wholeLines(whole, { max: maxRecordBytes, endOf })) {
    const isValid = isUtf8(bytes)
    for (let start = 0; start < bytes.length; ) {
      const at = hasCr ? lineEndIn(bytes, start) : bytes.indexOf(lineFeed, start)
      const isWhole = at - start <= maxRecordBytes // otherwise it may end within a character
      if (!isValid && isWhole && !isUtf8(bytes.subarray(start, at)))
        lines.invalid.add(lines.texts.length)
      // A text for each line: V8 reads it faster than a part of the text of a block.
      lines.texts.push(bytes.toString('utf8', start, at))
      const isPair = hasCr && bytes[at] === carriageReturn && bytes[at + 1] === lineFeed
      start = at + (isPair ? 2 : 1)
      lines.ends?.push(bytes.toString('latin1', at, start))
      if (start < bytes.length && lines.texts.length < maxChunkRecords) continue
      const next = noLines(lines.first + lines.texts.length, hasCr)
      yield lines
      lines = next
    }
  }
}

function noLines(first: number, hasCr: boolean): Lines {
  return { first, texts: [], invalid: new Set(), ...(hasCr && { ends: [] }) }
}

function lineEndIn(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] !== lineFeed && bytes[at] !== carriageReturn) at += 1
  return at
}

async function* ended(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* blocks
  yield Buffer.of(lineFeed)
}

/** Splits no CR LF. */
async function* wholeLineEnds(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isHeld = false
  for await (const block of blocks) {
    const bytes: Buffer = isHeld ? Buffer.concat([Buffer.of(carriageReturn), block]) : block
    isHeld = bytes.at(-1) === carriageReturn
    yield isHeld ? bytes.subarray(0, -1) : bytes
  }
  if (isHeld) yield Buffer.of(carriageReturn)
}

/** Whether all is UTF-8. */
export async function isAllUtf8(blocks: AsyncIterable<Buffer>): Promise<boolean> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    const bytes: Buffer = rest.length === 0 ? block : Buffer.concat([rest, block])
    const end = startOfLastCharacter(bytes)
    if (!isUtf8(bytes.subarray(0, end))) return false
    rest = bytes.subarray(end)
  }
  return isUtf8(rest)
}

/** Of one that may go on in the next block; else the length. */
function startOfLastCharacter(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= Math.max(0, bytes.length - 4); at -= 1) {
    const byte = bytes.readUInt8(at)
    if (byte < 0x80) break
    if (byte >= 0xc0) return at
  }
  return bytes.length
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
