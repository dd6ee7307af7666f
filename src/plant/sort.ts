import type { PlantRows } from './rows.js'

/**
 * The rows in the order of their ids, stable; undefined if they are sorted. A radix sort: a quarter of the time of
 * comparing.
 */
export function orderById(rows: PlantRows): Uint32Array | undefined {
  if (isSorted(rows)) return undefined
  let order = Uint32Array.from({ length: rows.length }, (_, row) => row)
  let scratch = new Uint32Array(rows.length)
  for (const digit of digits) {
    // For each value of the digit: where the next row with it belongs.
    const next = new Uint32Array(257)
    for (let row = 0; row < rows.length; row += 1) count(next, digit(rows, row) + 1)
    if (next.includes(rows.length)) continue
    for (let value = 1; value < 256; value += 1) next[value] = (next[value] ?? 0) + (next[value - 1] ?? 0)
    for (const row of order) scratch[count(next, digit(rows, row))] = row
    ;[order, scratch] = [scratch, order]
  }
  return order
}

function count(counters: Uint32Array, at: number): number {
  const before = counters[at] ?? 0
  counters[at] = before + 1
  return before
}

function isSorted({ idHigh, idLow, length }: PlantRows): boolean {
  for (let row = 1; row < length; row += 1) {
    const high = idHigh[row] ?? 0
    const before = idHigh[row - 1] ?? 0
    if (high < before || (high === before && (idLow[row] ?? 0) < (idLow[row - 1] ?? 0))) return false
  }
  return true
}

type Digit = (rows: PlantRows, row: number) => number

/** The bytes of an id, least significant first. The sign bit of the last one is inverted, so that negative ids are first. */
const digits: readonly Digit[] = [
  ...[0, 8, 16, 24].map((shift) => (rows: PlantRows, row: number) => ((rows.idLow[row] ?? 0) >>> shift) & 0xff),
  ...[0, 8, 16].map((shift) => (rows: PlantRows, row: number) => ((rows.idHigh[row] ?? 0) >>> shift) & 0xff),
  (rows, row) => ((rows.idHigh[row] ?? 0) >>> 24) ^ 0x80,
]
