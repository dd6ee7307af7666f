import { JsonGrammar, Kind, kinds, State } from './json-grammar.js'

/**
 * Parses a JSON text (RFC 8259) like `JSON.parse`, except that a numeric `id` of a top-level object is exact: it becomes a bigint if it is
 * an int64, otherwise a `NumberText`.
 *
 * @throws {SyntaxError} with the position of the first invalid character; its `cause` is `severalValues` if the text contains several JSON
 * values
 */
export function parseJson(text: string): unknown {
  const parsed = tryJson(text)
  if (!isNotJson(parsed)) return parsed.value
  const { reason, line, column, isSeveral } = parsed
  throw new SyntaxError(`${reason} at line ${line}, column ${column}`, isSeveral ? { cause: severalValues } : {})
}

/** The `cause` of the syntax error for a text that contains more than one JSON value. */
export const severalValues = Symbol('several JSON values')

/** Why a text is not JSON, and the position of its first invalid character, counted from 1. */
interface NotJson {
  reason: string
  line: number
  column: number
  /** whether the text contains several JSON values */
  isSeveral: boolean
}

type Parsed = { value: unknown } | NotJson

export function isNotJson(parsed: Parsed): parsed is NotJson {
  return 'reason' in parsed
}

/**
 * Parses like `parseJson`, but returns the error instead of throwing it. With `isSuspect`, the text is scanned before `JSON.parse`, because
 * each failure of `JSON.parse` leaves a kilobyte and the text in V8's old generation.
 */
export function tryJson(text: string, { idKey = 'id', isSuspect = false } = {}): Parsed {
  const found = isSuspect ? scan(text, idKey) : undefined
  if (found && !(found.isComplete && found.end === text.length)) return syntaxError(text, found)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return syntaxError(text, scan(text, idKey))
  }
  if (!hasNumber(value, idKey)) return { value }
  const digits = (idKey === 'id' ? plainId(text) : undefined) ?? scan(text, idKey).id
  if (digits !== undefined) Object.defineProperty(value, idKey, { value: parseInt64(digits) ?? new NumberText(digits), enumerable: true })
  return { value }
}

/** The digits of an id that is the first member of an object and the only `id`: the usual case, in a tenth of the time of a scan. */
function plainId(text: string): string | undefined {
  const digits = /^\s*\{\s*"id"\s*:\s*(0|-?[1-9]\d{0,18})\s*[,}]/.exec(text)?.[1]
  return text.includes('\\') || text.indexOf('"id"') !== text.lastIndexOf('"id"') ? undefined : digits
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
  const digits = trimZeros(whole + fraction)
  if (digits.text === '') return 0n
  const zeros = parseFloat(exponent) - fraction.length + digits.trailing
  if (zeros < 0 || digits.text.length + zeros > 19) return undefined
  const value = BigInt(sign + digits.text + '0'.repeat(zeros))
  return BigInt.asIntN(64, value) === value ? value : undefined
}

/**
 * Writes an object as one line of JSON. Bigints are written as integers. Characters that can control a terminal (DEL, C1, direction marks)
 * and line separators are escaped, which does not change the value.
 */
export function toJson(fields: object): string {
  return escapeUnsafe(toWireJson(fields))
}

/** Escapes the same characters in a JSON text as `toJson`. */
export function escapeUnsafe(json: string): string {
  return json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whether a Content-Type is JSON (RFC 8259, section 11), with any parameters. */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}

/** Writes an object as JSON, with only the escapes that JSON requires. Bigints are written as integers. */
export function toWireJson(fields: object): string {
  if (!Object.values(fields).some((value) => typeof value === 'bigint')) return JSON.stringify(fields)
  const texts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`)
  return `{${texts.join(',')}}`
}

/** Characters that `JSON.stringify` does not escape, but that a terminal or a line reader may interpret. */
const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function hasNumber(value: unknown, key: string): value is object {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) && typeof Reflect.get(value, key) === 'number'
}

function trimZeros(digits: string): { text: string; trailing: number } {
  let start = 0
  while (digits[start] === '0') start += 1
  let end = digits.length
  while (end > start && digits[end - 1] === '0') end -= 1
  return { text: digits.slice(start, end), trailing: digits.length - end }
}

function syntaxError(text: string, { end, isComplete, isInString }: Scan): NotJson {
  let [line, lineStart] = [1, 0]
  for (let at = text.indexOf('\n'); at >= 0 && at < end; at = text.indexOf('\n', lineStart)) {
    line += 1
    lineStart = at + 1
  }
  const isSeveral = isComplete && /[\s\]}"]/.test(text[end - 1] ?? '') && new JsonGrammar().accept(tokenAt(text, end).kind)
  const reason = isSeveral ? 'more than one JSON value, the second' : describeUnexpected(text, end, isInString)
  return { reason, line, column: end - lineStart + 1, isSeveral }
}

/** The reason of a syntax error at a position of a text. */
export function describeUnexpected(text: string, at: number, isInString: boolean): string {
  const point = text.codePointAt(at)
  if (point === undefined) return 'unexpected end of input'
  const character = String.fromCodePoint(point)
  if (character === '\\' && isInString) return 'invalid escape'
  if (/[\p{C}\p{Z}]/u.test(character)) return `unexpected U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  return `unexpected ${JSON.stringify(character)}`
}

interface Scan {
  /** the position after the value and its white space, or of the first invalid character */
  end: number
  isComplete: boolean
  isInString: boolean
  /** the raw text of the last top-level id, if that is a scalar */
  id: string | undefined
}

function scan(text: string, idKey: string): Scan {
  const grammar = new JsonGrammar()
  let at = skipSpace(text, 0)
  let key = ''
  let id: string | undefined
  while (grammar.state !== State.done) {
    const { kind, end } = tokenAt(text, at)
    const { state, expectsKey } = grammar
    const isTopLevel = grammar.open.length === 1
    if (!grammar.accept(kind)) {
      const invalidAt = kind === Kind.other ? end : at
      return { end: invalidAt, isComplete: false, isInString: invalidAt > at, id }
    }
    if (isTopLevel && expectsKey) key = text.slice(at, end)
    else if (isTopLevel && state === State.value && isKey(key, idKey)) id = kind === Kind.scalar ? text.slice(at, end) : undefined
    at = skipSpace(text, end)
  }
  return { end: at, isComplete: true, isInString: false, id }
}

/** The texts of the elements of a JSON array, so that each can be parsed exactly; undefined if the text is not an array. */
export function elementsOf(text: string): string[] | undefined {
  const grammar = new JsonGrammar()
  const elements: string[] = []
  let at = skipSpace(text, 0)
  if (text[at] !== '[') return undefined
  let start = at
  while (grammar.state !== State.done) {
    const { kind, end } = tokenAt(text, at)
    if (grammar.open.length === 1 && grammar.state !== State.itemEnd) start = at
    if (!grammar.accept(kind)) return undefined
    if (grammar.open.length === 1 && grammar.state === State.itemEnd) elements.push(text.slice(start, end))
    at = skipSpace(text, end)
  }
  return at === text.length ? elements : undefined
}

function isKey(raw: string, key: string): boolean {
  return raw.slice(1, -1) === key || (raw.includes('\\') && JSON.parse(raw) === key)
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (kinds[text.charCodeAt(at)] === Kind.space) at += 1
  return at
}

/** A token and its end. The kind of an invalid token is `other`, and its end is the position of the error. */
type JsonToken = Record<'kind' | 'end', number>

function tokenAt(text: string, at: number): JsonToken {
  const kind = kinds[text.charCodeAt(at)] ?? Kind.other
  if (kind === Kind.quote) return stringAt(text, at)
  if (kind === Kind.other) return { kind, end: at }
  if (kind !== Kind.scalar) return { kind, end: at + 1 }
  scalar.lastIndex = at
  return scalar.test(text) ? { kind, end: scalar.lastIndex } : { kind: Kind.other, end: at }
}

function stringAt(text: string, from: number): JsonToken {
  stringStart.lastIndex = from
  stringStart.test(text)
  const end = stringStart.lastIndex
  if (text[end] === '"') return { kind: Kind.quote, end: end + 1 }
  // The error in an escape is at its backslash, or at the end of a text that was truncated inside it.
  const isTruncated = /^\\(?:u[\da-fA-F]{0,3})?$/.test(text.slice(end, end + 6))
  return { kind: Kind.other, end: isTruncated ? text.length : end }
}

/** A string up to its closing quote, or to its first invalid character. */
const stringStart = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
