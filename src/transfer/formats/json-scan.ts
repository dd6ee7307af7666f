import { grammar, Kind, kinds, Place } from './json-grammar.js'

/** What a scan has found out: where a value ends, where its structure breaks, or that the bytes end inside it. */
export type Found = 'whole' | 'broken' | 'cut'

/**
 * Finds where a JSON value ends (RFC 8259), in bytes that come in pieces. It knows what may follow what, and takes any scalar and
 * any escape; the rest is for the parser to say. Depth costs memory and nothing else.
 */
export class JsonScan {
  /** how many bytes it has looked at: those of the value when it is whole, those before the break when it is broken */
  length = 0
  /** how far from the value's start a line begins that looks like the next record, or 0; a value that then breaks may have swallowed it */
  suspect = 0
  readonly #column: number
  /** whether such a line breaks the value at once */
  readonly #isCareful: boolean
  #place: number = Place.value
  #token: number = Token.none
  /** the place behind a value in each bracket that is open */
  #open: number[] = []
  #start = 0
  #isLong = false

  /** @param column how many bytes stand in the value's line before it: what stands further to the right than it is a part of it */
  constructor(column: number, isCareful = false) {
    this.#column = column
    this.#isCareful = isCareful
  }

  get depth(): number {
    return this.#open.length
  }

  /** Whether the value is whole if nothing comes behind it, as only a number is. */
  get isWholeAtEnd(): boolean {
    return this.#token === Token.scalar && this.#place === Place.done
  }

  /** Goes on, in a value that begins at `start`, behind what it has looked at. */
  scan(bytes: Buffer, start: number, end: number): Found {
    this.#start = start
    let at = start + this.length
    while (at < end && (this.#token !== Token.none || this.#place < Place.done)) {
      at = this.#token === Token.none ? this.#step(bytes, at) : this.#endOfToken(bytes, at, end)
    }
    this.length = at - start
    if (this.#place === Place.broken) return 'broken'
    return this.#token === Token.none && this.#place === Place.done ? 'whole' : 'cut'
  }

  /** How many brackets stay open if whatever they hold is broken from here on, where `byte` stands. */
  depthBefore(byte: number | undefined): number {
    if (byte !== 0x7d && byte !== 0x5d) return this.#open.length
    const matching = this.#open.lastIndexOf(byte === 0x7d ? Place.memberEnd : Place.itemEnd)
    return matching === -1 ? 0 : matching + 1
  }

  /** Goes on with what comes behind what it has looked at, which is gone: the next `start` is there. */
  forget(): void {
    this.length = 0
    this.suspect = 0
    this.#isLong = true
  }

  save(): { place: number; token: number; open: string } {
    return { place: this.#place, token: this.#token, open: this.#open.join('') }
  }

  /** @param saved of one that had to forget */
  restore({ place, token, open }: { place: number; token: number; open: string }): void {
    this.#place = place
    this.#token = token
    this.#isLong = true
    this.#open = Array.from(open, (digit) => parseInt(digit, 10))
  }

  #step(bytes: Buffer, at: number): number {
    const kind = kinds[bytes[at] ?? 0] ?? Kind.other
    if (kind === Kind.space) return at + 1
    const next = grammar[this.#place]?.[kind] ?? Place.broken
    if (kind === Kind.brace) this.#suspectAt(bytes, at, next)
    if (this.#isLong && this.#open.length > deepest) this.#place = Place.broken
    if (next === Place.broken || this.#place === Place.broken) {
      this.#place = Place.broken
      return at
    }
    this.#enter(kind)
    this.#place = next === Place.done ? (this.#open.at(-1) ?? Place.done) : next
    return at + 1
  }

  #enter(kind: number): void {
    if (kind === Kind.brace) this.#open.push(Place.memberEnd)
    else if (kind === Kind.bracket) this.#open.push(Place.itemEnd)
    else if (kind === Kind.braceEnd || kind === Kind.bracketEnd) this.#open.pop()
    else if (kind === Kind.quote) this.#token = Token.string
    else if (kind === Kind.scalar) this.#token = Token.scalar
  }

  #suspectAt(bytes: Buffer, at: number, next: number): void {
    if (this.suspect > 0 || this.#open.length === 0 || this.#isLong) return
    const isRecord = next === Place.broken && this.#open.length === 1
    if (!isRecord && indentAt(bytes, at, this.#start, this.#column) === -1) return
    this.suspect = at - this.#start
    if (this.#isCareful) this.#place = Place.broken
  }

  #endOfToken(bytes: Buffer, from: number, end: number): number {
    let at = from
    if (this.#token === Token.scalar) {
      while (at < end && kinds[bytes[at] ?? 0] === Kind.scalar) at += 1
      if (at < end) this.#token = Token.none
      return at
    }
    return this.#endOfString(bytes, at, end)
  }

  #endOfString(bytes: Buffer, from: number, end: number): number {
    let at = this.#token === Token.escape && bytes[from] !== lineFeed ? from + 1 : from
    this.#token = Token.string
    for (; at < end; at += 1) {
      const byte = bytes[at]
      if (byte === quote || byte === lineFeed) return this.#closeString(byte, at)
      if (byte !== backslash) continue
      if (at + 1 === end) this.#token = Token.escape
      else if (bytes[at + 1] !== lineFeed) at += 1
    }
    return end
  }

  #closeString(byte: number, at: number): number {
    this.#token = Token.none
    if (byte === quote) return at + 1
    // No string of JSON holds a line break: what most likely lacks is the quote before it.
    this.#place = Place.broken
    return at
  }
}

/** How many bytes of white space, and a comma perhaps, stand before a place in its line; -1 when there is more, or are more than `most`. */
export function indentAt(bytes: Buffer, at: number, from: number, most: number): number {
  const first = Math.max(from, at - most - 1)
  for (let back = at - 1; back >= first; back -= 1) {
    if (bytes[back] === lineFeed) return at - back - 1
    if (!isIndent(bytes[back])) return -1
  }
  return -1
}

export function isIndent(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x2c
}

/** how many brackets are kept in mind of a value that is too long to be kept itself */
const deepest = 1000

const lineFeed = 0x0a
const quote = 0x22
const backslash = 0x5c

const Token = { none: 0, string: 1, escape: 2, scalar: 3 } as const
