import { isUtf8 } from 'node:buffer'
import { describeUnexpected, parseJson, TokenType, tokenTypes } from '../../plant/exact-json.js'
import { must } from '../../platform/values.js'
import { type Chunk, maxRecordBytes, notUtf8, type Reason, type RecordRange, reason, recordTooLarge } from './chunk.js'
import { endOfLine, type Format, type FormatReader, type Head, type ReaderState, skipSpace } from './format.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** A JSON array of plants, or concatenated plants. A syntax error ends the input. */
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
  /** of the first byte of the next chunk */
  #place: Place = { line: 1, column: 1 }
  /** of the current value, and its end */
  #line = 1
  #lineEnd = 0

  constructor(mapper: RecordMapper) {
    this.#mapper = mapper
  }

  read(chunk: Chunk, isLast: boolean): number {
    const { bytes } = chunk
    const objectsEnd = bytes.lastIndexOf(closingBrace) + 1
    // V8 discards compiled code that reads beyond the end of an array.
    const fastEnd = this.#mapper.isIdentity && isUtf8(bytes.subarray(0, objectsEnd)) ? objectsEnd : 0
    if (this.#state !== 'values') chunk.firstElement = this.#elements
    this.#line = this.#place.line
    this.#lineEnd = endOfLine(bytes, 0)
    let at = skipSpace(bytes, 0)
    for (let start = -1; start !== at && at < bytes.length && !chunk.isFull; ) {
      start = at
      at = this.#step(chunk, at, isLast, fastEnd)
      if (at > start) at = skipSpace(bytes, at)
    }
    const isWhole = this.#state === 'start' || this.#state === 'values' || this.#state === 'after'
    if (isLast && !isWhole && at === bytes.length && !chunk.isFull) this.#fail(chunk, at, 'unexpected end of input')
    this.#place = this.#placeOf(bytes, at)
    return at
  }

  /** Returns the end of the token or value, or its start if it is incomplete or ends the input. */
  #step(chunk: Chunk, start: number, isLast: boolean, fastEnd: number): number {
    const { bytes } = chunk
    const byte = must(bytes[start])
    if (this.#state === 'start' && byte !== bracket) this.#state = 'values'
    const state = transitions[this.#state]?.[String.fromCharCode(byte)]
    if (state !== undefined) {
      this.#state = state
      return start + 1
    }
    const mayBeValue = this.#state !== 'between' && this.#state !== 'after' && startsValue.has(tokenTypes[byte])
    if (!mayBeValue) return this.#unexpected(chunk, start, isLast)
    for (; this.#lineEnd < start; this.#lineEnd = endOfLine(bytes, this.#lineEnd + 1)) this.#line += 1
    let end = start < fastEnd ? readPlantObject(chunk, start) : unread
    if (end === unread) end = this.#value(chunk, start, isLast)
    else chunk.setRange(start, end, this.#line)
    if (end === start) return start
    this.#elements += 1
    if (this.#state !== 'values') this.#state = 'between'
    return end
  }

  #value(chunk: Chunk, start: number, isLast: boolean): number {
    const { bytes } = chunk
    const found = endOfValue(bytes, start, bytes.length)
    const mayContinue = found === cut || (found === bytes.length && tokenTypes[must(bytes[start])] === TokenType.scalar)
    const isTooLong = mayContinue && bytes.length - start > maxUnclosed
    if (mayContinue && !isLast && !isTooLong) return start
    const end = found === cut ? bytes.length : found
    const text = bytes.toString('utf8', start, isTooLong ? start + maxRecordBytes : end)
    const range = { start, end, line: this.#line }
    // U+FFFD replaces invalid UTF-8, but can also be part of a text.
    const isNotUtf8 = text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))
    if (isNotUtf8) chunk.addInvalid(notUtf8, range)
    return isNotUtf8 || this.#add(chunk, range, text, isTooLong) ? end : start
  }

  /** Returns false for a value that ends the input. */
  #add(chunk: Chunk, range: RecordRange, text: string, isCut: boolean): boolean {
    const { start, end, line } = range
    const parsed = parseJson(text, { idKey: this.#mapper.idKey })
    if ('reason' in parsed) {
      const column = parsed.column + (parsed.line === 1 ? this.#placeOf(chunk.bytes, start).column - 1 : 0)
      const isOpen = isCut && parsed.reason === 'unexpected end of input'
      const why = notJson(parsed.reason, { line: line + parsed.line - 1, column })
      this.#end(chunk, start, isOpen ? recordTooLarge : why)
      return false
    }
    if (end - start > maxRecordBytes) chunk.addInvalid(recordTooLarge, { ...range, end: start })
    else this.#mapper.add(parsed.value, range, chunk)
    return true
  }

  #unexpected(chunk: Chunk, at: number, isLast: boolean): number {
    if (!isLast && at + maxCharacterBytes > chunk.bytes.length) return at
    const text = chunk.bytes.toString('utf8', at, at + maxCharacterBytes)
    const isSecond = this.#state === 'after' && /^["[{\d]/.test(text)
    return this.#fail(chunk, at, isSecond ? 'more than one JSON value, the second' : describeUnexpected(text, 0, false))
  }

  #fail(chunk: Chunk, at: number, what: string): number {
    return this.#end(chunk, at, notJson(what, this.#placeOf(chunk.bytes, at)))
  }

  #end(chunk: Chunk, at: number, why: Reason): number {
    const { line } = this.#placeOf(chunk.bytes, at)
    chunk.syntaxError = { start: at, end: at, line, row: chunk.rows.length, ...why }
    return at
  }

  #placeOf(bytes: Buffer, at: number): Place {
    const { line, column } = this.#place
    const lines = bytes.toString('utf8', 0, at).split('\n')
    const { length } = lines.at(-1) ?? ''
    return { line: line + lines.length - 1, column: lines.length === 1 ? column + length : length + 1 }
  }

  save(): ReaderState {
    return { state: this.#state, elements: this.#elements, ...this.#place }
  }

  restore(saved: ReaderState): void {
    // as `save` returns it
    const { state, elements, line, column } = saved as { state: State; elements: number } & Place
    this.#state = state
    this.#elements = elements
    this.#place = { line, column }
  }
}

/** both from 1, the column in UTF-16 units */
type Place = Record<'line' | 'column', number>

function notJson(what: string, { line, column }: Place): Reason {
  return reason('malformed', `Not JSON: ${what} at line ${line}, column ${column}`)
}

/**
 * Counts brackets and quotes only: the parser checks the rest. A line break in a string ends the value, because most
 * likely the closing quote is missing. Returns `cut` if the value continues after `until`.
 */
export function endOfValue(bytes: Buffer, start: number, until: number): number {
  let depth = 0
  for (let at = start; at < until; at += 1) {
    switch (tokenTypes[must(bytes[at])]) {
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
  while (at < until && tokenTypes[must(bytes[at])] === TokenType.scalar) at += 1
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
  if (end !== cut && end <= lineEnd) return /^[ \t\r]*[{[]/.test(bytes.toString('latin1', end, lineEnd))
  if (lineEnd === bytes.length) return false
  const nextRecord = bytes.indexOf('\n{', start)
  return end === cut ? nextRecord === -1 : bytes[end - 1] !== lineFeed && (nextRecord === -1 || nextRecord >= end)
}

const maxCharacterBytes = 4

/** A value without an end in so many bytes ends the input. */
const maxUnclosed = 67_108_864

const startsValue = new Set<number | undefined>([TokenType.brace, TokenType.bracket, TokenType.quote, TokenType.scalar])

const [lineFeed, quote, bracket, backslash, brace, closingBrace] = [0x0a, 0x22, 0x5b, 0x5c, 0x7b, 0x7d]
