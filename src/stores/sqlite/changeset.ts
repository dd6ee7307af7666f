import { textFields } from '../../plant/fields.js'
import { noText, type PlantRows } from '../../plant/rows.js'

/**
 * Writes rows as a changeset that inserts them (https://sqlite.org/session/sqlite3changeset_apply.html; the format stands in SQLite's
 * ext/session/sqlite3session.c). SQLite takes it in one call, which no statement with values can match.
 */
export class ChangesetWriter {
  #bytes = Buffer.alloc(0)

  /**
   * @param order the rows in this order, or as they stand
   * @returns bytes that are valid until the next call
   */
  write(rows: PlantRows, order: Uint32Array | undefined, { from, to }: { from: number; to: number }): Uint8Array {
    const size = sizeOf(rows, order, { from, to })
    if (size > this.#bytes.length) this.#bytes = Buffer.allocUnsafeSlow(2 * size)
    const bytes = this.#bytes
    let at = header.copy(bytes)
    for (let rank = from; rank < to; rank += 1) at = writeRow(bytes, at, rows, order ? (order[rank] ?? 0) : rank)
    return bytes.subarray(0, at)
  }
}

/** How many bytes rows take, at most. */
function sizeOf(rows: PlantRows, order: Uint32Array | undefined, { from, to }: { from: number; to: number }): number {
  let size = header.length
  for (let rank = from; rank < to; rank += 1) size += longestRow + rows.sizeAt(order ? (order[rank] ?? 0) : rank)
  return size
}

/** Writes a row at a place, and gives the place behind it. */
function writeRow(bytes: Uint8Array, start: number, rows: PlantRows, row: number): number {
  const high = rows.idHigh[row] ?? 0
  const low = rows.idLow[row] ?? 0
  bytes[start] = insert
  bytes[start + 1] = 0
  bytes[start + 2] = integer
  bytes[start + 3] = high >>> 24
  bytes[start + 4] = high >>> 16
  bytes[start + 5] = high >>> 8
  bytes[start + 6] = high
  bytes[start + 7] = low >>> 24
  bytes[start + 8] = low >>> 16
  bytes[start + 9] = low >>> 8
  bytes[start + 10] = low
  let at = start + 11
  for (const column of rows.texts) {
    const from = column.start[row] ?? noText
    if (from === noText) bytes[at++] = nothing
    else at = writeText(bytes, at, rows, from, column.end[row] ?? 0)
  }
  bytes[at] = nothing // no idempotency key
  return at + 1
}

function writeText(bytes: Uint8Array, start: number, rows: PlantRows, from: number, to: number): number {
  const base = from >= rows.bytes.length ? rows.bytes.length : 0
  const source = from >= rows.bytes.length ? rows.decoded : rows.bytes
  bytes[start] = text
  let at = writeLength(bytes, start + 1, to - from)
  if (to - from > 64) {
    bytes.set(source.subarray(from - base, to - base), at)
    return at + to - from
  }
  for (let index = from - base; index < to - base; index += 1) bytes[at++] = source[index] ?? 0
  return at
}

/** SQLite's varint: seven bits a byte, the highest first. */
function writeLength(bytes: Uint8Array, start: number, length: number): number {
  let at = start
  for (let shift = length < 128 ? 0 : 28; shift > 0; shift -= 7) {
    if (length >= 2 ** shift) bytes[at++] = ((length >>> shift) & 0x7f) | 0x80
  }
  bytes[at] = length & 0x7f
  return at + 1
}

/** "T", the number of columns (id, texts, idempotency key), which of them are the primary key, and the table's name. */
const header = Buffer.from(`T${String.fromCharCode(textFields.length + 2)}\x01${'\0'.repeat(textFields.length + 1)}plants\0`, 'latin1')

const insert = 18
const integer = 1
const text = 3
const nothing = 5

/** bytes of a row besides those of its texts, at most */
const longestRow = 20 + 6 * textFields.length
