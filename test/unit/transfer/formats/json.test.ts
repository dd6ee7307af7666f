import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { Chunk, notUtf8 } from '../../../../src/transfer/formats/chunk.js'
import { json } from '../../../../src/transfer/formats/json-array.js'
import { RecordMapper } from '../../../../src/transfer/formats/record-mapper.js'
import { fc } from '../../../helpers/fast-check.js'
import { type ReadRecord, readRecords } from '../../../helpers/records.js'
import { rounds } from '../../../helpers/rounds.js'

const make = () => json.read(new RecordMapper({ map: {}, idFrom: undefined }))
const slow = () => json.read(new RecordMapper({ map: { tag: 'tag' }, idFrom: undefined }))

test.each<[string, string, ReadRecord[]]>([
  ['nothing', ' \n', []],
  ['an empty array', ' [ ]\n', []],
  ['an array', '[{"id":1,"name":"a"},{"id":2,"name":"]}"}]', [fern(1, 'a', 1), fern(2, ']}', 1)]],
  ['values', '{"id":1,"name":"a"}{"id":2,"name":"b"}\n', [fern(1, 'a', 1), fern(2, 'b', 1)]],
  ['values, with CRLF', '{"id":1,"name":"a"}\r\n\r\n{"id":2,"name":"b"}\r', [fern(1, 'a', 1), fern(2, 'b', 3)]],
  [
    'values over many lines',
    '{\n "id": 1,\n "name": "\\"\\\\"\n}\n\n{"id":2,"name":"b"}',
    [{ plant: { id: 1n, name: '"\\' }, line: 1, raw: '{\n "id": 1,\n "name": "\\"\\\\"\n}' }, fern(2, 'b', 6)],
  ],
  ['numbers side by side', '1 23\n', [notPlant('a number', 1, '1'), notPlant('a number', 1, '23')]],
  [
    'an array in an array',
    '[[{"id":1,"name":"a"}],null]',
    [notPlant('an array', 1, '[{"id":1,"name":"a"}]'), notPlant('null', 1, 'null')],
  ],
])('%s', (_, input, records) => {
  expect(readRecords(input, { make }).records).toEqual(records)
  expect(readRecords(input, { make: slow }).records).toEqual(records)
})

test.each<[string, string, number, string]>([
  [
    'in an element',
    '[{"id":1,"name":"a"},\n {"id":01},\n{"id":2,"name":"b"}]',
    2,
    'unexpected "1" at line 2, column 9',
  ],
  [
    'in a later line of an element',
    '[{"id":1,"name":"a"},{\n"id":2\n"name":"b"}]',
    1,
    'unexpected "\\"" at line 3, column 1',
  ],
  [
    'after characters that take more bytes',
    '[{"id":1,"name":"a"},"\u94f6\u{1f331}\u00e9",{"id":01}]',
    1,
    'unexpected "1" at line 1, column 36',
  ],
  ['at a missing comma', '[{"id":1,"name":"a"}\n{"id":2,"name":"b"}]', 2, 'unexpected "{" at line 2, column 1'],
  ['at a comma too many', '[{"id":1,"name":"a"},]', 1, 'unexpected "]" at line 1, column 22'],
  ['after an array', '[{"id":1,"name":"a"}]\nx', 2, 'unexpected "x" at line 2, column 1'],
  ['at a second array', '[{"id":1,"name":"a"}]\n[]', 2, 'more than one JSON value, the second at line 2, column 1'],
  ['at an array that is not closed', '[{"id":1,"name":"a"}\n', 2, 'unexpected end of input at line 2, column 1'],
  ['at an array that is not continued', '[{"id":1,"name":"a"},', 1, 'unexpected end of input at line 1, column 22'],
  ['at a value that is cut', '[{"id":1,"name":"a"},{"id":2', 1, 'unexpected end of input at line 1, column 29'],
  ['at a brace too many', '{"id":1,"name":"a"}}\n{"id":2,"name":"b"}', 1, 'unexpected "}" at line 1, column 20'],
  [
    'at a missing quote',
    '[{"id":1,"name":"a"},{"id":2,"name":"b},\n{"id":3,"name":"c"}]',
    1,
    'unexpected U+000A at line 1, column 41',
  ],
  [
    'at a missing brace',
    '[{"id":1,"name":"a"},{"id":2,"name":"b",\n{"id":3,"name":"c"}]',
    1,
    'unexpected "{" at line 2, column 1',
  ],
  ['at text', '{"id":1,"name":"a"}\nFern', 2, 'unexpected "F" at line 2, column 1'],
])('what is not JSON ends the input %s', (_, input, line, reason) => {
  const others = input.includes('"\u94f6')
    ? [{ ...notPlant('"\u94f6\u{1f331}\u00e9"', 1, '"\u94f6\u{1f331}\u00e9"') }]
    : []
  const expected = [fern(1, 'a', 1), ...others, { problem: `400: Not JSON: ${reason}`, line, raw: '' }]
  const cuts = Array.from(Buffer.from(input), (__, index) => index)
  for (const options of [{ make }, { make: slow }, { make, cuts }, { make, cuts, isRestored: true }])
    expect(readRecords(input, options).records).toEqual(expected)
})

test('a value that is not UTF-8 is a problem of its own', () => {
  const input = Buffer.from('[{"id":1,"name":"\xff"},{"id":2,"name":"\xc3\xbc\xef\xbf\xbd"}]', 'latin1')
  expect(readRecords(input, { make }).records).toEqual([
    { problem: `400: ${notUtf8.message}`, line: 1, raw: '{"id":1,"name":"\ufffd"}' },
    fern(2, 'ü\ufffd', 1),
  ])
})

test('invalid records without end are left to other chunks', () => {
  const input = Buffer.from(`[${'{},'.repeat(50_000)}{"id":2,"name":"b"}]`)
  const chunk = new Chunk(input)
  expect(make().read(chunk, true)).toBeLessThan(input.length)
  expect(chunk.invalid.length).toBe(1000)
  for (const isRestored of [false, true]) {
    const { records } = readRecords(input, { make, isRestored })
    expect(records.length).toBe(50_001)
    expect(records.at(-1)).toEqual(fern(2, 'b', 1))
  }
})

test('fields that no NewPlant has are counted', () => {
  const { otherFields } = readRecords('[{"id":1,"name":"a","x":1},{"x":1,"y":{}}]', { make })
  expect(otherFields).toEqual(
    new Map([
      ['x', 2],
      ['y', 1],
    ]),
  )
})

describe('a record larger than 1 MiB', () => {
  const limit = 1_048_576
  const long = (length: number) => `{"id":1,"name":"${'a'.repeat(length - 18)}"}`
  const tooLarge = '413: The record is larger than 1 MiB (1048576 bytes)'
  const cuts = Array.from({ length: 40 }, (_, index) => 65_521 * (index + 1))

  test.each<[string, string, number]>([
    ['is just too large', long(limit + 1), 2],
    ['has many MiB', long(3 * limit), 2],
    ['has many lines', `{\n${'\n'.repeat(limit)}}`, limit + 3],
  ])('is rejected where it %s, and the next one is read', (_, record, line) => {
    for (const isRestored of [false, true]) {
      const { records } = readRecords(`[${record},\n{"id":2,"name":"b"}]`, { make, cuts, isRestored })
      expect(records).toEqual([{ problem: tooLarge, line: 1, raw: '' }, fern(2, 'b', line)])
    }
  })

  test('ends the input at its syntax error where it is cut', () => {
    const { records } = readRecords(`[${long(limit + 9).slice(0, -2)},\n{"id":2,"name":"b"}]`, { make, cuts })
    const problem = `400: Not JSON: unexpected U+000A at line 1, column ${limit + 10}`
    expect(records).toEqual([{ problem, line: 1, raw: '' }])
  })

  test('ends the input where no end is found in 64 MiB', () => {
    const { records } = readRecords(`[${long(64 * limit + 9).slice(0, -2)}`, { make, cuts: [64 * limit + 5] })
    expect(records).toEqual([{ problem: tooLarge, line: 1, raw: '' }])
  })

  test('is not one with a syntax error before', () => {
    const input = `[{"id":1,"x":{${'[1],'.repeat(limit)}`
    const { records } = readRecords(input, { make, cuts })
    expect(records.map(({ problem }) => problem)).toEqual(['400: Not JSON: unexpected "[" at line 1, column 15'])
  })

  test('is not one that has just 1 MiB', () => {
    expect(readRecords(`${long(limit)}\n`, { make, cuts }).records).toEqual([fern(1, 'a'.repeat(limit - 18), 1)])
  })
})

test('any cut gives what one read gives, and so does any state that was saved', { timeout: rounds(60_000) }, () => {
  const cuts = fc.array(fc.nat({ max: 300 }), { maxLength: 8 })
  const same = (input: Uint8Array, places: number[], isRestored: boolean) => {
    expect(readRecords(input, { make, cuts: places, isRestored })).toEqual(readRecords(input, { make }))
  }
  fc.assert(fc.property(nearJson(), cuts, fc.boolean(), same), { numRuns: rounds(400) })
})

test('reading byte by byte gives what one read gives', { timeout: rounds(60_000) }, () => {
  const same = (input: Uint8Array) => {
    const cuts = Array.from(input, (_, index) => index)
    expect(readRecords(input, { make, cuts, isRestored: true })).toEqual(readRecords(input, { make }))
  }
  fc.assert(fc.property(nearJson(), same), { numRuns: rounds(250) })
})

test('what was written is read, and what was read is input again', { timeout: rounds(60_000) }, () => {
  const trip = (plants: NewPlant[], space: string, isArray: boolean) => {
    const texts = plants.map((plant) => textOf(plant, space))
    const { records } = readRecords(isArray ? `[${texts.join(`,${space}`)}]` : texts.join(space), { make })
    expect(records.map(({ plant }) => plant)).toEqual(plants)
    expect(records.map(({ raw }) => raw)).toEqual(texts)
    const again = readRecords(records.map(({ raw }) => raw).join('\n'), { make })
    expect(again.records.map(({ plant }) => plant)).toEqual(plants)
  }
  const space = fc.constantFrom('', ' ', '\n', '\r\n', '\n  ', '\n\n\t')
  fc.assert(fc.property(fc.array(newPlant(), { maxLength: 5 }), space, fc.boolean(), trip), { numRuns: rounds(400) })
})

/** A plant with nothing but an id and a name, as it stands in an input. */
function fern(id: number, name: string, line: number): ReadRecord {
  return { plant: { id: BigInt(id), name }, line, raw: JSON.stringify({ id, name }) }
}

function notPlant(what: string, line: number, raw: string): ReadRecord {
  return { problem: `422: Invalid plant: it must be an object, but was ${what}`, line, raw }
}

/** Pieces of JSON in an order that is often right. */
function nearJson(): fc.Arbitrary<Uint8Array> {
  const plant = newPlant().map((one) => textOf(one, ''))
  const piece = fc.constantFrom(
    ...'{}[],:"\\\n\r\t 1-e',
    '{"',
    '"}',
    ',\n',
    '},{',
    '\n{',
    '\n  {',
    '\r\n',
    '"id":',
    'true',
    'ü',
    '\xff',
  )
  const text = fc.array(fc.oneof({ weight: 2, arbitrary: plant }, { weight: 3, arbitrary: piece }), { maxLength: 20 })
  return fc
    .tuple(fc.boolean(), text)
    .map(([isArray, pieces]) => Buffer.from(`${isArray ? '[' : ''}${pieces.join('')}`, 'latin1'))
}

function newPlant(): fc.Arbitrary<NewPlant> {
  const name = fc.oneof(fc.string({ unit: fc.constantFrom(...'a{}[]",:\\\n é') }), fc.string({ unit: 'grapheme' }))
  return fc.record(
    { id: fc.bigInt({ min: 10n, max: 2n ** 63n - 1n }), name, tag: name },
    { requiredKeys: ['id', 'name'] },
  )
}

function textOf({ id, ...plant }: NewPlant, space: string): string {
  return JSON.stringify(plant).replace(/^\{/, `{${space}"id":${space}${id},`)
}
