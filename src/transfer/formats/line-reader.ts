import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../plant/exact-json.js'
import { type Chunk, maxRecordBytes, notUtf8, type Reason, type RecordRange, reason, recordTooLarge } from './chunk.js'
import type { Format, FormatReader, ReaderState } from './format.js'
import { readPlantObject, unread } from './plant-object.js'
import type { RecordMapper } from './record-mapper.js'

/** Records end with LF or CRLF and, in a table, also CR. */
export abstract class LineReader implements FormatReader {
  protected readonly mapper: RecordMapper
  protected readonly kind: 'ndjson' | 'table' | 'sheet'
  #line = 1
  #isSkipping = false

  /** @param kind lines of a `sheet` are its rows, which only CRLF ends */
  constructor(mapper: RecordMapper, kind: 'ndjson' | 'table' | 'sheet') {
    this.mapper = mapper
    this.kind = kind
  }

  /** @param delimiter of a table, whose quoted cells can contain line breaks */
  read(chunk: Chunk, isLast: boolean, start = 0, delimiter?: string): number {
    const { bytes } = chunk
    const rows = new Rows(bytes, isLast, delimiter)
    // Up to the end of the last line: V8 discards compiled code that reads beyond the end of an array.
    const textEnd = bytes.lastIndexOf(lineFeed) + 1
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

  #addRow(rows: Rows, chunk: Chunk, start: number): number | undefined {
    const row = this.#isSkipping ? rows.rest(start) : rows.find(start)
    if (!row) return undefined
    const { end, text, why } = row
    const range = { start, end: why === recordTooLarge ? start : end, line: this.#line }
    if (why) chunk.addInvalid(why, range)
    else if (text !== '') this.add(text, chunk, range)
    this.#isSkipping = row.isCut
    if (this.kind !== 'sheet') this.#line = this.lineAt(chunk.bytes, start, end)
    else if (!row.isCut) this.#line += 1 // its cells can have CRLF, too
    return end
  }

  /** The line of `end` if that of `start` is the current one. */
  protected lineAt(bytes: Buffer, start: number, end: number): number {
    let line = this.#line
    for (let at = start; at < end; at += 1) {
      const isReturn = this.kind === 'table' && bytes[at] === carriageReturn && bytes[at + 1] !== lineFeed
      const isFeed = bytes[at] === lineFeed && (this.kind !== 'sheet' || bytes[at - 1] === carriageReturn)
      if (isReturn || isFeed) line += 1
    }
    return line
  }

  protected skipLines(bytes: Buffer, start: number, end: number): void {
    this.#line = this.lineAt(bytes, start, end)
  }

  save(): ReaderState {
    return { line: this.#line, isSkipping: this.#isSkipping }
  }

  restore({ line, isSkipping }: ReaderState): void {
    this.#line = Number(line)
    this.#isSkipping = isSkipping === true
  }

  /** Returns the start of the next line; `unread` for an unusual form. */
  protected abstract addFast(chunk: Chunk, start: number, line: number): number

  protected abstract add(text: string, chunk: Chunk, range: RecordRange): void
}

/** One JSON object per line (https://github.com/ndjson/ndjson-spec). Blank lines are skipped. */
export const ndjson: Format = {
  detect: ({ bytes, start }) => {
    if (start === bytes.length || bytes[start] === brace) return true
    // The first line is invalid, but the second one is an object.
    const [, second = ''] = bytes
      .toString('utf8', start)
      .split('\n')
      .filter((line) => line.trim() !== '')
    return /^\{\s*"/.test(second)
  },
  read: (mapper) => new NdjsonReader(mapper, 'ndjson'),
}

class NdjsonReader extends LineReader {
  protected addFast(chunk: Chunk, start: number, line: number): number {
    const { bytes } = chunk
    const end = readPlantObject(chunk, start)
    if (end === unread) return unread
    const feed = bytes[end] === carriageReturn ? end + 1 : end
    if (bytes[feed] === lineFeed && feed < start + maxRecordBytes) {
      chunk.setRange(start, feed + 1, line)
      return feed + 1
    }
    chunk.rows.length -= 1
    return unread
  }

  protected add(text: string, chunk: Chunk, range: RecordRange): void {
    if (/^[ \t\r]*$/.test(text)) return
    const parsed = parseJson(text, { idKey: this.mapper.idKey, isSuspect: chunk.isSuspect })
    if ('reason' in parsed)
      chunk.addInvalid(reason('malformed', `Not JSON: ${parsed.reason} at column ${parsed.column}`), range)
    else this.mapper.add(parsed.value, range, chunk)
  }
}

interface TextRow {
  end: number
  text: string
  why: Reason | undefined
  /** continues after `end`, because it is too long for a chunk */
  isCut: boolean
}

/**
 * Finds lines; with a delimiter, the rows of a table (RFC 4180), which may also end with CR alone. Only a quote at the
 * start of a cell quotes it. A row with a stray quote, or with one that is not closed within 16 MiB, ends with its first
 * line, because it would otherwise include the rows that follow.
 */
export class Rows {
  readonly #bytes: Buffer
  readonly #isLast: boolean
  readonly #delimiter: number | undefined
  /** Infinity if there is none */
  #nextFeed = -1
  #nextReturn = -1
  #nextQuote = -1

  constructor(bytes: Buffer, isLast: boolean, delimiter: string | undefined) {
    this.#bytes = bytes
    this.#isLast = isLast
    this.#delimiter = delimiter?.charCodeAt(0)
    if (delimiter !== undefined) return
    this.#nextReturn = Infinity
    this.#nextQuote = Infinity
  }

  find(start: number): TextRow | undefined {
    this.#look(start)
    const length = this.#bytes.length - start
    if (this.#nextQuote > Math.min(this.#nextBreak, start + maxRecordBytes + 1)) return this.#findLine(start)
    const found = this.#scanQuoted(start, Math.min(this.#bytes.length, start + maxQuotedBytes))
    if (typeof found === 'number') return this.#row(start, found)
    const isAll = length >= maxQuotedBytes || this.#isLast
    if (found === this.#quotes.stray || (found && isAll)) return this.#findLine(start, found)
    if (!isAll) return undefined
    return length < maxQuotedBytes ? this.#row(start, this.#bytes.length) : tooLong(start + maxQuotedBytes)
  }

  /** @param why the line is not a row */
  #findLine(start: number, why?: Reason): TextRow | undefined {
    const until = Math.min(this.#bytes.length, start + maxRecordBytes + 2)
    const lineEnd = this.#endOfBreak(this.#nextBreak)
    const isTooLong = until - start > maxRecordBytes + 1
    if (lineEnd > until && isTooLong) return tooLong(this.#endOfBreak(until - 1) === Infinity ? until - 1 : until)
    if (lineEnd > until && !this.#isLast) return undefined
    const end = Math.min(lineEnd, until)
    return why ? { end, text: '', why, isCut: false } : this.#row(start, end)
  }

  /** undefined if it may end with a CRLF that is cut */
  rest(start: number): TextRow | undefined {
    this.#look(start)
    const lineEnd = this.#endOfBreak(this.#nextBreak)
    const isCut = lineEnd > this.#bytes.length
    const end = isCut ? Math.min(this.#nextBreak, this.#bytes.length) : lineEnd
    return end === start ? undefined : { end, text: '', why: undefined, isCut }
  }

  #look(start: number): void {
    const next = (byte: number) => {
      const found = this.#bytes.indexOf(byte, start)
      return found === -1 ? Infinity : found
    }
    if (this.#nextFeed < start) this.#nextFeed = next(lineFeed)
    if (this.#nextReturn < start) this.#nextReturn = next(carriageReturn)
    if (this.#nextQuote < start) this.#nextQuote = next(quote)
  }

  get #nextBreak(): number {
    return Math.min(this.#nextFeed, this.#nextReturn)
  }

  /** Infinity for a CR that may be cut off its LF. */
  #endOfBreak(at: number): number {
    if (this.#bytes[at] !== carriageReturn) return at + 1
    if (at + 1 === this.#bytes.length && !this.#isLast) return Infinity
    return this.#bytes[at + 1] === lineFeed ? at + 2 : at + 1
  }

  #row(start: number, end: number): TextRow {
    const bytes = this.#bytes
    const feed = bytes[end - 1] === lineFeed ? end - 1 : end
    const textEnd = feed > start && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
    const text = bytes.subarray(start, textEnd)
    const why = text.length > maxRecordBytes ? recordTooLarge : isUtf8(text) ? undefined : notUtf8
    return { end, text: why ? '' : text.toString(), why, isCut: false }
  }

  #scanQuoted(start: number, until: number): number | Reason | undefined {
    const bytes = this.#bytes
    for (let at = start; at < until; at += 1) {
      at = bytes[at] === quote ? endOfQuoted(bytes, at, until) : this.#endOfText(at, until)
      if (at === notClosed) return this.#quotes.open
      if (at >= until) return undefined
      if (bytes[at] === lineFeed || bytes[at] === carriageReturn) {
        const end = this.#endOfBreak(at)
        return end <= until ? end : undefined
      }
      if (bytes[at] !== this.#delimiter) return this.#quotes.stray
    }
    return undefined
  }

  #endOfText(start: number, until: number): number {
    for (let at = start; at < until; at += 1) {
      const byte = this.#bytes[at]
      if (byte === this.#delimiter || byte === lineFeed || byte === carriageReturn || byte === quote) return at
    }
    return until
  }

  get #quotes() {
    return this.#delimiter === tab ? quoteReasons.TSV : quoteReasons.CSV
  }
}

function tooLong(end: number): TextRow {
  return { end, text: '', why: recordTooLarge, isCut: true }
}

/** of a row, to find the end of a cell in quotes that is too large */
const maxQuotedBytes = 16 * maxRecordBytes

const quoteReasonsOf = (format: string) => ({
  open: reason('malformed', `Not ${format}: a quote is not closed`),
  stray: reason('malformed', `Not ${format}: a stray quote. Write a quote in a cell as "", and the cell in quotes`),
})
const quoteReasons = { CSV: quoteReasonsOf('CSV'), TSV: quoteReasonsOf('TSV') }

/** A quote at the end of the range counts as the closing one, although the next byte could double it. */
function endOfQuoted(bytes: Buffer, start: number, until: number): number {
  for (let at = start + 1; ; at += 2) {
    at = bytes.indexOf(quote, at)
    if (at === -1 || at >= until) return notClosed
    if (at + 1 === until || bytes[at + 1] !== quote) return at + 1
  }
}

const notClosed = -1
const tab = 0x09
const lineFeed = 0x0a
const carriageReturn = 0x0d
const quote = 0x22
const brace = 0x7b
