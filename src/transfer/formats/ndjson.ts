import { isUtf8 } from 'node:buffer'
import { NotJson, tryJson } from '../../plant/json.js'
import { noTag, type PlantRows } from '../../plant/rows.js'
import type { Format, FormatState } from './format.js'
import { readId } from './id-bytes.js'
import type { Intake } from './intake.js'
import { notJson, notUtf8 } from './json-text.js'
import type { Place, Portion } from './portion.js'
import type { RecordError } from './record-error.js'
import { longestRecord, recordTooLarge } from './record-limit.js'

/**
 * One JSON object a line (https://github.com/ndjson/ndjson-spec); blank lines count for nothing. A line as programs write it is
 * read where it stands; any other goes through `tryJson` and the schema, which say the same of both.
 */
export class Ndjson implements Format {
  readonly #intake: Intake
  #line = 1
  /** inside a line that is too long to be kept */
  #isSkipping = false

  constructor(intake: Intake) {
    this.#intake = intake
  }

  read(portion: Portion, { start, end }: { start: number; end: number }, isLast: boolean): number {
    const { bytes } = portion
    const limit = isLast ? end : bytes.subarray(0, end).lastIndexOf(lineFeed) + 1
    const isPlain = this.#intake.isPlain && isUtf8(bytes.subarray(start, Math.max(start, limit)))
    let at = this.#isSkipping ? this.#skip(portion, start, end) : start
    while (at < limit && !portion.isFull) {
      const blankEnd = endOfBlank(bytes, at, limit)
      if (blankEnd > at) {
        at = blankEnd
        this.#line += 1
        continue
      }
      const next = isPlain ? readUsual(portion, at, this.#line) : unusual
      at = next === unusual ? this.#readAny(portion, at, end) : next
      this.#line += 1
    }
    return at >= limit && end - at > longestRecord + 1 ? this.#skip(portion, at, end, recordTooLarge()) : at
  }

  save(): FormatState {
    return { line: this.#line, isSkipping: this.#isSkipping }
  }

  restore({ line, isSkipping }: FormatState): void {
    this.#line = Number(line)
    this.#isSkipping = isSkipping === true
  }

  /** Reads a line that is whole, whatever stands in it, and gives where the next one begins. */
  #readAny(portion: Portion, start: number, limit: number): number {
    const { bytes } = portion
    const found = bytes.subarray(0, limit).indexOf(lineFeed, start)
    const next = found < 0 ? limit : found + 1
    const place = { start, end: next, line: this.#line }
    const lineEnd = found < 0 ? limit : found
    const text = bytes.subarray(start, bytes[lineEnd - 1] === carriageReturn && lineEnd > start ? lineEnd - 1 : lineEnd)
    if (text.length > longestRecord) portion.addProblem(recordTooLarge(), place)
    else if (!isUtf8(text)) portion.addProblem(notUtf8(), place)
    else this.#take(text.toString(), place, portion)
    return next
  }

  #take(text: string, place: Place, portion: Portion): void {
    if (/^[ \t\r]*$/.test(text)) return // the last line, or a long one
    const value = tryJson(text, { idKey: this.#intake.idKey, isSuspect: portion.isSuspect })
    if (value instanceof NotJson) portion.addProblem(notJson(`${value.reason} at column ${value.column}`), place)
    else this.#intake.take(value, place, portion)
  }

  /** Leaves out a line, or the rest of one, up to its end if that is there. */
  #skip(portion: Portion, start: number, end: number, error?: RecordError): number {
    const found = portion.bytes.subarray(0, end).indexOf(lineFeed, start)
    const next = found < 0 ? end : found + 1
    if (next > start) portion.addProblem(error, { start, end: next, line: this.#line })
    this.#isSkipping = found < 0
    if (found >= 0) this.#line += 1
    return next
  }
}

/** Where the next line begins after a short blank one; the same place where another line is. */
function endOfBlank(bytes: Buffer, start: number, limit: number): number {
  const most = Math.min(limit, start + 1000)
  let at = start
  while (at < most && (bytes[at] === space || bytes[at] === tab || bytes[at] === carriageReturn)) at += 1
  return at < most && bytes[at] === lineFeed ? at + 1 : start
}

/** Reads `{"id":1,"name":"Fern","tag":"shade"}` and its line break; gives where the next line begins, or `unusual` and changes nothing. */
function readUsual(portion: Portion, start: number, line: number): number {
  const { bytes, rows } = portion
  const idStart = behind(bytes, start, idKey)
  const idEnd = idStart === unusual ? unusual : digitsEnd(bytes, idStart)
  const nameStart = idEnd === unusual ? unusual : behind(bytes, idEnd, nameKey)
  const nameEnd = nameStart === unusual ? unusual : textEnd(bytes, nameStart)
  if (nameEnd === unusual) return unusual
  const tagStart = behind(bytes, quoteAt(nameEnd) + 1, tagKey)
  const tagEnd = tagStart === unusual ? nameEnd : textEnd(bytes, tagStart)
  const next = tagEnd === unusual ? unusual : lineEnd(bytes, quoteAt(tagEnd) + 1)
  if (next === unusual || next - start > longestRecord) return unusual
  const row = rows.next()
  const isRead = readId(rows, row, idStart, idEnd) && keepName(rows, row, nameStart, nameEnd) && keepTag(rows, row, tagStart, tagEnd)
  if (isRead) portion.placeLast(start, next, line)
  else rows.length = row
  return isRead ? next : unusual
}

/** False for an escape that only `tryJson` can judge. */
function keepName(rows: PlantRows, row: number, start: number, end: number): boolean {
  const text = end < 0 ? rows.keepString(rows.bytes.subarray(start, quoteAt(end))) : undefined
  rows.nameStart[row] = text?.start ?? start
  rows.nameEnd[row] = text?.end ?? end
  return end >= 0 || text !== undefined
}

/** The same of a tag, which may not be there. */
function keepTag(rows: PlantRows, row: number, start: number, end: number): boolean {
  const isThere = start !== unusual
  const text = isThere && end < 0 ? rows.keepString(rows.bytes.subarray(start, quoteAt(end))) : undefined
  rows.tagStart[row] = isThere ? (text?.start ?? start) : noTag
  rows.tagEnd[row] = isThere ? (text?.end ?? end) : noTag
  return !isThere || end >= 0 || text !== undefined
}

/** Where a text goes on behind another one; in that, a space stands for one that may be left out. */
function behind(bytes: Uint8Array, start: number, expected: Uint8Array): number {
  let at = start
  for (let index = 0; index < expected.length; index += 1) {
    if (bytes[at] === expected[index]) at += 1
    else if (expected[index] !== space) return unusual
  }
  return at
}

function digitsEnd(bytes: Uint8Array, start: number): number {
  let at = bytes[start] === minus ? start + 1 : start
  while (isDigit(bytes[at] ?? 0)) at += 1
  return at
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

/** Where a string ends that has no control characters: at its quote, or, where it has escapes, at `quoteAt` of a negative number. */
function textEnd(bytes: Uint8Array, start: number): number {
  let isEscaped = false
  for (let at = start; ; at += 1) {
    const byte = bytes[at] ?? 0
    if (byte === quote) return isEscaped ? -2 - at : at
    if (byte < space) return unusual
    if (byte !== backslash) continue
    isEscaped = true
    at += 1
    if ((bytes[at] ?? 0) < space) return unusual
  }
}

function quoteAt(end: number): number {
  return end < 0 ? -2 - end : end
}

/** Where the next line begins behind the closing brace of an object. */
function lineEnd(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== closingBrace) return unusual
  const at = bytes[start + 1] === carriageReturn ? start + 2 : start + 1
  return bytes[at] === lineFeed ? at + 1 : unusual
}

const unusual = -1
const [lineFeed, carriageReturn, tab, space, quote, minus, backslash, closingBrace] = [0x0a, 0x0d, 0x09, 0x20, 0x22, 0x2d, 0x5c, 0x7d]
const [idKey, nameKey, tagKey] = ['{"id": ', ', "name": "', ', "tag": "'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer] // as many as there are texts
