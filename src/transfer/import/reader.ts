import { isUtf8 } from 'node:buffer'
import type { Hash } from 'node:crypto'
import { malformed, PlantsError } from '../../platform/errors.js'
import { Chunk } from '../formats/chunk.js'
import { decoderFor, encoderFor, isWindows1252, markedEncoding } from '../formats/encoding.js'
import type { EncodingName, Format, FormatReader } from '../formats/format.js'
import { headSize } from '../formats/formats.js'
import type { RecordMapper } from '../formats/record-mapper.js'
import type { Position } from './checkpoint.js'
import type { Source } from './source.js'

type SavedReader = Position['reader']

/** Each chunk overwrites the bytes of the one before. */
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
  #isAssumed = false
  encode = encoderFor('utf-8')
  #isAtEnd = false
  /** the current chunk is the last one */
  #isEnded = false
  /** of the current chunk, in decompressed bytes of UTF-8; the length of what it was read from, and of its records */
  offset = 0
  #size = 0
  #length = 0
  /** before the current chunk */
  #state: SavedReader = { format: {} }

  /** @param encoding by default that of the byte order mark, or UTF-8 */
  constructor(source: Source, hash: Hash, encoding?: EncodingName) {
    this.#source = source
    this.#encoding = encoding
    this.#hashBefore = hash
    this.#hash = hash
  }

  /** of the inputs up to the end of the current chunk */
  get hash(): Hash {
    return this.#hash.copy()
  }

  /**
   * The first bytes in UTF-8, without a byte order mark: up to 64 KiB, and at least a line that is not blank. They stay
   * in the first chunk. All offsets count bytes of UTF-8.
   */
  async head(timeout?: number): Promise<{ bytes: Buffer; isLast: boolean }> {
    await this.#fill(longestMark)
    const marked = markedEncoding(this.#buffer.subarray(0, this.#filled))
    // utf-16 is a label of utf-16le
    if (this.#encoding?.startsWith('utf-16') && marked !== 'utf-8') this.#encoding = marked
    this.#decodeFrom(this.#encoding ?? marked)
    for (let before = -1; before < this.#filled && this.#filled < headSize && !this.#hasLine; ) {
      before = this.#filled
      await this.#fill(before + 1)
    }
    await this.#fill(headSize, timeout)
    if (this.isSheet)
      this.#mark = byteOrderMark // as Excel expects it of rejected rows
    else if (this.#buffer.subarray(0, Math.min(this.#filled, 3)).equals(byteOrderMark)) {
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

  /** Returns the encoding that is assumed of a table without a byte order mark that is not UTF-8. */
  assumeEncoding(): EncodingName | undefined {
    const head = this.#buffer.subarray(0, this.#filled)
    if (this.#mark.length > 0 || !isWindows1252(head, this.#isAtEnd)) return undefined
    this.#decodeFrom('windows-1252')
    this.#isAssumed = true
    return this.encoding
  }

  /** what was read, and what follows */
  #decodeFrom(encoding: EncodingName): void {
    const raw = this.#buffer.subarray(0, this.#filled)
    this.#encoding = encoding
    this.#decode = decoderFor(encoding, this.name)
    this.encode = encoderFor(encoding)
    this.#filled = 0
    this.#append(raw)
  }

  get encoding(): EncodingName {
    return this.#encoding ?? 'utf-8'
  }

  get name(): string {
    return this.#source.name
  }

  get isSheet(): boolean {
    return this.#source.isSheet
  }

  get size(): number | undefined {
    return this.encoding === 'utf-8' ? this.#source.size : undefined
  }

  /** for a file with some of its records */
  get header(): Buffer {
    return Buffer.concat([this.#mark, this.#records?.header ?? Buffer.alloc(0)])
  }

  /** what the records of a file have in common */
  get form(): string {
    const isTable = this.#records?.header !== undefined
    return [this.encoding, isTable, this.state.format['delimiter'], this.header].join(' ')
  }

  get lineBreaks(): Uint8Array[] {
    const breaks = this.#records?.header ? ['\n', '\r'] : ['\n']
    // not by `encode`, which may hold a part of a character
    return breaks.map((one) => encoderFor(this.encoding)(Buffer.from(one)))
  }

  get isDone(): boolean {
    return this.#isEnded
  }

  get end(): number {
    return this.offset + this.#length
  }

  /** Drops the current chunk. Returns false if the input is shorter. */
  async skipTo(offset: number): Promise<boolean> {
    this.#hash = this.#hashBefore
    this.#length = 0
    this.#isEnded = false
    while (this.offset < offset) {
      await this.#fill(Math.min(offset - this.offset, readSize))
      if (this.#filled === 0) return false
      this.#pass(Math.min(offset - this.offset, this.#filled))
    }
    return true
  }

  /**
   * Reads about `size` bytes. Returns undefined at the end of the input, and when the import was stopped. After the
   * first bytes, waits at most `timeout` milliseconds for more.
   */
  async next(size: number, timeout?: number): Promise<Chunk | undefined> {
    this.#hashBefore = this.#hash
    this.#drop(this.#length)
    for (let wanted = size; ; wanted = Math.max(wanted, 2 * this.#filled)) {
      await this.#fill(wanted, timeout)
      this.#size = Math.min(this.#filled, wanted)
      if (this.#size === 0 && (this.#isEnded || !this.#isAtEnd)) return undefined
      this.#state = this.state
      const chunk = this.#read()
      if (this.#length > 0 || chunk.invalid.length > 0 || chunk.syntaxError) return chunk
      const before = this.#filled
      if (this.#size === before) await this.#fill(before + 1)
      const isStopped = this.#size === before && this.#filled === before && !this.#isAtEnd
      if (isStopped) return undefined
    }
  }

  /** Reads only the first records of the current chunk. */
  first(count: number): Chunk {
    this.restore(this.#state)
    return this.#read(count)
  }

  /** Reads the current chunk again. */
  numberFrom(id: bigint): Chunk {
    this.restore({ ...this.#state, nextId: String(id) })
    this.#state = this.state
    return this.#read()
  }

  /** after the current chunk */
  get state(): SavedReader {
    return { format: this.#records?.save() ?? {}, nextId: this.#mapper?.nextId?.toString() }
  }

  restore({ format, nextId }: SavedReader): void {
    this.#records?.restore(format)
    if (this.#mapper) this.#mapper.nextId = nextId === undefined ? undefined : BigInt(nextId)
  }

  #read(maxRecords?: number): Chunk {
    const size = this.#size
    const isLast = this.#isAtEnd && size === this.#filled
    const chunk = new Chunk(this.#buffer.subarray(0, size), maxRecords)
    try {
      this.#length = this.#records?.read(chunk, isLast) ?? 0
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      throw new PlantsError(error.type, `${this.name}: ${error.message}`, { hint: error.hint, cause: error })
    }
    this.#isEnded = isLast && this.#length === size
    this.#hash = this.#hashBefore.copy().update(chunk.bytes.subarray(0, this.#length))
    return chunk
  }

  #pass(length: number): void {
    this.#hash = this.#hashBefore.update(this.#buffer.subarray(0, length))
    this.#drop(length)
  }

  #drop(length: number): void {
    this.#buffer.copyWithin(0, length, this.#filled)
    this.#filled -= length
    this.offset += length
    this.#length = 0
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

  /** Throws `malformed` where the assumption about the encoding would change letters. */
  #append(raw: Buffer): void {
    if (this.#isAssumed && isUtf8(raw) && raw.some((byte) => byte > 0x7f))
      throw malformed(
        `${this.name} is not UTF-8 at first, but is later`,
        'Fix its first lines that are not UTF-8, or name its encoding, such as: --encoding windows-1252',
      )
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
