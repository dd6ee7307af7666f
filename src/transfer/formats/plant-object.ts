import { textFields } from '../../plant/fields.js'
import { missingText, type PlantRows } from '../../plant/rows.js'
import { must } from '../../platform/values.js'
import { type Chunk, maxRecordBytes } from './chunk.js'

/**
 * Reads `{"id":1,"name":"Fern","tag":"shade"}`, with or without spaces after colons and commas, into a row whose range
 * the caller sets. Returns `unread`, and adds nothing, for any other text.
 */
export function readPlantObject(chunk: Chunk, start: number): number {
  const { bytes, rows } = chunk
  const idStart = after(bytes, start, idKey)
  const idEnd = idStart === unread ? unread : digitsEnd(bytes, idStart)
  if (idEnd === unread) return unread
  const row = rows.next()
  let at = readId(rows, row, idStart, idEnd) ? idEnd : unread
  for (let field = 0; at !== unread && field < textKeys.length; field += 1) at = readText(rows, row, field, at)
  if (at !== unread && bytes[at] === closingBrace && at - start < maxRecordBytes) return at + 1
  rows.length = row
  return unread
}

/** for the parser */
export const unread = -1

/** Returns false for a number out of range, and for an unusual notation, which `parseInt64` reads. */
export function readId(rows: PlantRows, row: number, start: number, end: number): boolean {
  const { bytes } = rows
  const isNegative = bytes[start] === minus
  const first = isNegative ? start + 1 : start
  const count = end - first
  if (count < 1 || count > 19 || (bytes[first] === zero && (count > 1 || isNegative))) return false
  if (count > exactDigits) {
    const id = BigInt(rows.textAt(start, end))
    rows.setId(row, id)
    return BigInt.asIntN(64, id) === id
  }
  let value = 0
  for (let at = first; at < end; at += 1) value = value * 10 + must(bytes[at]) - zero
  if (isNegative) value = -value
  rows.idLow[row] = value // modulo 2 ** 32
  rows.idHigh[row] = Math.floor(value / 2 ** 32)
  return true
}

/** Integers of so many digits are exact as numbers. */
const exactDigits = 15

/** Returns the offset after the member; `at` if an optional one is missing. */
function readText(rows: PlantRows, row: number, field: number, at: number): number {
  const { bytes } = rows
  const column = must(rows.texts[field])
  const { key, isRequired } = must(textKeys[field])
  const start = after(bytes, at, key)
  if (start === unread) {
    column.start[row] = missingText
    column.end[row] = missingText
    return isRequired ? unread : at
  }
  const end = textEnd(bytes, start)
  if (end === unread) return unread
  const text = end < 0 ? rows.keepString(start, quoteAt(end)) : undefined
  if (end < 0 && text === undefined) return unread
  column.start[row] = text?.start ?? start
  column.end[row] = text?.end ?? end
  return quoteAt(end) + 1
}

/** The spaces of `expected` are optional. */
function after(bytes: Uint8Array, start: number, expected: Uint8Array): number {
  let at = start
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at] === expected[index]) at += 1
    else if (expected[index] !== space) return unread
  }
  return at
}

export function digitsEnd(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === minus ? start + 1 : start
  for (let byte = must(bytes[at]); byte >= zero && byte <= nine; byte = must(bytes[at])) at += 1
  return at
}

/** The closing quote; after escapes, as a negative number for `quoteAt`. */
function textEnd(bytes: Uint8Array, start: number): number {
  let isEscaped = false
  for (let at = start; ; at += 1) {
    const byte = bytes[at] ?? 0 // the bytes may end inside a text
    if (byte === quote) return isEscaped ? -2 - at : at
    if (byte < space) return unread
    if (byte !== backslash) continue
    isEscaped = true
    at += 1
    if ((bytes[at] ?? 0) < space) return unread
  }
}

function quoteAt(end: number): number {
  return end < 0 ? -2 - end : end
}

const [zero, nine, minus, space, quote, backslash, closingBrace] = [0x30, 0x39, 0x2d, 0x20, 0x22, 0x5c, 0x7d]
const idKey = Buffer.from('{"id": ')
const textKeys = textFields.map(({ name, isRequired }) => ({ key: Buffer.from(`, "${name}": "`), isRequired }))
