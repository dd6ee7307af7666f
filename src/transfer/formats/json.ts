import { isUtf8 } from 'node:buffer'
import { describeUnexpected, parseJson } from '../../plant/json.js'
import { type Chunk, maxRecordBytes, notUtf8, type RecordRange, reason, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, isSpace, type ReaderState } from './format.js'
import { JsonScan } from './json-scan.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** A JSON array of plants, or concatenated plants with or without white space between them. A syntax error ends the input. */
export const json: Format = {
  detect: (head) => head.bytes[head.start] === bracket || (head.bytes[head.start] === brace && spansLines(head)),
  read: (mapper) => new JsonReader(mapper),
}

class JsonReader implements FormatReader {
  readonly #mapper: RecordMapper
  readonly #lines = new LineCounter()
  #state: State = 'start'
  #skipped: JsonScan | undefined
  #elements = 0

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const objectsEnd = bytes.lastIndexOf(closingBrace) + 1
    const fastEnd = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, objectsEnd)) ? objectsEnd : 0
    const reading: ChunkContext = { chunk, isLast, fastEnd }
    this.#lines.begin(bytes)
    if (this.#state !== 'values') chunk.firstElement = this.#elements + (this.#skipped ? 1 : 0)
    let at = 0
    for (let next = -1; at < bytes.length && next !== at && !chunk.isFull; ) {
      next = at
      at = this.#step(reading, at)
    }
    const isWhole = !this.#skipped && (this.#state === 'start' || this.#state === 'values' || this.#state === 'after')
    if (isLast && !isWhole && at === bytes.length && !chunk.isFull) this.#fail(reading, at)
    this.#lines.pause(at)
    return at
  }

  save(): ReaderState {
    const { line, before } = this.#lines
    const state = { line, before, state: this.#state, elements: this.#elements }
    return this.#skipped ? { ...state, scan: this.#skipped.save() } : state
  }

  restore(saved: ReaderState): void {
    const { line, before, state, elements, scan } = saved as { line: number; before: number; state: State; elements: number; scan?: string } // as `save` returns it
    this.#lines.line = line
    this.#lines.before = before
    this.#state = state
    this.#elements = elements
    this.#skipped = undefined
    if (scan !== undefined) this.#skip(JsonScan.restore(scan))
  }

  #skip(scan: JsonScan): void {
    scan.maxDepth = 1000 // `save` returns each open bracket
    this.#skipped = scan
  }

  /** Returns the end of the next token or value, or its start if it is incomplete. */
  #step(reading: ChunkContext, from: number): number {
    const { bytes } = reading.chunk
    if (this.#skipped) return this.#rest(this.#skipped, reading, from)
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
    const { chunk, isLast, fastEnd } = reading
    const { bytes } = chunk
    const end = at < fastEnd ? readPlantObject(chunk, at) : unread
    if (end !== unread) {
      chunk.setRange(at, end, this.#lines.at(at))
      return this.#leave(end)
    }
    const until = Math.min(bytes.length, at + maxRecordBytes + 1)
    const isEnd = isLast && until === bytes.length
    const scan = new JsonScan()
    const result = scan.scan(bytes, at, until)
    const record = { start: at, end: scan.end, line: this.#lines.at(at) }
    const isTooLong = scan.end - at > maxRecordBytes && result !== 'broken'
    if (isTooLong) chunk.addInvalid(recordTooLarge, record)
    if (result === 'complete' || (isEnd && scan.isCompleteAtEnd)) return isTooLong ? this.#leave(scan.end) : this.#add(chunk, record)
    if (result === 'broken' || (isEnd && !isTooLong)) return this.#fail(reading, at, scan.end)
    if (!isTooLong) return at
    this.#skip(scan)
    return until
  }

  #add(chunk: Chunk, record: RecordRange): number {
    const { start, end, line } = record
    const text = chunk.bytes.toString('utf8', start, end)
    // U+FFFD replaces invalid UTF-8, but can also be part of a text.
    if (text.includes('\ufffd') && !isUtf8(chunk.bytes.subarray(start, end))) chunk.addInvalid(notUtf8, record)
    else {
      const parsed = parseJson(text, { idKey: this.#mapper.idKey })
      if ('reason' in parsed) {
        const before = parsed.line === 1 ? this.#lines.columnAt(start) : 0
        return endInput(chunk, record, `${parsed.reason} at line ${line + parsed.line - 1}, column ${before + parsed.column}`)
      }
      this.#mapper.add(parsed.value, record, chunk)
    }
    return this.#leave(end)
  }

  #rest(scan: JsonScan, reading: ChunkContext, at: number): number {
    const { chunk, isLast } = reading
    const result = scan.scan(chunk.bytes, at, chunk.bytes.length)
    if (scan.end > at) chunk.addInvalid(undefined, { start: at, end: scan.end, line: this.#lines.at(at) })
    if (result === 'complete' || (isLast && scan.isCompleteAtEnd)) return this.#leave(scan.end)
    if (result === 'cut' && !isLast) return scan.end
    return this.#fail(reading, scan.end, scan.end, scan.isTooDeep ? 'the value is nested deeper than 1000 levels' : undefined)
  }

  #leave(end: number): number {
    this.#skipped = undefined
    this.#elements += 1
    if (this.#state !== 'values') this.#state = 'between'
    return end
  }

  /** Ends the input with a syntax error, if all bytes of the invalid character are in the chunk. */
  #fail({ chunk, isLast }: ChunkContext, start: number, errorAt = start, given?: string): number {
    const { bytes } = chunk
    if (!isLast && errorAt + maxCharacterBytes > bytes.length) return start
    const record = { start, end: start, line: this.#lines.at(start) }
    const [character = ''] = bytes.toString('utf8', errorAt, errorAt + maxCharacterBytes)
    const isSecond = this.#state === 'after' && /["[{\d]/.test(character)
    const what = given ?? (isSecond ? 'more than one JSON value, the second' : describeUnexpected(character, 0, false))
    return endInput(chunk, record, `${what} at line ${this.#lines.at(errorAt)}, column ${this.#lines.columnAt(errorAt) + 1}`)
  }
}

function endInput(chunk: Chunk, { start, line }: RecordRange, what: string): number {
  chunk.syntaxError = { start, end: start, line, row: chunk.rows.length, why: reason('malformed', `Not JSON: ${what}`) }
  return start
}

/** `fastEnd`: up to where `readPlantObject` may read the chunk. V8 discards compiled code that reads beyond the end of an array. */
type ChunkContext = { chunk: Chunk; isLast: boolean; fastEnd: number }

/** `start` is before the first token; `values` are concatenated; the others are in an array. */
type State = 'start' | 'first' | 'between' | 'next' | 'after' | 'values'

const transitions: Readonly<Partial<Record<State, Readonly<Record<string, State>>>>> = {
  start: { '[': 'first' },
  first: { ']': 'after' },
  between: { ',': 'next', ']': 'after' },
}

/** Converts offsets, in ascending order, to lines and columns of the input. */
class LineCounter {
  line = 1
  /** UTF-16 units of that line before `#lineStart` */
  before = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** the start of that line in the bytes, or of the bytes in that line */
  #lineStart = 0
  #nextBreak = 0

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

/** Whether the values span lines or share one. An input with a syntax error in its first line is NDJSON. */
function spansLines({ bytes, start, isLast }: Head): boolean {
  const end = endOfLine(bytes, start)
  const line = new JsonScan()
  const result = line.scan(bytes, start, end)
  // Anything except another value makes only this line invalid.
  if (result === 'complete') return /^[ \t\r]*[{[]/.test(bytes.toString('latin1', line.end, end)) || spansLinesLater(bytes, end)
  if (result === 'broken' || end === bytes.length) return false
  const value = new JsonScan()
  const found = value.scan(bytes, start, bytes.length)
  if (found === 'complete' || (found === 'cut' && !isLast)) return true
  const nextRecord = bytes.indexOf('\n{', start)
  return value.end > end && (nextRecord === -1 || nextRecord >= value.end)
}

/** Whether a value spans two lines, after lines with one value each. The rejects file of an array can have both. */
function spansLinesLater(bytes: Buffer, from: number): boolean {
  for (let start = from + 1; start < bytes.length; ) {
    const end = endOfLine(bytes, start)
    const isOpen = bytes[start] === brace && end < bytes.length && new JsonScan().scan(bytes, start, end) === 'cut'
    if (isOpen && end + 1 < bytes.length && bytes[end + 1] !== brace) return true
    start = end + 1
  }
  return false
}

const maxCharacterBytes = 4

const [bracket, brace, closingBrace] = [0x5b, 0x7b, 0x7d]
