import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { PlantsError } from '../../../src/errors.js'
import { parseRows } from '../../../src/formats/table.js'
import { check, fc, generateNewPlant } from '../../helpers/expect/arbitraries.js'
import { formatRecords, readRecords } from './records.js'

const csv = { format: 'csv' } as const

test.each<[string, string, string[]]>([
  ['nothing', '', []],
  ['a header without its line break', 'id,name', []],
  [
    'rows that end with LF and CRLF, and blank ones',
    '\nid;name\r\n\n1;a\n2;"b"\r\n\r\n3;"c\rd"\n4;"e\r\nf"\r\n5;g',
    ['4: 1 a', '5: 2 b', '7: 3 c\rd', '8: 4 e\r\nf', '10: 5 g'],
  ],
  [
    'white space around cells, which does not belong to them, and in quotes, where it does',
    ' id ,\u00a0name, tag \n 1 , a  b ,  \n2,\u00a0c\u2028,\u3000\n3," e ","\u00a0"\n4,\ufefff,\v\n\n \u3000\n',
    ['2: 1 a  b', '3: 2 c', '4: 3  e /\u00a0', '5: 4 f'],
  ],
  [
    'ids with zeros and spaces around them, which do not count',
    'id,name\n0007,007\n-08,b\n00,c\n "09",d\n" 2.0 ",g\n2.000,h\n-9223372036854775808,h\n9223372036854775807,i\n',
    [
      '2: 7 007',
      '3: -8 b',
      '4: 0 c',
      '5: 9 d',
      '6: 2 g',
      '7: 422 id',
      '8: -9223372036854775808 h',
      '9: 9223372036854775807 i',
    ],
  ],
  [
    'ids as spreadsheets and catalogues write them',
    'id,name\n1E3,a\n1.000.000,a\n2026-03-01,a\n1.3.2026,a\n,a\n"",a\n1.5,a\n+1,a\n9223372036854775808,a\n',
    [2, 3, 4, 5, 6, 7, 8, 9, 10].map((line) => `${line}: 422 id`),
  ],
  [
    'empty cells, which are no values, in quotes or not',
    'id,name,tag\n1,"""",\n2,"b, ""","""c\n"\n3,"",x\n4,"d",""\n5,,x\n"","",""\n',
    ['2: 1 "', '3: 2 b, "/"c', '5: 422 name', '6: 4 d', '7: 422 name'],
  ],
  [
    'too few cells and too many, where empty ones at the end do not count',
    'id,name,tag\n1\n2,b,,\n,,,,\n3,c,,d\n4,d\n',
    ['2: 422 name', '3: 2 b', '5: 400', '6: 4 d'],
  ],
  [
    'columns without a name, also at the end',
    ',id,,name," ",\n,1,,a\n,2,,b,x,y\n,3,,c,,,\n,4,,d,,,z\n',
    ['2: 1 a', '3: 2 b', '4: 3 c', '5: 400'],
  ],
  [
    'text after a closing quote, which belongs to the cell, and carriage returns, which end no row',
    'id,name\n1,"Peace" rose\n2,"a, ""b""" c\r\n3,"a" \n4,c\rd\n5,\rf\r\r\n',
    ['2: 1 "Peace" rose', '3: 2 "a, ""b""" c', '4: 3 a', '5: 4 c\rd', '6: 5 f'],
  ],
  [
    'quotes in cells that do not begin with one, which are characters',
    'id,name,tag\n1,5" pot,a""b\n2,Rosa "Peace", "x"\n3,\\"c\\","d, ""e"""\n4,f","\n"\n',
    ['2: 1 5" pot/a""b', '3: 2 Rosa "Peace"/x', '4: 3 \\"c\\"/d, "e"', '5: 4 f"'],
  ],
  [
    'spaces before a quote that begins a cell, which do not belong to it',
    'id,name,tag\n "1", "Pino, rojo",\u00a0" a " \n2, "Peace" rose,\t"b\nc"\n',
    ['2: 1 Pino, rojo/ a ', '3: 2 "Peace" rose/b\nc'],
  ],
  [
    'text after a closing quote, with which a cell is as written up to the next delimiter',
    'id,name\n1,"abc"def\n2,"NSG Aue" Mitte "Teiche"\n3,"a,b" c\n',
    ['2: 1 "abc"def', '3: 2 "NSG Aue" Mitte "Teiche"', '4: 3 "a,b" c'],
  ],
  [
    'ids with which Excel keeps zeros',
    `id,name\n="00123",a\n"=""-7""",b\n'0008,c\n ' 9,d\n="1E3",e\n=7,f\n'"5",g\n="1.000",h\n`,
    ['2: 123 a', '3: -7 b', '4: 8 c', ...[5, 6, 7, 8, 9].map((line) => `${line}: 422 id`)],
  ],
  ['Ctrl-Z at the end, which is no record', 'id,name\n1,a\x1ab\n\x1a', ['2: 1 a\x1ab']],
  ['Ctrl-Z after the last cell, which is not part of it', 'id,name\n1,a\x1a', ['2: 1 a']],
  [
    'rows that end with CR alone, as the first ones do',
    'id;"na\rme";name\r1;;"a\rb\rc"\r\r2;;"e\r"\r3;;f\r4;;g\r',
    ['3: 1 a\rb\rc', '7: 2 e', '9: 3 f', '10: 4 g'],
  ],
  [
    'errors of formulas, which are no values without quotes',
    'id,name,tag\n#N/A,a,\n2,#SPILL!,\n3,c, #DIV/0! \n4,"#N/A",#1\n',
    ['2: 422 id', '3: 422 name', '4: 422 tag', '5: 4 #N/A/#1'],
  ],
])('a table is read as records: %s', async (_, input, records) => {
  expect(formatRecords(await readRecords(input, csv))).toEqual(records)
})

test('a quote is an ordinary character with --no-quotes', async () => {
  const input = 'id\tname\ttag\n1\t"Heiners\tx\n2\tFern\ty\n3\tMoss"\t"z"\n'
  expect(formatRecords(await readRecords(input, { format: 'tsv', quotes: false }))).toEqual([
    '2: 1 "Heiners/x',
    '3: 2 Fern/y',
    '4: 3 Moss"/"z"',
  ])
  const rejects = `rejected_line,rejected_reason,id,name\n7,"a, b",1,"c, d"\n`
  expect(formatRecords(await readRecords(rejects, { ...csv, quotes: false }))).toEqual([
    '2: 1 c, d',
  ])
})

test('the error for a quote that is not closed has a hint for tables without quotes', async () => {
  const error = await readRecords('id,name\n1,"a\n', csv).catch((thrown: PlantsError) => thrown)
  expect(error).toMatchObject({ message: 'stdin:2: A quote is not closed' })
  expect(error).toHaveProperty('hint', expect.stringContaining('--no-quotes'))
})

test('a table of TSV is divided by tabs, and its quotes are ordinary characters', async () => {
  const read = await readRecords('id\tname\n1\t a, b\n2\t"a"b\n3\t5" pot\n', { format: 'tsv' })
  expect(formatRecords(read)).toEqual(['2: 1 a, b', `3: 2 "a"b`, '4: 3 5" pot'])
})

test.each<[string, string]>([
  ['has a quote that is not closed', 'id,name\n1,b\n2,"a\n3,c\n'],
  ['has a quote that another row closes', 'id,name\n1,b\n2,"a\n3,c\n4,"d"\n'],
])('reading ends with an error at a row that %s', async (_, input) => {
  for (const cuts of [[], [18, 19, 20, 21, 22]])
    await expect(readRecords(input, { ...csv, cuts })).rejects.toThrow('stdin:3: A quote')
})

test('a row of a table has at most 1 MiB', async () => {
  const limit = 1_048_576
  const cuts = Array.from({ length: 50 }, (_, index) => 65_521 * (index + 1))
  const read = (row: string, places: number[]) =>
    readRecords(`id,name\n${row}2,b\n`, { ...csv, cuts: places })
  const largest = 'a'.repeat(limit - 5)
  for (const places of [[], cuts]) {
    expect(formatRecords(await read(`1,"${largest}"\r\n`, places))).toEqual([
      `2: 1 ${largest}`,
      '3: 2 b',
    ])
    for (const row of [
      `1,${'a'.repeat(limit - 1)}\n`,
      `1,${'\u00e4'.repeat(limit)}\r\n`,
      `1,"${'a'.repeat(limit / 2)}\n",${'a'.repeat(limit)}\r\n`,
      `1,"a\n${`9,${'b'.repeat(1021)}\n`.repeat(2048)}`, // a quote that is not closed
    ])
      await expect(read(row, places)).rejects.toThrow(/^stdin:2: /)
  }
})

test('the size of the blocks of a table does not change its records', () => {
  const someCuts = fc.array(fc.nat({ max: 200 }), { maxLength: 8 })
  return check(60, [nearCsv(), someCuts, fc.boolean()], async (input, places, isEach) => {
    const outcome = (cuts: number[]) =>
      readRecords(input, { ...csv, cuts }).catch(({ kind }: PlantsError) => kind)
    expect(await outcome(isEach ? [...input.keys()] : places)).toEqual(await outcome([]))
  })
})

/** A table with rows that are often right, and now and then a byte that is not UTF-8. */
function nearCsv(): fc.Arbitrary<Uint8Array> {
  const ends = ['\r\n', '\n1,', ',"', '"\n', '"\r\n', '\n\n']
  const piece = fc.constantFrom(...'",\r\na 1', '""', ...ends, 'ü€🌵', '\0')
  const row = generateNewPlant().map(({ id, name }) => `\n${id},"${name.replaceAll('"', '""')}"`)
  const texts = fc.oneof({ weight: 30, arbitrary: piece }, { weight: 10, arbitrary: row })
  const bytes = fc.oneof(
    { weight: 50, arbitrary: texts.map((text) => Buffer.from(text)) },
    fc.constant(Buffer.of(0xff)),
  )
  const header = fc.constantFrom('id,name\n', 'id,name\r', 'id,"na\rme",name,\r\n')
  return fc
    .tuple(header, fc.array(bytes, { maxLength: 25 }))
    .map(([first, parts]) => Buffer.concat([Buffer.from(first), ...parts]))
}

function parseTable(text: string, delimiter: string) {
  const table = {
    name: 'plants.csv',
    delimiter,
    lineEnd: '\n' as const,
    hasQuotes: true,
    line: 1,
    remainder: '',
  }
  return parseRows(table, text, true).map(({ cells }) => cells)
}

test('a line without quotes is split as a row that is parsed by cells', () => {
  const part = fc.constantFrom(',', ',', ' ', '\t', '\r', '#REF!', 'a', 'ü')
  return check(
    2000,
    [fc.array(part, { maxLength: 12 }), fc.constantFrom(',', '\t', ' ')],
    (parts, delimiter) => {
      const row = parts.join('')
      const [cells] = parseTable(`x${delimiter}${row}\n`, delimiter)
      const [quotedCells] = parseTable(`"x"${delimiter}${row}\n`, delimiter)
      expect(cells).toEqual(quotedCells)
    },
  )
})

const lists = join(import.meta.dirname, '../../data/lists')

test.each([
  {
    name: 'f01-semicolons-in-a-quoted-cell',
    columns: ['Purslane/Portulacaceae', 'Ginger/Zingiberaceae', 'Mint/Lamiaceae'],
  },
  { name: 'f01b-commas-in-a-cell', columns: ['Purslane/salad, soup, tea, pickle', 'Ginger/tea'] },
  { name: 'f01c-bars-in-a-cell', columns: ['Purslane/salad | soup | tea', 'Ginger/tea'] },
])('a cell with many delimiters does not decide the delimiter of $name', async (row) => {
  const input = readFileSync(join(lists, `${row.name}.csv`))
  const options = { map: { name: ['1'], tag: ['2'] }, byName: true as const }
  const { records } = await readRecords(input, { ...csv, ...options })
  expect(records.map(({ raw }) => (raw as string[]).slice(0, 2).join('/'))).toEqual(row.columns)
})

test('the delimiter of a table without a header is that of most rows', async () => {
  const input = readFileSync(join(lists, 'f01d-without-header.csv'))
  const options = { columns: ['name', 'tag', ''], byName: true as const }
  const { records } = await readRecords(input, { ...csv, ...options })
  expect(records.map(({ raw }) => raw)).toEqual([
    ['Purslane', 'Portulacaceae', 'salad; soup; pickle; tea'],
    ['Ginger', 'Zingiberaceae', 'tea'],
  ])
})

test('a row of an old Mac may have a line feed in quotes', async () => {
  const input = readFileSync(join(lists, 'f05-cr-rows-with-a-line-feed-in-a-cell.csv'))
  expect(formatRecords(await readRecords(input, csv))).toEqual([
    '2: 1 Fern\nbig',
    '3: 2 Moss',
    '4: 3 Ivy',
  ])
})

test('a quoted cell loses the line breaks at its ends, but no spaces', async () => {
  const input = readFileSync(join(lists, 'f09-line-break-at-the-end-of-a-cell.csv'))
  expect(formatRecords(await readRecords(input, csv))).toEqual([
    '2: 1 Fern/shade',
    '4: 2 Moss /shade',
  ])
})

test('a table of delimiters alone has no records', async () => {
  const input = readFileSync(join(lists, 'f24-only-delimiters.csv'))
  expect((await readRecords(input, csv)).records).toEqual([])
})

test('a row that ends before its tag keeps the stored tag, and one with an empty tag removes it', async () => {
  const { records } = await readRecords('id,name,tag\n1,Fern\n2,Moss,\n', {
    ...csv,
    ifExists: 'update',
  })
  expect(records.map(({ patch }) => patch?.tag)).toEqual([undefined, null])
})
