import { describe, expect, test } from 'vitest'
import { parseJson } from '../../../../src/plant/exact-json.js'
import { acceptNewPlant, type NewPlant } from '../../../../src/plant/plant.js'
import { Chunk, notUtf8 } from '../../../../src/transfer/formats/chunk.js'
import { json } from '../../../../src/transfer/formats/json-array.js'
import { ndjson } from '../../../../src/transfer/formats/line-reader.js'
import { RecordMapper } from '../../../../src/transfer/formats/record-mapper.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { check, fc } from '../../../helpers/fast-check.js'
import { readRecords, shown } from '../../../helpers/records.js'

const texts = fc.oneof(fc.string({ unit: fc.constantFrom(...'a{}[]",:\\\n é') }), fc.string({ unit: 'grapheme' }))
const make = () => json.read(new RecordMapper({ map: {}, idFrom: undefined }))
const slow = () => json.read(new RecordMapper({ map: { tag: 'tag' }, idFrom: undefined }))
const [a, b, c] = ['a', 'b', 'c'].map((name, index) => `{"id":${index + 1},"name":"${name}"}`)
const noObject = '422: Invalid plant: it must be an object, but was'

test.each<[string, string, string[]]>([
  ['nothing', ' \n', []],
  ['an empty array', ' [ ]\n', []],
  ['values over many lines', `{\n "id": 1,\n "name": "\\"\\\\"\n}\r\n\r\n${b}\r`, ['1: 1 "\\', '6: 2 b']],
  ['numbers side by side', '1 23\n', [`1: ${noObject} a number`, `1: ${noObject} a number`]],
  ['an array in an array', `[[${a}],null]`, [`1: ${noObject} an array`, `1: ${noObject} null`]],
])('%s', (_, input, records) => {
  expect(shown(readRecords(input, { make }).records)).toEqual(records)
  expect(shown(readRecords(input, { make: slow }).records)).toEqual(records)
})

test.each<[reason: string, line: number, input: string]>([
  ['unexpected "1" at line 2, column 9', 2, `[${a},\n {"id":01},\n${b}]`],
  ['unexpected "{" at line 2, column 1', 2, `[${a}\n${b}]`],
  ['unexpected "x" at line 2, column 1', 2, `[${a}]\nx`],
  ['more than one JSON value, the second at line 2, column 1', 2, `[${a}]\n[]`],
  ['unexpected end of input at line 2, column 1', 2, `[${a}\n`],
  ['unexpected end of input at line 1, column 29', 1, `[${a},{"id":2`],
  ['unexpected "}" at line 1, column 20', 1, `${a}}\n${b}`],
  ['unexpected U+000A at line 1, column 41', 1, `[${a},{"id":2,"name":"b},\n${c}]`],
])('what is not JSON ends the input: %s', (reason, line, input) => {
  const cuts = Array.from(Buffer.from(input), (__, index) => index)
  for (const options of [{ make }, { make: slow }, { make, cuts }, { make, cuts, isRestored: true }]) {
    const { records } = readRecords(input, options)
    expect([...shown(records), records.at(-1)?.raw]).toEqual(['1: 1 a', `${line}: 400: Not JSON: ${reason}`, ''])
  }
})

test('columns are counted in UTF-16 code units', () => {
  const { records } = readRecords('["\u94f6\u{1f331}\u00e9",{"id":01}]', { make })
  expect(shown(records)[1]).toBe('1: 400: Not JSON: unexpected "1" at line 1, column 16')
})

test('a value that is not UTF-8 is a problem of its own', () => {
  const input = Buffer.from('[{"id":1,"name":"\xff"},{"id":2,"name":"\xc3\xbc\xef\xbf\xbd"}]', 'latin1')
  expect(shown(readRecords(input, { make }).records)).toEqual([`1: 400: ${notUtf8.message}`, '1: 2 ü\ufffd'])
})

test('invalid records without end are left to other chunks', () => {
  const input = Buffer.from(`[${'{},'.repeat(50_000)}${b}]`)
  const chunk = new Chunk(input)
  expect(make().read(chunk, true)).toBeLessThan(input.length)
  expect(chunk.invalid.length).toBe(1000)
  for (const isRestored of [false, true]) {
    const records = shown(readRecords(input, { make, isRestored }).records)
    expect([records.length, records.at(-1)]).toEqual([50_001, '1: 2 b'])
  }
})

describe('a record larger than 1 MiB', () => {
  const limit = 1_048_576
  const long = (length: number) => `{"id":1,"name":"${'a'.repeat(length - 18)}"}`
  const tooLarge = '1: 413: The record is larger than 1 MiB (1048576 bytes)'
  const cuts = Array.from({ length: 40 }, (_, index) => 65_521 * (index + 1))
  const read = (input: string, isRestored = false, places = cuts) =>
    shown(readRecords(input, { make, cuts: places, isRestored }).records)

  test.each<[string, string, number]>([
    ['is just too large', long(limit + 1), 2],
    ['has many lines', `{\n${'\n'.repeat(limit)}}`, limit + 3],
  ])('is rejected where it %s, and the next one is read', (_, record, line) => {
    for (const isRestored of [false, true])
      expect(read(`[${record},\n${b}]`, isRestored)).toEqual([tooLarge, `${line}: 2 b`])
  })

  test('ends the input at its syntax error where it is cut', () => {
    const problem = `1: 400: Not JSON: unexpected U+000A at line 1, column ${limit + 10}`
    expect(read(`[${long(limit + 9).slice(0, -2)},\n${b}]`)).toEqual([problem])
  })

  test('ends the input where no end is found in 64 MiB', () => {
    expect(read(`[${long(64 * limit + 9).slice(0, -2)}`, false, [64 * limit + 5])).toEqual([tooLarge])
  })

  test('is not one with a syntax error before', () => {
    const problem = '1: 400: Not JSON: unexpected "[" at line 1, column 15'
    expect(read(`[{"id":1,"x":{${'[1],'.repeat(limit)}`)).toEqual([problem])
  })

  test('is not one that has just 1 MiB', () => {
    expect(read(`${long(limit)}\n`)).toEqual([`1: 1 ${'a'.repeat(limit - 18)}`])
  })
})

test('any cut and any saved state give what one read gives', () => {
  const someCuts = fc.array(fc.nat({ max: 300 }), { maxLength: 8 })
  return check(600, [nearJson(), someCuts, fc.boolean(), fc.boolean()], (input, places, isRestored, isEach) => {
    const all = isEach ? Array.from(input, (_, index) => index) : places
    expect(readRecords(input, { make, cuts: all, isRestored })).toEqual(readRecords(input, { make }))
  })
})

test('what was written is read, and what was read is input again', () => {
  const spaces = fc.constantFrom('', ' ', '\n', '\r\n', '\n  ', '\n\n\t')
  const some = fc.array(newPlant(texts), { maxLength: 5 })
  return check(400, [some, spaces, fc.boolean()], (plants, space, isArray) => {
    const texts = plants.map((plant) => textOf(plant, space))
    const { records } = readRecords(isArray ? `[${texts.join(`,${space}`)}]` : texts.join(space), { make })
    expect(records.map(({ plant }) => plant)).toEqual(plants)
    expect(records.map(({ raw }) => raw)).toEqual(texts)
    const again = readRecords(records.map(({ raw }) => raw).join('\n'), { make })
    expect(again.records.map(({ plant }) => plant)).toEqual(plants)
  })
})

/** Pieces of JSON in an order that is often right. */
function nearJson(): fc.Arbitrary<Uint8Array> {
  const plant = newPlant(texts).map((one) => textOf(one, ''))
  const more = ['{"', '"}', ',\n', '},{', '\n{', '\n  {', '\r\n', '"id":', 'true', 'ü', '\xff']
  const piece = fc.constantFrom(...'{}[],:"\\\n\r\t 1-e', ...more)
  const text = fc.array(fc.oneof({ weight: 2, arbitrary: plant }, { weight: 3, arbitrary: piece }), { maxLength: 20 })
  return fc
    .tuple(fc.constantFrom('', '['), text)
    .map(([start, pieces]) => Buffer.from(start + pieces.join(''), 'latin1'))
}

function textOf({ id, ...plant }: NewPlant, space: string): string {
  return JSON.stringify(plant).replace(/^\{/, `{${space}"id":${space}${id},`)
}

/** A line as programs write it, and near it: what the scanner takes by itself, and what it must leave to the parser. */
const escapes = '" \\ \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00e9 \\u8568 \\uD83C\\uDF3F'.split(' ')
const others = '\\u0000 \\ud800 \\uDFFF \\u12 \\x \\U0041 \t \u0001 \u007f \u2028 Fern 蕨 🌿 { ,'.split(' ')
const piece = fc.oneof(fc.constantFrom(...escapes), fc.constantFrom(' ', ...others))
const string = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
const edges = '9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809'.split(' ')
const odd = '0 -0 00 - 1.0 1e3 1e19 +1 "" null 999999999 1000000000 10000000000000000000'.split(' ')
const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.constantFrom(...edges),
  fc.constantFrom(' 1', ...odd),
)
const ends = fc.constantFrom('', ' ', '\r', ',', '}', ' x')
const gaps = fc.array(fc.constantFrom('', ' ', '', '  '), { minLength: 6, maxLength: 6 })
const line = fc.tuple(number, string, fc.option(string), ends, gaps).map(([id, name, tag, end, [a, b, c, d, e, f]]) => {
  const rest = tag === null ? '' : `,${d}"tag":${e}"${tag}"`
  return `{"id":${a}${id},${b}"name":${c}"${name}"${rest}}${f}${end}`
})

test('the scanner of usual lines agrees with the parser and the schema', () =>
  check(3000, [fc.array(line, { maxLength: 20 }), fc.boolean()], (lines, isMapped) => {
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    const chunk = new Chunk(bytes)
    const format = ndjson.read(new RecordMapper({ map: isMapped ? { tag: 'tag' } : {}, idFrom: undefined }))
    expect(format.read(chunk, true)).toBe(bytes.length)
    const plants = Array.from({ length: chunk.rows.length }, (_, row) => chunk.rows.at(row))
    expect(plants).toEqual(bytes.toString().split('\n').flatMap(expected))
  }))

function expected(content: string): NewPlant[] {
  const parsed = parseJson(content)
  return 'value' in parsed ? [acceptNewPlant(parsed.value) ?? []].flat() : []
}
