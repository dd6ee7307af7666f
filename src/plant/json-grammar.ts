/** The types of JSON tokens (RFC 8259), by their first character. A scalar is a number, `true`, `false` or `null`. */
export const TokenType = {
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

const digits = '0123456789'
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

export const tokenTypes = new Uint8Array(256)
for (const [type, characters] of ['', '\t\n\r ', '{', '}', '[', ']', ',', ':', '"', `+-.${digits}${letters}`].entries())
  for (const character of characters) tokenTypes[character.charCodeAt(0)] = type

export const State = { value: 0, firstItem: 1, firstKey: 2, key: 3, colon: 4, memberEnd: 5, itemEnd: 6, done: 7 } as const

/**
 * Checks the order of the tokens of a JSON value, with a stack of its own: deep nesting cannot overflow the call stack.
 */
export class JsonGrammar {
  state: number = State.value
  /** the state after a value in each open bracket */
  open: number[] = []

  /** Consumes the next token. Returns false, and changes nothing, if that token is not allowed here. */
  accept(type: number): boolean {
    const next = grammar[this.state]?.[type]
    if (next === undefined) return false
    if (type === TokenType.brace) this.open.push(State.memberEnd)
    else if (type === TokenType.bracket) this.open.push(State.itemEnd)
    else if (type === TokenType.braceEnd || type === TokenType.bracketEnd) this.open.pop()
    this.state = next === State.done ? (this.open.at(-1) ?? State.done) : next
    return true
  }
}

const anyValue = {
  [TokenType.brace]: State.firstKey,
  [TokenType.bracket]: State.firstItem,
  [TokenType.quote]: State.done,
  [TokenType.scalar]: State.done,
}

/** For each state except `done`, which follows a value: the next state after each type of token. */
const grammar: readonly Readonly<Record<number, number>>[] = [
  anyValue,
  { ...anyValue, [TokenType.bracketEnd]: State.done },
  { [TokenType.quote]: State.colon, [TokenType.braceEnd]: State.done },
  { [TokenType.quote]: State.colon },
  { [TokenType.colon]: State.value },
  { [TokenType.comma]: State.key, [TokenType.braceEnd]: State.done },
  { [TokenType.comma]: State.value, [TokenType.bracketEnd]: State.done },
]
