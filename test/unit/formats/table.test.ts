import { expect, test } from 'vitest'
import type { PlantsError } from '../../../src/errors.js'
import { readTableHeads } from '../../../src/formats/detect.js'
import { findLikeliestHeader } from '../../../src/formats/header.js'
import { parseRows } from '../../../src/formats/table.js'
import { check, fc, newPlant } from '../../helpers/expect/arbitraries.js'
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
    ['2: 1 "', '3: 2 b, "/"c\n', '5: 422 name', '6: 4 d', '7: 422 name'],
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
    ['2: 1 5" pot/a""b', '3: 2 Rosa "Peace"/x', '4: 3 \\"c\\"/d, "e"', '5: 4 f"/\n'],
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
  [
    'rows that end with CR alone, as the first ones do',
    'id;"na\rme";name\r1;;"a\rb\rc"\r\r2;;"e\r"\r3;;f\r4;;g\r',
    ['3: 1 a\rb\rc', '7: 2 e\r', '9: 3 f', '10: 4 g'],
  ],
  [
    'errors of formulas, which are no values without quotes',
    'id,name,tag\n#N/A,a,\n2,#SPILL!,\n3,c, #DIV/0! \n4,"#N/A",#1\n',
    ['2: 422 id', '3: 422 name', '4: 422 tag', '5: 4 #N/A/#1'],
  ],
])('%s', async (_, input, records) => {
  expect(formatRecords(await readRecords(input, csv))).toEqual(records)
})

test('with --no-quotes, a quote is an ordinary character', async () => {
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

test('a quote that is not closed has a hint for tables without quotes', async () => {
  const error = await readRecords('id,name\n1,"a\n', csv).catch((thrown: PlantsError) => thrown)
  expect(error).toMatchObject({ message: 'stdin:2: A quote is not closed' })
  expect(error).toHaveProperty('hint', expect.stringContaining('--no-quotes'))
})

test('TSV has its own delimiter', async () => {
  const read = await readRecords('id\tname\n1\t a, b\n2\t"a"b\n3\t5" pot\n', { format: 'tsv' })
  expect(formatRecords(read)).toEqual(['2: 1 a, b', `3: 2 "a"b`, '4: 3 5" pot'])
})

test.each<[string, string]>([
  ['has a quote that is not closed', 'id,name\n1,b\n2,"a\n3,c\n'],
  ['has a quote that another row closes', 'id,name\n1,b\n2,"a\n3,c\n4,"d"\n'],
])('the input ends where a row %s', async (_, input) => {
  for (const cuts of [[], [18, 19, 20, 21, 22]])
    await expect(readRecords(input, { ...csv, cuts })).rejects.toThrow('stdin:3: A quote')
})

test('unknown columns are reported if they have values', async () => {
  const input = 'id,name,colour,__proto__,,rejected_line\n1,a,,x,\n2,b,red,y,,7\n3,c,"",,\n'
  const read = await readRecords(input, csv)
  expect(formatRecords(read)).toEqual(['2: 1 a', '3: 2 b', '4: 3 c'])
  expect(read.otherFields).toEqual(new Set(['__proto__', 'colour']))
})

test.each<[message: string, input: string, map?: Record<string, string>]>([
  ['stdin has no column "name": line 1 has only "No", "Nom"', 'No;Nom\n', { id: 'No' }],
  [
    'stdin has no columns "id", "name": line 6 has only "Nr.", "Nom"',
    '\n"Oak & Sons,\n2026"; ;\n;;\n\n Nr. ;Nom;\n1;Acer;\n',
  ],
  ['stdin has no columns "name", "Family": line 1 has only "id"', 'id\n', { tag: 'Family' }],
  ['Several columns of stdin could be the name', 'id,name,Name\n'],
  ['Several columns of stdin could be the name', 'id,name,name\n', { name: 'name' }],
])('a header is rejected: %s', async (message, input, map = {}) => {
  const error: Partial<PlantsError> = { kind: 'input', message }
  await expect(readRecords(input, { ...csv, map })).rejects.toMatchObject(error)
})

test('the first of twenty rows that has the columns is the header', async () => {
  const titles = (rows: number) =>
    `${Array.from({ length: rows }, (_, row) => `Stock;${row}`).join('\n')}\n`
  const table = 'ID;Name\n1;Acer\n'
  expect(formatRecords(await readRecords(titles(19) + table, csv))).toEqual(['21: 1 Acer'])
  await expect(readRecords(titles(20) + table, csv)).rejects.toThrow(
    'stdin has no columns "id", "name"',
  )
})

test('an error shows the row with the most cells that are not empty, as its delimiter divides it', async () => {
  const input = 'Stock, 2026, with, some, commas\n\nNr.;Name 1;Name 2;Beet;Art;Sorte\n1;a\n'
  await expect(readRecords(input, csv)).rejects.toThrow(
    'stdin has no columns "id", "name": line 3 has only "Nr.", "Name 1", "Name 2"',
  )
  const wide = `${Array.from({ length: 43 }, (_, index) => `c${index}`).join()}\n`
  await expect(readRecords(wide, csv)).rejects.toThrow('"c38", "c39" and 3 more')
})

test.each<[title: string, input: string, names: string]>([
  [
    'without a name for a column',
    ',Sorte,Beet\n0,Rosa,a\n1,Oak,b\n',
    'line 1 has only "Sorte", "Beet"',
  ],
  ['above a surplus cell', 'Nr,Sorte,Beet\n1,Oak, English,b\n', 'line 1 has only "Nr", "Sorte"'],
  ['below a title', 'Stock,2026\nNr,Sorte,Beet\n1,Oak, red,b\n', 'line 2 has only "Nr"'],
  ['with years', 'Stock\nTree,2025,2026\nOak,1,2\n', 'line 2 has only "Tree", "2025", "2026"'],
])('an error shows a header %s', async (_, input, names) => {
  await expect(readRecords(input, csv)).rejects.toThrow(names)
})

test.each<[title: string, input: string, map: Record<string, string>, records: string[]]>([
  [
    'below titles',
    'Stock, 2026\n\nNr;Sorte;Beet\n1;Rosa;2\n',
    { id: '1', name: '2' },
    ['4: 1 Rosa'],
  ],
  [
    'whatever is in the cells of plants',
    'Nr,Beet,Name\n1,3,Fern\n3,1,Moss\n',
    { id: '1', name: '3' },
    ['2: 1 Fern', '3: 3 Moss'],
  ],
  [
    'above plants that have more cells',
    ',Sorte,Beet\n0,Rosa,a\n1,Oak,b,c\n',
    { id: '1', name: '2' },
    ['2: 0 Rosa', '3: 400'],
  ],
  ['next to columns by name', 'a\nNr,2,Kind\n1,x,Fern\n', { id: '1', name: 'kind' }, ['3: 1 Fern']],
  ['of a column without a name', 'id,,,\n1,,Fern,x\n', { name: '3', tag: '4' }, ['2: 1 Fern/x']],
  [
    'without those of a rejects file, whose header is its first row',
    'rejected_line,rejected_reason,Nr,Sorte,\n7,x,1,Rosa,y,z\n8,x,2,Oak,,\n',
    { id: '1', name: '2' },
    ['2: 400', '3: 2 Oak'],
  ],
])('columns are found by their numbers %s', async (_, input, map, records) => {
  expect(formatRecords(await readRecords(input, { ...csv, map }))).toEqual(records)
})

test('a number that is the name of a column is a name', async () => {
  const input = 'Trees\n1,2,3\nOak,7,9\n'
  const map = { id: '2', name: '1' }
  expect(formatRecords(await readRecords(input, { ...csv, map }))).toEqual(['3: 7 Oak'])
})

test('a number above that of the last column is rejected', async () => {
  const input = 'Nr,Name\n1,a\n'
  await expect(readRecords(input, { ...csv, map: { id: '1', name: '3' } })).rejects.toThrow(
    'stdin has no column "3": line 1 has only "Nr", "Name"',
  )
})

test('the first rows of a table are read whatever columns it has', async () => {
  const input = {
    name: 'list.csv',
    head: Buffer.from('Stock\nNr;Sorte\n1;Rosa\n'),
    signal: new AbortController().signal,
  }
  async function* blocks() {
    yield input.head
  }
  const options = { map: {}, ifExists: 'same' as const }
  const heads = await readTableHeads({ ...input, blocks: blocks() }, options)
  expect(heads).toMatchObject([
    {
      delimiter: ';',
      rows: { records: [['Stock'], ['Nr', 'Sorte'], ['1', 'Rosa']], lines: [1, 2, 3] },
    },
  ])
  expect(findLikeliestHeader(heads[0]?.rows.records ?? [])).toBe(1)
})

test('white space, case and accents in a header do not count, also for --map', async () => {
  const input = '\u3000ID\u00a0,"Common\nname",Lat\u00edn\u00a0\u2003na\u00adme \n1,a,b\n'
  for (const [name, record] of [
    ['common name', '3: 1 a'],
    [' Latin\tname', '3: 1 b'],
  ] as const)
    expect(formatRecords(await readRecords(input, { ...csv, map: { name } }))).toEqual([record])
})

test.each([
  ['sıra no,İSİM', 'SIRA NO', 'isim'],
  ['No,Sorte scho\u0308n', 'no', 'Sorte sch\u00f6n'],
  ['N\u00ado,Na\u200bme', 'no', 'name'],
])('the columns %j are found as %j and %j', async (header, id, name) => {
  const read = await readRecords(`${header}\n1,a\n`, { ...csv, map: { id, name } })
  expect(formatRecords(read)).toEqual(['2: 1 a'])
})

test('the first header counts, whatever columns another delimiter finds below it', async () => {
  const input = 'id,name,note\n1,Rose,\n2,Lily,"once:\nid|name|tag|note\nall"\n3,Fern,\n'
  expect(formatRecords(await readRecords(input, csv))).toEqual([
    '2: 1 Rose',
    '3: 2 Lily',
    '6: 3 Fern',
  ])
  const later = 'Stock\nid,name\n1,a\nid;name;tag\n'
  for (const cuts of [[], [17, 20]])
    expect(formatRecords(await readRecords(later, { ...csv, cuts }))[0]).toBe('3: 1 a')
})

test('a row has at most 1 MiB', async () => {
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

test('the size of blocks does not change the records', () => {
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
  const row = newPlant().map(({ id, name }) => `\n${id},"${name.replaceAll('"', '""')}"`)
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
    lineEnd: '\n',
    hasQuotes: true,
    line: 1,
    remainder: '',
  }
  try {
    const { records, lines, multilineRow } = parseRows(table, text, true)
    return { records, lines, multilineRow }
  } catch (error) {
    return error
  }
}

test('quoted rows are split as those with a space before a quote, which are parsed by cells', () => {
  const part = fc.constantFrom('"', '"', '""', ',', ',', ' ', '\t', '\n', '\r', '#REF!', 'a', 'ü')
  return check(
    2000,
    [fc.array(part, { maxLength: 12 }), fc.constantFrom(',', '\t', ' ')],
    (parts, delimiter) => {
      const row = `${parts.join('')}\n"1"${delimiter}2\n`
      const split = parseTable(`"x"${delimiter}${row}`, delimiter)
      const space = delimiter === ' ' ? '\u00a0' : ' '
      expect(split).toEqual(parseTable(`${space}"x"${delimiter}${row}`, delimiter))
    },
  )
})
