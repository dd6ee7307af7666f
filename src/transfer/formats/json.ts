import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, notJson, notUtf8, type RecordRange, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, isSpace, type ReaderState } from './format.js'
import { JsonScan } from './json-scan.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** A JSON array of plants, or concatenated plants with or without white space between them. A syntax error ends the input. */
export const json: Format = {
  detect: (head) => head.bytes[head.start] === bracket || (head.bytes[head.start] === brace && spansLines(head)),
  read: (mapper) => new JsonReader(mapper),
  write: { record: 'json', head: '[\n', between: ',\n', foot: ']\n' },
}

class JsonReader implements FormatReader {
  readonly #mapper: RecordMapper
  readonly #lines = new LineCounter()
  #state: State = 'start'
  /** the scan of a value that continues in the next chunk */
  #scan: JsonScan | undefined
  /** whether that value is too long for a chunk, and is skipped in parts */
  #isSkipping = false
  /** the number of elements of the array before the current value */
  #elements = 0

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const isFast = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, bytes.lastIndexOf(closingBrace) + 1))
    const reading: ChunkContext = { chunk, isLast, isFast }
    this.#lines.begin(bytes)
    if (this.#state !== 'values') chunk.firstElement = this.#elements + (this.#isSkipping ? 1 : 0)
    let at = 0
    for (let next = -1; at < bytes.length && next !== at && !chunk.isFull; ) {
      next = at
      at = this.#step(reading, at)
    }
    const isWhole = !this.#isSkipping && (this.#state === 'start' || this.#state === 'values' || this.#state === 'after')
    if (isLast && !isWhole && at === bytes.length && !chunk.isFull) this.#fail(reading, at)
    this.#lines.pause(at)
    return at
  }

  save(): ReaderState {
    const { line, before } = this.#lines
    const state = { line, before, state: this.#state, elements: this.#elements }
    return this.#scan && this.#isSkipping ? { ...state, scan: this.#scan.save() } : state
  }

  restore(saved: ReaderState): void {
    const { line, before, state, elements, scan } = saved as { line: number; before: number; state: State; elements: number; scan?: string } // as `save` returns it
    this.#lines.line = line
    this.#lines.before = before
    this.#state = state
    this.#elements = elements
    this.#isSkipping = scan !== undefined
    this.#scan = scan === undefined ? undefined : JsonScan.restore(scan)
  }

  /** Reads the next token of the array, or the next value. Returns its end, or its start if it is incomplete. */
  #step(reading: ChunkContext, from: number): number {
    const { bytes } = reading.chunk
    if (this.#scan && this.#isSkipping) return this.#skip(this.#scan, reading, from)
    let at = from
    while (isSpace(bytes[at])) at += 1
    if (at === bytes.length) return at
    const byte = bytes[at]
    if (this.#state === 'start' && byte !== bracket) this.#state = 'values'
    const next = transitions[this.#state]?.[String.fromCharCode(byte ?? 0)]
    if (next === undefined) return this.#state === 'between' || this.#state === 'after' ? this.#fail(reading, at) : this.#value(reading, at)
    this.#state = next
    return at + 1
  }

  #value(reading: ChunkContext, at: number): number {
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
    if (result === 'complete' || (isEnd && this.#scan.isCompleteAtEnd)) return this.#add(reading, record)
    if (result === 'broken' || (isEnd && length <= maxRecordBytes)) return this.#fail(reading, at, length)
    if (length <= maxRecordBytes) return at
    this.#scan.discard()
    this.#isSkipping = true
    return until
  }

  #add(reading: ChunkContext, record: RecordRange): number {
    const { chunk } = reading
    const { start, end } = record
    if (end - start > maxRecordBytes) return this.#leave(end)
    const text = chunk.bytes.toString('utf8', start, end)
    // U+FFFD replaces invalid UTF-8, but can also be part of a text.
    if (text.includes('\ufffd') && !isUtf8(chunk.bytes.subarray(start, end))) {
      chunk.addInvalid(notUtf8, record)
      return this.#leave(end)
    }
    const parsed = parseJson(text, { idKey: this.#mapper.idKey })
    if (!('value' in parsed)) return this.#fail(reading, start, end - start)
    this.#mapper.add(parsed.value, record, chunk)
    return this.#leave(end)
  }

  #skip(scan: JsonScan, { chunk, isLast }: ChunkContext, at: number): number {
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

  /** Ends the input with the syntax error `length` bytes after `at`, if all bytes of the invalid character are in the chunk. */
  #fail({ chunk, isLast }: ChunkContext, at: number, length = 0): number {
    const { bytes } = chunk
    const errorAt = at + length
    if (!isLast && errorAt + maxCharacterBytes > bytes.length) return at
    this.#scan = undefined
    const [character = ''] = bytes.toString('utf8', errorAt, errorAt + maxCharacterBytes)
    const context = contexts[this.#state]
    // An open quote would be reported as an unexpected end of input, so it is closed.
    const text = context + bytes.toString('utf8', at, errorAt) + (character === '"' ? '""' : character)
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

/** `isFast`: whether `readPlantObject` may read the chunk. */
type ChunkContext = { chunk: Chunk; isLast: boolean; isFast: boolean }

/**
 * The position of a reader: before the first token; in an array before its first element, after an element, or after a comma; after the
 * array; among concatenated values.
 */
type State = 'start' | 'first' | 'between' | 'next' | 'after' | 'values'

/** The tokens of an array in each state, with the next state. */
const transitions: Readonly<Partial<Record<State, Readonly<Record<string, State>>>>> = {
  start: { '[': 'first' },
  first: { ']': 'after' },
  between: { ',': 'next', ']': 'after' },
}

/** A short text that puts the parser into each state, so that its error describes what follows. */
const contexts: Readonly<Record<State, string>> = { start: '', first: '[', between: '[0 ', next: '[0,', after: '[]', values: '' }

function reasonOf(text: string): { reason: string; line: number; column: number } {
  const parsed = parseJson(text)
  // The parser rejects everything that the scan rejects, so the fallback should never be used.
  return 'reason' in parsed ? parsed : { reason: 'unexpected text', line: 1, column: 1 }
}

/** Converts offsets, in ascending order, to lines and columns of the input. */
class LineCounter {
  /** the line of the last offset, from 1 */
  line = 1
  /** characters (UTF-16 units) of that line before `#lineStart` */
  before = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** the start of that line in the bytes, or of the bytes in that line */
  #lineStart = 0
  #nextBreak = 0

  /** Continues with the bytes of the next chunk, after `pause`. */
  begin(bytes: Buffer): void {
    this.#bytes = bytes
    this.#lineStart = 0
    this.#nextBreak = endOfLine(bytes, 0)
  }

  at(offset: number): number {
    while (this.#nextBreak < offset) {
      this.line += 1
      this.before = 0
      this.#lineStart = this.#nextBreak + 1
      this.#nextBreak = endOfLine(this.#bytes, this.#lineStart)
    }
    return this.line
  }

  /** The number of characters between the start of the line and an offset. */
  columnAt(offset: number): number {
    this.at(offset)
    let count = this.before
    for (let at = this.#lineStart; at < offset; at += 1) {
      const byte = this.#bytes[at] ?? 0
      if ((byte & 0xc0) !== 0x80) count += byte < 0xf0 ? 1 : 2
    }
    return count
  }

  pause(offset: number): void {
    this.before = this.columnAt(offset)
    this.#lineStart = offset
  }
}

/** Whether the values of an input that begins with "{" span lines or share one. An input with a syntax error in its first line is NDJSON. */
function spansLines({ bytes, start, isLast }: Head): boolean {
  const end = endOfLine(bytes, start)
  const line = new JsonScan()
  const result = line.scan(bytes, start, end)
  // Anything except another value makes only this line invalid.
  if (result === 'complete') return /^[ \t\r]*[{[]/.test(bytes.toString('latin1', start + line.length, end)) || spansLinesLater(bytes, end)
  if (result === 'broken' || end === bytes.length) return false
  const value = new JsonScan()
  const found = value.scan(bytes, start, bytes.length)
  if (found === 'complete' || (found === 'cut' && !isLast)) return true
  const nextRecord = bytes.indexOf('\n{', start)
  return value.length > end - start && (nextRecord === -1 || nextRecord >= start + value.length)
}

/** Whether a value spans two lines, after lines with one value each. */
function spansLinesLater(bytes: Buffer, from: number): boolean {
  for (let start = from + 1; start < bytes.length; ) {
    const end = endOfLine(bytes, start)
    const isOpen = bytes[start] === brace && end < bytes.length && new JsonScan().scan(bytes, start, end) === 'cut'
    if (isOpen && end + 1 < bytes.length && bytes[end + 1] !== brace) return true
    start = end + 1
  }
  return false
}

/** the maximum length of a UTF-8 character in bytes */
const maxCharacterBytes = 4

const [bracket, brace, closingBrace] = [0x5b, 0x7b, 0x7d]
