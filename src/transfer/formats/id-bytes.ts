import type { PlantRows } from '../../plant/rows.js'

/**
 * Reads the digits of an id into the columns of a row.
 *
 * @returns false for what is not written the usual way or does not fit 64 bits, and is to be looked at by `parseInt64`
 */
export function readId(rows: PlantRows, row: number, start: number, end: number): boolean {
  const { bytes } = rows
  const isNegative = bytes[start] === minus
  const first = isNegative ? start + 1 : start
  const count = end - first
  if (count < 1 || count > 19 || (bytes[first] === zero && (count > 1 || isNegative))) return false
  // Nine digits and what stands before them are exact as numbers; so are their products below.
  const upper = numberOf(bytes, first, Math.max(first, end - 9))
  const lower = numberOf(bytes, Math.max(first, end - 9), end)
  const upperLow = upper % 65_536
  const small = upperLow * 1e9 + lower
  const large = ((upper - upperLow) / 65_536) * 1e9 + Math.floor(small / 65_536)
  const high = Math.floor(large / 65_536)
  const low = (large % 65_536) * 65_536 + (small % 65_536)
  if (high > 0x7fffffff && !(isNegative && high === 0x80000000 && low === 0)) return false
  rows.idLow[row] = isNegative ? -low : low
  rows.idHigh[row] = isNegative ? -high - (low === 0 ? 0 : 1) : high
  return true
}

function numberOf(bytes: Uint8Array, start: number, end: number): number {
  let value = 0
  for (let at = start; at < end; at += 1) value = value * 10 + (bytes[at] ?? 0) - zero
  return value
}

const zero = 0x30
const minus = 0x2d
