/** The kinds of JSON tokens (RFC 8259), by their first character. A scalar is a number, `true`, `false` or `null`. */
export const Kind = {
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

export const kinds = new Uint8Array(256)
for (const [kind, characters] of ['', '\t\n\r ', '{', '}', '[', ']', ',', ':', '"', `+-.${digits}${letters}`].entries())
  for (const character of characters) kinds[character.charCodeAt(0)] = kind

export const State = { value: 0, firstItem: 1, firstKey: 2, key: 3, colon: 4, memberEnd: 5, itemEnd: 6, done: 7 } as const

/**
 * Checks the order of the tokens of a JSON value, with a stack of its own: deep nesting cannot overflow the call stack.
 */
export class JsonGrammar {
  state: number = State.value
  /** the state after a value in each open bracket */
  open: number[] = []

  /** Consumes the next token. Returns false, and changes nothing, if that token is not allowed here. */
  accept(kind: number): boolean {
    const next = grammar[this.state]?.[kind]
    if (next === undefined) return false
    if (kind === Kind.brace) this.open.push(State.memberEnd)
    else if (kind === Kind.bracket) this.open.push(State.itemEnd)
    else if (kind === Kind.braceEnd || kind === Kind.bracketEnd) this.open.pop()
    this.state = next === State.done ? (this.open.at(-1) ?? State.done) : next
    return true
  }
}

const anyValue = { [Kind.brace]: State.firstKey, [Kind.bracket]: State.firstItem, [Kind.quote]: State.done, [Kind.scalar]: State.done }

/** For each state except `done`, which follows a value: the next state after each kind of token. */
const grammar: readonly Readonly<Record<number, number>>[] = [
  anyValue,
  { ...anyValue, [Kind.bracketEnd]: State.done },
  { [Kind.quote]: State.colon, [Kind.braceEnd]: State.done },
  { [Kind.quote]: State.colon },
  { [Kind.colon]: State.value },
  { [Kind.comma]: State.key, [Kind.braceEnd]: State.done },
  { [Kind.comma]: State.value, [Kind.bracketEnd]: State.done },
]
