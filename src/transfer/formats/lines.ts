import { isUtf8 } from 'node:buffer'
import { maxChunkRecords, maxRecordBytes } from './chunk.js'

/** Some thousand lines of a text in UTF-8, without their line feeds. */
export interface Lines {
  /** the number of the first one, from 1 */
  first: number
  texts: string[]
  /** the indexes of those that are not UTF-8 */
  invalid: Set<number>
}

/** Of a line that is too large for a record, the end may be missing. */
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
