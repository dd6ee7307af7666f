import { maxRecordBytes, type RecordError, recordTooLarge } from './chunk.js'

/**
 * Finds the rows of CSV (RFC 4180) in a range of bytes. A quote counts only where a cell begins. An invalid row ends with its first line,
 * because a quote too many or too few would take all that follows.
 */
export class CsvRows {
  readonly #bytes: Buffer
  readonly #isLast: boolean
  readonly #delimiter: number
  /** the next line break, and the next quote; Infinity when there is none */
  #nextBreak = -1
  #nextQuote = -1
  /** where what was found ends, and where it ends without its line break */
  end = 0
  textEnd = 0
  /** why it is invalid */
  error: RecordError | undefined
  /** whether it is one valid line without quotes */
  isPlain = false
  /** whether it continues after `end`, because it is too long to be kept */
  isCut = false

  constructor(bytes: Buffer, isLast: boolean, delimiter: string) {
    this.#bytes = bytes
    this.#isLast = isLast
    this.#delimiter = delimiter.charCodeAt(0)
  }

  /** Finds the row that begins at a place. False when its end is not there yet. */
  find(start: number): boolean {
    this.#look(start)
    const until = Math.min(this.#bytes.length, start + maxRecordBytes + 2)
    const isTooLong = until - start > maxRecordBytes + 1
    const lineEnd = this.#nextBreak + 1
    const isQuoted = this.#nextQuote < Math.min(this.#nextBreak, until)
    const { end, fault } = isQuoted ? this.#scanQuoted(start, until) : { end: lineEnd <= until ? lineEnd : undefined, fault: undefined }
    if (end !== undefined) return this.#row(start, end, isQuoted)
    const isEnd = this.#isLast && until === this.#bytes.length
    const error = fault === openQuote && !isTooLong && !isEnd ? undefined : fault // an open quote may still be closed
    if (error && lineEnd <= until) return this.#invalid(lineEnd, error)
    if (isTooLong) return this.#invalid(until, recordTooLarge, true)
    if (!isEnd) return false
    return error ? this.#invalid(until, error) : this.#row(start, until, isQuoted)
  }

  /** Finds the end of the line at a place, for a row that is too long to be kept. */
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

  #row(start: number, end: number, isQuoted: boolean): true {
    const feed = this.#bytes[end - 1] === lineFeed ? end - 1 : end
    this.textEnd = feed > start && this.#bytes[feed - 1] === carriageReturn ? feed - 1 : feed
    this.end = end
    this.error = this.textEnd - start > maxRecordBytes ? recordTooLarge : undefined
    this.isPlain = !isQuoted && this.error === undefined
    this.isCut = false
    return true
  }

  #invalid(end: number, error: RecordError | undefined, isCut = false): true {
    this.end = end
    this.textEnd = end
    this.error = error
    this.isPlain = false
    this.isCut = isCut
    return true
  }

  /** Gives the end of a row with quotes, or what is wrong with it so far; neither for one that continues. */
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
  message: 'Not CSV: a quote stands inside a cell. One that belongs to its text is doubled, in a cell with quotes around it',
}

/** The cells of a valid row without its line break; an empty one without quotes is undefined. */
export function parseCells(text: string, delimiter: string): (string | undefined)[] {
  const cells: (string | undefined)[] = []
  for (let at = 0; ; at += 1) {
    let end: number
    if (text[at] === '"') {
      end = text.indexOf('"', at + 1)
      while (text[end + 1] === '"') end = text.indexOf('"', end + 2)
      cells.push(text.slice(at + 1, end).replaceAll('""', '"'))
      end += 1
    } else {
      const found = text.indexOf(delimiter, at)
      end = found === -1 ? text.length : found
      cells.push(end === at ? undefined : text.slice(at, end))
    }
    if (end >= text.length) return cells
    at = end
  }
}

/**
 * Where a cell in quotes ends, past the first half of a CRLF; `notClosed` where its last quote is not there. A quote at the end may
 * still be doubled, but only in a longer range.
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
