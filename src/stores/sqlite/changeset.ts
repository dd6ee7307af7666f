import { noTag, type PlantRows } from '../../plant-rows.js'

/**
 * Writes rows as a changeset that inserts them (https://sqlite.org/session/sqlite3changeset_apply.html; the format stands in SQLite's
 * ext/session/sqlite3session.c). SQLite takes it in one call, which no statement with values can match.
 */
export class ChangesetWriter {
  #bytes = Buffer.alloc(0)
  #end = 0

  /**
   * @param order the rows in this order, or as they stand
   * @returns bytes that are valid until the next call
   */
  write(rows: PlantRows, order: Uint32Array | undefined, { from, to }: { from: number; to: number }): Uint8Array {
    this.#reserve(header.length)
    this.#end = header.copy(this.#bytes)
    for (let rank = from; rank < to; rank += 1) this.#writeRow(rows, order ? (order[rank] ?? 0) : rank)
    return this.#bytes.subarray(0, this.#end)
  }

  #writeRow(rows: PlantRows, row: number): void {
    const [nameStart, nameEnd] = [rows.nameStart[row] ?? 0, rows.nameEnd[row] ?? 0]
    const [tagStart, tagEnd] = [rows.tagStart[row] ?? noTag, rows.tagEnd[row] ?? noTag]
    this.#reserve(longestRow + nameEnd - nameStart + tagEnd - tagStart)
    const bytes = this.#bytes
    bytes[this.#end] = insert
    bytes[this.#end + 1] = 0
    bytes[this.#end + 2] = integer
    const low = rows.idLow[row] ?? 0
    const high = rows.idHigh[row] ?? 0
    bytes[this.#end + 3] = high >>> 24
    bytes[this.#end + 4] = high >>> 16
    bytes[this.#end + 5] = high >>> 8
    bytes[this.#end + 6] = high
    bytes[this.#end + 7] = low >>> 24
    bytes[this.#end + 8] = low >>> 16
    bytes[this.#end + 9] = low >>> 8
    bytes[this.#end + 10] = low
    this.#end += 11
    this.#writeText(rows, nameStart, nameEnd)
    if (tagStart === noTag) this.#bytes[this.#end++] = nothing
    else this.#writeText(rows, tagStart, tagEnd)
    this.#bytes[this.#end++] = nothing
  }

  #writeText(rows: PlantRows, start: number, end: number): void {
    const bytes = this.#bytes
    const base = start >= rows.bytes.length ? rows.bytes.length : 0
    const source = start >= rows.bytes.length ? rows.decoded : rows.bytes
    bytes[this.#end++] = text
    this.#writeLength(end - start)
    let at = this.#end
    if (end - start > 64) bytes.set(source.subarray(start - base, end - base), at)
    else for (let from = start - base; from < end - base; from += 1) bytes[at++] = source[from] ?? 0
    this.#end += end - start
  }

  /** SQLite's varint: seven bits a byte, the highest first. */
  #writeLength(length: number): void {
    for (let shift = 28; shift > 0; shift -= 7) {
      if (length >= 2 ** shift) this.#bytes[this.#end++] = ((length >>> shift) & 0x7f) | 0x80
    }
    this.#bytes[this.#end++] = length & 0x7f
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#end + length, 65_536))
    this.#bytes.copy(larger, 0, 0, this.#end)
    this.#bytes = larger
  }
}

/** "T", four columns, which of them are the primary key, and the table's name. */
const header = Buffer.from('T\x04\x01\0\0\0plants\0', 'latin1')

const insert = 18
const integer = 1
const text = 3
const nothing = 5

/** bytes of a row besides those of its texts, at most */
const longestRow = 32
