import { textFields } from '../../plant/fields.js'
import { noText, type PlantRows } from '../../plant/rows.js'

/**
 * Writes rows as the statement COPY takes them in its binary format, with the columns id, attempt, and the texts
 * (https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4), in pieces: the server takes in the first while the next is written.
 */
export function* copyData(rows: PlantRows, which: number[], attempt: bigint): Generator<Uint8Array> {
  yield header
  for (let from = 0; from < which.length; from += rowsInPiece) yield pieceOf(rows, which.slice(from, from + rowsInPiece), attempt)
  yield trailer
}

/** of about 50 bytes each */
const rowsInPiece = 1024

function pieceOf(rows: PlantRows, which: number[], attempt: bigint): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(sizeOf(rows, which))
  let at = 0
  for (const row of which) {
    bytes.writeUInt16BE(2 + textFields.length, at)
    bytes.writeUInt32BE(8, at + 2)
    bytes.writeInt32BE(rows.idHigh[row] ?? 0, at + 6)
    bytes.writeUInt32BE(rows.idLow[row] ?? 0, at + 10)
    bytes.writeUInt32BE(8, at + 14)
    bytes.writeBigInt64BE(attempt, at + 18)
    at += 26
    for (const { start, end } of rows.texts) {
      const from = start[row] ?? noText
      at = from === noText ? bytes.writeInt32BE(-1, at) : writeText(bytes, at, rows, from, end[row] ?? 0)
    }
  }
  return bytes.subarray(0, at)
}

/** How many bytes rows take, at most. */
function sizeOf(rows: PlantRows, which: number[]): number {
  let size = 0
  for (const row of which) size += 26 + 4 * textFields.length + rows.sizeAt(row)
  return size
}

function writeText(bytes: Buffer, start: number, rows: PlantRows, from: number, to: number): number {
  const base = from >= rows.bytes.length ? rows.bytes.length : 0
  const source = from >= rows.bytes.length ? rows.decoded : rows.bytes
  const at = bytes.writeUInt32BE(to - from, start)
  if (to - from > 64) bytes.set(source.subarray(from - base, to - base), at)
  else for (let index = 0; index < to - from; index += 1) bytes[at + index] = source[from - base + index] ?? 0
  return at + to - from
}

const header = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const trailer = Buffer.from([0xff, 0xff])
