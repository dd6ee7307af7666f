import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { recordWriter } from '../../../../src/plant/records.js'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { Chunk, notUtf8 } from '../../../../src/transfer/formats/chunk.js'
import { csv, tsv } from '../../../../src/transfer/formats/csv.js'
import { type FieldRules, RecordMapper } from '../../../../src/transfer/formats/record-mapper.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { check, fc } from '../../../helpers/fast-check.js'
import { readRecords, shown } from '../../../helpers/records.js'

const plain: FieldRules = { map: {}, idFrom: undefined }
const make = () => csv.read(new RecordMapper(plain))
const recordsOf = (input: string | Uint8Array) => shown(readRecords(input, { make }).records)

const texts = fc.oneof(fc.string({ unit: fc.constantFrom(...'a",\t\r\n é\u00a0') }), fc.string({ unit: 'grapheme' }))
const strayQuote = '400: Not CSV: a stray quote. Write a quote in a cell as "", and the cell in quotes'
const openQuote = '400: Not CSV: a quote is not closed'
const noPlant = (message: string) => `422: Invalid plant: ${message}`

test.each<[string, string, string[]]>([
  ['nothing', '', []],
  ['a header without its line break', 'id,name', []],
  [
    'rows that end with CR, LF and CRLF, and blank ones, after a line that names the delimiter',
    'sep=;\rid;name\r\r1;a\r2;"b"\r\n\r3;"c\rd"\r4;e\n5;f\r',
    ['4: 1 a', '5: 2 b', '7: 3 c\rd', '9: 4 e', '10: 5 f'],
  ],
  [
    'spaces around cells, which do not belong to them, and in quotes, where they do',
    ' id , name , tag \n 1 , a  b ,  \n2,\u00a0c, d\n3," e "," "\n\n  \n',
    ['2: 1 a  b', '3: 2 \u00a0c/d', '4: 3  e / '],
  ],
  [
    'zeros in front of an id, and none in quotes',
    'id,name\n0007,007\n-08,b\n00,c\n "09",d\n"09",e\n',
    [
      ...['2: 7 007', '3: -8 b', '4: 0 c', `5: ${strayQuote}`],
      `6: ${noPlant('id must be an integer without leading zeros, but was "09"')}`,
    ],
  ],
  [
    'ids as spreadsheets write them',
    'id,name\n1.0,a\n9.22E+18,a\n1.000,a\n" 1",a\n,a\n"",a\n',
    [
      '2: 1 a',
      `3: ${noPlant('id must have all its digits, but was "9.22E+18": a spreadsheet may have rounded it')}`,
      `4: ${noPlant('id must be in digits only, but was "1.000": in some countries, the point groups thousands')}`,
      `5: ${noPlant('id must be an integer without spaces, but was " 1"')}`,
      `6: ${noPlant('id must be an integer, but is missing')}`,
      `7: ${noPlant('id must be an integer, but was ""')}`,
    ],
  ],
  [
    'no tag, an empty tag and a tag; no name and an empty name',
    'id,name,tag\n1,"""",\n2,"b, ""","""c\n"\n3,"",""\n4,"d",""\n5,,x\n',
    ['2: 1 "', '3: 2 b, "/"c\n', '5: 3 /', '6: 4 d/', `7: ${noPlant('name must be a string, but is missing')}`],
  ],
  [
    'too few cells and too many, where empty ones at the end do not count',
    'id,name,tag\n1\n2,b,,\n,,,,\n3,c,,d\n4,d\n',
    [
      `2: ${noPlant('name must be a string, but is missing')}`,
      ...['3: 2 b', '5: 400: The row has 4 cells, but the header has 3', '6: 4 d'],
    ],
  ],
  [
    'a quote inside a cell, and text after one',
    'id,name\n1,a"b"\n1,"a"b\n2,b\n',
    [...['2', '3'].map((line) => `${line}: ${strayQuote}`), '4: 2 b'],
  ],
  ['a carriage return after a quote', 'id,name\n1,"a"\r2,b\n', ['2: 1 a', '3: 2 b']],
  ['a quote that is not closed', 'id,name\n1,"a\n2,b\n3,c\n', [`2: ${openQuote}`, '3: 2 b', '4: 3 c']],
  ['a quote that the next row closes', 'id,name\n1,"a\n2,b\n3,"c"\n', [`2: ${strayQuote}`, '3: 2 b', '4: 3 c']],
])('%s', (_, input, records) => {
  expect(recordsOf(input)).toEqual(records)
})

test('an id is a JSON number with all its digits', () => {
  const ids = '1e3 -5 2.0 1E+03 +1 0x10 1.5 9223372036854775808'.split(' ')
  const { records } = readRecords(['id,name', ...ids.map((id) => `${id},x`)].join('\n'), { make })
  expect(records.map(({ plant }) => plant?.id)).toEqual([1000n, -5n, 2n, ...Array(5)])
})

test('TSV has its own delimiter and name', () => {
  const { records } = readRecords('id\tname\n1\t a, b\n2\t"a"b\n', { make: () => tsv.read(new RecordMapper(plain)) })
  expect(shown(records)).toEqual(['2: 1 a, b', `3: ${strayQuote.replace('CSV', 'TSV')}`])
})

test('a row that is not UTF-8 is a problem of its own', () => {
  const input = Buffer.from('id,name\n1,\xff\n2,\xc3\xbc\n', 'latin1')
  expect(recordsOf(input)).toEqual([`2: 400: ${notUtf8.message}`, '3: 2 ü'])
})

test('problems without end are left to other chunks', () => {
  const input = Buffer.from(`id,name\n${'1\n'.repeat(90_000)}2,b\n`)
  const chunk = new Chunk(input)
  expect(make().read(chunk, true)).toBeLessThan(input.length)
  expect(chunk.invalid.length).toBeLessThan(50_000)
  for (const isRestored of [false, true]) {
    const records = shown(readRecords(input, { make, isRestored }).records)
    expect([records.length, records.at(-1)]).toEqual([90_001, '90002: 2 b'])
  }
})

test('other columns are counted where they hold something', () => {
  const { records, otherFields } = readRecords('id,name,colour,__proto__,\n1,a,,x,\n2,b,red,y,\n3,c,"",,\n', { make })
  expect(shown(records)).toEqual(['2: 1 a', '3: 2 b', '4: 3 c'])
  expect([...otherFields].toSorted()).toEqual([
    ['__proto__', 2],
    ['colour', 1],
  ])
})

const columnHint = 'Name the columns with --columns, such as --columns id,name,tag'
const example = 'It must name the columns, for example: id,name,tag'
const choose = (pairs: string) => `Choose columns with --map ${pairs}=COLUMN`
const noId = `${choose('id')}, or number the plants with --id-from next`
const neither = choose('id=COLUMN,name')
const inLine1 = 'The header in line 1'

test.each<[message: string, hint: string, input: string, map?: FieldRules['map']]>([
  [`${inLine1} has no column id, only "no", "Name"`, noId, 'no,Name\n'],
  [`${inLine1} has no column name, only "No", "Nom"`, choose('id=No,name'), 'No;Nom\n', { id: 'No' }],
  [
    'The header in line 6 has no columns id and name, only "Nr.", "Nom"',
    neither,
    '\n"Oak & Sons,\n2026"; ;\n;;\n\n Nr. ;Nom;\n1;Acer;\n',
  ],
  ['There is no header: line 3 is "1", "Acer"', columnHint, 'Oak & Sons\n\n1|Acer\n'],
  [`${inLine1} has no columns id and name, only empty cells`, neither, ',,,\n'],
  [
    'There is no header: line 1 is "110", "Fennel", "herb"',
    columnHint,
    '110,Fennel,herb\n',
    { id: '110', name: 'Fennel', tag: 'herb' },
  ],
  [
    'There is no header: line 2 is "Branch", "12"',
    'If line 4 is the header, delete the lines before it',
    'Stock\nBranch;12\n\nID;Name\n1;Acer\n',
  ],
  [`${inLine1} has no column "Family" for tag, only "id", "name"`, choose('tag'), 'id,name\n', { tag: 'Family' }],
  ['The header has the column "name" twice', 'Give each column a different name', 'id,name,name\n'],
  [
    `${inLine1} has no column name, only "id", "b", "c", "d", "e", "f", "g", "h" and 2 more`,
    choose('name=COLUMN,tag'),
    'id,b,c,d,e,f,g,h,i,j\n',
  ],
  [`${inLine1} cannot be read: ${strayQuote.slice(5)}`, example, 'id,na"me\n'],
  [`${inLine1} cannot be read: ${notUtf8.message}`, example, 'id,name,\xff\n'],
  [`${inLine1} cannot be read: The record is larger than 1 MiB (1048576 bytes)`, example, 'a'.repeat(1_100_000)],
])('a header is rejected: %s', (message, hint, input, map = {}) => {
  const format = csv.read(new RecordMapper({ ...plain, map }))
  const error = { type: 'malformed', message, hint } satisfies Partial<PlantsError>
  const read = () => readRecords(Buffer.from(input, 'latin1'), { make: () => format })
  expect(read).toThrow(expect.objectContaining(error))
})

test.each(['\n\n"i""d",name,id\r\n', 'id,name'])('keeps the header %j as it came', (header) => {
  const [format, restored] = [make(), make()]
  format.read(new Chunk(Buffer.from(header)), true)
  restored.restore(format.save())
  expect([format, restored].map((one) => one.header?.toString())).toEqual([header.trimStart(), header.trimStart()])
})

describe('a row larger than 1 MiB', () => {
  const limit = 1_048_576
  const tooLarge = '413: The record is larger than 1 MiB (1048576 bytes)'
  const cuts = Array.from({ length: 50 }, (_, index) => 65_521 * (index + 1))

  test.each<[string, string]>([
    ['is a problem of its own', `1,${'a'.repeat(limit - 1)}\n`],
    ['is one with line breaks in quotes', `1,"${'a,b\n2,c\n'.repeat(limit / 4)}",d\n`],
    ['is one whose cells are large together', `1,"${'a'.repeat(limit / 2)}\n",${'a'.repeat(limit)}\r\n`],
    ['ends at its line when it is broken', `1,"a"b${'a'.repeat(2 * limit)}\n`],
    ['ends at its line when its quote is not closed', `1,"${'a,'.repeat(limit)}\n`],
  ])('%s', (_, long) => {
    const next = 1 + long.split('\n').length
    for (const isRestored of [false, true]) {
      const { records } = readRecords(`id,name\n${long}2,b\n`, { make, cuts, isRestored })
      expect(shown(records)).toEqual([`2: ${tooLarge}`, `${next}: 2 b`])
      expect([long, '']).toContain(records[0]?.raw)
    }
  })

  test('has 16 MiB at most, or its quote is not closed', () => {
    const many = (length: number) => `id,name\n1,"a\n${`9,${'b'.repeat(1021)}\n`.repeat(length / 1024)}"\n2,b\n`
    const problemsIn = (input: string) => readRecords(input, { make }).records.flatMap(({ problem }) => problem ?? [])
    expect(problemsIn(many(16 * limit - 1024))).toEqual([tooLarge])
    expect(problemsIn(many(16 * limit))).toEqual([openQuote, openQuote])
  })

  test('is not one of 1 MiB', () => {
    const name = 'a'.repeat(limit - 4)
    const { records } = readRecords(`id,name\n1,"${name.slice(1)}"\r\n10,${name}a\n`, { make, cuts })
    expect(records.map(({ plant }) => plant?.name)).toEqual([name.slice(1), `${name}a`])
  })

  test('is not what follows a quote that is not closed', () => {
    const others = Array.from({ length: 300_000 }, (_, index) => `${index},b`)
    const { records } = readRecords(`id,name\n1,"a\n${others.join('\n')}`, { make, cuts })
    expect([records.length, ...shown(records.slice(0, 2))]).toEqual([300_001, `2: ${openQuote}`, '3: 0 b'])
  })
})

test('any cut and any saved state give what one read gives', () => {
  const someCuts = fc.array(fc.nat({ max: 200 }), { maxLength: 8 })
  return check(300, [nearCsv(), someCuts, fc.boolean(), fc.boolean()], (input, places, isRestored, isEach) => {
    const all = isEach ? Array.from(input, (_, index) => index) : places
    const once = readRecords(input, { make })
    expect(readRecords(input, { make, cuts: all, isRestored })).toEqual(once)
    // Every byte after the header belongs to a record, but for line breaks and blank rows.
    const rest = Buffer.from(input.subarray(input.indexOf(0x0a) + 1)).toString()
    const raw = once.records.map((record) => record.raw).join('')
    expect(raw.replace(/[\r\n,\t ]/g, '')).toBe(rest.replace(/[\r\n,\t ]/g, ''))
  })
})

test('what was written is read, and what was read is input again', () => {
  const plants = fc.array(newPlant(texts), { maxLength: 6 })
  const delimiters = fc.constantFrom(',' as const, '\t' as const)
  const breaks = fc.constantFrom('\n', '\r\n', '\r')
  return check(400, [plants, delimiters, breaks, fc.boolean()], (plants, delimiter, lineBreak, isQuoted) => {
    const write = recordWriter(delimiter, ['tag', 'id', 'name'])
    const inQuotes = ({ id, name, tag }: NewPlant) =>
      [tag === undefined ? '' : quote(tag, true), String(id), quote(name, true)].join(delimiter)
    const lines = plants.map((plant) => (isQuoted ? inQuotes(plant) : write(plant)) + lineBreak)
    const input = ['tag', 'id', 'name'].join(delimiter) + lineBreak + lines.join('')
    const format = delimiter === ',' ? csv : tsv
    const { records } = readRecords(input, { make: () => format.read(new RecordMapper(plain)) })
    expect(records.map(({ plant }) => plant)).toEqual(plants)
    expect(records.map(({ raw }) => raw)).toEqual(lines)
  })
})

test('a broken row takes no other with it', () => {
  const broken = fc.string({ unit: fc.constantFrom(...'",a 1\r'), minLength: 1, maxLength: 12 })
  const good = fc.nat({ max: 9 }).map((id) => `${id + 10},plant ${id}`)
  return check(300, [fc.array(fc.oneof(good, broken), { minLength: 1, maxLength: 8 })], (lines) => {
    const { records } = readRecords(`id,name\n${lines.join('\n')}`, { make })
    fc.pre(records.every(({ raw }) => !/\n./s.test(raw))) // no row is in quotes with another one
    const survivors = records.flatMap(({ plant }) =>
      plant?.name.startsWith('plant ') ? `${plant.id},${plant.name}` : [],
    )
    expect(survivors).toEqual(lines.filter((line) => line.includes('plant ')))
  })
})

function quote(text: string, isQuoted: boolean): string {
  return isQuoted || /["\t,\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A table with rows that are often right. */
function nearCsv(): fc.Arbitrary<Uint8Array> {
  const piece = fc.constantFrom(...'",\r\na 1', '""', '\r\n', '\n1,', ',"', '"\n', '"\r\n', '\n\n', 'ü', '\xff', '\0')
  const row = newPlant(texts).map(({ id, name }) => `\n${id},${quote(name, false)}`)
  const cells = fc.array(fc.oneof({ weight: 3, arbitrary: piece }, row), { maxLength: 25 })
  return cells.map((pieces) => Buffer.from(`id,name\n${pieces.join('')}`, 'latin1'))
}
