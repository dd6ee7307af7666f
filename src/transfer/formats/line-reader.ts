import { isUtf8 } from 'node:buffer'
import { type Chunk, maxRecordBytes, notUtf8, type Reason, type RecordRange, reason, recordTooLarge } from './chunk.js'
import type { FormatReader, ReaderState } from './format.js'
import { unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** Reads records that end with a line break. */
export abstract class LineReader implements FormatReader {
  protected readonly mapper: RecordMapper
  #line = 1
  /** inside a record that is too long for a chunk */
  #isSkipping = false

  constructor(mapper: RecordMapper) {
    this.mapper = mapper
  }

  /**
   * @param start the offset of the first record
   * @param delimiter of a table, whose quoted cells can contain line breaks
   */
  read(chunk: Chunk, isLast: boolean, start = 0, delimiter?: string): number {
    const { bytes } = chunk
    const rows = new Rows(bytes, isLast, delimiter)
    const textEnd = isLast ? bytes.length : bytes.lastIndexOf(lineFeed) + 1
    // Up to the end of the last line: V8 discards compiled code that reads beyond the end of an array.
    const fastEnd = this.mapper.isIdentity && isUtf8(bytes.subarray(0, textEnd)) ? textEnd : 0
    let at = start
    while (at < bytes.length && !chunk.isFull) {
      const next = at < fastEnd && !this.#isSkipping ? this.addFast(chunk, at, this.#line) : unread
      if (next === unread) {
        const end = this.#addRow(rows, chunk, at)
        if (end === undefined) break
        at = end
      } else {
        this.#line += 1
        at = next
      }
    }
    return at
  }

  /** Returns the end of the row; undefined if it is incomplete. */
  #addRow(rows: Rows, chunk: Chunk, start: number): number | undefined {
    const row = this.#isSkipping ? rows.rest(start) : rows.find(start)
    if (!row) return undefined
    const { end, text, why } = row
    const range = { start, end, line: this.#line }
    if (this.#isSkipping || why) chunk.addInvalid(why, range)
    else if (text !== '') this.add(text, chunk, range)
    this.#isSkipping = row.isCut
    this.countLines(chunk.bytes, start, end)
    return end
  }

  protected countLines(bytes: Buffer, start: number, end: number): void {
    for (let at = bytes.indexOf(lineFeed, start); at !== -1 && at < end; at = bytes.indexOf(lineFeed, at + 1)) this.#line += 1
  }

  save(): ReaderState {
    return { line: this.#line, isSkipping: this.#isSkipping }
  }

  restore({ line, isSkipping }: ReaderState): void {
    this.#line = Number(line)
    this.#isSkipping = isSkipping === true
  }

  /** Adds the record of a UTF-8 line in its usual form, and returns the start of the next line; `unread` for any other line. */
  protected abstract addFast(chunk: Chunk, start: number, line: number): number

  /** Adds the record of a line, which is not empty. */
  protected abstract add(text: string, chunk: Chunk, range: RecordRange): void
}

interface TextRow {
  /** the offset after the line break */
  end: number
  /** without the line break */
  text: string
  /** why the row is invalid */
  why: Reason | undefined
  /** whether the row continues after `end`, because it is too long for a chunk */
  isCut: boolean
}

/**
 * Finds lines in a range of bytes; with a delimiter, the rows of CSV (RFC 4180). Only a quote at the start of a cell quotes the cell. An
 * invalid row ends with its first line, because a superfluous or missing quote would otherwise include all rows that follow.
 */
export class Rows {
  readonly #bytes: Buffer
  readonly #isLast: boolean
  readonly #delimiter: number | undefined
  /** the offsets of the next line break and the next quote; Infinity if there is none */
  #nextBreak = -1
  #nextQuote = -1

  constructor(bytes: Buffer, isLast: boolean, delimiter: string | undefined) {
    this.#bytes = bytes
    this.#isLast = isLast
    this.#delimiter = delimiter?.charCodeAt(0)
    if (delimiter === undefined) this.#nextQuote = Infinity
  }

  /** Finds the row that begins at an offset. Returns undefined if it is incomplete. */
  find(start: number): TextRow | undefined {
    this.#look(start)
    const until = Math.min(this.#bytes.length, start + maxRecordBytes + 2)
    const isTooLong = until - start > maxRecordBytes + 1
    const isEnd = this.#isLast && until === this.#bytes.length
    const lineEnd = this.#nextBreak + 1
    const isQuoted = this.#nextQuote < Math.min(this.#nextBreak, until)
    const found = isQuoted ? this.#scanQuoted(start, until) : lineEnd <= until ? lineEnd : undefined
    if (typeof found === 'number') return this.#row(start, found)
    const why = found === openQuote && !isTooLong && !isEnd ? undefined : found // the quote may be closed in the next chunk
    if (why && lineEnd <= until) return { end: lineEnd, text: '', why, isCut: false }
    if (isTooLong) return { end: until, text: '', why: recordTooLarge, isCut: true }
    if (!isEnd) return undefined
    return why ? { end: until, text: '', why, isCut: false } : this.#row(start, until)
  }

  /** The rest of a row that is too long for a chunk, up to the end of its line. */
  rest(start: number): TextRow {
    this.#look(start)
    const { length } = this.#bytes
    return { end: Math.min(this.#nextBreak + 1, length), text: '', why: undefined, isCut: this.#nextBreak >= length }
  }

  #look(start: number): void {
    const next = (byte: number) => {
      const found = this.#bytes.indexOf(byte, start)
      return found === -1 ? Infinity : found
    }
    if (this.#nextBreak < start) this.#nextBreak = next(lineFeed)
    if (this.#nextQuote < start) this.#nextQuote = next(quote)
  }

  #row(start: number, end: number): TextRow {
    const bytes = this.#bytes
    const feed = bytes[end - 1] === lineFeed ? end - 1 : end
    const textEnd = feed > start && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
    const text = bytes.subarray(start, textEnd)
    const why = text.length > maxRecordBytes ? recordTooLarge : isUtf8(text) ? undefined : notUtf8
    return { end, text: why ? '' : text.toString(), why, isCut: false }
  }

  /** Returns the end of a row with quotes, or why it is invalid; undefined if it is incomplete. */
  #scanQuoted(start: number, until: number): number | Reason | undefined {
    const bytes = this.#bytes
    for (let at = start; at < until; at += 1) {
      at = bytes[at] === quote ? endOfQuoted(bytes, at, until) : this.#endOfText(at, until)
      if (at === notClosed) return openQuote
      if (at >= until) return undefined
      if (bytes[at] === lineFeed) return at + 1
      if (bytes[at] !== this.#delimiter) return strayQuote
    }
    return undefined
  }

  #endOfText(start: number, until: number): number {
    let at = start
    while (at < until && this.#bytes[at] !== this.#delimiter && this.#bytes[at] !== lineFeed && this.#bytes[at] !== quote) at += 1
    return at
  }
}

const openQuote = reason('malformed', 'Not CSV: a quote is not closed')
const strayQuote = reason('malformed', 'Not CSV: a stray quote. Write a quote in a cell as "", and the cell in quotes')

/**
 * The end of a quoted cell, past the CR of a CRLF; `notClosed` without a closing quote. A quote at the end of the range counts as the
 * closing one, although the next byte could double it.
 */
function endOfQuoted(bytes: Buffer, start: number, until: number): number {
  for (let at = start + 1; ; at += 2) {
    at = bytes.indexOf(quote, at)
    if (at === -1 || at >= until) return notClosed
    if (at + 1 < until && bytes[at + 1] === quote) continue
    const isLineEnd = bytes[at + 1] === carriageReturn && (at + 2 >= until || bytes[at + 2] === lineFeed)
    return isLineEnd ? at + 2 : at + 1
  }
}

const notClosed = -1
const lineFeed = 0x0a
const carriageReturn = 0x0d
const quote = 0x22
