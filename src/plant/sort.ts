import type { PlantRows } from './rows.js'

/**
 * The sort permutation of the rows by id, stable for equal ids; undefined if the rows are already sorted. A radix sort: it takes a quarter
 * of the time of a comparison sort.
 */
export function orderById(rows: PlantRows): Uint32Array | undefined {
  if (isSorted(rows)) return undefined
  let order = Uint32Array.from({ length: rows.length }, (_, row) => row)
  let scratch = new Uint32Array(rows.length)
  for (const digit of digits) {
    const counts = new Uint32Array(256)
    for (let row = 0; row < rows.length; row += 1) {
      const value = digit(rows, row)
      counts[value] = (counts[value] ?? 0) + 1
    }
    if (counts.includes(rows.length)) continue
    scatter(rows, digit, { counts, from: order, to: scratch })
    ;[order, scratch] = [scratch, order]
  }
  return order
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

function scatter(rows: PlantRows, digit: Digit, { counts, from, to }: Record<'counts' | 'from' | 'to', Uint32Array>): void {
  let sum = 0
  const next = counts.map((count) => {
    sum += count
    return sum - count
  })
  for (const row of from) {
    const value = digit(rows, row)
    const at = next[value] ?? 0
    to[at] = row
    next[value] = at + 1
  }
}
