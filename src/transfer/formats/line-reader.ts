import { isUtf8 } from 'node:buffer'
import { type Chunk, maxRecordBytes, type RecordError, type RecordRange, recordTooLarge } from './chunk.js'
import type { FormatReader, ReaderState } from './format.js'
import { unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** Reads records that end with a line break. */
export abstract class LineReader implements FormatReader {
  protected readonly mapper: RecordMapper
  /** the delimiter of a table, whose quoted cells can contain line breaks */
  protected delimiter: string | undefined
  #line = 1
  /** inside a record that is too long for a chunk */
  #isSkipping = false

  constructor(mapper: RecordMapper) {
    this.mapper = mapper
  }

  /** @param start the offset of the first record */
  read(chunk: Chunk, isLast: boolean, start = 0): number {
    const { bytes } = chunk
    const rows = new Rows(bytes, isLast, this.delimiter)
    const textEnd = isLast ? bytes.length : bytes.lastIndexOf(lineFeed) + 1
    const isFast = this.mapper.isIdentity && isUtf8(bytes.subarray(0, textEnd))
    let at = start
    while (at < bytes.length && !chunk.isFull) {
      const next = isFast && !this.#isSkipping ? this.addFast(chunk, at, this.#line) : unread
      if (next !== unread) this.#line += 1
      else if (!this.#addRow(rows, chunk, at)) break
      at = next === unread ? rows.end : next
    }
    return at
  }

  /** Returns false if the row is incomplete. */
  #addRow(rows: Rows, chunk: Chunk, start: number): boolean {
    const isRest = this.#isSkipping
    if (isRest) rows.skip(start)
    else if (!rows.find(start)) return false
    const { end, textEnd, isCut } = rows
    this.#isSkipping = isCut
    const range = { start, end, line: this.#line }
    if (isRest) chunk.addInvalid(undefined, range)
    else if (textEnd > start) this.add(rows, chunk, range)
    this.countLines(chunk.bytes, start, end)
    return true
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

  protected abstract add(row: Rows, chunk: Chunk, range: RecordRange): void
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
  /** the end of the row that was found, with and without its line break */
  end = 0
  textEnd = 0
  error: RecordError | undefined
  /** whether the row continues after `end`, because it is too long for a chunk */
  isCut = false

  constructor(bytes: Buffer, isLast: boolean, delimiter: string | undefined) {
    this.#bytes = bytes
    this.#isLast = isLast
    this.#delimiter = delimiter?.charCodeAt(0)
    if (delimiter === undefined) this.#nextQuote = Infinity
  }

  /** Finds the row that begins at an offset. Returns false if it is incomplete. */
  find(start: number): boolean {
    this.#look(start)
    const until = Math.min(this.#bytes.length, start + maxRecordBytes + 2)
    const isTooLong = until - start > maxRecordBytes + 1
    const lineEnd = this.#nextBreak + 1
    const isQuoted = this.#nextQuote < Math.min(this.#nextBreak, until)
    const { end, fault } = isQuoted ? this.#scanQuoted(start, until) : { end: lineEnd <= until ? lineEnd : undefined, fault: undefined }
    if (end !== undefined) return this.#row(start, end)
    const isEnd = this.#isLast && until === this.#bytes.length
    const error = fault === openQuote && !isTooLong && !isEnd ? undefined : fault // the quote may be closed in the next chunk
    if (error && lineEnd <= until) return this.#invalid(lineEnd, error)
    if (isTooLong) return this.#invalid(until, recordTooLarge, true)
    if (!isEnd) return false
    return error ? this.#invalid(until, error) : this.#row(start, until)
  }

  /** Finds the end of the line at an offset, for the rest of a row that is too long for a chunk. */
  skip(start: number): void {
    this.#look(start)
    const { length } = this.#bytes
    this.#invalid(Math.min(this.#nextBreak + 1, length), undefined, this.#nextBreak >= length)
  }

  #look(start: number): void {
    const next = (byte: number) => {
      const found = this.#bytes.indexOf(byte, start)
      return found === -1 ? Infinity : found
    }
    if (this.#nextBreak < start) this.#nextBreak = next(lineFeed)
    if (this.#nextQuote < start) this.#nextQuote = next(quote)
  }

  #row(start: number, end: number): true {
    const feed = this.#bytes[end - 1] === lineFeed ? end - 1 : end
    this.textEnd = feed > start && this.#bytes[feed - 1] === carriageReturn ? feed - 1 : feed
    this.end = end
    this.error = this.textEnd - start > maxRecordBytes ? recordTooLarge : undefined
    this.isCut = false
    return true
  }

  #invalid(end: number, error: RecordError | undefined, isCut = false): true {
    this.end = end
    this.textEnd = end
    this.error = error
    this.isCut = isCut
    return true
  }

  /** Returns the end of a row with quotes, or its error; neither if the row is incomplete. */
  #scanQuoted(start: number, until: number): { end?: number; fault?: RecordError } {
    const bytes = this.#bytes
    for (let at = start; at < until; at += 1) {
      at = bytes[at] === quote ? endOfQuoted(bytes, at, until) : this.#endOfText(at, until)
      if (at === notClosed) return { fault: openQuote }
      if (at >= until) return {}
      if (bytes[at] === lineFeed) return { end: at + 1 }
      if (bytes[at] !== this.#delimiter) return { fault: strayQuote }
    }
    return {}
  }

  #endOfText(start: number, until: number): number {
    let at = start
    while (at < until && this.#bytes[at] !== this.#delimiter && this.#bytes[at] !== lineFeed && this.#bytes[at] !== quote) at += 1
    return at
  }
}

const openQuote: RecordError = { kind: 'malformed', message: 'Not CSV: a quote is not closed' }
const strayQuote: RecordError = {
  kind: 'malformed',
  message: 'Not CSV: a stray quote. Write a quote in a cell as "", and the cell in quotes',
}

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
