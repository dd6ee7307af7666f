import { expect, test } from 'vitest'
import { readDocument } from '../../../src/formats/json.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import { check, fc, generateNewPlant } from '../../helpers/expect/arbitraries.js'
import { formatRecords, readRecords } from './records.js'

const json = { format: 'json' } as const
const ndjson = { format: 'ndjson' } as const
const [a, b] = ['a', 'b'].map((name, index) => `{"id":${index + 1},"name":"${name}"}`)
const noObject = '422 it'

test.each<[string, string, string[]]>([
  ['an empty array', ' [ ]\n', []],
  [
    'values over many lines',
    `[{\n "id": 1,\n "name": "\\"\\\\"\n},\r\n\r\n${b}\r]`,
    ['1: 1 "\\', '6: 2 b'],
  ],
  [
    'values that are no objects',
    `[23,[${a}],null,${a}]`,
    [`1: ${noObject}`, `1: ${noObject}`, `1: ${noObject}`, '1: 1 a'],
  ],
])('JSON is read as records: %s', async (_, input, records) => {
  expect(formatRecords(await readRecords(input, json))).toEqual(records)
})

test('a Ctrl-Z at the end of JSON is not a record', async () => {
  expect(formatRecords(await readRecords(`${a}\n\x1a`, ndjson))).toEqual(['1: 1 a'])
  expect(formatRecords(await readRecords(`${a}\x1a`, ndjson))).toEqual(['1: 1 a'])
  expect(formatRecords(await readRecords(`[${a}]\r\n\x1a`, { ...json, cuts: [25] }))).toEqual([
    '1: 1 a',
  ])
})

test.each<[line: number, input: string]>([
  [2, `[${a},\n {"id":01},\n${b}]`],
  [2, `[${a},\n{"id":2,}]`],
  [1, `[${a}\n${b}]`],
  [2, `[${a}]\n]`],
  [1, `[${a}\n`],
  [3, `[${a},\n\n{"id":2,"name":"b\n`],
])(
  'the error for invalid JSON in the middle of the input names line %i: %j',
  async (line, input) => {
    await expect(readRecords(input, json)).rejects.toThrow(`stdin:${line}: Not JSON: `)
  },
)

test.each([
  [Buffer.from('[\n{"id":1,"name":"\xff"}]', 'latin1'), 'stdin is not UTF-8 (line 2)'],
  [Buffer.alloc(268_435_457, '['), 'stdin is larger than 256 MiB, the limit of JSON'],
  ['['.repeat(2_000_000), 'stdin:1: The record is larger than 1 MiB'],
])('the error for an array that cannot be read says why (row %#)', async (input, message) => {
  await expect(readRecords(input, json)).rejects.toThrow(message)
})

test('an object over several lines is one record, also where its first line is long', async () => {
  for (const input of [
    '\n{\n "id": 1,\n "name": "a {"\n}\n',
    '\r\n{"id":1, "x":[\n2],\n "name":"a {"}',
  ])
    for (const name of ['stdin', 'plant.json'])
      expect(formatRecords(await readRecords(input, { name }))).toEqual(['2: 1 a {'])
  const wrong = '{\n "id": "x", "name": 1\n}'
  expect(formatRecords(await readRecords(wrong, { name: 'plant.json.gz' }))).toEqual(['1: 422 id'])
})

test('consecutive JSON values, as jq prints them, are each a record', async () => {
  const [one, other] = ['{\n"id":1,\n"name":"a"}', '{\n"id":2,\n"name":"b"}']
  for (const between of ['\n', ' ', '', '\r\n\r\n'])
    for (const input of [one + between + other, `[${one}]${between}[${other}]`])
      expect((await readRecords(input, { name: 'a.json' })).records).toMatchObject([
        { plant: { name: 'a' }, line: 1 },
        { plant: { name: 'b' }, line: 3 + between.split('\n').length - 1 },
      ])
  expect(formatRecords(await readRecords(`${a} 5\n"x" ${b}`, json))).toEqual([
    '1: 1 a',
    `1: ${noObject}`,
    `2: ${noObject}`,
    '2: 2 b',
  ])
})

test.each<[line: number, input: string]>([
  [1, '// plants\n[{"id":1,"name":"a"}]'],
  [1, '{\n"id":1,\n"name":NaN\n}'],
  [4, '{\n"id":1,\n"name":"a"}\n{\n"id":1,\n}'],
])(
  'a file with the name .json is read as JSON, with the error in line %i: %j',
  async (line, input) => {
    await expect(readRecords(input, { name: 'a.json' })).rejects.toThrow(
      `a.json:${line}: Not JSON: `,
    )
  },
)

test('a record of NDJSON has at most 1 MiB, and the line after a larger one is read', async () => {
  const limit = 1_048_576
  const cuts = Array.from({ length: 40 }, (_, index) => 65_521 * (index + 1))
  for (const [length, first] of [
    [limit, `1 ${'a'.repeat(limit - 18)}`],
    [limit + 1, '413'],
  ] as const) {
    const record = `{"id":1,"name":"${'a'.repeat(length - 18)}"}`
    for (const options of [ndjson, { ...ndjson, cuts }])
      expect(formatRecords(await readRecords(`${record}\n${b}\n`, options))).toEqual([
        `1: ${first}`,
        '2: 2 b',
      ])
    const document = readRecords(`[${b},\n${record}]`, { ...json, cuts })
    if (length === limit) expect((await document).records).toHaveLength(2)
    else await expect(document).rejects.toThrow('stdin:2: The record is larger than 1 MiB')
  }
})

test('each element of an array becomes a record with its exact text', () => {
  const texts = fc.oneof(
    fc.string({ unit: fc.constantFrom(...'a{}[]",:\\\n é') }),
    fc.string({ unit: 'grapheme' }),
  )
  const spaces = fc.constantFrom('', ' ', '\n', '\r\n', '\n  ', '\n\n\t')
  return check(
    400,
    [fc.array(generateNewPlant(texts), { maxLength: 5 }), spaces],
    async (plants, space) => {
      const elements = plants.map((plant) => elementOf(plant, space))
      const { records } = await readRecords(`[${elements.join(`,${space}`)}]`, json)
      expect(records.map(({ plant }) => plant)).toEqual(plants)
      expect(records.map(({ raw }) => raw)).toEqual(elements)
    },
  )
})

test('a chunk of an array has hardly more than 260,000 characters', async () => {
  const record = `"${'a'.repeat(150_000)}"`
  const texts = (async function* () {
    yield `[${[record, record, record].join()}]`
  })()
  const input = { name: 'a', signal: new AbortController().signal }
  const lengths: number[] = []
  for await (const values of readDocument(texts, {}, input)) lengths.push(values.length)
  expect(lengths).toEqual([2, 1])
})

function elementOf({ id, ...plant }: NewPlant, space: string): string {
  return JSON.stringify(plant).replace(/^\{/, `{${space}"id":${space}${id},`)
}
