/** Where a value ends, where its structure breaks, or that the bytes end inside it. */
export type ScanResult = 'complete' | 'broken' | 'cut'

/**
 * Finds the end of a JSON value (RFC 8259), in bytes that come in pieces. It knows which token may follow which, and takes any scalar and
 * any escape; those are for the parser to check. Depth costs memory and nothing else.
 */
export class JsonScan {
  /** bytes that were scanned: those of the value when it is complete, those before the break when it is broken */
  length = 0
  #state: number = State.value
  #token: number = Token.none
  /** the state after a value in each open bracket */
  #open: number[] = []
  #isLong = false

  /** Whether the value is complete if nothing follows, as only a number is. */
  get isCompleteAtEnd(): boolean {
    return this.#token === Token.scalar && this.#state === State.done
  }

  /** Whether the value is too long to be kept, and too deep to be followed. */
  get isTooDeep(): boolean {
    return this.#isLong && this.#open.length > maxLongDepth
  }

  /** Continues a value that begins at `start`, after what was scanned. */
  scan(bytes: Buffer, start: number, end: number): ScanResult {
    let at = start + this.length
    while (at < end && (this.#token !== Token.none || this.#state < State.done)) {
      if (this.#token === Token.none) at = this.#step(bytes, at)
      else if (this.#token === Token.scalar) at = this.#endOfScalar(bytes, at, end)
      else at = this.#endOfString(bytes, at, end)
    }
    this.length = at - start
    if (this.#state === State.broken) return 'broken'
    return this.#token === Token.none && this.#state === State.done ? 'complete' : 'cut'
  }

  /** Drops what was scanned, because the value is too long to be kept: the next `start` is after it. */
  discard(): void {
    this.length = 0
    this.#isLong = true
  }

  /** The state of a scan that has discarded what it scanned. */
  save(): string {
    return JSON.stringify([this.#state, this.#token, this.#open.join('')])
  }

  static restore(saved: string): JsonScan {
    const scan = new JsonScan()
    const [state, token, open] = JSON.parse(saved) as [number, number, string] // which is what `save` gives
    scan.#state = state
    scan.#token = token
    scan.#open = Array.from(open, (digit) => parseInt(digit, 10))
    scan.#isLong = true
    return scan
  }

  #step(bytes: Buffer, at: number): number {
    const kind = kinds[bytes[at] ?? 0] ?? Kind.other
    if (kind === Kind.space) return at + 1
    const next = grammar[this.#state]?.[kind] ?? State.broken
    if (next === State.broken || this.isTooDeep) {
      this.#state = State.broken
      return at
    }
    if (kind === Kind.brace) this.#open.push(State.memberEnd)
    else if (kind === Kind.bracket) this.#open.push(State.itemEnd)
    else if (kind === Kind.braceEnd || kind === Kind.bracketEnd) this.#open.pop()
    else if (kind === Kind.quote) this.#token = Token.string
    else if (kind === Kind.scalar) this.#token = Token.scalar
    this.#state = next === State.done ? (this.#open.at(-1) ?? State.done) : next
    return at + 1
  }

  #endOfScalar(bytes: Buffer, from: number, end: number): number {
    let at = from
    while (at < end && kinds[bytes[at] ?? 0] === Kind.scalar) at += 1
    if (at < end) this.#token = Token.none
    return at
  }

  #endOfString(bytes: Buffer, from: number, end: number): number {
    let at = this.#token === Token.escape && bytes[from] !== lineFeed ? from + 1 : from
    this.#token = Token.string
    for (; at < end; at += 1) {
      const byte = bytes[at]
      if (byte === quote || byte === lineFeed) {
        this.#token = Token.none
        if (byte === quote) return at + 1
        this.#state = State.broken // a line break must be escaped, so most likely the closing quote is missing
        return at
      }
      if (byte !== backslash) continue
      if (at + 1 === end) this.#token = Token.escape
      else if (bytes[at + 1] !== lineFeed) at += 1
    }
    return end
  }
}

/** What is expected next; nothing may follow the last two. */
const State = { value: 0, firstItem: 1, firstKey: 2, key: 3, colon: 4, memberEnd: 5, itemEnd: 6, done: 7, broken: 8 } as const

const Token = { none: 0, string: 1, escape: 2, scalar: 3 } as const

const Kind = {
  other: 0,
  space: 1,
  brace: 2,
  braceEnd: 3,
  bracket: 4,
  bracketEnd: 5,
  comma: 6,
  colon: 7,
  quote: 8,
  scalar: 9,
} as const

/** The kind of each byte. */
const kinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  if (/[\w.+-]/.test(character)) return Kind.scalar
  return Math.max(0, ['', ' ', '{', '}', '[', ']', ',', ':', '"'].indexOf(/[\t\n\r]/.test(character) ? ' ' : character))
})

const anyValue = { [Kind.brace]: State.firstKey, [Kind.bracket]: State.firstItem, [Kind.quote]: State.done, [Kind.scalar]: State.done }

/** For each state, which kinds may come, and the state after each; `done` is the state after a value. */
const grammar: readonly Uint8Array[] = [
  anyValue,
  { ...anyValue, [Kind.bracketEnd]: State.done },
  { [Kind.quote]: State.colon, [Kind.braceEnd]: State.done },
  { [Kind.quote]: State.colon },
  { [Kind.colon]: State.value },
  { [Kind.comma]: State.key, [Kind.braceEnd]: State.done },
  { [Kind.comma]: State.value, [Kind.bracketEnd]: State.done },
].map((row: Readonly<Record<number, number>>) => Uint8Array.from({ length: 10 }, (_, kind) => row[kind] ?? State.broken))

/** open brackets of a value that is too long to be kept */
const maxLongDepth = 1000

const lineFeed = 0x0a
const quote = 0x22
const backslash = 0x5c
