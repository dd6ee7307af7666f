import { describe, expect, test } from 'vitest'
import { parseJson } from '../../../../src/plant/exact-json.js'
import { acceptNewPlant, type NewPlant } from '../../../../src/plant/plant.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { check, fc } from '../../../helpers/fast-check.js'
import { readRecords, shown } from '../../../helpers/records.js'

const json = { format: 'json' } as const
const ndjson = { format: 'ndjson' } as const
const texts = fc.oneof(fc.string({ unit: fc.constantFrom(...'a{}[]",:\\\n é') }), fc.string({ unit: 'grapheme' }))
const [a, b, c] = ['a', 'b', 'c'].map((name, index) => `{"id":${index + 1},"name":"${name}"}`)
const noObject = '422: Invalid plant: it must be an object, but was'

test.each<[string, string, string[]]>([
  ['nothing', ' \n', []],
  ['an empty array', ' [ ]\n', []],
  ['values over many lines', `[{\n "id": 1,\n "name": "\\"\\\\"\n},\r\n\r\n${b}\r]`, ['1: 1 "\\', '6: 2 b']],
  ['numbers', '[1\n,23]\n', [`1: ${noObject} a number`, `2: ${noObject} a number`]],
  ['an array in an array', `[[${a}],null]`, [`1: ${noObject} an array`, `1: ${noObject} null`]],
])('%s', async (_, input, records) => {
  expect(shown(await readRecords(input, json))).toEqual(records)
})

test.each<[line: number, input: string]>([
  [2, `[${a},\n {"id":01},\n${b}]`],
  [1, `[${a}\n${b}]`],
  [1, `[${a}]\nx`],
  [1, `[${a}]\n[]`],
  [1, `[${a}\n`],
  [1, `[${a}}\n${b}`],
  [1, `[${a},{"id":2,"name":"b},\n${c}]`],
  [3, `[${a},\n\n{"id":2,"name":"b\n`],
  [2, `[${a},\n{"id":2,}]`],
])('what is not JSON ends the input, with the line where it begins: %i', async (line, input) => {
  await expect(readRecords(input, json)).rejects.toThrow(`stdin:${line}: Not JSON: `)
})

test.each([
  [a ?? '', 'stdin is not a JSON array'],
  [Buffer.from('[{"id":1,"name":"\xff"}]', 'latin1'), 'stdin is not UTF-8'],
])('%s is no array', async (input, message) => {
  await expect(readRecords(input, json)).rejects.toThrow(message)
})

test('an array has at most 256 MiB', async () => {
  await expect(readRecords(Buffer.alloc(268_435_457, '['), json)).rejects.toThrow('more than 256 MiB')
})

test('a line that is not UTF-8 is a problem of its own', async () => {
  const input = Buffer.from('{"id":1,"name":"\xff"}\n{"id":2,"name":"\xc3\xbc\xef\xbf\xbd"}\n', 'latin1')
  const message = 'Not UTF-8. If the input has another encoding, name it with --encoding'
  const cuts = Array.from(input, (_, index) => index)
  for (const options of [ndjson, { ...ndjson, cuts }])
    expect(shown(await readRecords(input, options))).toEqual([`1: 400: ${message}`, '2: 2 ü\ufffd'])
})

describe('a record larger than 1 MiB', () => {
  const limit = 1_048_576
  const long = (length: number) => `{"id":1,"name":"${'a'.repeat(length - 18)}"}`
  const tooLarge = '413: The record is larger than 1 MiB (1048576 bytes)'
  const cuts = Array.from({ length: 40 }, (_, index) => 65_521 * (index + 1))

  test.each([limit + 1, limit + 2, 2 * limit])('is rejected, and the next one is read: %i', async (length) => {
    for (const places of [[], cuts]) {
      const lines = await readRecords(`${long(length)}\n${b}\n`, { ...ndjson, cuts: places })
      expect(shown(lines)).toEqual([`1: ${tooLarge}`, '2: 2 b'])
      const array = await readRecords(`[${long(length)},\n${b}]`, { ...json, cuts: places })
      expect(shown(array)).toEqual([`1: ${tooLarge}`, '2: 2 b'])
    }
  })

  test('is not one that has just 1 MiB', async () => {
    const record = [`1: 1 ${'a'.repeat(limit - 18)}`]
    expect(shown(await readRecords(`${long(limit)}\n`, { ...ndjson, cuts }))).toEqual(record)
    expect(shown(await readRecords(`[${long(limit)}]`, { ...json, cuts }))).toEqual(record)
  })
})

test('blocks of any size give what one block gives', () => {
  const someCuts = fc.array(fc.nat({ max: 300 }), { maxLength: 8 })
  return check(600, [nearJson(), someCuts, fc.boolean()], async (input, places, isEach) => {
    const cuts = isEach ? Array.from(input, (_, index) => index) : places
    expect(await readRecords(input, { ...ndjson, cuts })).toEqual(await readRecords(input, ndjson))
  })
})

test('what was written is read', () => {
  const spaces = fc.constantFrom('', ' ', '\n', '\r\n', '\n  ', '\n\n\t')
  const some = fc.array(newPlant(texts), { maxLength: 5 })
  return check(400, [some, spaces], async (plants, space) => {
    const elements = plants.map((plant) => textOf(plant, space))
    const { records } = await readRecords(`[${elements.join(`,${space}`)}]`, json)
    expect(records.map(({ plant }) => plant)).toEqual(plants)
    expect(records.map(({ raw }) => raw)).toEqual(elements)
    const lines = plants.map((plant) => textOf(plant, '')).join('\n')
    const again = await readRecords(lines, ndjson)
    expect(again.records.map(({ plant }) => plant)).toEqual(plants)
  })
})

/** Pieces of JSON in an order that is often right. */
function nearJson(): fc.Arbitrary<Uint8Array> {
  const plant = newPlant(texts).map((one) => textOf(one, ''))
  const more = ['{"', '"}', ',\n', '},{', '\n{', '\n  {', '\r\n', '"id":', 'true', 'ü', '\xff']
  const piece = fc.constantFrom(...'{}[],:"\\\n\r\t 1-e', ...more)
  const text = fc.array(fc.oneof({ weight: 2, arbitrary: plant }, { weight: 3, arbitrary: piece }), { maxLength: 20 })
  return text.map((pieces) => Buffer.from(pieces.join(''), 'latin1'))
}

function textOf({ id, ...plant }: NewPlant, space: string): string {
  return JSON.stringify(plant).replace(/^\{/, `{${space}"id":${space}${id},`)
}

/** A line as programs write it, and near it. */
const escapes = '" \\ \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0041 \\u00e9 \\u8568 \\uD83C\\uDF3F'.split(' ')
const others = '\\u0000 \\ud800 \\uDFFF \\u12 \\x \\U0041 \t \u0001 \u007f \u2028 Fern 蕨 🌿 { , 7.5 1e3'.split(' ')
const piece = fc.oneof(fc.constantFrom(...escapes), fc.constantFrom(' ', ...others))
const string = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''))
const edges = '9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809'.split(' ')
const odd =
  '0 -0 00 - 1.0 1e3 1e19 +1 "" null 999999999999999 1000000000000001 1.0000000000000000001 10000000000000000000'
const number = fc.oneof(
  fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
  fc.constantFrom(...edges),
  fc.constantFrom(' 1', ...odd.split(' ')),
)
const ends = fc.constantFrom('', ' ', '\r', ',', '}', ' x')
const line = fc.tuple(number, string, fc.option(string), ends).map(([id, name, tag, end]) => {
  return `{"id":${id},"name":"${name}"${tag === null ? '' : `,"tag":"${tag}"`}}${end}`
})

test('a line is what the parser and the schema say', () =>
  check(1000, [fc.array(line, { maxLength: 20 }), fc.boolean()], async (lines, isMapped) => {
    const { records } = await readRecords(`${lines.join('\n')}\n`, { ...ndjson, map: isMapped ? { tag: 'tag' } : {} })
    const plants = records.flatMap(({ plant }) => plant ?? [])
    expect(plants).toEqual(lines.flatMap(expected))
  }))

/** With the digits of each number, as the scanner has them. */
function expected(content: string): NewPlant[] {
  const parsed = parseJson(`[${content}]`, { isList: true })
  const value =
    'value' in parsed && Array.isArray(parsed.value) && parsed.value.length === 1 ? parsed.value[0] : undefined
  return [acceptNewPlant(value) ?? []].flat()
}
