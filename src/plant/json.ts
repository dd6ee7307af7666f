/**
 * Parses one JSON text (RFC 8259) like `JSON.parse`, except that a numeric `id` of a top-level
 * object keeps its digits: it becomes a bigint when it is an int64, else a `NumberText`.
 *
 * @throws {SyntaxError} with the line and column of the first character that is not JSON;
 * its `cause` is `severalValues` when the text is several JSON texts in a row.
 */
export function parseJson(text: string): unknown {
  const value = tryJson(text)
  if (!(value instanceof NotJson)) return value
  throw new SyntaxError(`${value.reason} at line ${value.line}, column ${value.column}`, value.isSeveral ? { cause: severalValues } : {})
}

/** Why a text is not JSON, and where its first character stands that is not. */
export class NotJson {
  readonly reason: string
  /** from 1 */
  readonly line: number
  /** from 1 */
  readonly column: number
  /** whether the text is several JSON texts in a row */
  readonly isSeveral: boolean

  constructor(reason: string, { line, column, isSeveral = false }: { line: number; column: number; isSeveral?: boolean }) {
    this.reason = reason
    this.line = line
    this.column = column
    this.isSeveral = isSeveral
  }
}

interface JsonOptions {
  /** what the id is called */
  idKey?: string
  /** whether the text is likely to be no JSON */
  isSuspect?: boolean
}

/**
 * Parses as `parseJson` does, and gives a `NotJson` where that throws. A suspect text is scanned first: each failure of `JSON.parse`
 * leaves a kilobyte, with the text, in V8's old generation.
 */
export function tryJson(text: string, { idKey = 'id', isSuspect = false }: JsonOptions = {}): unknown {
  const found = isSuspect ? scan(text, idKey) : undefined
  if (found && !(found.isComplete && found.end === text.length)) return explain(text, found)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return explain(text, scan(text))
  }
  if (!hasNumber(value, idKey)) return value
  const digits = (idKey === 'id' ? plainId(text) : undefined) ?? scan(text, idKey).id
  if (digits === undefined) return value
  Object.defineProperty(value, idKey, { value: parseInt64(digits) ?? new NumberText(digits), enumerable: true })
  return value
}

/** The digits of an id that stands first in an object, where nothing behind it can be another one: the usual text, in a tenth of the time. */
function plainId(text: string): string | undefined {
  const digits = /^\s*\{\s*"id"\s*:\s*(0|-?[1-9]\d{0,18})\s*[,}]/.exec(text)?.[1]
  return text.includes('\\') || text.indexOf('"id"') !== text.lastIndexOf('"id"') ? undefined : digits
}

/** The `cause` of a syntax error in a text that holds more than one JSON value. */
export const severalValues = Symbol('several JSON values')

/** A JSON number that is not an int64, as it was written. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Reads an int64 in JSON's number grammar: `-5`, `1.0` and `1e3` are integers, `1.5`, `+1` and
 * `007` are not. Decided from digits and exponent, so `1e999999999` costs nothing.
 *
 * @returns undefined when the text is not a JSON number, has a fraction, or does not fit 64 bits.
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
  const place = { line, column: end - lineStart + 1 }
  const isSeveral = isComplete && /[\s\]}"]/.test(text[end - 1] ?? '') && Object.hasOwn(grammar.value, tokenAt(text, end).kind)
  if (isSeveral) return new NotJson('more than one JSON value, the second', { ...place, isSeveral })
  return new NotJson(describeBreak(text, end, isInString), place)
}

function describeBreak(text: string, at: number, isInString: boolean): string {
  const point = text.codePointAt(at)
  if (point === undefined) return 'the text ends'
  const character = String.fromCodePoint(point)
  if (character === '\\' && isInString) return 'an escape that JSON does not have'
  if (/[\p{C}\p{Z}]/u.test(character)) return `unexpected U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  return `unexpected ${JSON.stringify(character)}`
}

/** What may come in each place of a JSON text, and which place comes behind it; "after" is the place behind a whole value. */
const grammar = {
  value: { '{': 'first key', '[': 'first item', string: 'after', scalar: 'after' },
  'first item': { '{': 'first key', '[': 'first item', string: 'after', scalar: 'after', ']': 'after' },
  'first key': { string: 'colon', '}': 'after' },
  key: { string: 'colon' },
  colon: { ':': 'value' },
  'member end': { ',': 'key', '}': 'after' },
  'item end': { ',': 'value', ']': 'after' },
} satisfies Record<string, Record<string, Place | 'after'>>

type Place = 'value' | 'first item' | 'first key' | 'key' | 'colon' | 'member end' | 'item end'

interface Scan {
  /** behind the value and its white space, or where the text stops being JSON */
  end: number
  isComplete: boolean
  /** it stops inside a string */
  isInString: boolean
  /** raw text of the last top-level member that is the id, when that is a scalar */
  id: string | undefined
}

/** Reads the first JSON value of a text. The stack is its own, so depth costs memory and nothing else. */
function scan(text: string, idKey = 'id'): Scan {
  const walk = new Walk(idKey)
  for (let at = skipSpace(text, 0); ; at = skipSpace(text, at)) {
    const token = tokenAt(text, at)
    if (!walk.step(token, text, at)) {
      const isBroken = token.kind === 'broken'
      return { end: isBroken ? token.end : at, isComplete: false, isInString: isBroken && text[at] === '"', id: walk.id }
    }
    at = token.end
    if (walk.isDone) return { end: skipSpace(text, at), isComplete: true, isInString: false, id: walk.id }
  }
}

class Walk {
  id: string | undefined
  isDone = false
  #place: Place = 'value'
  /** for each bracket that is open, the place behind a value in it */
  readonly #open: Place[] = []
  readonly #idKey: string
  #key = ''

  constructor(idKey: string) {
    this.#idKey = idKey
  }

  /** Takes one token; false when it may not come here. */
  step({ kind, end }: Token, text: string, start: number): boolean {
    const next: Place | 'after' | undefined = (grammar[this.#place] as Record<string, Place | 'after'>)[kind]
    if (next === undefined) return false
    if (this.#open.length === 1) this.#note(kind, text.slice(start, end))
    if (kind === '{') this.#open.push('member end')
    if (kind === '[') this.#open.push('item end')
    if (kind === '}' || kind === ']') this.#open.pop()
    const behind = this.#open.at(-1)
    this.isDone = next === 'after' && behind === undefined
    this.#place = next === 'after' ? (behind ?? 'value') : next
    return true
  }

  #note(kind: Token['kind'], raw: string): void {
    if (this.#place === 'key' || this.#place === 'first key') this.#key = raw
    else if (this.#place === 'value' && isKey(this.#key, this.#idKey)) this.id = kind === 'scalar' ? raw : undefined
  }
}

function isKey(raw: string, key: string): boolean {
  return raw.slice(1, -1) === key || (raw.includes('\\') && JSON.parse(raw) === key)
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at += 1
  return at
}

interface Token {
  kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'scalar' | 'broken'
  end: number
}

function tokenAt(text: string, at: number): Token {
  const character = text[at] ?? ''
  if (isPunctuation(character)) return { kind: character, end: at + 1 }
  if (character === '"') return stringAt(text, at)
  return testAt(scalar, text, at) ? { kind: 'scalar', end: scalar.lastIndex } : { kind: 'broken', end: at }
}

function isPunctuation(character: string): character is '{' | '}' | '[' | ']' | ',' | ':' {
  return character !== '' && '{}[],:'.includes(character)
}

function stringAt(text: string, from: number): Token {
  let at = from + 1
  for (;;) {
    const character = text[at]
    if (character === '"') return { kind: 'string', end: at + 1 }
    if (character === undefined || character < ' ') return { kind: 'broken', end: at }
    if (character === '\\' && !testAt(escaped, text, at)) return { kind: 'broken', end: brokenEscapeEnd(text, at) }
    at = character === '\\' ? escaped.lastIndex : at + 1
  }
}

/** Where an escape breaks: at its backslash, or at the end of a text that was cut inside it. */
function brokenEscapeEnd(text: string, at: number): number {
  return /^\\(?:u[\da-fA-F]{0,3})?$/.test(text.slice(at, at + 6)) ? text.length : at
}

/** Whether a sticky pattern matches at a place; its `lastIndex` is then behind the match. */
function testAt(pattern: RegExp, text: string, at: number): boolean {
  pattern.lastIndex = at
  return pattern.test(text)
}

const escaped = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
