import type { Hash } from 'node:crypto'
import { PlantsError } from '../../platform/errors.js'
import { Chunk } from '../formats/chunk.js'
import { decoderFor, encoderFor, markedEncoding } from '../formats/encoding.js'
import type { EncodingName, Format, FormatReader } from '../formats/format.js'
import { headSize } from '../formats/formats.js'
import type { RecordMapper } from '../formats/record-mapper.js'
import type { Position } from './position.js'
import type { Source } from './source.js'

type Extent = Position['chunk']
type ReadingState = NonNullable<Position['reading']>

/** Reads one input chunk by chunk. Each chunk overwrites the bytes of the one before. */
export class Reader {
  readonly #source: Source
  #encoding: EncodingName | undefined
  #mark = Buffer.alloc(0)
  /** of the input before the current chunk, and including it */
  #hashBefore: Hash
  #hash: Hash
  #mapper: RecordMapper | undefined
  #records: FormatReader | undefined
  #buffer = Buffer.alloc(0)
  #filled = 0
  #decode: ReturnType<typeof decoderFor>
  encode = encoderFor('utf-8')
  #isAtEnd = false
  /** an estimate of the bytes per plant, a little too small */
  #bytesOfPlant = 64
  #isEnded = false
  /** of the current chunk, in decompressed bytes of UTF-8 */
  offset = 0
  extent: Extent = { length: 0, isLast: false }
  /** that the current chunk was read from */
  #wanted: Extent = { length: 0, isLast: false }
  /** before the current chunk */
  state: ReadingState | undefined

  /** @param encoding by default that of the byte order mark, or UTF-8 */
  constructor(source: Source, hash: Hash, encoding?: EncodingName) {
    this.#source = source
    this.#encoding = encoding
    this.#hashBefore = hash
    this.#hash = hash
  }

  /** of everything read, including the inputs before this one */
  get hash(): Hash {
    return this.#hash.copy()
  }

  /**
   * The first bytes in UTF-8, without a byte order mark: up to 64 KiB, and at least a line that is not blank. They remain part of the first
   * chunk. All offsets count bytes of UTF-8.
   */
  async head(timeout?: number): Promise<{ bytes: Buffer; isLast: boolean }> {
    await this.#fill(longestMark)
    const first = this.#buffer.subarray(0, this.#filled)
    const marked = markedEncoding(first)
    if (this.#encoding?.startsWith('utf-16') && marked !== 'utf-8') this.#encoding = marked // utf-16 is a label of utf-16le
    this.#encoding ??= marked
    this.#decode = decoderFor(this.#encoding, this.name)
    this.encode = encoderFor(this.#encoding)
    this.#filled = 0
    this.#append(first)
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
    return start >= 0 && (bytes.includes(0x0a, start) || bytes.includes(0x0d, start))
  }

  use(format: Format, mapper: RecordMapper): void {
    this.#mapper = mapper
    this.#records = format.read(mapper)
  }

  get encoding(): EncodingName {
    return this.#encoding ?? 'utf-8'
  }

  get name(): string {
    return this.#source.name
  }

  get size(): number | undefined {
    return this.encoding === 'utf-8' ? this.#source.size : undefined
  }

  /** for a file with some of its records */
  get header(): Buffer {
    return Buffer.concat([this.#mark, this.#records?.header ?? Buffer.alloc(0)])
  }

  get lineBreaks(): Uint8Array[] {
    const breaks = this.#records?.header ? ['\n', '\r'] : ['\n']
    return breaks.map((one) => encoderFor(this.encoding)(Buffer.from(one))) // not by `encode`, which may hold a part of a character
  }

  get isDone(): boolean {
    return this.#isEnded && this.#filled === this.extent.length
  }

  /** Returns false if the input is shorter. */
  async skipTo(offset: number): Promise<boolean> {
    this.#finish()
    while (this.offset < offset) {
      await this.#fill(Math.min(offset - this.offset, readSize))
      if (this.#filled === 0) return false
      this.#pass(Math.min(offset - this.offset, this.#filled))
    }
    return true
  }

  /**
   * Reads the next chunk, of about `size` bytes, or of exactly an earlier extent. Returns undefined if the input ends before. After the first
   * bytes, waits at most `timeout` milliseconds for more.
   */
  async next(size: number | Extent, timeout?: number): Promise<Chunk | undefined> {
    this.#finish()
    const known = typeof size === 'number' ? undefined : size
    for (let wanted = known?.length ?? Number(size); ; wanted += readSize) {
      await this.#fill(wanted, timeout)
      const length = known?.length ?? Math.min(this.#filled, wanted)
      if (this.#filled < length || (this.#filled === 0 && (this.#isEnded || !this.#isAtEnd))) return undefined
      this.state = this.save()
      this.#wanted = { length, isLast: known?.isLast ?? (this.#isAtEnd && length === this.#filled) }
      const chunk = this.#read(this.#wanted)
      this.#isEnded = this.#isAtEnd && this.extent.isLast
      // A known extent does not grow: after a change of the input, it may hold no whole record.
      if (known || this.extent.length > 0 || chunk.invalid.length > 0 || chunk.syntaxError) return chunk
    }
  }

  first(count: number): Chunk {
    if (this.state) this.restore(this.state)
    return this.#read(this.#wanted, count)
  }

  restore({ format, nextId }: ReadingState): void {
    this.#records?.restore(format)
    if (this.#mapper) this.#mapper.nextId = nextId === undefined ? undefined : BigInt(nextId)
  }

  #finish(): void {
    this.#hashBefore = this.#hash
    this.#drop(this.extent.length)
  }

  #read({ length: end, isLast }: Extent, maxRecords?: number): Chunk {
    const chunk = new Chunk(this.#buffer.subarray(0, end), Math.ceil(end / this.#bytesOfPlant) + 1, maxRecords)
    let length = 0
    try {
      length = this.#records?.read(chunk, isLast) ?? 0
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      throw new PlantsError(error.type, `${this.name}: ${error.message}`, { hint: error.hint, cause: error })
    }
    this.extent = { length, isLast: isLast && length === end }
    this.#bytesOfPlant = Math.max(16, (0.9 * end) / Math.max(1, chunk.rows.length))
    this.#hash = this.#hashBefore.copy().update(chunk.bytes.subarray(0, length))
    return chunk
  }

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
    this.#reserve(wanted)
    while (this.#filled < wanted && !this.#isAtEnd) {
      const room = this.#buffer.subarray(this.#filled, this.#filled + readSize)
      const count = await this.#source.read(room, this.#filled > 0 ? timeout : undefined)
      if (count === undefined) return
      this.#isAtEnd = count === 0
      this.#append(room.subarray(0, count))
    }
  }

  #append(raw: Buffer): void {
    const bytes = this.#decode?.(raw, this.#isAtEnd)
    if (bytes) {
      this.#reserve(this.#filled + bytes.length)
      this.#buffer.set(bytes, this.#filled)
    }
    this.#filled += bytes?.length ?? raw.length
  }

  #reserve(length: number): void {
    if (this.#buffer.length >= length) return
    const larger = Buffer.allocUnsafeSlow(length + readSize)
    this.#buffer.copy(larger, 0, 0, this.#filled)
    this.#buffer = larger
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const longestMark = 4
const readSize = 1_048_576
