import type { Refusal } from './refusals.js'

export const seedling = '\u{1f331}'
export const range = 'an integer from -9223372036854775808 to 9223372036854775807'
export const digits = 'an integer, in digits only'
const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'
const onePlant = 'plants create takes one plant. For many, use plants import'
const deep = (inside: string) => '['.repeat(100_000) + inside + ']'.repeat(100_000)

// That messages are right for any text is a property in unit/plant and in conformance/service/verdicts.test.ts.
const notJson: Refusal[] = [
  ['{', 'unexpected end of input at line 1, column 2'],
  ['{"id":1,}', 'unexpected "}" at line 1, column 9'],
  ['id,name\n1,Fern\n', 'unexpected "i" at line 1, column 1'],
  ['{"name":"a\nb"}', 'unexpected U+000A at line 1, column 11'],
  ['{"name":"C:\\plants"}', 'invalid escape at line 1, column 12'],
  ['{\r\n"id":1,\r\n"name":Fern}', 'unexpected "F" at line 3, column 8'],
  ['\u001b[31m', 'unexpected U+001B at line 1, column 1'],
  ['{"id":1,"name":"Fern"} nul', 'unexpected "n" at line 1, column 24'],
  ['{"a":'.repeat(100_000), 'unexpected end of input at line 1, column 500001'],
  [`${'['.repeat(100_000)}}`, 'unexpected "}" at line 1, column 100001'],
].map(([stdin = '', what]): Refusal => [{ argv: 'create', stdin }, 2, 400, `Stdin is not JSON: ${what}`, example])

const severalValues: Refusal[] = [
  ['{"id":1,"name":"Fern"}\r\n\r\n{"id":2', 'line 3, column 1'],
  ['{"id":1,"name":"Fern"} true story', 'line 1, column 24'],
  ['null null', 'line 1, column 6'],
].map(([stdin = '', where]): Refusal => {
  const message = `Stdin contains more than one JSON value, the second at ${where}`
  return [{ argv: 'create', stdin }, 2, 400, message, onePlant]
})

const noId = 'id must be an integer, but is missing'
const noName = 'name must be a string, but is missing'
const notPlants: Refusal[] = [
  ['1e400', 'it must be an object, but was a number'],
  [JSON.stringify('x'.repeat(41)), `it must be an object, but was "${'x'.repeat(39)}…"`],
  ['{}', `${noId}; ${noName}`],
  ['{"id":1,"nmae":"x"}', noName, '"nmae"'],
  ['{"__proto__":{"id":1,"name":"Fern"}}', `${noId}; ${noName}`, '"__proto__"'],
  ['{"name":"Fern","a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', noId, '"a", "b", "c", "d", "e"'],
  [`{"id":1,"${'k'.repeat(38)}${seedling.repeat(3)}":1}`, noName, `"${'k'.repeat(38)}${seedling}…"`],
  ['{"id":1.0000000000000000001,"name":"Fern"}', 'id must be an integer, but was 1.0000000000000000001'],
  ['{"id":9223372036854775808,"name":"Fern"}', `id must be ${range}, but was 9223372036854775808`],
  [`{"id":${'1'.repeat(1_000_000)},"name":"Fern"}`, `id must be ${range}, but was ${'1'.repeat(39)}…`],
  ['{"id":"a\\u001b[2J\\n","name":"Fern"}', `id must be ${digits}, but was "a\\u001b[2J\\n"`],
  ['{"id":1,"name":5}', 'name must be a string, but was a number'],
  ['{"id":1,"name":"\\udf31\\ud83c"}', 'name must be well-formed Unicode, but contains a lone surrogate'],
  [
    '{"tag":null,"name":"\\u0000","id":"x"}',
    `id must be ${digits}, but was "x"; name must be text without U+0000, but contains it; tag must be a string, but was null`,
  ],
  ['{"id":1,"\\u0069d":"2","name":"Fern"}', 'id must be an integer, not a string, but was "2"'],
  ['{"id":1,"name":"Fern","tag":"shade","t\\u0061g":5}', 'tag must be a string, but was a number'],
  [`{"id":${deep('')},"name":"Fern"}`, 'id must be an integer, but was an array'],
  [`{"id":1,"name":${deep('{"id":2}')}}`, 'name must be a string, but was an array'],
].map(([stdin = '', what, others]): Refusal => {
  const hint = others === undefined ? example : `${example}. Unknown fields: ${others}`
  return [{ argv: 'create', stdin }, 2, 422, `Invalid plant: ${what}`, hint]
})

const arrays = ['[{"id":1,"name":"Fern"}]', deep('')].map((stdin): Refusal => {
  const message = 'Invalid plant: it must be an object, but was an array'
  return [{ argv: 'create', stdin }, 2, 422, message, onePlant]
})

const notUtf8 = [
  { stdin: Uint8Array.of(0x22, 0xc0, 0xaf, 0x22), encoding: 'its encoding' }, // an overlong "/"
  { stdin: Uint8Array.of(0x22, 0xe2, 0x82), encoding: 'its encoding' }, // a truncated "€"
  { stdin: Uint8Array.of(0x22, 0xed, 0xa0, 0x80, 0x22), encoding: 'its encoding' }, // a surrogate
  { stdin: Uint8Array.of(0xef, 0xbb), encoding: 'its encoding' }, // a truncated byte order mark
  { stdin: Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d), encoding: 'its encoding' }, // a byte order mark behind the start
  { stdin: Uint8Array.of(0xff, 0xfe, 0x7b, 0, 0x7d, 0), encoding: 'UTF-16' }, // little-endian
  { stdin: Uint8Array.of(0xfe, 0xff, 0, 0x7b, 0, 0x7d), encoding: 'UTF-16' }, // big-endian
].map(({ stdin, encoding }): Refusal => {
  const hint = `Convert it from ${encoding} to UTF-8 first`
  return [{ argv: 'create', stdin }, 2, 400, 'Stdin is not UTF-8', hint]
})

const limit = 1_048_576
const giveFlags = 'For a plant in flags: plants create --id ID --name NAME'
const empty = ['', ' \r\n\t', '\ufeff', ' '.repeat(limit)].map(
  (stdin): Refusal => [{ argv: 'create', stdin }, 2, 400, 'Stdin is empty', giveFlags],
)
const tooLarge = [`{"id":1,"name":"Fern"}${' '.repeat(limit - 21)}`, new Uint8Array(3 * limit).fill(0xff)].map(
  (stdin): Refusal => [{ argv: 'create', stdin }, 2, 413, 'Stdin is larger than 1 MiB (1048576 bytes)', onePlant],
)

/** Each is a document on stdin. */
export const documents = [notJson, severalValues, notPlants, arrays, notUtf8, empty, tooLarge].flat()
