import { reasonOf } from '../platform/errors.js'

/**
 * Like `JSON.parse`, except that a numeric id of the object is exact: a bigint if it is an int64, otherwise a
 * `NumberText`; with `isList`, that of each object in an array. The reason of an error is the parser's own sentence.
 */
export function parseJson(
  text: string,
  { idKey = 'id', isList = false } = {},
): { value: unknown } | { reason: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { reason: reasonOf(error) }
  }
  if (isList && Array.isArray(value)) {
    const quoted = inexact.test(text) ? JSON.parse(withQuotedNumbers(text)) : []
    for (const [index, item] of value.entries())
      if (isObject(item) && typeof item[idKey] === 'number')
        item[idKey] = exact(item[idKey], quoted[index]?.[idKey])
  } else if (isObject(value) && typeof value[idKey] === 'number') {
    const isExact = Number.isSafeInteger(value[idKey]) && !inexact.test(text)
    value[idKey] = exact(value[idKey], isExact ? undefined : digitsOf(text, idKey))
  }
  return { value }
}

/** @param digits the number as it was written, unless it is exact */
function exact(number: number, digits: string | undefined): bigint | NumberText {
  return digits === undefined ? BigInt(number) : (parseInt64(digits) ?? new NumberText(digits))
}

/** Matches in every number that may be inexact: a fraction, an exponent, or 16 digits. Also within strings. */
const inexact = /\d(?:[.eE]|\d{15})/

/** The number of a member that an object has. */
function digitsOf(json: string, key: string): string {
  const name = key === 'id' ? '"id"' : JSON.stringify(key) // a call for each line would take a quarter of the time
  const at = json.indexOf(name)
  // Without escapes other than `\"`, a key is written in one way only: a name in quotes that occurs once is the key.
  const hasEscape = json.includes('\\') && /\\[^"]/.test(json)
  const isClear = at !== -1 && json.indexOf(name, at + 1) === -1 && !hasEscape
  colon.lastIndex = at + name.length
  if (!isClear || !colon.test(json)) return JSON.parse(withQuotedNumbers(json))[key]
  number.lastIndex = colon.lastIndex
  number.test(json)
  return json.slice(colon.lastIndex, number.lastIndex)
}

const colon = /\s*:\s*/y
const number = /[\d.eE+-]+/y

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
 * An int64 in JSON's number grammar: `1.0` and `1e3` are integers, `+1` and `007` are not. The exponent is compared,
 * not expanded, so `1e999999999` costs nothing.
 */
export function parseInt64(text: string): bigint | undefined {
  if (/^(?:0|-?[1-9]\d{0,18})$/.test(text)) return int64Of(text)
  const match = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return 0n
  let length = digits.length
  while (digits[length - 1] === '0') length -= 1
  const zeros = parseFloat(exponent) - fraction.length + digits.length - length
  if (zeros < 0 || length + zeros > 19) return undefined
  return int64Of(sign + digits.slice(0, length) + '0'.repeat(zeros))
}

function int64Of(digits: string): bigint | undefined {
  const value = BigInt(digits)
  return BigInt.asIntN(64, value) === value ? value : undefined
}

/** One line, with bigints as integers. Escapes what a terminal or a line reader may interpret. */
export function toJson(fields: object): string {
  return plantJson(fields, quoted) ?? escapeUnsafe(toWireJson(fields))
}

/** Few texts need an escape, and to search for one takes two thirds of the time of `JSON.stringify`. */
function quoted(text: string): string {
  return special.test(text) ? escapeUnsafe(JSON.stringify(text)) : `"${text}"`
}

function escapeUnsafe(json: string): string {
  return json.replace(
    unsafe,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** RFC 8259, section 11, with any parameters */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}

/** Only with the escapes that JSON requires. */
export function toWireJson(fields: object): string {
  const plant = plantJson(fields, JSON.stringify)
  if (plant !== undefined) return plant
  if (!Object.values(fields).some((value) => typeof value === 'bigint'))
    return JSON.stringify(fields)
  let members = ''
  for (const [key, value] of Object.entries(fields)) {
    if (value === undefined) continue
    members += `${members && ','}${JSON.stringify(key)}:${typeof value === 'bigint' ? value : JSON.stringify(value)}`
  }
  return `{${members}}`
}

/** Undefined for other objects. Plants, which are many, take half their time. */
function plantJson(fields: object, quote: (text: string) => string): string | undefined {
  const { id, name, tag } = fields as { id?: unknown; name?: unknown; tag?: unknown } // of which each is checked
  if (typeof id !== 'bigint' || typeof name !== 'string') return undefined
  const length = Object.keys(fields).length
  if (tag === undefined) return length === 2 ? `{"id":${id},"name":${quote(name)}}` : undefined
  const isPlant = length === 3 && typeof tag === 'string'
  return isPlant ? `{"id":${id},"name":${quote(name)},"tag":${quote(tag)}}` : undefined
}

/** Line separators, DEL, C1 and direction marks, which `JSON.stringify` does not escape. */
const unsafe = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** These, what JSON escapes, and lone surrogates. */
const special =
  /["\\\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u
