/*
 * JSON with ids as int64. `JSON.parse` rounds numbers, and gives a reviver their digits only from
 * Node 21 on. So where a number may be rounded, the id is read from the text: after its key, if
 * that occurs once, else by a second parse, with the numbers in quotes. Libraries that keep the
 * digits parse by JavaScript, which is slow for an import.
 */
import { describeReason } from '../errors.js'

/**
 * Like `JSON.parse`, except that a numeric id of the object is exact: a bigint if it is an int64,
 * otherwise a `NumberText`; with `isList`, that of each object in an array. The reason of an error
 * is the parser's own sentence.
 */
export function parseJson(
  text: string,
  { idKey = 'id', isList = false } = {},
): { value: unknown } | { reason: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { reason: describeReason(error) }
  }
  const isExact = !inexact.test(text)
  if (isList && Array.isArray(value)) {
    const quoted = isExact ? [] : JSON.parse(withQuotedNumbers(text))
    for (const [index, item] of value.entries())
      if (isObject(item) && typeof item[idKey] === 'number')
        item[idKey] = exact(item[idKey], quoted[index]?.[idKey])
  } else if (isObject(value) && typeof value[idKey] === 'number')
    value[idKey] = exact(value[idKey], isExact ? undefined : findDigits(text, idKey))
  return { value }
}

/**
 * Matches in every number that may be inexact: a fraction, an exponent, or 16 digits. Also within
 * strings.
 */
const inexact = /\d(?:[.eE]|\d{15})/

/** @param digits the number as it was written, unless it is exact */
function exact(number: number, digits: string | undefined): bigint | NumberText {
  return digits === undefined ? BigInt(number) : (parseInt64(digits) ?? new NumberText(digits))
}

/** Of a member that the object has. */
function findDigits(json: string, key: string): string {
  const name = JSON.stringify(key)
  const at = json.indexOf(name)
  member.lastIndex = at + name.length
  const digits = member.exec(json)?.[1]
  // Without escapes other than `\"`, a name in quotes that occurs once is the key.
  const isOnly = json.indexOf(name, at + 1) === -1 && !/\\[^"]/.test(json)
  return (isOnly && digits) || JSON.parse(withQuotedNumbers(json))[key]
}

/** What follows the key, in half the time of `split`. */
const member = /\s*:\s*([\d.eE+-]+)/y

/** @param json valid, so that what begins with a digit outside of strings is a number */
function withQuotedNumbers(json: string): string {
  let isInString = false
  return json.replace(/\\.|"|-?\d[\d.eE+-]*/gs, (token) => {
    if (token === '"') isInString = !isInString
    return isInString || token === '"' ? token : `"${token}"`
  })
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A JSON number that is not an int64. */
export class NumberText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * An int64 in JSON's number grammar: `1.0` and `1e3` are integers, `+1` and `007` are not. The
 * exponent is compared, not expanded, so `1e999999999` costs nothing.
 */
export function parseInt64(text: string): bigint | undefined {
  const value = isPlain.test(text) ? BigInt(text) : parseInteger(text)
  return isInt64(value) ? value : undefined
}

const isPlain = /^-?[1-9]\d{0,18}$/

function parseInteger(text: string): bigint | undefined {
  const match = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return 0n
  let length = digits.length
  while (digits[length - 1] === '0') length -= 1
  const zeros = parseFloat(exponent) - fraction.length + digits.length - length
  if (zeros < 0 || length + zeros > 19) return undefined
  return BigInt(sign + digits.slice(0, length) + '0'.repeat(zeros))
}

export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && BigInt.asIntN(64, value) === value
}

/** One line, with bigints as integers. Escapes what a terminal or a line reader may interpret. */
export function toJson(fields: object): string {
  return plantJson(fields, quoteString) ?? escapeUnsafe(toWireJson(fields))
}

/** Only with the escapes that JSON requires. */
export function toWireJson(fields: object): string {
  const plant = plantJson(fields, JSON.stringify)
  if (plant !== undefined) return plant
  const members = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined) return []
    const json = typeof value === 'bigint' ? String(value) : JSON.stringify(value)
    return `${JSON.stringify(key)}:${json}`
  })
  return `{${members.join()}}`
}

/** Undefined for other objects. Plants, which are many, take half their time. */
function plantJson(fields: object, quote: (text: string) => string): string | undefined {
  // Each of them is checked below.
  const { id, name, tag } = fields as { id?: unknown; name?: unknown; tag?: unknown }
  if (typeof id !== 'bigint' || typeof name !== 'string') return undefined
  const { length } = Object.keys(fields)
  const start = `{"id":${id},"name":${quote(name)}`
  if (tag === undefined) return length === 2 ? `${start}}` : undefined
  return length === 3 && typeof tag === 'string' ? `${start},"tag":${quote(tag)}}` : undefined
}

/** Few texts need an escape. To search for one first takes half the time. */
function quoteString(text: string): string {
  return special.test(text) ? escapeUnsafe(JSON.stringify(text)) : `"${text}"`
}

function escapeUnsafe(json: string): string {
  return json.replace(
    unsafe,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Line separators, DEL, C1 and direction marks, which `JSON.stringify` does not escape. */
const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Also what JSON escapes, and lone surrogates. */
const special =
  /["\\\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u

/** With any parameters. */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}
