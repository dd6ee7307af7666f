import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../src/plant/plant.js'
import { Intake } from '../../src/transfer/formats/intake.js'
import { JsonValues } from '../../src/transfer/formats/json-values.js'
import { Portion } from '../../src/transfer/formats/portion.js'
import { fc } from '../helpers/fast-check.js'
import { type ReadRecord, readRecords } from '../helpers/records.js'
import { rounds } from '../helpers/rounds.js'

const make = () => new JsonValues(new Intake({ map: {}, idFrom: undefined }))
const textBehind = 'text behind the "]" that ends the array'
const noComma = 'a comma is missing before this element'

test.each<[string, string, ReadRecord[]]>([
  ['nothing', ' \n', []],
  ['an empty array', ' [ ]\n', []],
  ['an array', '[{"id":1,"name":"a"},{"id":2,"name":"]}"}]', [fern(1, 'a', 1), { ...fern(2, ']}', 1), raw: '{"id":2,"name":"]}"}' }]],
  ['values', '{"id":1,"name":"a"}{"id":2,"name":"b"}\n', [fern(1, 'a', 1), fern(2, 'b', 1, '\n')]],
  ['values, with CRLF', '{"id":1,"name":"a"}\r\n\r\n{"id":2,"name":"b"}\r', [fern(1, 'a', 1, '\r\n'), fern(2, 'b', 3)]],
  [
    'values over many lines',
    '{\n "id": 1,\n "name": "\\"\\\\"\n}\n\n{"id":2,"name":"b"}',
    [{ plant: { id: 1n, name: '"\\' }, line: 1, raw: '{\n "id": 1,\n "name": "\\"\\\\"\n}\n' }, fern(2, 'b', 6)],
  ],
  ['numbers side by side', '1 23\n', [notPlant('a number', 1, '1'), notPlant('a number', 1, '23\n')]],
  ['an array in an array', '[[{"id":1,"name":"a"}],null]', [notPlant('an array', 1, '[{"id":1,"name":"a"}]'), notPlant('null', 1, 'null')]],
  ['an element that breaks in its text', '[{"id":01},\n{"id":2,"name":"b"}]', [notJson('unexpected "1"', 1, '{"id":01}'), fern(2, 'b', 2)]],
  ['a missing comma', '[{"id":1,"name":"a"}\n{"id":2,"name":"b"}]', [fern(1, 'a', 1), notJson(noComma, 2), fern(2, 'b', 2)]],
  ['a comma too many', '[{"id":1,"name":"a"},]', [fern(1, 'a', 1), notJson('an element is missing before this "]"', 1)]],
  ['nothing but commas', '[,,]', [',', ',', ']'].map((character) => notJson(`an element is missing before this "${character}"`, 1))],
  ['text behind an array', '[]\n{"id":1,"name":"a"}\n', [notJson(textBehind, 2), fern(1, 'a', 2)]],
  [
    'an array that is closed twice',
    '[{"id":1,"name":"a"}],\n{"id":2,"name":"b"}]',
    [fern(1, 'a', 1), notJson(textBehind, 1), fern(2, 'b', 2)],
  ],
  ['an array that is not closed', '[{"id":1,"name":"a"}\n', [fern(1, 'a', 1), notJson('the array has no "]" at its end', 2)]],
  ['a value that is not whole', '[{"id":1,"name":"a"},{"id":2', [fern(1, 'a', 1), notJson('the text ends', 1, '{"id":2')]],
  [
    'a brace too many',
    '{"id":1,"name":"a"}}\n{"id":2,"name":"b"}',
    [fern(1, 'a', 1), notJson('unexpected "}"', 1, '}\n'), fern(2, 'b', 2)],
  ],
  [
    'a bracket too many',
    '[{"id":1,"name":"a"]}]',
    [notJson('the text ends', 1, '{"id":1,"name":"a"'), notJson(textBehind, 1), notJson('unexpected "}"', 1, '}')],
  ],
  [
    'an element without its last quote',
    '[{"id":1,"name":"a},\n{"id":2,"name":"b"}]',
    [notJson('the text ends', 1, '{"id":1,"name":"a}'), fern(2, 'b', 2)],
  ],
  [
    'an element without its brace',
    '[{"id":1,"name":"a",\n{"id":2,"name":"b"}]',
    [notJson('the text ends', 1, '{"id":1,"name":"a"'), fern(2, 'b', 2)],
  ],
  ['the last element without its brace', '[\n{"id":1,"name":"a"\n]\n', [notJson('the text ends', 2, '{"id":1,"name":"a"')]],
  [
    'an element that was cut where another value may come',
    '[{"id":1,"name":[\n{"id":2,"name":"b"},\n{"id":3,"name":"c"}\n]\n',
    [notJson('the text ends', 1, '{"id":1,"name":['), fern(2, 'b', 2), fern(3, 'c', 3)],
  ],
  [
    'an indented element without a comma, with objects in it',
    '[\n  {\n    "id": 1\n    "of": [\n      {"id":5,"name":"e"}\n    ]\n  },\n  {"id":2,"name":"b"}\n]',
    [
      notJson('unexpected "\\"" at line 4, column 5', 2, '{\n    "id": 1\n    "of": [\n      {"id":5,"name":"e"}\n    ]\n  }'),
      fern(2, 'b', 8),
    ],
  ],
  [
    'a missing quote where all is in one line',
    '[{"id":1,"name":"a},{"id":2,"name":"b"},{"id":3,"name":"c"}]',
    [notJson('unexpected "i"', 1, '{"id":1,"name":"a},{"id":2,"name":"b"}'), fern(3, 'c', 1)],
  ],
])('%s', (_, input, records) => {
  expect(readRecords(input, { make }).records).toEqual(records)
})

test('a value that is not UTF-8 is a problem of its own', () => {
  const input = Buffer.from('[{"id":1,"name":"\xff"},{"id":2,"name":"\xc3\xbc\xef\xbf\xbd"}]', 'latin1')
  expect(readRecords(input, { make }).records).toEqual([
    { problem: 'malformed: Not UTF-8', line: 1, raw: '{"id":1,"name":"\ufffd"}' },
    fern(2, 'ü\ufffd', 1),
  ])
})

test('problems without end are left to other portions', () => {
  const input = Buffer.from(`[${'{ '.repeat(50_000)}{"id":2,"name":"b"}]`)
  const portion = new Portion(input)
  expect(make().read(portion, { start: 0, end: input.length }, true)).toBeLessThan(input.length)
  expect(portion.problems.length).toBe(1000)
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
  const deep = `{"id":1,"x":${'['.repeat(limit)}${']'.repeat(limit)}}`
  const tooLarge = 'tooLarge: The record is larger than 1 MiB (1048576 bytes)'
  const cuts = Array.from({ length: 40 }, (_, index) => 65_521 * (index + 1))

  test.each<[string, string, string, string]>([
    ['is a problem of its own', long(limit + 1), '', ',\n'],
    ['is one at any depth', deep, '', ','],
    ['ends at the line when its quote is missing', long(limit + 900_000).slice(0, -2), '', '\n'],
    ['ends at the line when its brace is missing', long(limit + 900_000).slice(0, -1), '', '\n'],
    ['keeps its lines counted', `{\n${'\n'.repeat(limit)}}`, '\n'.repeat(limit + 1), ','],
  ])('%s', (_, record, lines, behind) => {
    const input = `[${record}${behind}{"id":2,"name":"b"}]`
    const line = lines.length + behind.split('\n').length
    const expected = [{ problem: tooLarge, line: 1, raw: record }, fern(2, 'b', line)]
    for (const isRestored of [false, true]) {
      const { records } = readRecords(input, { make, cuts, isRestored })
      expect(records.map(({ raw, ...rest }) => ({ ...rest, raw: raw.slice(0, record.length) }))).toEqual(expected)
    }
  })

  test('is not one that has just 1 MiB', () => {
    expect(readRecords(`${long(limit)}\n`, { make, cuts }).records).toEqual([fern(1, 'a'.repeat(limit - 18), 1, '\n')])
  })

  test('is one of the record alone when it ends the input', () => {
    expect(readRecords(`[${long(limit + 9).slice(0, -2)}`, { make, cuts }).records).toMatchObject([{ problem: tooLarge }])
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
    expect(records.map(({ raw }) => raw.trim())).toEqual(texts)
    const again = readRecords(records.map(({ raw }) => raw).join(isArray ? '\n' : ''), { make })
    expect(again.records.map(({ plant }) => plant)).toEqual(plants)
  }
  const space = fc.constantFrom('', ' ', '\n', '\r\n', '\n  ', '\n\n\t')
  fc.assert(fc.property(fc.array(newPlant(), { maxLength: 5 }), space, fc.boolean(), trip), { numRuns: rounds(400) })
})

test('a broken line takes no other line with it', { timeout: rounds(60_000) }, () => {
  const lines = fc.array(fc.oneof(newPlant(), brokenLine()), { minLength: 1, maxLength: 8 })
  const survive = (items: (NewPlant | string)[], isArray: boolean, indent: string, lineBreak: string) => {
    const texts = items.map((item) => indent + (typeof item === 'string' ? item : textOf(item, '')))
    const body = texts.join(isArray ? `,${lineBreak}` : lineBreak)
    const input = isArray ? `[${lineBreak}${body}${lineBreak}]` : body
    const { records } = readRecords(input, { make })
    const good = items.flatMap((item, index) => (typeof item === 'string' ? [] : [{ plant: item, line: index + (isArray ? 2 : 1) }]))
    const read = records.filter(({ plant }) => good.some((one) => one.plant.id === plant?.id)).map(({ plant, line }) => ({ plant, line }))
    expect(read).toEqual(good)
  }
  fc.assert(fc.property(lines, fc.boolean(), fc.constantFrom('', '  ', '\t'), fc.constantFrom('\n', '\r\n'), survive), {
    numRuns: rounds(400),
  })
})

/** A plant with nothing but an id and a name, as it stands in an input. */
function fern(id: number, name: string, line: number, behind = ''): ReadRecord {
  return { plant: { id: BigInt(id), name }, line, raw: `${JSON.stringify({ id, name })}${behind}` }
}

function notPlant(what: string, line: number, raw: string): ReadRecord {
  return { problem: `invalid: Not a NewPlant: it must be an object, but was ${what}`, line, raw }
}

function notJson(reason: string, line: number, raw = ''): ReadRecord {
  return { problem: `malformed: Not JSON: ${reason}`, line, raw }
}

/** Pieces of JSON in an order that is often right. */
function nearJson(): fc.Arbitrary<Uint8Array> {
  const plant = newPlant().map((one) => textOf(one, ''))
  const piece = fc.constantFrom(...'{}[],:"\\\n\r\t 1-e', '{"', '"}', ',\n', '},{', '\n{', '\n  {', '\r\n', '"id":', 'true', 'ü', '\xff')
  const text = fc.array(fc.oneof({ weight: 2, arbitrary: plant }, { weight: 3, arbitrary: piece }, brokenLine()), { maxLength: 20 })
  return fc.tuple(fc.boolean(), text).map(([isArray, pieces]) => Buffer.from(`${isArray ? '[' : ''}${pieces.join('')}`, 'latin1'))
}

/** A line whose plant, if it is one still, has an id that no other has. */
function brokenLine(): fc.Arbitrary<string> {
  const change = fc.tuple(
    fc.nat({ max: 60 }),
    fc.nat({ max: 6 }),
    fc.constantFrom('', '"', '{', '}', '[', ']', ',', ':', '\\', ' ', 'x', '[{'),
  )
  const damaged = fc.tuple(change, fc.boolean()).map(([[at, deleted, inserted], isNested]) => {
    const line = `{"id":-1,"name":"a b"${isNested ? ',"of":[{"a":1},{"b":["}"]}]' : ',"tag":"c"'}}`
    return line.slice(0, at) + inserted + line.slice(at + deleted)
  })
  // What is in brackets is an element up to where they close, over any number of lines.
  return damaged.filter((line) => /^[^[]/.test(line.trim()) && !/[1-9]\d/.test(line))
}

function newPlant(): fc.Arbitrary<NewPlant> {
  const name = fc.oneof(fc.string({ unit: fc.constantFrom(...'a{}[]",:\\\n é') }), fc.string({ unit: 'grapheme' }))
  return fc.record({ id: fc.bigInt({ min: 10n, max: 2n ** 63n - 1n }), name, tag: name }, { requiredKeys: ['id', 'name'] })
}

function textOf({ id, ...plant }: NewPlant, space: string): string {
  return JSON.stringify(plant).replace(/^\{/, `{${space}"id":${space}${id},`)
}
