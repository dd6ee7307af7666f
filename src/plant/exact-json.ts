interface NotJson {
  reason: string
  line: number
  column: number
  message: string
  isSeveral: boolean
}

/**
 * Like `JSON.parse`, except that a numeric id of the object is exact: a bigint if it is an int64, otherwise a
 * `NumberText`; with `isList`, that of each object in an array. With `isSuspect`, scans the text first, because each
 * failure of `JSON.parse` leaves a kilobyte and the text in V8's old generation.
 */
export function parseJson(
  text: string,
  { idKey = 'id', isList = false, isSuspect = false } = {},
): { value: unknown } | NotJson {
  const error = isSuspect ? syntaxErrorIn(text) : undefined
  if (error) return error
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    const found = syntaxErrorIn(text)
    if (!found) throw cause
    return found
  }
  const items: unknown[] = isList && Array.isArray(value) ? value : [value]
  if (items.some((item) => hasNumber(item, idKey))) setExactIds(items, text, idKey)
  return { value }
}

function setExactIds(items: unknown[], text: string, key: string): void {
  const id = key === 'id' && items.length === 1 ? plainId(text) : undefined
  const exact = id === undefined ? [exactIn(text)].flat() : [{ id }]
  for (const [index, item] of items.entries()) {
    const digits: string = exact[index]?.[key]
    if (hasNumber(item, key)) Object.defineProperty(item, key, { value: parseInt64(digits) ?? new NumberText(digits) })
  }
}

function hasNumber(value: unknown, key: string): value is object {
  return isObject(value) && Object.hasOwn(value, key) && typeof value[key] === 'number'
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The usual case, in a tenth of the time: the id comes first, and is the only `id`. */
function plainId(text: string): string | undefined {
  const digits = /^\s*\{\s*"id"\s*:\s*(0|-?[1-9]\d{0,18})\s*[,}]/.exec(text)?.[1]
  return text.includes('\\') || text.indexOf('"id"') !== text.lastIndexOf('"id"') ? undefined : digits
}

/** Parses valid JSON, with a string of its digits for each number. */
function exactIn(text: string) {
  let [quoted, done] = ['', 0]
  for (let at = skipSpace(text, 0); at < text.length; ) {
    const { type, end } = tokenAt(text, at)
    if (type === TokenType.scalar && /[-\d]/.test(text.charAt(at))) {
      quoted += `${text.slice(done, at)}"${text.slice(at, end)}"`
      done = end
    }
    at = skipSpace(text, end)
  }
  return JSON.parse(quoted + text.slice(done))
}

/** A JSON number that is not an int64. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * An int64 in JSON's number grammar: `1.0` and `1e3` are integers, `+1` and `007` are not. The exponent is compared,
 * not expanded, so `1e999999999` costs nothing.
 */
export function parseInt64(text: string): bigint | undefined {
  if (/^(?:0|-?[1-9]\d{0,17})$/.test(text)) return BigInt(text)
  const match = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return 0n
  let length = digits.length
  while (digits[length - 1] === '0') length -= 1
  const zeros = parseFloat(exponent) - fraction.length + digits.length - length
  if (zeros < 0 || length + zeros > 19) return undefined
  const value = BigInt(sign + digits.slice(0, length) + '0'.repeat(zeros))
  return BigInt.asIntN(64, value) === value ? value : undefined
}

/** One line, with bigints as integers. Escapes what a terminal or a line reader may interpret. */
export function toJson(fields: object): string {
  return escapeUnsafe(toWireJson(fields))
}

export function escapeUnsafe(json: string): string {
  return json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** RFC 8259, section 11, with any parameters */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}

/** Only with the escapes that JSON requires. */
export function toWireJson(fields: object): string {
  if (!Object.values(fields).some((value) => typeof value === 'bigint')) return JSON.stringify(fields)
  let members = ''
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue
    members += `${members && ','}${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`
  }
  return `{${members}}`
}

/** Line separators, DEL, C1 and direction marks, which `JSON.stringify` does not escape. */
const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function syntaxErrorIn(text: string): NotJson | undefined {
  const { end, isComplete, isInString } = scan(text)
  if (isComplete && end === text.length) return undefined
  const lines = text.slice(0, end).split('\n')
  const [line, column] = [lines.length, (lines.at(-1) ?? '').length + 1]
  const isSeveral =
    isComplete && /[\s\]}"]/.test(text[end - 1] ?? '') && new JsonGrammar().accept(tokenAt(text, end).type)
  const reason = isSeveral ? 'more than one JSON value, the second' : describeUnexpected(text, end, isInString)
  return { reason, line, column, message: `${reason} at line ${line}, column ${column}`, isSeveral }
}

/** Finds the end of a value and its white space, or the first invalid character. */
function scan(text: string): { end: number; isComplete: boolean; isInString: boolean } {
  const grammar = new JsonGrammar()
  let at = skipSpace(text, 0)
  while (grammar.state !== State.done) {
    const { type, end } = tokenAt(text, at)
    if (!grammar.accept(type)) {
      const invalidAt = type === TokenType.other ? end : at
      return { end: invalidAt, isComplete: false, isInString: invalidAt > at }
    }
    at = skipSpace(text, end)
  }
  return { end: at, isComplete: true, isInString: false }
}

/** Not a literal, which V8 would parse even if it is never used. */
const invisible = '[\\p{C}\\p{Z}]'

export function describeUnexpected(text: string, at: number, isInString: boolean): string {
  const point = text.codePointAt(at)
  if (point === undefined) return 'unexpected end of input'
  const character = String.fromCodePoint(point)
  if (character === '\\' && isInString) return 'invalid escape'
  if (RegExp(invisible, 'u').test(character)) return `unexpected U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  return `unexpected ${JSON.stringify(character)}`
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (tokenTypes[text.charCodeAt(at)] === TokenType.space) at += 1
  return at
}

/** The type of an invalid token is `other`, and its end is the position of the error. */
type JsonToken = Record<'type' | 'end', number>

function tokenAt(text: string, at: number): JsonToken {
  const type = tokenTypes[text.charCodeAt(at)] ?? TokenType.other
  if (type === TokenType.quote) return stringAt(text, at)
  if (type === TokenType.other) return { type, end: at }
  if (type !== TokenType.scalar) return { type, end: at + 1 }
  scalar.lastIndex = at
  return scalar.test(text) ? { type, end: scalar.lastIndex } : { type: TokenType.other, end: at }
}

function stringAt(text: string, from: number): JsonToken {
  let end = from + 1
  for (let last = from; end > last; ) {
    last = end
    stringPart.lastIndex = end
    stringPart.test(text)
    end = stringPart.lastIndex
  }
  if (text[end] === '"') return { type: TokenType.quote, end: end + 1 }
  // The error in an escape is at its backslash, or at the end of a text that was truncated inside it.
  const isTruncated = /^\\(?:u[\da-fA-F]{0,3})?$/.test(text.slice(end, end + 6))
  return { type: TokenType.other, end: isTruncated ? text.length : end }
}

/** Characters and escapes of a string. V8 keeps a state for each repetition, of which its stack holds some millions. */
const stringPart = /(?:[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})){0,1000}/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

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

const State = {
  value: 0,
  firstItem: 1,
  firstKey: 2,
  key: 3,
  colon: 4,
  memberEnd: 5,
  itemEnd: 6,
  done: 7,
} as const

/** Has a stack of its own: deep nesting cannot overflow the call stack. */
class JsonGrammar {
  state: number = State.value
  /** the state after a value in each open bracket */
  open: number[] = []

  /** Returns false, and changes nothing, if the token is not allowed here. */
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
