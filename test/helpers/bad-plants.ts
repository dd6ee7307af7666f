import type { Refusal } from './refusals.js'

export const seedling = '\u{1f331}'
export const range = 'an integer from -9223372036854775808 to 9223372036854775807'
export const digits = 'an integer, in digits only'
export const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'
export const onePlant = 'plants create takes one plant. For many, use plants import'
const notJson: Refusal[] = [
  ['x', 'unexpected "x" at line 1, column 1'],
  ['{', 'unexpected end of input at line 1, column 2'],
  ['[', 'unexpected end of input at line 1, column 2'],
  ['[[1, [2', 'unexpected end of input at line 1, column 8'],
  ['}', 'unexpected "}" at line 1, column 1'],
  ['{"id":1', 'unexpected end of input at line 1, column 8'],
  ['{"id":1,', 'unexpected end of input at line 1, column 9'],
  ['{"id"', 'unexpected end of input at line 1, column 6'],
  ['{"id":', 'unexpected end of input at line 1, column 7'],
  ['{"id":1]', 'unexpected "]" at line 1, column 8'],
  ['{"id":1,}', 'unexpected "}" at line 1, column 9'],
  ['{"id":1 "name":"Fern"}', 'unexpected "\\"" at line 1, column 9'],
  ['{"id":1,"name":"Fern"}}', 'unexpected "}" at line 1, column 23'],
  ['{"id" 1}', 'unexpected "1" at line 1, column 7'],
  ['{,}', 'unexpected "," at line 1, column 2'],
  ['{"a":1,"b"}', 'unexpected "}" at line 1, column 11'],
  ['[1,]', 'unexpected "]" at line 1, column 4'],
  ['{id:1}', 'unexpected "i" at line 1, column 2'],
  ["{'id':1}", `unexpected "'" at line 1, column 2`],
  ['{\u201cid\u201d:1}', 'unexpected "\u201c" at line 1, column 2'],
  ['{1:2}', 'unexpected "1" at line 1, column 2'],
  ['{"id":01}', 'unexpected "1" at line 1, column 8'],
  ['{"id":+1}', 'unexpected "+" at line 1, column 7'],
  ['{"id":-}', 'unexpected "-" at line 1, column 7'],
  ['{"id":.5}', 'unexpected "." at line 1, column 7'],
  ['{"id":5.}', 'unexpected "." at line 1, column 8'],
  ['{"id":1e}', 'unexpected "e" at line 1, column 8'],
  ['{"id":0x10}', 'unexpected "x" at line 1, column 8'],
  ['{"id":1_000}', 'unexpected "_" at line 1, column 8'],
  ['{"id":NaN}', 'unexpected "N" at line 1, column 7'],
  ['{"id":-Infinity}', 'unexpected "-" at line 1, column 7'],
  ['{"id":\u0661}', 'unexpected "\u0661" at line 1, column 7'],
  ['True', 'unexpected "T" at line 1, column 1'],
  ['nul', 'unexpected "n" at line 1, column 1'],
  ['// a plant\n{}', 'unexpected "/" at line 1, column 1'],
  ['{"id":1} // a plant', 'unexpected "/" at line 1, column 10'],
  ['id,name\n1,Fern\n', 'unexpected "i" at line 1, column 1'],
  ['<!doctype html>', 'unexpected "<" at line 1, column 1'],
  ['{"name":"a\nb"}', 'unexpected U+000A at line 1, column 11'],
  ['{"name":"a\tb"}', 'unexpected U+0009 at line 1, column 11'],
  ['{"name":"\u0000"}', 'unexpected U+0000 at line 1, column 10'],
  ['{"name":"abc', 'unexpected end of input at line 1, column 13'],
  ['{"name":"\\x"}', 'invalid escape at line 1, column 10'],
  ['{"name":"\\u12"}', 'invalid escape at line 1, column 10'],
  ['{"name":"C:\\plants"}', 'invalid escape at line 1, column 12'],
  ['{\\"id\\":1}', 'unexpected "\\\\" at line 1, column 2'],
  ['{\n  "id": 1,\n  "name": Fern\n}\n', 'unexpected "F" at line 3, column 11'],
  ['{\r\n"id":1,\r\n"name":Fern}', 'unexpected "F" at line 3, column 8'],
  ['{\n"id":1,\n', 'unexpected end of input at line 3, column 1'],
  ['\u001b[31m', 'unexpected U+001B at line 1, column 1'],
  ['\u202e', 'unexpected U+202E at line 1, column 1'],
  ['\u200b{}', 'unexpected U+200B at line 1, column 1'],
  ['{"id":1,\u00a0"name":"Fern"}', 'unexpected U+00A0 at line 1, column 9'],
  ['{\u0000"\u0000', 'unexpected U+0000 at line 1, column 2'],
  ['\u{e0001}', 'unexpected U+E0001 at line 1, column 1'],
  ['{"id":1,"name":"Fern"} tag', 'unexpected "t" at line 1, column 24'],
  ['{"id":1,"name":"Fern"} nul', 'unexpected "n" at line 1, column 24'],
  ['{"id":1,"name":"Fern"} - a plant', 'unexpected "-" at line 1, column 24'],
  ['{"id":1,"name":"Fern"}"', 'unexpected "\\"" at line 1, column 23'],
  ['{"id":1,"name":"Fern"},{"id":2,"name":"Moss"}', 'unexpected "," at line 1, column 23'],
  ['{"a":\u{1f331}}', 'unexpected "\u{1f331}" at line 1, column 6'],
  ['['.repeat(100_000), 'unexpected end of input at line 1, column 100001'],
  ['{"a":'.repeat(100_000), 'unexpected end of input at line 1, column 500001'],
  [`${'['.repeat(100_000)}}`, 'unexpected "}" at line 1, column 100001'],
  [`${'\n'.repeat(1000)}x`, 'unexpected "x" at line 1001, column 1'],
].map(([stdin = '', what]): Refusal => [{ argv: 'create', stdin }, 2, 400, `Stdin is not JSON: ${what}`, example])

const severalValues: Refusal[] = [
  ['{"id":1,"name":"Fern"}{"id":2,"name":"Moss"}', 'line 1, column 23'],
  ['{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n', 'line 2, column 1'],
  ['{"id":1,"name":"Fern"}\r\n\r\n{"id":2', 'line 3, column 1'],
  ['{"id":1,"name":"Fern"} {', 'line 1, column 24'],
  ['{"id":1,"name":"Fern"} true story', 'line 1, column 24'],
  ['[1][2]', 'line 1, column 4'],
  ['1 2', 'line 1, column 3'],
  ['"a""b"', 'line 1, column 4'],
  ['null null', 'line 1, column 6'],
].map(
  ([stdin = '', where]): Refusal => [
    { argv: 'create', stdin },
    2,
    400,
    `Stdin contains more than one JSON value, the second at ${where}`,
    onePlant,
  ],
)

const deep = (inside: string) => '['.repeat(100_000) + inside + ']'.repeat(100_000)
const notPlants: Refusal[] = [
  ['5', 'it must be an object, but was a number'],
  ['1e400', 'it must be an object, but was a number'],
  ['"Fern"', 'it must be an object, but was "Fern"'],
  [JSON.stringify('x'.repeat(41)), `it must be an object, but was "${'x'.repeat(39)}…"`],
  ['true', 'it must be an object, but was true'],
  ['null', 'it must be an object, but was null'],
  ['{}', `id must be an integer, but is missing; name must be a string, but is missing`],
  ['{"id":1}', 'name must be a string, but is missing'],
  ['{"name":"Fern"}', `id must be an integer, but is missing`],
  ['{"id":1,"nmae":"x"}', 'name must be a string, but is missing', '"nmae"'],
  [
    '{"ID":1,"Name":"Fern"}',
    `id must be an integer, but is missing; name must be a string, but is missing`,
    '"ID", "Name"',
  ],
  [
    '{"__proto__":{"id":1,"name":"Fern"}}',
    `id must be an integer, but is missing; name must be a string, but is missing`,
    '"__proto__"',
  ],
  [
    '{"name":"Fern","a":1,"b":2,"c":3,"d":4,"e":5,"f":6}',
    `id must be an integer, but is missing`,
    '"a", "b", "c", "d", "e"',
  ],
  [
    JSON.stringify({ id: 1, [`${'k'.repeat(38)}${seedling.repeat(3)}`]: 1 }),
    'name must be a string, but is missing',
    `"${'k'.repeat(38)}${seedling}…"`,
  ],
  ['{"id":"1","name":"Fern"}', `id must be an integer, not a string, but was "1"`],
  ['{"id":true,"name":"Fern"}', `id must be an integer, but was true`],
  ['{"id":null,"name":"Fern"}', `id must be an integer, but was null`],
  ['{"id":[1],"name":"Fern"}', `id must be an integer, but was an array`],
  ['{"id":{"id":1},"name":"Fern"}', `id must be an integer, but was an object`],
  ['{"id":1.5,"name":"Fern"}', `id must be an integer, but was 1.5`],
  ['{"id":1.0000000000000000001,"name":"Fern"}', `id must be an integer, but was 1.0000000000000000001`],
  ['{"id":9223372036854775808,"name":"Fern"}', `id must be ${range}, but was 9223372036854775808`],
  ['{"id":-9223372036854775809,"name":"Fern"}', `id must be ${range}, but was -9223372036854775809`],
  ['{"id":1e400,"name":"Fern"}', `id must be ${range}, but was 1e400`],
  ['{"id":1e999999999,"name":"Fern"}', `id must be ${range}, but was 1e999999999`],
  ['{"id":1e-999999999,"name":"Fern"}', `id must be an integer, but was 1e-999999999`],
  [`{"id":${'1'.repeat(1_000_000)},"name":"Fern"}`, `id must be ${range}, but was ${'1'.repeat(39)}…`],
  ['{"id":"a\\u001b[2J\\n","name":"Fern"}', `id must be ${digits}, but was "a\\u001b[2J\\n"`],
  ['{"id":1,"name":5}', 'name must be a string, but was a number'],
  ['{"id":1,"name":null}', 'name must be a string, but was null'],
  ['{"id":1,"name":false}', 'name must be a string, but was false'],
  ['{"id":1,"name":["Fern"]}', 'name must be a string, but was an array'],
  ['{"id":1,"name":{}}', 'name must be a string, but was an object'],
  ['{"id":1,"name":"\\ud800"}', 'name must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":1,"name":"\\udf31\\ud83c"}', 'name must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":1,"name":"a\\u0000b"}', 'name must be text without U+0000, but contains it'],
  ['{"id":1,"name":"Fern","tag":null}', 'tag must be a string, but was null'],
  ['{"id":1,"name":"Fern","tag":5}', 'tag must be a string, but was a number'],
  ['{"id":1,"name":"Fern","tag":true}', 'tag must be a string, but was true'],
  ['{"id":1,"name":"Fern","tag":["shade"]}', 'tag must be a string, but was an array'],
  ['{"id":1,"name":"Fern","tag":{}}', 'tag must be a string, but was an object'],
  ['{"id":1,"name":"Fern","tag":"\\ud83c"}', 'tag must be well-formed Unicode, but contains a lone surrogate'],
  ['{"id":1,"name":"Fern","tag":"\\u0000"}', 'tag must be text without U+0000, but contains it'],
  [
    '{"tag":2,"name":"\\u0000","id":"x"}',
    `id must be ${digits}, but was "x"; name must be text without U+0000, but contains it; tag must be a string, but was a number`,
  ],
  ['{"id":1,"id":"2","name":"Fern"}', `id must be an integer, not a string, but was "2"`],
  ['{"id":1,"id":1.5,"name":"Fern"}', `id must be an integer, but was 1.5`],
  ['{"id":1,"id":[2],"name":"Fern"}', `id must be an integer, but was an array`],
  ['{"id":1,"\\u0069d":1.5,"name":"Fern"}', `id must be an integer, but was 1.5`],
  ['{"i\\u0064":"2","name":"Fern"}', `id must be an integer, not a string, but was "2"`],
  ['{"id":1,"name":"Fern","name":null}', 'name must be a string, but was null'],
  ['{"id":1,"name":"Fern","tag":"shade","t\\u0061g":5}', 'tag must be a string, but was a number'],
  [`{"id":${deep('')},"name":"Fern"}`, `id must be an integer, but was an array`],
  [`{"id":1,"name":${deep('{"id":2}')}}`, 'name must be a string, but was an array'],
].map(
  ([stdin = '', what, others]): Refusal => [
    { argv: 'create', stdin },
    2,
    422,
    `Invalid plant: ${what}`,
    others === undefined ? example : `${example}. Unknown fields: ${others}`,
  ],
)

const arrays: Refusal[] = ['[]', '[{"id":1,"name":"Fern"}]', '["id",1]', deep('')].map(
  (stdin): Refusal => [
    { argv: 'create', stdin },
    2,
    422,
    'Invalid plant: it must be an object, but was an array',
    onePlant,
  ],
)

export const convertFrom = (encoding: string) => `Convert it from ${encoding} to UTF-8 first`
export const bytes = (...values: number[]) => Uint8Array.from(values)
const notUtf8: Refusal[] = [
  { stdin: bytes(0xff), encoding: 'its encoding' }, // never in UTF-8
  { stdin: bytes(0x80), encoding: 'its encoding' }, // a continuation that continues nothing
  { stdin: bytes(0x22, 0xc0, 0xaf, 0x22), encoding: 'its encoding' }, // an overlong "/"
  { stdin: bytes(0x22, 0xe2, 0x82), encoding: 'its encoding' }, // a truncated "€"
  { stdin: bytes(0x22, 0xed, 0xa0, 0x80, 0x22), encoding: 'its encoding' }, // a surrogate
  { stdin: bytes(0x22, 0xf4, 0x90, 0x80, 0x80, 0x22), encoding: 'its encoding' }, // above U+10FFFF
  { stdin: bytes(0xef, 0xbb), encoding: 'its encoding' }, // a truncated byte order mark
  { stdin: bytes(0x7b, 0xff, 0xfe, 0x7d), encoding: 'its encoding' }, // a byte order mark that is not in front
  { stdin: Buffer.from('{"id":1,"name":"Efeu, gr\u00fcn"}', 'latin1'), encoding: 'its encoding' },
  { stdin: bytes(0xff, 0xfe, 0x7b, 0, 0x7d, 0), encoding: 'UTF-16' }, // little-endian
  { stdin: bytes(0xfe, 0xff, 0, 0x7b, 0, 0x7d), encoding: 'UTF-16' }, // big-endian
  { stdin: Buffer.from('\ufeff{"id":1,"name":"Fern"}', 'utf16le'), encoding: 'UTF-16' },
].map(
  ({ stdin, encoding }): Refusal => [{ argv: 'create', stdin }, 2, 400, 'Stdin is not UTF-8', convertFrom(encoding)],
)

export const limit = 1_048_576
export const giveFlags = 'For a plant in flags: plants create --id ID --name NAME'
const stdin: Refusal[] = [
  [{ argv: 'create', stdin: '' }, 2, 400, 'Stdin is empty', giveFlags],
  [{ argv: 'create', stdin: ' \r\n\t' }, 2, 400, 'Stdin is empty', giveFlags],
  [{ argv: 'create', stdin: '\ufeff' }, 2, 400, 'Stdin is empty', giveFlags],
  [{ argv: 'create', stdin: ' '.repeat(limit) }, 2, 400, 'Stdin is empty', giveFlags],
  [
    { argv: 'create', stdin: `{"id":1,"name":"Fern"}${' '.repeat(limit - 21)}` },
    2,
    413,
    'Stdin is larger than 1 MiB (1048576 bytes)',
    onePlant,
  ],
  [
    { argv: 'create', stdin: new Uint8Array(3 * limit).fill(0xff) },
    2,
    413,
    'Stdin is larger than 1 MiB (1048576 bytes)',
    onePlant,
  ],
]

/** Each is a document on stdin, and nothing else. */
export const documents = [notJson, severalValues, notPlants, arrays, notUtf8, stdin].flat()
