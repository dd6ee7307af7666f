import { isUtf8 } from 'node:buffer'
import { describeUnexpected, parseJson } from '../../plant/exact-json.js'
import { TokenType, tokenTypes } from '../../plant/json-grammar.js'
import { type Chunk, maxRecordBytes, notUtf8, type Reason, type RecordRange, reason, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, isSpace, type ReaderState } from './format.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** A JSON array of plants, or concatenated plants. A syntax error, or a value that is too large, ends the input. */
export const json: Format = {
  detect: (head) => head.bytes[head.start] === bracket || (head.bytes[head.start] === brace && spansLines(head)),
  read: (mapper) => new JsonReader(mapper),
}

/** `start` is before the first token; `values` are concatenated; the others are in an array. */
type State = 'start' | 'first' | 'between' | 'next' | 'after' | 'values'

const transitions: Readonly<Partial<Record<State, Readonly<Record<string, State>>>>> = {
  start: { '[': 'first' },
  first: { ']': 'after' },
  between: { ',': 'next', ']': 'after' },
}

class JsonReader implements FormatReader {
  readonly #mapper: RecordMapper
  #state: State = 'start'
  #elements = 0
  #bytes: Buffer = Buffer.alloc(0)
  #line = 1
  /** the UTF-16 units of that line before the chunk, its start in the chunk, and its end */
  #before = 0
  #lineStart = 0
  #lineEnd = 0

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    this.#bytes = bytes
    this.#lineStart = 0
    this.#lineEnd = endOfLine(bytes, 0)
    const objectsEnd = bytes.lastIndexOf(closingBrace) + 1
    // V8 discards compiled code that reads beyond the end of an array.
    const fastEnd = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, objectsEnd)) ? objectsEnd : 0
    if (this.#state !== 'values') chunk.firstElement = this.#elements
    let at = 0
    for (let next = -1; next !== at && !chunk.isFull; ) {
      next = at
      while (isSpace(bytes[at])) at += 1
      if (at < bytes.length) at = this.#step(chunk, at, isLast, fastEnd)
    }
    const isWhole = this.#state === 'start' || this.#state === 'values' || this.#state === 'after'
    if (isLast && !isWhole && at === bytes.length && !chunk.isFull) this.#fail(chunk, at, 'unexpected end of input')
    this.#before = this.#columnOf(at)
    return at
  }

  /** Returns the end of the token or value, or its start if it is incomplete or ends the input. */
  #step(chunk: Chunk, at: number, isLast: boolean, fastEnd: number): number {
    const { bytes } = chunk
    const byte = bytes[at] ?? 0
    if (this.#state === 'start' && byte !== bracket) this.#state = 'values'
    const next = transitions[this.#state]?.[String.fromCharCode(byte)]
    if (next !== undefined) {
      this.#state = next
      return at + 1
    }
    const mayBeValue = this.#state !== 'between' && this.#state !== 'after'
    if (mayBeValue && startsValue.has(tokenTypes[byte])) return this.#value(chunk, at, isLast, fastEnd)
    if (!isLast && at + maxCharacterBytes > bytes.length) return at
    const character = bytes.toString('utf8', at, at + maxCharacterBytes)
    const isSecond = this.#state === 'after' && /^["[{\d]/.test(character)
    return this.#fail(chunk, at, isSecond ? 'more than one JSON value, the second' : describeUnexpected(character, 0, false))
  }

  #value(chunk: Chunk, at: number, isLast: boolean, fastEnd: number): number {
    const { bytes } = chunk
    const line = this.#lineOf(at)
    let end = at < fastEnd ? readPlantObject(chunk, at) : unread
    if (end !== unread) chunk.setRange(at, end, line)
    else {
      const until = Math.min(bytes.length, at + maxRecordBytes + 1)
      end = endOfValue(bytes, at, until)
      const mayContinue = end === cut || (end === until && tokenTypes[bytes[at] ?? 0] === TokenType.scalar)
      if (mayContinue && !isLast && until - at <= maxRecordBytes) return at
      if (end === cut) end = until
      if (!this.#add(chunk, { start: at, end, line })) return at
    }
    this.#elements += 1
    if (this.#state !== 'values') this.#state = 'between'
    return end
  }

  /** Returns false for a value that ends the input. */
  #add(chunk: Chunk, range: RecordRange): boolean {
    const { start, end, line } = range
    const text = chunk.bytes.toString('utf8', start, end)
    const parsed = parseJson(text, { idKey: this.#mapper.idKey })
    const isInvalid = 'reason' in parsed
    // U+FFFD replaces invalid UTF-8, but can also be part of a text.
    if (text.includes('\ufffd') && !isUtf8(chunk.bytes.subarray(start, end))) chunk.addInvalid(notUtf8, range)
    else if (end - start > maxRecordBytes && (!isInvalid || parsed.reason === 'unexpected end of input')) {
      chunk.syntaxError = { ...range, end: start, row: chunk.rows.length, ...recordTooLarge }
      return false
    } else if (isInvalid) {
      const column = parsed.column + (parsed.line === 1 ? this.#columnOf(start) : 0)
      chunk.syntaxError = { ...range, end: start, row: chunk.rows.length, ...notJson(parsed.reason, line + parsed.line - 1, column) }
      return false
    } else this.#mapper.add(parsed.value, range, chunk)
    return true
  }

  #fail(chunk: Chunk, at: number, what: string): number {
    const line = this.#lineOf(at)
    chunk.syntaxError = { start: at, end: at, line, row: chunk.rows.length, ...notJson(what, line, this.#columnOf(at) + 1) }
    return at
  }

  /** @param at not before that of the last call */
  #lineOf(at: number): number {
    while (this.#lineEnd < at) {
      this.#line += 1
      this.#before = 0
      this.#lineStart = this.#lineEnd + 1
      this.#lineEnd = endOfLine(this.#bytes, this.#lineStart)
    }
    return this.#line
  }

  /** in UTF-16 units, from 0 */
  #columnOf(at: number): number {
    this.#lineOf(at)
    return this.#before + this.#bytes.toString('utf8', this.#lineStart, at).length
  }

  save(): ReaderState {
    return { state: this.#state, elements: this.#elements, line: this.#line, before: this.#before }
  }

  restore(saved: ReaderState): void {
    const { state, elements, line, before } = saved as { state: State; elements: number; line: number; before: number } // as `save` returns it
    this.#state = state
    this.#elements = elements
    this.#line = line
    this.#before = before
  }
}

function notJson(what: string, line: number, column: number): Reason {
  return reason('malformed', `Not JSON: ${what} at line ${line}, column ${column}`)
}

/**
 * Counts brackets and quotes only: the parser checks the rest. A line break in a string ends the value, because most
 * likely the closing quote is missing. Returns `cut` if the value continues after `until`.
 */
export function endOfValue(bytes: Buffer, start: number, until: number): number {
  let depth = 0
  for (let at = start; at < until; at += 1) {
    switch (tokenTypes[bytes[at] ?? 0]) {
      case TokenType.brace:
      case TokenType.bracket:
        depth += 1
        break
      case TokenType.braceEnd:
      case TokenType.bracketEnd:
        depth -= 1
        break
      case TokenType.scalar:
        at = endOfScalar(bytes, at, until) - 1
        break
      case TokenType.quote:
        at = endOfString(bytes, at + 1, until)
        if (at >= until) return cut
        if (bytes[at] === lineFeed) return at + 1
    }
    if (depth === 0) return at + 1
  }
  return cut
}

export const cut = -1

function endOfScalar(bytes: Buffer, start: number, until: number): number {
  let at = start
  while (at < until && tokenTypes[bytes[at] ?? 0] === TokenType.scalar) at += 1
  return at
}

/** The closing quote or a line break; `until` or more without both. */
function endOfString(bytes: Buffer, start: number, until: number): number {
  for (let at = start; at < until; at += 1) {
    const byte = bytes[at]
    if (byte === quote || byte === lineFeed) return at
    if (byte === backslash && bytes[at + 1] !== lineFeed) at += 1
  }
  return until
}

/** An input with a syntax error in its first line is NDJSON. */
function spansLines({ bytes, start }: Head): boolean {
  const lineEnd = endOfLine(bytes, start)
  const end = endOfValue(bytes, start, bytes.length)
  // Anything except another value makes only this line invalid.
  if (end !== cut && end <= lineEnd) return /^[ \t\r]*[{[]/.test(bytes.toString('latin1', end, lineEnd)) || spansLinesLater(bytes, lineEnd)
  if (lineEnd === bytes.length) return false
  const nextRecord = bytes.indexOf('\n{', start)
  return end === cut ? nextRecord === -1 : bytes[end - 1] !== lineFeed && (nextRecord === -1 || nextRecord >= end)
}

/** After lines with one value each, as in the rejects file of an array. */
function spansLinesLater(bytes: Buffer, from: number): boolean {
  for (let start = from + 1; start < bytes.length; ) {
    const end = endOfLine(bytes, start)
    const isOpen = bytes[start] === brace && end < bytes.length && endOfValue(bytes, start, end) === cut
    if (isOpen && end + 1 < bytes.length && bytes[end + 1] !== brace) return true
    start = end + 1
  }
  return false
}

const maxCharacterBytes = 4

const startsValue = new Set<number | undefined>([TokenType.brace, TokenType.bracket, TokenType.quote, TokenType.scalar])

const [lineFeed, quote, bracket, backslash, brace, closingBrace] = [0x0a, 0x22, 0x5b, 0x5c, 0x7b, 0x7d]
