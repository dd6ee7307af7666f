import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { recordWriter } from '../../../../src/plant/records.js'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { Chunk, notUtf8 } from '../../../../src/transfer/formats/chunk.js'
import { csv, tsv } from '../../../../src/transfer/formats/csv.js'
import { type FieldRules, RecordMapper } from '../../../../src/transfer/formats/record-mapper.js'
import { fc } from '../../../helpers/fast-check.js'
import { type ReadRecord, readRecords } from '../../../helpers/records.js'
import { rounds } from '../../../helpers/rounds.js'

const plain: FieldRules = { map: {}, idFrom: undefined }
const strayQuote = 'a stray quote. Write a quote in a cell as "", and the cell in quotes'
const openQuote = 'a quote is not closed'
const columnHint = 'Name the columns with --columns, such as --columns id,name,tag'
const noId = 'Choose the column with --map id=COLUMN, or number the plants with --id-from next'
const noName = 'Choose the column with --map name=COLUMN'
const neither = 'Choose the columns with --map id=COLUMN,name=COLUMN'

test.each<[string, string, ReadRecord[]]>([
  ['nothing', '', []],
  ['a header alone', 'id,name\n', []],
  ['a header without its line break', 'id,name', []],
  ['rows', 'id,name\n1,a\n2,b', [row(1, 'a', 2, '1,a\n'), row(2, 'b', 3, '2,b')]],
  [
    'rows with CRLF, and blank ones',
    '\r\nid,name\r\n\r\n1,a\r\n\n2,b\r',
    [row(1, 'a', 4, '1,a\r\n'), row(2, 'b', 6, '2,b\r')],
  ],
  ['columns in any order', 'name,"id"\na,1\n', [row(1, 'a', 2, 'a,1\n')]],
  [
    'quotes, commas and line breaks in quotes',
    'id,name\n1,"a ""b"", c\n\r\nd"\n"2",e\n',
    [row(1, 'a "b", c\n\r\nd', 2, '1,"a ""b"", c\n\r\nd"\n'), row(2, 'e', 5, '"2",e\n')],
  ],
  [
    'rows that end with CR, LF and CRLF, and blank ones',
    'id,name\r\r1,a\r2,"b"\r\n\r3,"c\rd"\r4,e\n5,f',
    [
      row(1, 'a', 3, '1,a\r'),
      row(2, 'b', 4, '2,"b"\r\n'),
      row(3, 'c\rd', 6, '3,"c\rd"\r'),
      row(4, 'e', 8, '4,e\n'),
      row(5, 'f', 9, '5,f'),
    ],
  ],
  [
    'spaces around cells, which do not belong to them, and in quotes, where they do',
    ' id , name , tag \n 1 , a  b ,  \n2,\u00a0c, d\n3," e "," "\n\n  \n',
    [
      row(1, 'a  b', 2, ' 1 , a  b ,  \n'),
      { plant: { id: 2n, name: '\u00a0c', tag: 'd' }, line: 3, raw: '2,\u00a0c, d\n' },
      { plant: { id: 3n, name: ' e ', tag: ' ' }, line: 4, raw: '3," e "," "\n' },
    ],
  ],
  [
    'zeros in front of an id, and none in quotes',
    'id,name\n0007,007\n-08,b\n00,c\n "09",d\n"09",e\n',
    [
      row(7, '007', 2, '0007,007\n'),
      row(-8, 'b', 3, '-08,b\n'),
      row(0, 'c', 4, '00,c\n'),
      problem(`Not CSV: ${strayQuote}`, 5, ' "09",d\n'),
      notPlant('id must be an integer without leading zeros, but was "09"', 6, '"09",e\n'),
    ],
  ],
  ['an id in the numbers of JSON', 'id,name\n1.0,a\n', [row(1, 'a', 2, '1.0,a\n')]],
  [
    'an id with an exponent',
    'id,name\n9.22E+18,a\n',
    [notPlant('id must have all its digits, but was "9.22E+18": a spreadsheet may have rounded it', 2, '9.22E+18,a\n')],
  ],
  [
    'an id with a point that may group thousands',
    'id,name\n1.000,a\n',
    [
      notPlant(
        'id must be in digits only, but was "1.000": in some countries, the point groups thousands',
        2,
        '1.000,a\n',
      ),
    ],
  ],
  [
    'an id that is none',
    'id,name\n" 1",a\n',
    [notPlant('id must be an integer without spaces, but was " 1"', 2, '" 1",a\n')],
  ],
  ['an id that is missing', 'id,name\n,a\n', [notPlant('id must be an integer, but is missing', 2, ',a\n')]],
  ['an id that is empty', 'id,name\n"",a\n', [notPlant('id must be an integer, but was ""', 2, '"",a\n')]],
  [
    'no tag, an empty tag and a tag',
    'id,name,tag\n1,"""",\n2,"b, ""","""c\n"\n3,"",""\n4,"d",""\n',
    [
      row(1, '"', 2, '1,"""",\n'),
      { plant: { id: 2n, name: 'b, "', tag: '"c\n' }, line: 3, raw: '2,"b, ""","""c\n"\n' },
      { plant: { id: 3n, name: '', tag: '' }, line: 5, raw: '3,"",""\n' },
      { plant: { id: 4n, name: 'd', tag: '' }, line: 6, raw: '4,"d",""\n' },
    ],
  ],
  [
    'too few cells and too many, where empty ones at the end do not count',
    'id,name,tag\n1\n2,b,,\n,,,,\n3,c,,d\n4,d\n',
    [
      notPlant('name must be a string, but is missing', 2, '1\n'),
      row(2, 'b', 3, '2,b,,\n'),
      problem('The row has 4 cells, but the header has 3', 5, '3,c,,d\n'),
      row(4, 'd', 6, '4,d\n'),
    ],
  ],
  [
    'a quote inside a cell',
    'id,name\n1,a"b"\n2,b\n',
    [problem(`Not CSV: ${strayQuote}`, 2, '1,a"b"\n'), row(2, 'b', 3, '2,b\n')],
  ],
  [
    'text behind a quote',
    'id,name\n1,"a"b\n2,b\n',
    [problem(`Not CSV: ${strayQuote}`, 2, '1,"a"b\n'), row(2, 'b', 3, '2,b\n')],
  ],
  [
    'a carriage return behind a quote',
    'id,name\n1,"a"\rb\n2,b\n',
    [
      row(1, 'a', 2, '1,"a"\r'),
      notPlant('id must be an integer, in digits only, but was "b"; name must be a string, but is missing', 3, 'b\n'),
      row(2, 'b', 4, '2,b\n'),
    ],
  ],
  [
    'a quote that is not closed',
    'id,name\n1,"a\n2,b\n3,c\n',
    [problem(`Not CSV: ${openQuote}`, 2, '1,"a\n'), row(2, 'b', 3, '2,b\n'), row(3, 'c', 4, '3,c\n')],
  ],
  [
    'a quote that the next row closes',
    'id,name\n1,"a\n2,b\n3,"c"\n',
    [problem(`Not CSV: ${strayQuote}`, 2, '1,"a\n'), row(2, 'b', 3, '2,b\n'), row(3, 'c', 4, '3,"c"\n')],
  ],
  [
    'a quote that is not closed in the last row',
    'id,name\n1,a\n2,"b',
    [row(1, 'a', 2, '1,a\n'), problem(`Not CSV: ${openQuote}`, 3, '2,"b')],
  ],
])('%s', (_, input, records) => {
  const make = () => csv.read(new RecordMapper(plain))
  expect(readRecords(input, { make }).records).toEqual(records)
  const tabs = (text: string) =>
    text.replaceAll(',', '\t').replace('Not CSV', 'Not TSV').replace('cell as ""\t', 'cell as "",')
  const inTabs = readRecords(tabs(input), { make: () => tsv.read(new RecordMapper(plain)) })
  const shown = ({ line, raw, problem: said, plant }: ReadRecord) => ({
    line,
    raw: tabs(raw),
    said: said && tabs(said),
    name: plant && tabs(plant.name),
  })
  expect(inTabs.records.map(shown)).toEqual(records.map(shown))
})

test('a row that is not UTF-8 is a problem of its own', () => {
  const input = Buffer.from('id,name\n1,\xff\n2,\xc3\xbc\n', 'latin1')
  expect(readRecords(input, { make: () => csv.read(new RecordMapper(plain)) }).records).toEqual([
    problem(notUtf8.message, 2, '1,\ufffd\n'),
    row(2, 'ü', 3, '2,ü\n'),
  ])
})

test('problems without end are left to other chunks', () => {
  const make = () => csv.read(new RecordMapper(plain))
  const input = Buffer.from(`id,name\n${'1\n'.repeat(90_000)}2,b\n`)
  const chunk = new Chunk(input)
  expect(make().read(chunk, true)).toBeLessThan(input.length)
  expect(chunk.invalid.length).toBeLessThan(50_000)
  for (const isRestored of [false, true]) {
    const { records } = readRecords(input, { make, isRestored })
    expect(records.length).toBe(90_001)
    expect(records.at(-1)).toEqual(row(2, 'b', 90_002, '2,b\n'))
  }
})

test('other columns are counted where they hold something, and a column may be called anything', () => {
  const make = () => csv.read(new RecordMapper(plain))
  const input = 'id,name,colour,__proto__,\n1,a,,x,\n2,b,red,y,\n3,c,"",,\n'
  expect(readRecords(input, { make })).toEqual({
    records: [row(1, 'a', 2, '1,a,,x,\n'), row(2, 'b', 3, '2,b,red,y,\n'), row(3, 'c', 4, '3,c,"",,\n')],
    otherFields: new Map([
      ['__proto__', 2],
      ['colour', 1],
    ]),
  })
})

test('columns are renamed and rows are numbered', () => {
  const rules: FieldRules = { map: { name: 'Common Name', tag: 'name' }, idFrom: 7n }
  const make = () => csv.read(new RecordMapper(rules))
  const { records } = readRecords('Common Name,name\na,b\nc,\n', { make })
  expect(records.map(({ plant }) => plant)).toEqual([
    { id: 7n, name: 'a', tag: 'b' },
    { id: 8n, name: 'c' },
  ])
})

test.each<[string, string, Partial<FieldRules>, string, string]>([
  ['no id', 'no,Name\n', {}, 'The header in line 1 has no column id, only "no", "Name"', noId],
  ['no name', 'id;Nom\n', {}, 'The header in line 1 has no column name, only "id", "Nom"', noName],
  [
    'no name, but two others',
    'id;Nom;Famille\n',
    {},
    'The header in line 1 has no column name, only "id", "Nom", "Famille"',
    noName,
  ],
  [
    'no name beside a mapped id',
    'No;Nom\n',
    { map: { id: 'No' } },
    'The header in line 1 has no column name, only "No", "Nom"',
    noName,
  ],
  ['neither', 'No|Nom\n', {}, 'The header in line 1 has no columns id and name, only "No", "Nom"', neither],
  [
    'a title, a blank row and other columns',
    '\n"Oak & Sons,\n2026"; ;\n;;\n\n Nr. ;Nom;\n1;Acer;\n',
    {},
    'The header in line 6 has no columns id and name, only "Nr.", "Nom"',
    neither,
  ],
  ['a title, and then numbers', 'Oak & Sons\n\n1;Acer\n', {}, 'There is no header: line 3 is "1", "Acer"', columnHint],
  ['empty cells', ',,,\n', {}, 'The header in line 1 has no columns id and name, only empty cells', neither],
  [
    'a number that --map names',
    '110,Fennel,herb\n',
    { map: { id: '110', name: 'Fennel', tag: 'herb' } },
    'There is no header: line 1 is "110", "Fennel", "herb"',
    columnHint,
  ],
  ['a number elsewhere', 'Fennel\t\t7\n', {}, 'There is no header: line 1 is "Fennel", "", "7"', columnHint],
  [
    'no mapped column',
    'id,name\n',
    { map: { tag: 'Family' } },
    'The header in line 1 has no column "Family" for tag, only "id", "name"',
    'Choose the column with --map tag=COLUMN',
  ],
  [
    'a column twice',
    'id,name,name\n',
    {},
    'The header has the column "name" twice',
    'Give each column a different name',
  ],
  [
    'many columns',
    'a,b,c,d,e,f,g,h,i,j\n',
    { idFrom: 1n },
    'The header in line 1 has no column name, only "a", "b", "c", "d", "e", "f", "g", "h" and 2 more',
    noName,
  ],
  [
    'a stray quote',
    'id,na"me\n',
    {},
    `The header in line 1 cannot be read: Not CSV: ${strayQuote}`,
    'It must name the columns, for example: id,name,tag',
  ],
  [
    'bytes that are not UTF-8',
    'id,name,\xff\n',
    {},
    `The header in line 1 cannot be read: ${notUtf8.message}`,
    'It must name the columns, for example: id,name,tag',
  ],
  [
    'no end',
    'a'.repeat(1_100_000),
    {},
    'The header in line 1 cannot be read: The record is larger than 1 MiB (1048576 bytes)',
    'It must name the columns, for example: id,name,tag',
  ],
])('a header with %s is rejected', (_, input, given, message, hint) => {
  const rules = { ...plain, ...given }
  const read = () => readRecords(Buffer.from(input, 'latin1'), { make: () => csv.read(new RecordMapper(rules)) })
  expect(read).toThrow(expect.objectContaining({ type: 'malformed', message, hint } satisfies Partial<PlantsError>))
})

test.each(['id,name\r\n', '\n\n"i""d",name,id\n', 'id,name'])('keeps the header %j as it came', (header) => {
  const format = csv.read(new RecordMapper(plain))
  const bytes = Buffer.from(header)
  format.read(new Chunk(bytes), true)
  const restored = csv.read(new RecordMapper(plain))
  restored.restore(format.save())
  expect([format, restored].map((one) => one.header?.toString())).toEqual([header.trimStart(), header.trimStart()])
})

describe('a row larger than 1 MiB', () => {
  const limit = 1_048_576
  const tooLarge = '413: The record is larger than 1 MiB (1048576 bytes)'
  const make = () => csv.read(new RecordMapper(plain))
  const cuts = Array.from({ length: 50 }, (_, index) => 65_521 * (index + 1))

  test.each<[string, string]>([
    ['is a problem of its own', `1,${'a'.repeat(limit - 1)}\n`],
    ['is one with line breaks in quotes', `1,"${'a,b\n2,c\n'.repeat(limit / 4)}",d\n`],
    ['is one with quotes', `1,"${'a,"",'.repeat(limit / 4)}"\n`],
    ['is one whose cells are large together', `1,"${'a'.repeat(limit / 2)}\n",${'a'.repeat(limit)}\r\n`],
    ['ends at its line when it is broken', `1,"a"b${'a'.repeat(2 * limit)}\n`],
    ['ends at its line when its quote is not closed', `1,"${'a,'.repeat(limit)}\n`],
  ])('%s', (_, long) => {
    const lines = long.split('\n').length - 1
    for (const isRestored of [false, true]) {
      const { records } = readRecords(`id,name\n${long}2,b\n`, { make, cuts, isRestored })
      expect(records).toEqual([
        { problem: tooLarge, line: 2, raw: expect.toBeOneOf(['', long]) },
        row(2, 'b', 2 + lines, '2,b\n'),
      ])
    }
  })

  test('is one of 16 MiB at most, after which its quote counts as not closed', () => {
    const many = (length: number) => `id,name\n1,"a\n${`9,${'b'.repeat(1021)}\n`.repeat(length / 1024)}"\n2,b\n`
    const problemsIn = (input: string) => readRecords(input, { make }).records.flatMap(({ problem }) => problem ?? [])
    expect(problemsIn(many(16 * limit - 1024))).toEqual([tooLarge])
    expect(problemsIn(many(16 * limit))).toEqual([`400: Not CSV: ${openQuote}`, `400: Not CSV: ${openQuote}`])
  })

  test('is not one that has just 1 MiB', () => {
    const name = 'a'.repeat(limit - 4)
    expect(readRecords(`id,name\n1,"${name.slice(0, -1)}"\r\n10,${name}a\n`, { make, cuts }).records).toEqual([
      row(1, name.slice(0, -1), 2, `1,"${name.slice(0, -1)}"\r\n`),
      row(10, `${name}a`, 3, `10,${name}a\n`),
    ])
  })

  test('is not what follows a quote that is not closed', () => {
    const others = Array.from({ length: 300_000 }, (_, index) => `${index},b`)
    const { records } = readRecords(`id,name\n1,"a\n${others.join('\n')}`, { make, cuts })
    expect(records.length).toBe(300_001)
    expect(records.slice(0, 2)).toEqual([problem(`Not CSV: ${openQuote}`, 2, '1,"a\n'), row(0, 'b', 3, '0,b\n')])
  })
})

test('any cut gives what one read gives, and so does any state that was saved', { timeout: rounds(60_000) }, () => {
  const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 8 })
  const same = (input: Uint8Array, places: number[], isRestored: boolean, isEach: boolean) => {
    const make = () => csv.read(new RecordMapper(plain))
    const all = isEach ? Array.from(input, (_, index) => index) : places
    const once = readRecords(input, { make })
    expect(readRecords(input, { make, cuts: all, isRestored })).toEqual(once)
    // Every byte behind the header belongs to a record, but for line breaks and blank rows.
    const bytes = Buffer.from(input)
    const behind = bytes.subarray(bytes.indexOf('\n') + 1).toString()
    expect(
      once.records
        .map(({ raw }) => raw)
        .join('')
        .replace(/[\r\n,\t ]/g, ''),
    ).toBe(behind.replace(/[\r\n,\t ]/g, ''))
  }
  fc.assert(fc.property(nearCsv(), cuts, fc.boolean(), fc.boolean(), same), { numRuns: rounds(300) })
})

test('what was written is read, and what was read is input again', { timeout: rounds(60_000) }, () => {
  const trip = (plants: NewPlant[], delimiter: ',' | '\t', lineBreak: string, isQuoted: boolean) => {
    const make = () => (delimiter === ',' ? csv : tsv).read(new RecordMapper(plain))
    const header = `tag${delimiter}id${delimiter}name${lineBreak}`
    const write = recordWriter(delimiter, ['tag', 'id', 'name'])
    const inQuotes = ({ id, name, tag }: NewPlant) =>
      [tag === undefined ? '' : quote(tag, true), String(id), quote(name, true)].join(delimiter)
    const lines = plants.map((plant) => (isQuoted ? inQuotes(plant) : write(plant)) + lineBreak)
    const { records } = readRecords(header + lines.join(''), { make })
    expect(records.map(({ plant }) => plant)).toEqual(plants)
    expect(records.map(({ raw }) => raw)).toEqual(lines)
  }
  const delimiter = fc.constantFrom<(',' | '\t')[]>(',', '\t')
  const runs = fc.property(
    fc.array(newPlant(), { maxLength: 6 }),
    delimiter,
    fc.constantFrom('\n', '\r\n', '\r'),
    fc.boolean(),
    trip,
  )
  fc.assert(runs, { numRuns: rounds(400) })
})

test('a broken row takes no other with it', { timeout: rounds(60_000) }, () => {
  const broken = fc.string({ unit: fc.constantFrom(...'",a 1\r'), minLength: 1, maxLength: 12 })
  const good = fc.nat({ max: 9 }).map((id) => ({ id: BigInt(id + 10), name: `plant ${id}` }))
  const survive = (items: (NewPlant | string)[]) => {
    const lines = items.map((item) => (typeof item === 'string' ? item : `${item.id},${item.name}`))
    const { records } = readRecords(`id,name\n${lines.join('\n')}`, { make: () => csv.read(new RecordMapper(plain)) })
    const expected = items.flatMap((item, index) =>
      typeof item === 'string' ? [] : [row(Number(item.id), item.name, index + 2, `${lines[index]}\n`).plant],
    )
    const inQuotes = records.filter(({ raw }) => /^[^\n]*\n./s.test(raw))
    fc.pre(inQuotes.length === 0)
    expect(records.flatMap(({ plant }) => (plant?.name.startsWith('plant ') ? [plant] : []))).toEqual(expected)
  }
  fc.assert(fc.property(fc.array(fc.oneof(good, broken), { minLength: 1, maxLength: 8 }), survive), {
    numRuns: rounds(300),
  })
})

function row(id: number, name: string, line: number, raw: string): ReadRecord {
  return { plant: { id: BigInt(id), name }, line, raw }
}

function problem(message: string, line: number, raw: string): ReadRecord {
  return { problem: `400: ${message}`, line, raw }
}

function notPlant(message: string, line: number, raw: string): ReadRecord {
  return { problem: `422: Invalid plant: ${message}`, line, raw }
}

function quote(text: string, isQuoted: boolean): string {
  return isQuoted || /["\t,\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A table with rows that are often right. */
function nearCsv(): fc.Arbitrary<Uint8Array> {
  const piece = fc.constantFrom(...'",\r\na 1', '""', '\r\n', '\n1,', ',"', '"\n', '"\r\n', '\n\n', 'ü', '\xff', '\0')
  const cells = fc.array(
    fc.oneof(
      { weight: 3, arbitrary: piece },
      newPlant().map(({ id, name }) => `\n${id},${quote(name, false)}`),
    ),
    { maxLength: 25 },
  )
  return cells.map((pieces) => Buffer.from(`id,name\n${pieces.join('')}`, 'latin1'))
}

function newPlant(): fc.Arbitrary<NewPlant> {
  const name = fc.oneof(fc.string({ unit: fc.constantFrom(...'a",\t\r\n é\u00a0') }), fc.string({ unit: 'grapheme' }))
  return fc.record(
    { id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), name, tag: name },
    { requiredKeys: ['id', 'name'] },
  )
}
