import { createHash, type Hash } from 'node:crypto'
import { PlantsError } from '../../platform/errors.js'
import type { Format, FormatState } from '../formats/format.js'
import type { Intake } from '../formats/intake.js'
import { Portion } from '../formats/portion.js'
import { headSize } from '../formats/recognise.js'
import type { Source } from './source.js'

/** How much of an input a portion is: bytes, and whether the input ended behind them. */
export interface Extent {
  length: number
  isLast: boolean
}

/** What it takes to read on from a place. */
export interface ReadingState {
  format: FormatState
  nextId?: string | undefined
}

/** The SHA-256 of all that was read, as a text at any moment. */
export class RunningHash {
  #hash: Hash = createHash('sha256')
  #before: Hash = this.#hash

  add(bytes: Uint8Array): void {
    this.#before = this.#hash.copy()
    this.#hash.update(bytes)
  }

  /** Takes back what was added last. */
  undo(): void {
    this.#hash = this.#before.copy()
  }

  digest(): string {
    return this.#hash.copy().digest('base64url')
  }
}

/** Reads one input portion by portion. Only the last portion is valid: its bytes are read over. */
export class Reader {
  readonly source: Source
  readonly #hash: RunningHash
  #way: { make: () => Format; intake: Intake } | undefined
  #format: Format | undefined
  #buffer = Buffer.alloc(0)
  #filled = 0
  #isAtEnd = false
  /** a little less than what a plant has taken so far */
  #bytesOfPlant = 64
  /** whether the format was told that the input has ended */
  #isEnded = false
  /** unpacked bytes of the input before the portion that was read last */
  offset = 0
  /** of the portion that was read last */
  extent: Extent = { length: 0, isLast: false }
  /** before the portion that was read last */
  state: ReadingState | undefined

  constructor(source: Source, hash: RunningHash) {
    this.source = source
    this.#hash = hash
  }

  /** Looks at the first bytes, up to 64 KiB, but with a line that is not blank, without a byte order mark; they are part of the first portion. */
  async head(patience?: number): Promise<{ bytes: Buffer; isLast: boolean }> {
    for (let before = -1; before < this.#filled && this.#filled < headSize && !this.#hasLine; ) {
      before = this.#filled
      await this.#fill(before + 1)
    }
    await this.#fill(headSize, patience)
    if (this.#buffer.subarray(0, Math.min(this.#filled, 3)).equals(byteOrderMark)) this.#pass(3)
    return { bytes: this.#buffer.subarray(0, this.#filled), isLast: this.#isAtEnd }
  }

  get #hasLine(): boolean {
    const bytes = this.#buffer.subarray(0, this.#filled)
    const start = bytes.findIndex((byte) => byte > 0x20 && !byteOrderMark.includes(byte))
    return start >= 0 && bytes.includes(0x0a, start)
  }

  /** What reads the records from here on. */
  use(make: () => Format, intake: Intake): void {
    this.#way = { make, intake }
    this.#format = make()
  }

  /** what the records stand behind */
  get header(): Uint8Array | undefined {
    return this.#format?.header
  }

  /** Whether nothing is left behind the portion that was read last. */
  get isDone(): boolean {
    return this.#isEnded && this.#filled === this.extent.length
  }

  /** What it takes to go on behind the portion that was read last. */
  get stateBehind(): ReadingState | undefined {
    return this.#save()
  }

  /** Goes on to a place, past what was portions before. False when the input is shorter. */
  async skipTo(offset: number): Promise<boolean> {
    this.finish()
    while (this.offset < offset) {
      await this.#fill(Math.min(offset - this.offset, longestSkip))
      if (this.#filled === 0) return false
      this.#pass(Math.min(offset - this.offset, this.#filled))
    }
    return true
  }

  /**
   * Reads the next portion, and hashes it.
   *
   * @param size bytes that it is to have, about; or exactly how much it was when it was read before
   * @param patience milliseconds to wait for more when there is something
   * @returns nothing at the end of the input, or when that comes before the extent does
   */
  async next(size: number | Extent, patience?: number): Promise<Portion | undefined> {
    this.finish()
    const known = typeof size === 'number' ? undefined : size
    for (let wanted = known?.length ?? Number(size); ; wanted += longestSkip) {
      await this.#fill(wanted, patience)
      const length = known?.length ?? Math.min(this.#filled, wanted)
      if (this.#filled < length || (this.#filled === 0 && (this.#isEnded || !this.#isAtEnd))) return undefined
      this.state = this.#save()
      const portion = this.#read({ length, isLast: known?.isLast ?? (this.#isAtEnd && length === this.#filled) })
      this.#isEnded = this.#isAtEnd && this.extent.isLast
      if (this.extent.length > 0 || portion.problems.length > 0) return portion
      this.#hash.undo()
    }
  }

  /** Reads the portion again, only up to a record in it. */
  again(length: number): Portion {
    this.#hash.undo()
    if (this.state) this.restore(this.state)
    return this.#read({ length, isLast: false })
  }

  /** Goes on as it was when a state was saved. */
  restore({ format, nextId }: ReadingState): void {
    if (!this.#way) return
    this.#format = this.#way.make()
    this.#format.restore(format)
    this.#way.intake.nextId = nextId === undefined ? undefined : BigInt(nextId)
  }

  /** Goes on behind the portion that was read last. */
  finish(): void {
    this.#drop(this.extent.length)
  }

  #read({ length: end, isLast }: Extent): Portion {
    const portion = new Portion(this.#buffer.subarray(0, end), Math.ceil(end / this.#bytesOfPlant) + 1)
    const length = this.#readRecords(portion, end, isLast)
    this.extent = { length, isLast: isLast && length === end }
    this.#bytesOfPlant = Math.max(16, (0.9 * end) / Math.max(1, portion.rows.length))
    this.#hash.add(portion.bytes.subarray(0, length))
    return portion
  }

  #readRecords(portion: Portion, end: number, isLast: boolean): number {
    try {
      return this.#format?.read(portion, { start: 0, end }, isLast) ?? 0
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      throw new PlantsError(error.kind, `${this.source.name}: ${error.message}`, { hint: error.hint, cause: error })
    }
  }

  #save(): ReadingState | undefined {
    return this.#way && this.#format && { format: this.#format.save(), nextId: this.#way.intake.nextId?.toString() }
  }

  #pass(length: number): void {
    this.#hash.add(this.#buffer.subarray(0, length))
    this.#drop(length)
  }

  #drop(length: number): void {
    this.#buffer.copyWithin(0, length, this.#filled)
    this.#filled -= length
    this.offset += length
    this.extent = { length: 0, isLast: false }
  }

  async #fill(wanted: number, patience?: number): Promise<void> {
    if (this.#buffer.length < wanted) {
      const larger = Buffer.allocUnsafeSlow(wanted + longestSkip)
      this.#buffer.copy(larger, 0, 0, this.#filled)
      this.#buffer = larger
    }
    while (this.#filled < wanted && !this.#isAtEnd) {
      const count = await this.source.read(this.#buffer, this.#filled, this.#filled > 0 ? patience : undefined)
      if (count === undefined) return
      this.#isAtEnd = count === 0
      this.#filled += count
    }
  }
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const longestSkip = 1_048_576
