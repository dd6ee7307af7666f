import { JsonGrammar, State, TokenType, tokenTypes } from '../../plant/json-grammar.js'

type ScanResult = 'complete' | 'broken' | 'cut'

/** Finds the end of a JSON value (RFC 8259) in a stream of bytes. Scalars and escapes are not checked: the parser does that. */
export class JsonScan {
  /** the offset after the scanned bytes: the end of a complete value, or the syntax error */
  end = 0
  maxDepth = Infinity
  readonly #grammar = new JsonGrammar()
  #token: number = Token.none
  #isBroken = false

  /** Possible only for a scalar. */
  get isCompleteAtEnd(): boolean {
    return this.#token === Token.scalar && this.#grammar.state === State.done
  }

  get isTooDeep(): boolean {
    return this.#grammar.open.length > this.maxDepth
  }

  scan(bytes: Buffer, start: number, end: number): ScanResult {
    let at = start
    while (at < end && !this.#isBroken && (this.#token !== Token.none || this.#grammar.state !== State.done)) {
      if (this.#token === Token.none) at = this.#step(bytes, at)
      else if (this.#token === Token.scalar) at = this.#endOfScalar(bytes, at, end)
      else at = this.#endOfString(bytes, at, end)
    }
    this.end = at
    if (this.#isBroken) return 'broken'
    return this.#token === Token.none && this.#grammar.state === State.done ? 'complete' : 'cut'
  }

  save(): string {
    return JSON.stringify([this.#grammar.state, this.#token, this.#grammar.open.join('')])
  }

  static restore(saved: string): JsonScan {
    const scan = new JsonScan()
    const [state, token, open] = JSON.parse(saved) as [number, number, string] // as `save` returns it
    scan.#token = token
    scan.#grammar.state = state
    scan.#grammar.open = Array.from(open, (digit) => parseInt(digit, 10))
    return scan
  }

  #step(bytes: Buffer, at: number): number {
    const type = tokenTypes[bytes[at] ?? 0] ?? TokenType.other
    if (type === TokenType.space) return at + 1
    if (this.isTooDeep || !this.#grammar.accept(type)) {
      this.#isBroken = true
      return at
    }
    if (type === TokenType.quote) this.#token = Token.string
    else if (type === TokenType.scalar) this.#token = Token.scalar
    return at + 1
  }

  #endOfScalar(bytes: Buffer, from: number, end: number): number {
    let at = from
    while (at < end && tokenTypes[bytes[at] ?? 0] === TokenType.scalar) at += 1
    if (at < end) this.#token = Token.none
    return at
  }

  #endOfString(bytes: Buffer, from: number, end: number): number {
    let at = this.#token === Token.escape && bytes[from] !== lineFeed ? from + 1 : from
    this.#token = Token.string
    for (; at < end; at += 1) {
      const byte = bytes[at]
      if (byte === quote) {
        this.#token = Token.none
        return at + 1
      }
      if (byte === lineFeed) {
        this.#isBroken = true // JSON escapes line breaks, so most likely the closing quote is missing
        return at
      }
      if (byte !== backslash) continue
      if (at + 1 === end) this.#token = Token.escape
      else if (bytes[at + 1] !== lineFeed) at += 1
    }
    return end
  }
}

const Token = { none: 0, string: 1, escape: 2, scalar: 3 } as const

const lineFeed = 0x0a
const quote = 0x22
const backslash = 0x5c
