/*
 * Reads and writes JSON whose ids are exact int64 integers.
 *
 * `JSON.parse` rounds 9007199254740993 to 9007199254740992, and gives a reviver the digits only
 * from Node.js 21 on. So `JSON.parse` does the work, and where a number may have been rounded, the
 * digits of the id are read from the source: after its key if the key occurs once, and otherwise by
 * a second parse in which every number is in quotes. Libraries that keep the digits parse in
 * JavaScript, which is too slow for an import.
 */

/**
 * Parses JSON, and replaces a numeric id of the object by a bigint if it is an int64, and otherwise
 * by a `NumberLiteral`.
 *
 * @param options.idKey the key of the id, as an import may rename it
 * @param options.isList whether the objects of an array have their ids replaced, too
 * @returns the value, or `isInvalid` for a string that is not JSON. `explainSyntaxError` says
 *   where it is wrong.
 */
export function parseJson(
  json: string,
  { idKey = 'id', isList = false } = {},
): { value: unknown } | { isInvalid: true } {
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    return { isInvalid: true }
  }
  const mayBeRounded = roundableNumber.test(json)
  if (isList && Array.isArray(value)) {
    // The same array, in which each number is a string of its digits.
    const digitItems = mayBeRounded ? JSON.parse(quoteNumbers(json)) : []
    for (const [index, item] of value.entries())
      if (isObject(item) && typeof item[idKey] === 'number')
        item[idKey] = toExactNumber(item[idKey], digitItems[index]?.[idKey])
  } else if (isObject(value) && typeof value[idKey] === 'number')
    value[idKey] = toExactNumber(value[idKey], mayBeRounded ? findDigits(json, idKey) : undefined)
  return { value }
}

/**
 * Matches a part of each number that `JSON.parse` may round, which has a fraction, an exponent or
 * at least 16 digits. It may also match within a string, which costs time but changes nothing.
 */
const roundableNumber = /\d(?:[.eE]|\d{15})/

/** @param digits the number as it was written, or undefined if `number` is exact */
function toExactNumber(number: number, digits: string | undefined): bigint | NumberLiteral {
  return digits === undefined ? BigInt(number) : (parseInt64(digits) ?? new NumberLiteral(digits))
}

/**
 * Returns the number that is the value of a key, as it was written. If the key occurs once, the
 * number follows it. Otherwise the JSON is parsed again: in `{"name":"id","id":1}`, the first
 * `"id"` is a value.
 */
function findDigits(json: string, key: string): string {
  const name = JSON.stringify(key)
  const keyOffset = json.indexOf(name)
  numberAfterKey.lastIndex = keyOffset + name.length
  const digits = numberAfterKey.exec(json)?.[1]
  // An escape such as `\u0069d` could write the key in another way, and `\"` cannot.
  const isOnlyOccurrence = json.indexOf(name, keyOffset + 1) === -1 && !/\\[^"]/.test(json)
  if (isOnlyOccurrence && digits) return digits
  return JSON.parse(quoteNumbers(json))[key]
}

/** Matches the number after a key. It takes half the time of `split`. */
const numberAfterKey = /\s*:\s*([\d.eE+-]+)/y

/** @param json must be valid JSON: then each digit outside of a string belongs to a number */
function quoteNumbers(json: string): string {
  let isInString = false
  return json.replace(/\\.|"|-?\d[\d.eE+-]*/gs, (token) => {
    if (token === '"') isInString = !isInString
    return isInString || token === '"' ? token : `"${token}"`
  })
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isString(value: unknown): value is string {
  return typeof value === 'string'
}

/** A JSON number that is no int64, such as 1.5, as it was written. */
export class NumberLiteral {
  constructor(readonly source: string) {}
}

/**
 * Parses an int64 in JSON's grammar of numbers: `1.0` and `1e3` are integers, `+1` and `007` are
 * not. The exponent is compared and not expanded, so `1e999999999` costs nothing.
 */
export function parseInt64(literal: string): bigint | undefined {
  const value = plainInteger.test(literal) ? BigInt(literal) : parseInteger(literal)
  return isInt64(value) ? value : undefined
}

const plainInteger = /^-?[1-9]\d{0,18}$/

function parseInteger(literal: string): bigint | undefined {
  const match = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return 0n
  let significantCount = digits.length
  while (digits[significantCount - 1] === '0') significantCount -= 1
  // `12.50e3` has the significant digits 125, and stands for 12500: two zeros follow. If the count
  // is below zero, the number has a fraction.
  const trailingZeros = digits.length - significantCount
  const zeroCount = parseFloat(exponent) - fraction.length + trailingZeros
  if (zeroCount < 0 || significantCount + zeroCount > 19) return undefined
  return BigInt(sign + digits.slice(0, significantCount) + '0'.repeat(zeroCount))
}

export function isInt64(value: unknown): value is bigint {
  return typeof value === 'bigint' && BigInt.asIntN(64, value) === value
}

/**
 * Writes an object as one line of JSON for people and pipes, with bigints as integers. What a
 * terminal or a reader of lines may interpret is escaped.
 */
export function toJson(fields: object): string {
  return formatPlant(fields, quoteString) ?? escapeUnsafeCharacters(toWireJson(fields))
}

/** Writes an object as JSON for a service, with only the escapes that JSON requires. */
export function toWireJson(fields: object): string {
  const plant = formatPlant(fields, JSON.stringify)
  if (plant !== undefined) return plant
  const members = Object.entries(fields).flatMap(([key, value]) => {
    if (value === undefined) return []
    return `${JSON.stringify(key)}:${formatValue(value)}`
  })
  return `{${members.join()}}`
}

/** `JSON.stringify` would reject the id of a plant in an object. */
function formatValue(value: unknown): string {
  if (typeof value === 'bigint') return String(value)
  const plant = isObject(value) ? formatPlant(value, JSON.stringify) : undefined
  return plant ?? JSON.stringify(value)
}

/**
 * Writes a plant in half of the time that `toWireJson` needs for other objects, because a list has
 * many plants. Returns undefined for an object that is not a plant.
 */
function formatPlant(fields: object, quoteField: (field: string) => string): string | undefined {
  // The cast is safe, because the type of each field is checked below.
  const { id, name, tag } = fields as { id?: unknown; name?: unknown; tag?: unknown }
  if (typeof id !== 'bigint' || typeof name !== 'string') return undefined
  const { length } = Object.keys(fields)
  const start = `{"id":${id},"name":${quoteField(name)}`
  if (tag === undefined) return length === 2 ? `${start}}` : undefined
  return length === 3 && typeof tag === 'string' ? `${start},"tag":${quoteField(tag)}}` : undefined
}

/**
 * Few strings contain a character to escape, so to search for such a character first saves half of
 * the time.
 */
function quoteString(string: string): string {
  return charactersToEscape.test(string)
    ? escapeUnsafeCharacters(JSON.stringify(string))
    : `"${string}"`
}

function escapeUnsafeCharacters(json: string): string {
  return json.replace(
    unsafeCharacters,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Matches line separators, DEL, C1 and direction marks, which `JSON.stringify` does not escape. */
const unsafeCharacters = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * Matches the characters of `unsafeCharacters`, the characters that JSON must escape, and lone
 * surrogates.
 */
const charactersToEscape =
  /["\\\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/u

/**
 * Returns true for the Content-Type of JSON, with any parameters, such as `application/json;
 * charset=utf-8`.
 */
export function isJsonType(contentType: string): boolean {
  return /^application\/json[\t ]*(?:;|$)/i.test(contentType)
}
