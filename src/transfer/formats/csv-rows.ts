import { CsvScan } from './csv-scan.js'
import type { FormatState } from './format.js'
import { LineCounter } from './line-counter.js'
import type { Problem } from './portion.js'
import { RecordError } from './record-error.js'
import { longestRecord, recordTooLarge } from './record-limit.js'

/** A row of a table: a range of bytes, and where its line break begins in it. */
export interface Row {
  start: number
  end: number
  textEnd: number
  line: number
  /** whether it holds a quote */
  isQuoted: boolean
}

/** Bytes that are no row. */
export type NoRow = Omit<Problem, 'row'>

/** Finds the rows of a table. One that is broken ends with its first line, because a quote too many or too few would take all that follows. */
export class CsvRows {
  readonly #delimiter: number
  readonly #lines = new LineCounter()
  /** of the row that was cut */
  #scan: CsvScan | undefined
  /** whether a row goes by that is too long to be kept */
  #isPassing = false

  constructor(delimiter: number) {
    this.#delimiter = delimiter
  }

  /** Gives the rows in a range of bytes, and what is none, while `take` says yes to more; returns as `Format.read` does. */
  read(bytes: Buffer, { start, end }: { start: number; end: number }, isLast: boolean, take: (found: Row | NoRow) => boolean): number {
    const reading: Reading = { bytes, end, isLast, take, isFull: false, nextBreak: -1, nextQuote: -1 }
    this.#lines.begin(bytes, start)
    let at = start
    for (let last = -1; at < end && at !== last && !reading.isFull; ) {
      last = at
      at = this.#isPassing ? this.#pass(reading, at) : this.#step(reading, at)
    }
    this.#lines.at(at)
    return at
  }

  save(): FormatState {
    return { line: this.#lines.line, isPassing: this.#isPassing }
  }

  restore(state: FormatState): void {
    // It is what `save` gave.
    const { line, isPassing } = state as { line: number; isPassing: boolean }
    this.#lines.line = line
    this.#isPassing = isPassing
  }

  /** Takes the row at a place; gives the place behind it, or the same one when it is not whole. */
  #step(reading: Reading, at: number): number {
    const { end, isLast } = reading
    look(reading, at)
    const until = Math.min(end, at + longestRecord + 2)
    const lineEnd = reading.nextBreak + 1
    if (reading.nextQuote < Math.min(reading.nextBreak, until)) return this.#quoted(reading, at, until)
    if (lineEnd <= until) return this.#row(reading, at, lineEnd, false)
    if (until - at > longestRecord + 1) return this.#tooLarge(reading, at, until)
    return isLast ? this.#row(reading, at, end, false) : at
  }

  #quoted(reading: Reading, at: number, until: number): number {
    this.#scan ??= new CsvScan(this.#delimiter)
    const found = this.#scan.scan(reading.bytes, at, until)
    if (found === 'whole') return this.#row(reading, at, at + this.#scan.length, true)
    const isLong = until - at > longestRecord + 1
    const isEnd = reading.isLast && until === reading.end && !isLong
    const fault = found === 'broken' ? strayQuote : this.#scan.isInQuotes ? openQuote : undefined
    if (found === 'cut' && !isLong && !isEnd) return at
    if (fault && reading.nextBreak < until) return this.#noRow(reading, at, reading.nextBreak + 1, fault())
    if (isLong) return this.#tooLarge(reading, at, until)
    if (!isEnd) return at
    return fault ? this.#noRow(reading, at, until, fault()) : this.#row(reading, at, until, true)
  }

  #row(reading: Reading, start: number, end: number, isQuoted: boolean): number {
    const textEnd = withoutBreak(reading.bytes, start, end)
    if (textEnd === start) return end
    if (textEnd - start > longestRecord) return this.#noRow(reading, start, end, recordTooLarge())
    this.#scan = undefined
    reading.isFull = !reading.take({ start, end, textEnd, line: this.#lines.at(start), isQuoted })
    return end
  }

  #noRow(reading: Reading, start: number, end: number, error: RecordError | undefined): number {
    this.#scan = undefined
    reading.isFull = !reading.take({ start, end, line: this.#lines.at(start), error })
    return end
  }

  #tooLarge(reading: Reading, start: number, until: number): number {
    this.#isPassing = true
    return this.#noRow(reading, start, until, recordTooLarge())
  }

  #pass(reading: Reading, at: number): number {
    look(reading, at)
    this.#isPassing = reading.nextBreak >= reading.end
    return this.#noRow(reading, at, Math.min(reading.nextBreak + 1, reading.end), undefined)
  }
}

interface Reading {
  bytes: Buffer
  end: number
  isLast: boolean
  take: (found: Row | NoRow) => boolean
  isFull: boolean
  /** where the next line break is, and the next quote, from the row on; Infinity when there is none */
  nextBreak: number
  nextQuote: number
}

function look(reading: Reading, at: number): void {
  if (reading.nextBreak < at) reading.nextBreak = placeOf(reading, lineFeed, at)
  if (reading.nextQuote < at) reading.nextQuote = placeOf(reading, quote, at)
}

function placeOf({ bytes, end }: Reading, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from)
  return found === -1 || found >= end ? Infinity : found
}

/** Where a row ends without its line break; a carriage return at the end of an input is what was left of one. */
function withoutBreak(bytes: Buffer, start: number, end: number): number {
  const feed = bytes[end - 1] === lineFeed ? end - 1 : end
  return feed > start && bytes[feed - 1] === carriageReturn ? feed - 1 : feed
}

function strayQuote(): RecordError {
  return new RecordError(
    'malformed',
    'Not CSV: a quote stands inside a cell. One that belongs to its text is doubled, in a cell with quotes around it',
  )
}

function openQuote(): RecordError {
  return new RecordError('malformed', 'Not CSV: a quote is not closed')
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const quote = 0x22
