import { isUtf8 } from 'node:buffer'
import { textFields } from '../../plant/fields.js'
import { NotJson, tryJson } from '../../plant/json.js'
import { noText, type PlantRows } from '../../plant/rows.js'
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
  if (idEnd === unusual) return unusual
  const row = rows.next()
  let at = readId(rows, row, idStart, idEnd) ? idEnd : unusual
  for (let field = 0; at !== unusual && field < textKeys.length; field += 1) at = readText(rows, row, field, at)
  const next = at === unusual ? unusual : lineEnd(bytes, at)
  if (next === unusual || next - start > longestRecord) {
    rows.length = row
    return unusual
  }
  portion.placeLast(start, next, line)
  return next
}

/** Reads the member of a text field, if it stands there, and gives the place after it; `unusual` for what only `tryJson` can judge. */
function readText(rows: PlantRows, row: number, field: number, at: number): number {
  const { bytes } = rows
  const column = rows.texts[field]
  const { key, isRequired } = textKeys[field] ?? {}
  if (!column || !key) return unusual
  const start = behind(bytes, at, key)
  if (start === unusual) {
    column.start[row] = noText
    column.end[row] = noText
    return isRequired ? unusual : at
  }
  const end = textEnd(bytes, start)
  if (end === unusual) return unusual
  const text = end < 0 ? rows.keepString(bytes.subarray(start, quoteAt(end))) : { start, end }
  if (text === undefined) return unusual
  column.start[row] = text.start
  column.end[row] = text.end
  return quoteAt(end) + 1
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
const idKey = Buffer.from('{"id": ')
const textKeys = textFields.map(({ name, isRequired }) => ({ key: Buffer.from(`, "${name}": "`), isRequired }))
