import { expect, test } from 'vitest'
import type { Cells, RawRecord } from '../../../src/formats/chunk.js'
import { openFormat } from '../../../src/formats/detect.js'
import { readNdjson } from '../../../src/formats/json.js'
import { PlainChunk, type PlainFormat } from '../../../src/formats/plain-chunk.js'
import { createPlainJsonFormat } from '../../../src/formats/plain-json.js'
import { createPlainTableFormat } from '../../../src/formats/plain-table.js'
import type { RowArrays } from '../../../src/formats/row-arrays.js'
import { Mapper } from '../../../src/import/map-record.js'
import type { NewPlant, PlainRows, RowValue } from '../../../src/plant/plant.js'
import { formatPlainRows } from '../../../src/stores/postgres/copy-plain-rows.js'
import { formatCopyRows } from '../../../src/stores/postgres/write.js'
import { PlainRowsRejectedError } from '../../../src/stores/store.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

const rules = { map: {}, ifExists: 'same' as const, takesPlainRows: true }
const table = { name: 'plants.csv', lineEnd: '\n', line: 1, remainder: '' }

function createTableFormat(delimiter: string, names: readonly string[]) {
  const fields = (['id', 'name', 'tag'] as const).filter((field) => names.includes(field))
  const columns = new Map(fields.map((field) => [field, names.indexOf(field)] as const))
  const header = { names, columns, unreadNames: [], unnamedColumns: [] }
  const format = createPlainTableFormat({ ...table, delimiter, hasQuotes: true }, header)
  if (!format) throw new Error('No row of the table is plain')
  return { format, mapper: new Mapper(rules, header, {}) }
}

const jsonFormat = createPlainJsonFormat((text, line, chunk) => {
  for (const [index, record] of text.split('\n').slice(0, -1).entries())
    chunk.add(record, line + index)
})

/** Expects that rows, if they are plain, have the plants that their records are mapped to. */
function expectSamePlants<R extends RawRecord>(
  text: string,
  format: PlainFormat<R>,
  mapper: Mapper,
): boolean {
  const chunk = new PlainChunk(format)
  const count = chunk.addText(text, text.length, 5)
  if (count === undefined) {
    expect(chunk.length).toBe(0)
    return false
  }
  expect([chunk.length, chunk.records.length]).toEqual([count, count])
  expect(chunk.lines).toEqual(chunk.records.map((_, row) => 5 + row))
  const plants: NewPlant[] = []
  for (const [row, record] of chunk.records.entries()) {
    const values: RowValue[] = []
    const mapped = mapper.map(record)
    if (chunk.addValues(row, values)) {
      const [id, name, tag] = values
      const plant = tag === null ? { id, name } : { id, name, tag }
      expect(mapped).toMatchObject({ type: 'create' })
      expect('plant' in mapped && mapped.plant).toStrictEqual(plant)
      if ('plant' in mapped) plants.push(mapped.plant)
    } else expect(mapped).toHaveProperty('error')
  }
  if (plants.length === count) expectSameCopy(chunk, plants)
  else expect(() => formatPlainRows(chunk)).toThrow(PlainRowsRejectedError)
  return true
}

/** PostgreSQL reads `-0` and `007` as integers, so the ids need not be equal as texts. */
function expectSameCopy(chunk: PlainRows, plants: readonly NewPlant[]): void {
  const sorted = plants.toSorted((left, right) => Number(left.id) - Number(right.id))
  const parse = (text: string) => text.split('\n').map((line) => line.split('\t'))
  const rows = parse(formatPlainRows(chunk)).map(([id = '', ...texts]) => [BigInt(id), ...texts])
  const expected = parse(formatCopyRows(sorted.map((plant) => ({ plant, key: undefined }))))
  expect(rows).toEqual(expected.map(([id = '', ...texts]) => [BigInt(id), ...texts.slice(0, 2)]))
}

const cell = fc.oneof(
  fc.constantFrom('1', '-1', '007', '-0', '9223372036854775807', '-9223372036854775808', '1.0'),
  fc.constantFrom('9223372036854775808', '99999999999999999999', "'4", '="5"', '', '""', '"6"'),
  fc.constantFrom('Fern', '"Fern"', '"a""b"', '"a"b', 'a"b', '"""', '"a,b"', ' a', 'a ', '" a "'),
  fc.constantFrom('a\\b', '\\N', '\\.', '"\\"', 'a\tb', '"\t"'),
  fc.constantFrom('#REF!', '"#REF!"', 'a\0', '\ud83c', '🌿', '\u3000a', 'a\ufeff', '"a\nb"', 'ü'),
  fc.string({ unit: fc.constantFrom('"', ',', ';', ' ', 'a', '1', '\r', '\u2028'), maxLength: 4 }),
)
const end = fc.constantFrom('\n', '\n', '\n', '\r\n', '\r\r\n', '\n\n')

test('the plain rows of a table become the plants that the general path maps', () =>
  check(
    5000,
    [
      fc.constantFrom(['id', 'name', 'tag'], ['tag', 'note', 'id', 'name'], ['name', 'id']),
      fc.constantFrom(',', ';'),
      fc.array(fc.tuple(fc.array(fc.tuple(fc.nat({ max: 4 }), cell), { maxLength: 2 }), end), {
        minLength: 1,
        maxLength: 3,
      }),
    ],
    (names, delimiter, rows) => {
      const { format, mapper } = createTableFormat(delimiter, names)
      const lines = rows.map(([replaced, lineEnd]) => {
        const cells: string[] = names.map((name) => (name === 'id' ? '7' : 'Moss'))
        for (const [column, text] of replaced) cells[column] = text
        return cells.join(delimiter) + lineEnd
      })
      expectSamePlants<Cells>(lines.join(''), format, mapper)
    },
  ))

const token = fc.oneof(
  fc.constantFrom('"id"', '"name"', '"tag"', '"ID"', ':', ': ', ',', ', ', '{', '}', 'null', '\r'),
  fc.constantFrom('0', '-0', '01', '-1', '1.0', '9223372036854775807', '9223372036854775808'),
  fc.constantFrom('"a"', '""', '"\\n"', '"\t"', '"\\x"', '"\\"', '"\\\\"', '"\ud83c"', '"\\u0000"'),
  fc.constantFrom('"\\ud83c"', '"\u007f"', '"ü"', '"\\"b"', '\n'),
)
const plainTokens = '{ "id" : 7 , "name" : "a" , "tag" : "b" }'.split(' ')

test('the plain objects of NDJSON become the plants that the general path maps', () =>
  check(
    5000,
    [fc.array(fc.tuple(fc.nat({ max: 12 }), token), { maxLength: 3 }), fc.constantFrom(9, 13)],
    (replacements, length) => {
      const tokens = length === 9 ? [...plainTokens.slice(0, 8), '}'] : [...plainTokens]
      for (const [at, replacement] of replacements) tokens[at] = replacement
      const text = `${tokens.join('')}\n{"id":8,"name":"c"}\n`
      // A line feed in an object makes two records of it, so that lines are counted here, too.
      expectSamePlants<string | null>(text, jsonFormat, new Mapper(rules, undefined, {}))
    },
  ))

test.each<[string, string]>([
  ['without quotes', '1,Fern,shade\n2,Moss,\n'],
  [
    'in quotes, with quotes and delimiters in them',
    '"1","Rosa ""Peace""","a,b"\r\n2,"Moss",""\r\n',
  ],
])('the usual rows of a table are plain: %s', (_, text) => {
  const { format, mapper } = createTableFormat(',', ['id', 'name', 'tag'])
  expect(expectSamePlants<Cells>(text, format, mapper)).toBe(true)
})

test.each([
  '{"id":1,"name":"Fern"}\n{"id":-2,"name":"Moss","tag":""}\n',
  '{"id": 1, "name": "Rosa \\"Peace\\"", "tag": "\\u00fc"}\n',
])('objects of NDJSON as other programs write them are plain: %j', (text) => {
  const mapper = new Mapper(rules, undefined, {})
  expect(expectSamePlants<string | null>(text, jsonFormat, mapper)).toBe(true)
})

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const item of items) collected.push(item)
  return collected
}

test('a file is read as chunks with its records in their order, plain or not', async () => {
  const plain = (id: number) => `${id},Fern ${id},shade\n`
  const rows = Array.from({ length: 30_000 }, (_, id) => plain(id))
  rows[9000] = '9000, spaces ,\n'
  rows[21_000] = '21000,"two\nlines",\n'
  const bytes = Buffer.from(`id,name,tag\n${rows.join('')}`)
  async function* blocks(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000)
  }
  const { signal } = new AbortController()
  const input = { name: 'plants.csv', head: bytes.subarray(0, 100_000), signal }
  const readAll = async (takesPlainRows: boolean) => {
    const { chunks } = await openFormat(
      { ...input, blocks: blocks() },
      { ...rules, takesPlainRows },
    )
    const all = await collect(chunks)
    const isPlain = all.map((chunk) => chunk instanceof PlainChunk)
    const records = all.flatMap((chunk) => chunk.records.map((row, at) => [row, chunk.lines[at]]))
    return { isPlain, records }
  }
  const { isPlain, records } = await readAll(true)
  expect(isPlain).toEqual([false, true, false, true, false])
  expect(records).toEqual((await readAll(false)).records)
})

test('a line of NDJSON that is too large becomes one record between plain ones', async () => {
  async function* texts(): AsyncGenerator<string> {
    yield '{"id":1,"name":"Fern"}\n'
    yield '{"id":2,"name":"Moss"}\n{"id":3,"name":"'
    yield 'a'.repeat(1_048_576)
    yield '"}\n{"id":4,"name":"Yew"}\n'
    yield '{"id":5,"name":"Ivy"}\n'
  }
  const chunks = await collect(readNdjson(texts(), rules))
  const records = chunks.flatMap((chunk) => chunk.records.map((raw, at) => [chunk.lines[at], raw]))
  expect(records).toEqual([
    [1, '{"id":1,"name":"Fern"}'],
    [2, '{"id":2,"name":"Moss"}'],
    [3, null],
    [4, '{"id":4,"name":"Yew"}'],
    [5, '{"id":5,"name":"Ivy"}'],
  ])
})

test('a released chunk gives its arrays to the next chunk, which has its own rows only', () => {
  const freeArrays: RowArrays[] = []
  const fill = (count: number, name: string) => {
    const chunk = new PlainChunk(jsonFormat, freeArrays)
    const rows = Array.from(
      { length: count },
      (_, row) => `{"id":${count - row},"name":"${name}"}\n`,
    )
    const text = rows.join('')
    expect(chunk.addText(text, text.length, 1)).toBe(count)
    return chunk
  }
  const first = fill(9000, 'Fern')
  const second = fill(2, 'Moss')
  first.release()
  expect(freeArrays.map(({ ids }) => ids.length)).toEqual([32_768])
  const third = fill(3, 'Rose')
  expect([freeArrays.length, first.length, second.length, third.length]).toEqual([0, 0, 2, 3])
  expect([second.readFields(0), third.readFields(2)]).toEqual([
    { id: '2', name: 'Moss', tag: null },
    { id: '1', name: 'Rose', tag: null },
  ])
  expect(third.listIndexesById()).toEqual(Uint32Array.of(2, 1, 0))
})
