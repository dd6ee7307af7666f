import type { Hash } from 'node:crypto'
import { PlantsError } from '../../platform/errors.js'
import { Chunk, type ChunkLimit } from '../formats/chunk.js'
import { markedEncoding } from '../formats/encoding.js'
import type { EncodingName, Format, FormatReader } from '../formats/format.js'
import { headSize } from '../formats/formats.js'
import type { RecordMapper } from '../formats/record-mapper.js'
import type { Position } from './position.js'
import { decodedSource, type Source } from './source.js'

/** How much of an input a chunk is, and what it takes to continue reading, as a position keeps them. */
type Extent = Position['chunk']
type ReadingState = NonNullable<Position['reading']>

/** Reads one input chunk by chunk. Only the last chunk is valid: its bytes are overwritten by the next. */
export class Reader {
  source: Source
  #encoding: EncodingName | undefined
  /** what the input began with, before its first record */
  #mark = Buffer.alloc(0)
  /** SHA-256 of all that was read before the chunk read last, and together with it */
  #hashBefore: Hash
  #hash: Hash
  #format: Format | undefined
  #mapper: RecordMapper | undefined
  #records: FormatReader | undefined
  #buffer = Buffer.alloc(0)
  #filled = 0
  #isAtEnd = false
  /** a little less than what a plant has taken so far */
  #bytesOfPlant = 64
  /** whether the records were read up to the end of the input */
  #isEnded = false
  /** unpacked bytes of the input before the chunk read last */
  offset = 0
  /** of the chunk read last */
  extent: Extent = { length: 0, isLast: false }
  /** the bytes that it was read from */
  #wanted: Extent = { length: 0, isLast: false }
  /** before the chunk read last */
  state: ReadingState | undefined

  /** @param encoding by default what a byte order mark says, or UTF-8 */
  constructor(source: Source, hash: Hash, encoding?: EncodingName) {
    this.source = source
    this.#encoding = encoding
    this.#hashBefore = hash
    this.#hash = hash
  }

  /** SHA-256 of all that was read, of the inputs before this one as well. */
  get hash(): Hash {
    return this.#hash.copy()
  }

  /**
   * The first bytes in UTF-8, up to 64 KiB and at least a line that is not blank, without a byte order mark; the first chunk begins with
   * them. All that is counted from here on are bytes of UTF-8.
   */
  async head(timeout?: number): Promise<{ bytes: Buffer; isLast: boolean }> {
    await this.#fill(byteOrderMark.length)
    const first = Buffer.from(this.#buffer.subarray(0, this.#filled))
    this.#encoding ??= markedEncoding(first)
    const decoded = decodedSource(this.source, this.#encoding, first)
    if (decoded) {
      this.source = decoded
      this.#filled = 0
      this.#isAtEnd = false
    }
    for (let before = -1; before < this.#filled && this.#filled < headSize && !this.#hasLine; ) {
      before = this.#filled
      await this.#fill(before + 1)
    }
    await this.#fill(headSize, timeout)
    if (this.#buffer.subarray(0, Math.min(this.#filled, 3)).equals(byteOrderMark)) {
      this.#mark = byteOrderMark
      this.#pass(3)
    }
    return { bytes: this.#buffer.subarray(0, this.#filled), isLast: this.#isAtEnd }
  }

  get #hasLine(): boolean {
    const bytes = this.#buffer.subarray(0, this.#filled)
    const start = bytes.findIndex((byte) => byte > 0x20 && !byteOrderMark.includes(byte))
    return start >= 0 && bytes.includes(0x0a, start)
  }

  use(format: Format, mapper: RecordMapper): void {
    this.#format = format
    this.#mapper = mapper
    this.#records = format.read(mapper)
  }

  get encoding(): EncodingName {
    return this.#encoding ?? 'utf-8'
  }

  /** What comes before the first record of the input, as an input of some of its records begins as well. */
  get header(): Buffer {
    return Buffer.concat([this.#mark, this.#records?.header ?? Buffer.alloc(0)])
  }

  get isDone(): boolean {
    return this.#isEnded && this.#filled === this.extent.length
  }

  /** Skips to a place, past earlier chunks. False when the input is shorter. */
  async skipTo(offset: number): Promise<boolean> {
    this.finish()
    while (this.offset < offset) {
      await this.#fill(Math.min(offset - this.offset, readSize))
      if (this.#filled === 0) return false
      this.#pass(Math.min(offset - this.offset, this.#filled))
    }
    return true
  }

  /**
   * Reads the next chunk, of about so many bytes, or exactly as it was read before; nothing when the input ends first. Waits for more for
   * `timeout` milliseconds when there is something.
   */
  async next(size: number | Extent, timeout?: number): Promise<Chunk | undefined> {
    this.finish()
    const known = typeof size === 'number' ? undefined : size
    for (let wanted = known?.length ?? Number(size); ; wanted += readSize) {
      await this.#fill(wanted, timeout)
      const length = known?.length ?? Math.min(this.#filled, wanted)
      if (this.#filled < length || (this.#filled === 0 && (this.#isEnded || !this.#isAtEnd))) return undefined
      this.state = this.save()
      this.#wanted = { length, isLast: known?.isLast ?? (this.#isAtEnd && length === this.#filled) }
      const chunk = this.#read(this.#wanted)
      this.#isEnded = this.#isAtEnd && this.extent.isLast
      if (this.extent.length > 0 || chunk.invalid.length > 0 || chunk.syntaxError) return chunk
    }
  }

  /** Reads the chunk again, only up to a place in it. */
  again(length: number): Chunk {
    if (this.state) this.restore(this.state)
    return this.#read({ length, isLast: false })
  }

  /** Reads the chunk again, only so many of its records. */
  first(limit: ChunkLimit): Chunk {
    if (this.state) this.restore(this.state)
    return this.#read(this.#wanted, limit)
  }

  restore({ format, nextId }: ReadingState): void {
    if (!this.#format || !this.#mapper) return
    this.#records = this.#format.read(this.#mapper)
    this.#records.restore(format)
    this.#mapper.nextId = nextId === undefined ? undefined : BigInt(nextId)
  }

  /** Continues after the chunk read last. */
  finish(): void {
    this.#hashBefore = this.#hash
    this.#drop(this.extent.length)
  }

  #read({ length: end, isLast }: Extent, limit?: ChunkLimit): Chunk {
    const chunk = new Chunk(this.#buffer.subarray(0, end), Math.ceil(end / this.#bytesOfPlant) + 1, limit)
    let length = 0
    try {
      length = this.#records?.read(chunk, isLast) ?? 0
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      throw new PlantsError(error.kind, `${this.source.name}: ${error.message}`, { hint: error.hint, cause: error })
    }
    this.extent = { length, isLast: isLast && length === end }
    this.#bytesOfPlant = Math.max(16, (0.9 * end) / Math.max(1, chunk.rows.length))
    this.#hash = this.#hashBefore.copy().update(chunk.bytes.subarray(0, length))
    return chunk
  }

  /** What it takes to continue after the chunk read last. */
  save(): ReadingState | undefined {
    return this.#records && { format: this.#records.save(), nextId: this.#mapper?.nextId?.toString() }
  }

  #pass(length: number): void {
    this.#hash = this.#hashBefore.update(this.#buffer.subarray(0, length))
    this.#drop(length)
  }

  #drop(length: number): void {
    this.#buffer.copyWithin(0, length, this.#filled)
    this.#filled -= length
    this.offset += length
    this.extent = { length: 0, isLast: false }
  }

  async #fill(wanted: number, timeout?: number): Promise<void> {
    if (this.#buffer.length < wanted) {
      const larger = Buffer.allocUnsafeSlow(wanted + readSize)
      this.#buffer.copy(larger, 0, 0, this.#filled)
      this.#buffer = larger
    }
    while (this.#filled < wanted && !this.#isAtEnd) {
      const count = await this.source.read(this.#buffer, this.#filled, this.#filled > 0 ? timeout : undefined)
      if (count === undefined) return
      this.#isAtEnd = count === 0
      this.#filled += count
    }
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const readSize = 1_048_576

/** bytes of a chunk, about: the first, for a service too, and the next ones of plants that came in the order of their ids, or did not */
export const chunkBytes = { smallest: 8192, firstForService: 65_536, first: 262_144, sorted: 2_097_152, unsorted: 16_777_216 } as const

/** Bytes of the next chunk for a service: what takes about a second, so that progress is shown soon. */
export function nextChunkBytes(bytes: number, milliseconds: number): number {
  if (milliseconds > 2000) return Math.max(chunkBytes.smallest, bytes / 2)
  return milliseconds < 1000 ? Math.min(1_048_576, bytes * 2) : bytes
}
