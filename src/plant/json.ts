import { JsonGrammar, Kind, kinds, State } from './json-grammar.js'

/**
 * Parses one JSON text (RFC 8259) like `JSON.parse`, except that a numeric `id` of a top-level
 * object keeps its digits: it becomes a bigint when it is an int64, else a `NumberText`. Throws a SyntaxError with the place of
 * the first character that is not JSON; its `cause` is `severalValues` when the text is several JSON texts in a row.
 */
export function parseJson(text: string): unknown {
  const parsed = tryJson(text)
  if (!isNotJson(parsed)) return parsed.value
  const { reason, line, column, isSeveral } = parsed
  throw new SyntaxError(`${reason} at line ${line}, column ${column}`, isSeveral ? { cause: severalValues } : {})
}

/** The `cause` of a syntax error in a text that holds more than one JSON value. */
export const severalValues = Symbol('several JSON values')

/** Why a text is not JSON, and the place, from 1, of its first character that is not. */
interface NotJson {
  reason: string
  line: number
  column: number
  /** whether the text is several JSON texts in a row */
  isSeveral: boolean
}

type Parsed = { value: unknown } | NotJson

export function isNotJson(parsed: Parsed): parsed is NotJson {
  return 'reason' in parsed
}

/**
 * Parses as `parseJson` does, and throws nothing. A suspect text is scanned first: each failure of `JSON.parse`
 * leaves a kilobyte, with the text, in V8's old generation.
 */
export function tryJson(text: string, { idKey = 'id', isSuspect = false } = {}): Parsed {
  const found = isSuspect ? scan(text, idKey) : undefined
  if (found && !(found.isComplete && found.end === text.length)) return explain(text, found)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return explain(text, scan(text, idKey))
  }
  if (!hasNumber(value, idKey)) return { value }
  const digits = (idKey === 'id' ? plainId(text) : undefined) ?? scan(text, idKey).id
  if (digits !== undefined) Object.defineProperty(value, idKey, { value: parseInt64(digits) ?? new NumberText(digits), enumerable: true })
  return { value }
}

/** The digits of an id that stands first in an object, where nothing behind it can be another one: the usual text, in a tenth of the time. */
function plainId(text: string): string | undefined {
  const digits = /^\s*\{\s*"id"\s*:\s*(0|-?[1-9]\d{0,18})\s*[,}]/.exec(text)?.[1]
  return text.includes('\\') || text.indexOf('"id"') !== text.lastIndexOf('"id"') ? undefined : digits
}

/** A JSON number that is not an int64, as it was written. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Reads an int64 in JSON's number grammar: `-5`, `1.0` and `1e3` are integers, `1.5`, `+1` and `007` are not; undefined for any other
 * text. Decided from digits and exponent, so `1e999999999` costs nothing.
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
 * Writes a value as one line of JSON. Bigints are written as integers. Characters that could drive a
 * terminal (DEL, C1, direction marks) and line separators are escaped: the value stays exact.
 */
export function toJson(fields: object): string {
  return escapeUnsafe(toWireJson(fields))
}

/** Escapes in a JSON text what could drive a terminal or break a line, as `toJson` does. */
export function escapeUnsafe(json: string): string {
  return json.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Whether a Content-Type says JSON (RFC 8259, 11); parameters are fine. */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}

/** Writes a value as JSON for another program: nothing is escaped that need not be. Bigints are written as integers. */
export function toWireJson(fields: object): string {
  if (!Object.values(fields).some((value) => typeof value === 'bigint')) return JSON.stringify(fields)
  const texts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`)
  return `{${texts.join(',')}}`
}

/** What `JSON.stringify` leaves as it is although a terminal or a line reader may act on it. */
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

function explain(text: string, { end, isComplete, isInString }: Scan): NotJson {
  let [line, lineStart] = [1, 0]
  for (let at = text.indexOf('\n'); at >= 0 && at < end; at = text.indexOf('\n', lineStart)) {
    line += 1
    lineStart = at + 1
  }
  const isSeveral = isComplete && /[\s\]}"]/.test(text[end - 1] ?? '') && new JsonGrammar().accept(tokenAt(text, end).kind)
  const reason = isSeveral ? 'more than one JSON value, the second' : describeBreak(text, end, isInString)
  return { reason, line, column: end - lineStart + 1, isSeveral }
}

function describeBreak(text: string, at: number, isInString: boolean): string {
  const point = text.codePointAt(at)
  if (point === undefined) return 'the text ends'
  const character = String.fromCodePoint(point)
  if (character === '\\' && isInString) return 'an escape that JSON does not have'
  if (/[\p{C}\p{Z}]/u.test(character)) return `unexpected U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  return `unexpected ${JSON.stringify(character)}`
}

interface Scan {
  /** after the value and its white space, or where the text stops being JSON */
  end: number
  isComplete: boolean
  isInString: boolean
  /** raw text of the last top-level member that is the id, when that is a scalar */
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
      const brokenAt = kind === Kind.other ? end : at
      return { end: brokenAt, isComplete: false, isInString: brokenAt > at, id }
    }
    if (isTopLevel && expectsKey) key = text.slice(at, end)
    else if (isTopLevel && state === State.value && isKey(key, idKey)) id = kind === Kind.scalar ? text.slice(at, end) : undefined
    at = skipSpace(text, end)
  }
  return { end: at, isComplete: true, isInString: false, id }
}

/** The texts of the elements of a JSON array, so that each can be parsed exactly; undefined for what is no array. */
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

/** A token; of the kind `other`, with the place where it breaks, for what is none. */
type Token = Record<'kind' | 'end', number>

function tokenAt(text: string, at: number): Token {
  const kind = kinds[text.charCodeAt(at)] ?? Kind.other
  if (kind === Kind.quote) return stringAt(text, at)
  if (kind === Kind.other) return { kind, end: at }
  if (kind !== Kind.scalar) return { kind, end: at + 1 }
  scalar.lastIndex = at
  return scalar.test(text) ? { kind, end: scalar.lastIndex } : { kind: Kind.other, end: at }
}

function stringAt(text: string, from: number): Token {
  stringStart.lastIndex = from
  stringStart.test(text)
  const end = stringStart.lastIndex
  if (text[end] === '"') return { kind: Kind.quote, end: end + 1 }
  // An escape breaks at its backslash, or at the end of a text that was cut inside it.
  const isCut = /^\\(?:u[\da-fA-F]{0,3})?$/.test(text.slice(end, end + 6))
  return { kind: Kind.other, end: isCut ? text.length : end }
}

/** A string up to its closing quote, or to what may not be in it. */
const stringStart = /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
