import { must } from '../platform/values.js'
import { type PlantPatch, textFields } from './fields.js'

/** Byte ranges; `noText` for a plant that has none, `missingText` for a record that does not say. */
type TextColumn = Record<'start' | 'end', Uint32Array>

/**
 * Many plants in columns, without an object per plant. Ids are int64 in two halves. Texts are ranges of UTF-8: of
 * `bytes` or, for decoded texts, of `decoded`, whose offsets begin at `bytes.length`.
 *
 * Measured with 500,000 plants, in CPU time: `plants import` is 0.44 times as fast as `sqlite3 .import` in order and
 * 1.46 times at random. A prototype with plain objects, without positions and rejects: 0.36 and 1.24 times.
 */
export class PlantRows {
  readonly bytes: Uint8Array
  length = 0
  readonly idHigh: Int32Array
  readonly idLow: Uint32Array
  readonly texts: readonly TextColumn[]
  readonly #text: Buffer
  #decoded = Buffer.alloc(0)
  #decodedLength = 0

  /** @param capacity the maximum number of plants */
  constructor(bytes: Uint8Array, capacity: number) {
    this.bytes = bytes
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.idHigh = new Int32Array(capacity)
    this.idLow = new Uint32Array(capacity)
    this.texts = textFields.map(() => ({ start: new Uint32Array(capacity), end: new Uint32Array(capacity) }))
  }

  add(patch: PlantPatch): void {
    const row = this.next()
    this.setId(row, patch.id)
    for (const [index, column] of this.texts.entries()) {
      const text = patch[must(textFields[index]).name]
      const none = text === null ? noText : missingText
      column.start[row] = text == null ? none : this.#keep(text, Buffer.byteLength(text))
      column.end[row] = text == null ? none : this.bytes.length + this.#decodedLength
    }
  }

  setId(row: number, id: bigint): void {
    this.idHigh[row] = Number(BigInt.asIntN(32, id >> 32n))
    this.idLow[row] = Number(BigInt.asUintN(32, id))
  }

  /** The caller sets the columns of the new row. */
  next(): number {
    this.length += 1
    return this.length - 1
  }

  at(row: number): PlantPatch {
    const patch: PlantPatch = { id: this.idAt(row) }
    for (const [index, { name }] of textFields.entries()) {
      const { start, end } = must(this.texts[index])
      const from = must(start[row])
      if (from !== missingText) patch[name] = from === noText ? null : this.textAt(from, must(end[row]))
    }
    return patch
  }

  isComplete(row: number): boolean {
    return textFields.every(({ isRequired }, index) => !isRequired || isText(must(must(this.texts[index]).start[row])))
  }

  sizeAt(row: number): number {
    let size = 0
    for (const { start, end } of this.texts) size += must(end[row]) - must(start[row])
    return size
  }

  idAt(row: number): bigint {
    return (BigInt(must(this.idHigh[row])) << 32n) | BigInt(must(this.idLow[row]))
  }

  get decoded(): Buffer {
    return this.#decoded
  }

  textAt(start: number, end: number): string {
    const base = this.bytes.length
    return start < base
      ? this.#text.toString('utf8', start, end)
      : this.#decoded.toString('utf8', start - base, end - base)
  }

  /** Decodes the JSON string between the quotes at `start - 1` and `end`; undefined if it is invalid. */
  keepString(start: number, end: number): { start: number; end: number } | undefined {
    const text = parseString(this.#text.toString('utf8', start - 1, end + 1))
    if (text === undefined || !text.isWellFormed() || text.includes('\0')) return undefined
    // An escape is never shorter than the UTF-8 bytes of its character.
    return { start: this.#keep(text, end - start), end: this.bytes.length + this.#decodedLength }
  }

  #keep(text: string, bytes: number): number {
    const start = this.#decodedLength
    if (start + bytes > this.#decoded.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#decoded.length, start + bytes, 1024))
      this.#decoded.copy(larger)
      this.#decoded = larger
    }
    this.#decodedLength = start + this.#decoded.write(text, start)
    return this.bytes.length + start
  }

  /** The rows in ascending order of id, those with the same id as they are; undefined if all are in this order. */
  orderById(): Uint32Array | undefined {
    const { idHigh, idLow } = this
    const compare = (one: number, other: number) =>
      must(idHigh[one]) - must(idHigh[other]) || must(idLow[one]) - must(idLow[other])
    const order = Uint32Array.from({ length: this.length }, (_, row) => row)
    const isSorted = order.every((row) => row === 0 || compare(row - 1, row) <= 0)
    return isSorted ? undefined : order.sort(compare)
  }
}

export const noText = 0xffffffff
export const missingText = 0xfffffffe

export function isText(start: number): boolean {
  return start < missingText
}

function parseString(json: string): string | undefined {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
