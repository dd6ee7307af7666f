/** The binary format of COPY: https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4 */
import { textLength } from '../../plant/plant.js'
import { GrowingBuffer } from '../../platform/growing-buffer.js'
import type { KeyedPlant } from '../common/plan.js'

export function* binaryRows(created: KeyedPlant[]): Generator<Buffer> {
  yield Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
  let piece = Buffer.allocUnsafe(pieceSize)
  let length = 0
  const addText = (text: string | undefined) => {
    const bytes = text === undefined ? -1 : piece.write(text, length + 4)
    length = piece.writeInt32BE(bytes, length) + Math.max(0, bytes)
  }
  for (const { plant, key } of created) {
    const maxLength = 26 + 3 * (textLength(plant) + (key?.length ?? 0))
    if (length + maxLength > piece.length) {
      yield piece.subarray(0, length)
      piece = Buffer.allocUnsafe(Math.max(pieceSize, maxLength))
      length = 0
    }
    length = piece.writeInt16BE(4, length)
    length = piece.writeInt32BE(8, length)
    length = piece.writeBigInt64BE(plant.id, length)
    for (const text of [plant.name, plant.tag, key]) addText(text)
  }
  yield piece.subarray(0, length)
  yield Buffer.from([0xff, 0xff])
}

/** The server processes a piece while the next is encoded. */
const pieceSize = 65_536

/** Reads rows as their bytes come. The methods throw `RangeError` for what the format does not have. */
export class BinaryRows {
  /** Whether their end has come, and nothing after it. */
  isComplete = false
  #buffer = new GrowingBuffer()
  #bytes = this.#buffer.bytes
  #at = headerLength

  /** Bytes that are read already are not kept. */
  append(chunk: Buffer): void {
    if (this.#at > 0 && this.#at <= this.#bytes.length) {
      this.#buffer = new GrowingBuffer()
      this.#buffer.append(this.#bytes.subarray(this.#at))
      this.#at = 0
    }
    this.#buffer.append(chunk)
    this.#bytes = this.#buffer.bytes
  }

  /** The bytes of a row that is not complete yet. */
  get waiting(): number {
    return this.#bytes.length - this.#at
  }

  /** Goes to the next row, of which the fields are to be read in their order. Returns whether all of it has come. */
  next(): boolean {
    const { length } = this.#bytes
    let end = this.#at + 2
    if (end > length) return false
    const fields = this.#bytes.readInt16BE(this.#at)
    this.isComplete = fields === -1 && end === length
    for (let field = 0; field < fields; field += 1) {
      if (end + 4 > length) return false
      end += 4 + Math.max(0, this.#bytes.readInt32BE(end))
    }
    if (end > length || fields < 0) return false
    this.#at += 2
    return true
  }

  int64(): bigint {
    if (this.#field() !== 8) throw new RangeError('The field is no int64')
    return this.#bytes.readBigInt64BE(this.#at - 8)
  }

  text(): string | undefined {
    const length = this.#field()
    return length === -1 ? undefined : this.#bytes.toString('utf8', this.#at - length, this.#at)
  }

  /** Goes after the field. Returns its length, -1 for NULL. */
  #field(): number {
    const length = this.#bytes.readInt32BE(this.#at)
    this.#at += 4 + Math.max(0, length)
    return length
  }
}

const headerLength = 19
