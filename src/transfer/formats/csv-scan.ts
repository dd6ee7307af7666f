/** Finds where a row of CSV ends (RFC 4180), in bytes that come in pieces. A quote counts where a cell begins, and nowhere else. */
export class CsvScan {
  /** how many bytes it has looked at: those of the row with its line break when it is whole, those before the break when it is broken */
  length = 0
  readonly #delimiter: number
  #place: Place = 'cell'

  constructor(delimiter: number) {
    this.#delimiter = delimiter
  }

  /** Whether a quote is open where it stands. */
  get isInQuotes(): boolean {
    return this.#place === 'quoted'
  }

  /** Goes on, in a row that begins at `start`, behind what it has looked at. What is still cut where the input ends is a row as well. */
  scan(bytes: Buffer, start: number, end: number): 'whole' | 'broken' | 'cut' {
    let at = start + this.length
    while (at < end && this.#place !== 'done' && this.#place !== 'broken') at = this.#step(bytes, at, end)
    this.length = at - start
    if (this.#place === 'done') return 'whole'
    return this.#place === 'broken' ? 'broken' : 'cut'
  }

  #step(bytes: Buffer, at: number, end: number): number {
    if (this.#place === 'text') return this.#passText(bytes, at, end)
    if (this.#place === 'quoted') return this.#passQuoted(bytes, at, end)
    const byte = bytes[at]
    if (this.#place === 'cell') this.#place = byte === quote ? 'quoted' : 'text'
    else this.#place = this.#behindQuote(byte)
    return this.#place === 'text' || this.#place === 'broken' ? at : at + 1
  }

  /** Where a row is after a quote in a quoted cell, once it is known what stands behind that: another, or the end of the cell. */
  #behindQuote(byte: number | undefined): Place {
    if (byte === lineFeed) return 'done'
    if (this.#place === 'carriage return') return 'broken'
    if (byte === this.#delimiter) return 'cell'
    if (byte === carriageReturn) return 'carriage return'
    return byte === quote ? 'quoted' : 'broken'
  }

  #passText(bytes: Buffer, from: number, end: number): number {
    let at = from
    while (at < end && bytes[at] !== this.#delimiter && bytes[at] !== lineFeed && bytes[at] !== quote) at += 1
    if (at === end) return at
    this.#place = bytes[at] === quote ? 'broken' : bytes[at] === lineFeed ? 'done' : 'cell'
    return bytes[at] === quote ? at : at + 1
  }

  #passQuoted(bytes: Buffer, from: number, end: number): number {
    const found = bytes.indexOf(quote, from)
    if (found === -1 || found >= end) return end
    this.#place = 'quote'
    return found + 1
  }
}

/** Where in a row it is: where a cell begins, in one without quotes, in one with quotes, behind a quote there, and behind a carriage return there. */
type Place = 'cell' | 'text' | 'quoted' | 'quote' | 'carriage return' | 'done' | 'broken'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const quote = 0x22
