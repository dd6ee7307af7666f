import { JsonGrammar, State, TokenType, tokenTypes } from './json-grammar.js'

interface NotJson {
  reason: string
  line: number
  column: number
  message: string
  isSeveral: boolean
}

/**
 * Parses a JSON text (RFC 8259) like `JSON.parse`, except that a numeric id of the object is exact: it becomes a bigint if it is an int64,
 * otherwise a `NumberText`; with `isList`, that of each object in an array. With `isSuspect`, the text is scanned before `JSON.parse`, because
 * each failure of `JSON.parse` leaves a kilobyte and the text in V8's old generation.
 */
export function parseJson(text: string, { idKey = 'id', isList = false, isSuspect = false } = {}): { value: unknown } | NotJson {
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
  if (isList && Array.isArray(value)) setExactIds(value, text, idKey)
  else if (hasNumber(value, idKey)) setExactId(value, idKey, (idKey === 'id' && plainId(text)) || exactIn(text)[idKey])
  return { value }
}

function hasNumber(value: unknown, key: string): value is object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.hasOwn(value, key) && typeof Reflect.get(value, key) === 'number'
}

function setExactIds(items: unknown[], text: string, key: string): void {
  if (!items.some((item) => hasNumber(item, key))) return
  const exact = exactIn(text)
  for (const [index, item] of items.entries()) if (hasNumber(item, key)) setExactId(item, key, exact[index][key])
}

function setExactId(object: object, key: string, digits: string): void {
  Object.defineProperty(object, key, { value: parseInt64(digits) ?? new NumberText(digits) })
}

/**
 * The digits of an id that is the first member and the only `id`: the usual case, in a tenth of the time of another
 * parse.
 */
function plainId(text: string): string | undefined {
  const digits = /^\s*\{\s*"id"\s*:\s*(0|-?[1-9]\d{0,18})\s*[,}]/.exec(text)?.[1]
  return text.includes('\\') || text.indexOf('"id"') !== text.lastIndexOf('"id"') ? undefined : digits
}

/** Parses a text that is JSON, with a string of its digits for each number. */
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

/** A JSON number that is not an int64, with its text. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Parses an int64 in JSON's number grammar: `-5`, `1.0` and `1e3` are integers, `1.5`, `+1` and `007` are not. Returns undefined for any
 * other text. The exponent is compared, not expanded, so `1e999999999` costs nothing.
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

/**
 * Writes an object as one line of JSON, with bigints as integers. Escapes what a terminal or a line reader may
 * interpret.
 */
export function toJson(fields: object): string {
  return escapeUnsafe(toWireJson(fields))
}

export function escapeUnsafe(json: string): string {
  return json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whether a Content-Type is JSON (RFC 8259, section 11), with any parameters. */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}

/** Writes an object as JSON, with bigints as integers and only the escapes that JSON requires. */
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
  const isSeveral = isComplete && /[\s\]}"]/.test(text[end - 1] ?? '') && new JsonGrammar().accept(tokenAt(text, end).type)
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

/** Not a literal: V8 takes 0.25 ms to parse one with such classes, even if it is never used. */
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
