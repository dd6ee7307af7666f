import { isUtf8 } from 'node:buffer'
import { malformed } from '../../platform/errors.js'
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

/** As UTF-8, without a byte order mark, which is in the first block. Bytes of UTF-8 stay as they are. */
export async function* toUtf8(blocks: AsyncIterable<Buffer>, encoding: string, source: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  let isFirst = true
  try {
    for await (const block of blocks) {
      // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
      if (encoding !== 'utf-8') yield Buffer.from(decoder.decode(block, { stream: true }))
      else yield isFirst && markedEncoding(block) === 'utf-8' ? block.subarray(3) : block
      isFirst = false
    }
    if (encoding !== 'utf-8') yield Buffer.from(decoder.decode())
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw malformed(`${source} is not ${encoding}`, 'Name its encoding, such as --encoding windows-1252', error)
  }
}

/** Some thousand lines of a text in UTF-8, without their line feeds. */
export interface Lines {
  /** the number of the first one, from 1 */
  first: number
  texts: string[]
  /** the indexes of those that are not UTF-8 */
  invalid: Set<number>
}

/** The end of a line that is too large for a record may be missing. */
export async function* readLines(blocks: AsyncIterable<Buffer>): AsyncGenerator<Lines> {
  let rest: Buffer = Buffer.alloc(0)
  let lines: Lines = { first: 1, texts: [], invalid: new Set() }
  for await (const block of ended(blocks)) {
    const bytes = Buffer.concat([rest, block])
    const end = bytes.lastIndexOf(lineFeed) + 1
    const isValid = isUtf8(bytes.subarray(0, end))
    for (let start = 0; start < end; ) {
      const feed = bytes.indexOf(lineFeed, start)
      const isWhole = feed - start <= maxRecordBytes // otherwise it may end within a character
      if (!isValid && isWhole && !isUtf8(bytes.subarray(start, feed))) lines.invalid.add(lines.texts.length)
      // A text for each line: V8 reads it faster than a part of the text of a block.
      lines.texts.push(bytes.toString('utf8', start, feed))
      start = feed + 1
      if (start < end && lines.texts.length < maxChunkRecords) continue
      yield lines
      lines = { first: lines.first + lines.texts.length, texts: [], invalid: new Set() }
    }
    rest = bytes.subarray(end, end + maxRecordBytes + 1)
  }
}

async function* ended(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* blocks
  yield Buffer.of(lineFeed)
}

const lineFeed = 0x0a
