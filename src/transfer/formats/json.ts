import { isUtf8 } from 'node:buffer'
import { isNotJson, tryJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, notJson, notUtf8, type RecordRange, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, isSpace, type ReaderState } from './format.js'
import { JsonScan } from './json-scan.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** A JSON array of plants, or a stream of plants with or without white space between them. It is read up to the value that breaks it. */
export const json: Format = {
  detect: (head) => head.bytes[head.start] === bracket || (head.bytes[head.start] === brace && spansLines(head)),
  read: (mapper) => new JsonReader(mapper),
  write: { record: 'json', head: '[\n', between: ',\n', foot: ']\n' },
}

class JsonReader implements FormatReader {
  readonly #mapper: RecordMapper
  readonly #lines = new LineCounter()
  #state: State = 'start'
  /** of the value that was cut */
  #scan: JsonScan | undefined
  /** whether that value is too long to be kept, and is skipped in pieces */
  #isSkipping = false
  /** elements of an array before the value that is read */
  #elements = 0

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const isFast = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, bytes.lastIndexOf(closingBrace) + 1))
    const reading = { chunk, isLast, isFast }
    this.#lines.begin(bytes)
    if (this.#state !== 'values') chunk.firstElement = this.#elements + (this.#isSkipping ? 1 : 0)
    let at = 0
    for (let next = -1; at < bytes.length && next !== at && !chunk.isFull; ) {
      next = at
      at = this.#step(reading, at)
    }
    const isWhole = !this.#isSkipping && (this.#state === 'start' || this.#state === 'values' || this.#state === 'after')
    if (isLast && !isWhole && at === bytes.length && !chunk.isFull) this.#break(reading, at)
    this.#lines.pause(at)
    return at
  }

  save(): ReaderState {
    const { line, before } = this.#lines
    const state = { line, before, state: this.#state, elements: this.#elements }
    return this.#scan && this.#isSkipping ? { ...state, scan: this.#scan.save() } : state
  }

  restore(saved: ReaderState): void {
    const { line, before, state, elements, scan } = saved as { line: number; before: number; state: State; elements: number; scan?: string } // what `save` gave
    this.#lines.line = line
    this.#lines.before = before
    this.#state = state
    this.#elements = elements
    this.#isSkipping = scan !== undefined
    this.#scan = scan === undefined ? undefined : JsonScan.restore(scan)
  }

  /** Reads the next token of the array, or the next value; gives its end, or its start when it is not complete. */
  #step(reading: Reading, from: number): number {
    const { bytes } = reading.chunk
    if (this.#scan && this.#isSkipping) return this.#skip(this.#scan, reading, from)
    let at = from
    while (isSpace(bytes[at])) at += 1
    if (at === bytes.length) return at
    const byte = bytes[at]
    if (this.#state === 'start' && byte !== bracket) this.#state = 'values'
    const next = transitions[this.#state]?.[String.fromCharCode(byte ?? 0)]
    if (next === undefined)
      return this.#state === 'between' || this.#state === 'after' ? this.#break(reading, at) : this.#value(reading, at)
    this.#state = next
    return at + 1
  }

  #value(reading: Reading, at: number): number {
    const { chunk, isLast, isFast } = reading
    const { bytes } = chunk
    const fastEnd = isFast ? readPlantObject(chunk, at) : unread
    if (fastEnd !== unread) {
      chunk.setRange(at, fastEnd, this.#lines.at(at))
      return this.#leave(fastEnd)
    }
    const until = Math.min(bytes.length, at + maxRecordBytes + 1)
    const isEnd = isLast && until === bytes.length
    this.#scan ??= new JsonScan()
    const result = this.#scan.scan(bytes, at, until)
    const { length } = this.#scan
    const record = { start: at, end: at + length, line: this.#lines.at(at) }
    if (length > maxRecordBytes && result !== 'broken') chunk.addInvalid(recordTooLarge, record)
    if (result === 'complete' || (isEnd && this.#scan.isCompleteAtEnd)) return this.#take(reading, record)
    if (result === 'broken' || (isEnd && length <= maxRecordBytes)) return this.#break(reading, at, length)
    if (length <= maxRecordBytes) return at
    this.#scan.discard()
    this.#isSkipping = true
    return until
  }

  #take(reading: Reading, record: RecordRange): number {
    const { chunk } = reading
    const { start, end } = record
    if (end - start > maxRecordBytes) return this.#leave(end)
    const text = chunk.bytes.toString('utf8', start, end)
    // What is not UTF-8 was replaced by this character, which a text can hold as well.
    const isText = !text.includes('\ufffd') || isUtf8(chunk.bytes.subarray(start, end))
    if (!isText) {
      chunk.addInvalid(notUtf8, record)
      return this.#leave(end)
    }
    const parsed = tryJson(text, { idKey: this.#mapper.idKey })
    if (isNotJson(parsed)) return this.#break(reading, start, end - start)
    this.#mapper.add(parsed.value, record, chunk)
    return this.#leave(end)
  }

  #skip(scan: JsonScan, { chunk, isLast }: Reading, at: number): number {
    const { bytes } = chunk
    const result = scan.scan(bytes, at, bytes.length)
    const next = at + scan.length
    if (next > at) chunk.addInvalid(undefined, { start: at, end: next, line: this.#lines.at(at) })
    if (result === 'complete' || (isLast && scan.isCompleteAtEnd)) return this.#leave(next)
    const { isTooDeep } = scan
    scan.discard()
    if (!isLast && (result === 'cut' || next + maxCharacterBytes > bytes.length)) return next
    const character = bytes.toString('utf8', next, next + maxCharacterBytes)
    const context = character.startsWith('\n') ? '"' : /^[,\]}:]/.test(character) ? '[0,' : '[0 '
    const reason = isTooDeep ? 'the value is nested deeper than 1000 levels' : reasonOf(context + character).reason
    this.#addSyntaxError(chunk, reason, next, { line: this.#lines.at(next), column: this.#lines.columnAt(next) + 1 })
    return next
  }

  #leave(end: number): number {
    this.#scan = undefined
    this.#isSkipping = false
    this.#elements += 1
    if (this.#state !== 'values') this.#state = 'between'
    return end
  }

  /** Ends the input before what is not JSON, `length` bytes after `at`, once all bytes of the character are there that breaks it. */
  #break({ chunk, isLast }: Reading, at: number, length = 0): number {
    const { bytes } = chunk
    const breakAt = at + length
    if (!isLast && breakAt + maxCharacterBytes > bytes.length) return at
    this.#scan = undefined
    const [character = ''] = bytes.toString('utf8', breakAt, breakAt + maxCharacterBytes)
    const context = contexts[this.#state]
    // A quote is closed, or the parser would complain of the end of the string.
    const text = context + bytes.toString('utf8', at, breakAt) + (character === '"' ? '""' : character)
    const { reason, line, column } = reasonOf(text)
    const firstLine = this.#lines.at(at)
    const offset = line === 1 ? this.#lines.columnAt(at) - context.length : 0
    this.#addSyntaxError(chunk, reason, at, { line: firstLine + line - 1, column: column + offset })
    return at
  }

  #addSyntaxError(chunk: Chunk, reason: string, at: number, { line, column }: { line: number; column: number }): void {
    const error = notJson(`${reason} at line ${line}, column ${column}`)
    chunk.syntaxError = { start: at, end: at, line: this.#lines.at(at), row: chunk.rows.length, error }
  }
}

/** `isFast` says whether `readPlantObject` may read it. */
type Reading = { chunk: Chunk; isLast: boolean; isFast: boolean }

/**
 * Where a reader is: before everything; in an array, before its first element, after an element or after a comma; after the array; among
 * the values of a stream.
 */
type State = 'start' | 'first' | 'between' | 'next' | 'after' | 'values'

/** The tokens of an array, and where they lead. */
const transitions: Readonly<Partial<Record<State, Readonly<Record<string, State>>>>> = {
  start: { '[': 'first' },
  first: { ']': 'after' },
  between: { ',': 'next', ']': 'after' },
}

/** For each state, a short text that leads there, so that the parser can say what is wrong with what follows. */
const contexts: Readonly<Record<State, string>> = { start: '', first: '[', between: '[0 ', next: '[0,', after: '[]', values: '' }

function reasonOf(text: string): { reason: string; line: number; column: number } {
  const parsed = tryJson(text)
  // The scan is stricter nowhere, so this is for a text that the parser takes after all.
  return isNotJson(parsed) ? parsed : { reason: 'unexpected text', line: 1, column: 1 }
}

/** Counts the lines and columns of places in an input, which are asked for in their order. */
class LineCounter {
  /** the line of the place that was asked for last, from 1 */
  line = 1
  /** characters (UTF-16 units) of that line before `#lineStart` */
  before = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** where that line begins in the bytes, or the bytes in it */
  #lineStart = 0
  #nextBreak = 0

  /** Continues in other bytes, at the place where it paused. */
  begin(bytes: Buffer): void {
    this.#bytes = bytes
    this.#lineStart = 0
    this.#nextBreak = endOfLine(bytes, 0)
  }

  at(place: number): number {
    while (this.#nextBreak < place) {
      this.line += 1
      this.before = 0
      this.#lineStart = this.#nextBreak + 1
      this.#nextBreak = endOfLine(this.#bytes, this.#lineStart)
    }
    return this.line
  }

  /** How many characters of its line are before a place. */
  columnAt(place: number): number {
    this.at(place)
    let count = this.before
    for (let at = this.#lineStart; at < place; at += 1) {
      const byte = this.#bytes[at] ?? 0
      if ((byte & 0xc0) !== 0x80) count += byte < 0xf0 ? 1 : 2
    }
    return count
  }

  pause(place: number): void {
    this.before = this.columnAt(place)
    this.#lineStart = place
  }
}

/** Whether the values of an input that begins with "{" span lines, or share one. An input whose first line is broken is NDJSON. */
function spansLines({ bytes, start, isLast }: Head): boolean {
  const end = endOfLine(bytes, start)
  const line = new JsonScan()
  const result = line.scan(bytes, start, end)
  // Anything but another value only breaks the line.
  if (result === 'complete') return /^[ \t\r]*[{[]/.test(bytes.toString('latin1', start + line.length, end)) || spansLinesLater(bytes, end)
  if (result === 'broken' || end === bytes.length) return false
  const value = new JsonScan()
  const found = value.scan(bytes, start, bytes.length)
  if (found === 'complete' || (found === 'cut' && !isLast)) return true
  const nextRecord = bytes.indexOf('\n{', start)
  return value.length > end - start && (nextRecord === -1 || nextRecord >= start + value.length)
}

/** Whether a value begins in one line and continues in the next, after lines that hold one each. */
function spansLinesLater(bytes: Buffer, from: number): boolean {
  for (let start = from + 1; start < bytes.length; ) {
    const end = endOfLine(bytes, start)
    const isBegun = bytes[start] === brace && end < bytes.length && new JsonScan().scan(bytes, start, end) === 'cut'
    if (isBegun && end + 1 < bytes.length && bytes[end + 1] !== brace) return true
    start = end + 1
  }
  return false
}

/** bytes of a character in UTF-8 at most */
const maxCharacterBytes = 4

const [bracket, brace, closingBrace] = [0x5b, 0x7b, 0x7d]
