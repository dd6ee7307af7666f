import { isUtf8 } from 'node:buffer'
import { maxChunkRecords } from './chunk.js'

/** Some thousand lines of a text in UTF-8. */
export interface Lines {
  /** the number of the first one, from 1 */
  first: number
  texts: string[]
  /** the indexes of those that are not UTF-8 */
  invalid: Set<number>
}

interface LineOptions {
  /** Each line ends with its line break: LF, CRLF or CR. Otherwise only LF ends a line, and is not a part of it. */
  keepsBreaks?: boolean
  /** of a longer line that is in several blocks, only so many bytes and the last ones are kept */
  maxBytes: number
}

export async function* readLines(
  blocks: AsyncIterable<Buffer>,
  { keepsBreaks = false, maxBytes }: LineOptions,
): AsyncGenerator<Lines> {
  let rest: Buffer = Buffer.alloc(0)
  let lines: Lines = { first: 1, texts: [], invalid: new Set() }
  for await (const block of ended(blocks)) {
    const bytes = Buffer.concat([rest, block])
    const breaks = new Breaks(bytes, keepsBreaks)
    const isValid = isUtf8(bytes.subarray(0, breaks.end))
    for (let start = 0; start < breaks.end; ) {
      const next = breaks.after(start)
      const end = keepsBreaks ? next : next - 1
      const isWhole = end - start <= maxBytes // otherwise it may end within a character
      if (!isValid && isWhole && !isUtf8(bytes.subarray(start, end))) lines.invalid.add(lines.texts.length)
      // A text for each line: V8 reads it faster than a part of the text of a block.
      lines.texts.push(bytes.toString('utf8', start, end))
      start = next
      if (start < breaks.end && lines.texts.length < maxChunkRecords) continue
      yield lines
      lines = { first: lines.first + lines.texts.length, texts: [], invalid: new Set() }
    }
    rest = bytes.subarray(breaks.end)
    // Of a line that is too large, the beginning and a CR at the end, which may be half of its CRLF.
    if (rest.length > maxBytes + 1) rest = Buffer.concat([rest.subarray(0, maxBytes + 1), rest.subarray(-1)])
  }
}

async function* ended(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* blocks
  yield Buffer.from('\n')
}

/** Where lines end. Remembers the next break of each kind: looking for both in each line may never end. */
class Breaks {
  readonly #bytes: Buffer
  readonly #hasReturns: boolean
  #feed = -1
  #return = -1
  /** after the last one; a CR at the end may be half of a CRLF */
  readonly end: number

  constructor(bytes: Buffer, hasReturns: boolean) {
    this.#bytes = bytes
    this.#hasReturns = hasReturns
    const lastReturn = hasReturns ? bytes.lastIndexOf(carriageReturn, -2) : -1
    this.end = 1 + Math.max(bytes.lastIndexOf(lineFeed), lastReturn)
  }

  after(at: number): number {
    if (this.#feed < at) this.#feed = this.#find(lineFeed, at)
    if (this.#hasReturns && this.#return < at) this.#return = this.#find(carriageReturn, at)
    if (!this.#hasReturns || this.#feed < this.#return) return this.#feed + 1
    return this.#return + (this.#feed === this.#return + 1 ? 2 : 1)
  }

  #find(byte: number, at: number): number {
    const found = this.#bytes.indexOf(byte, at)
    return found === -1 ? Infinity : found
  }
}

const [lineFeed, carriageReturn] = [0x0a, 0x0d]
