import { describe, expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { check, fc, newPlant } from '../../../helpers/fast-check.js'
import { readRecords, shown } from '../../../helpers/records.js'

const csv = { format: 'csv' } as const
const noPlant = (message: string) => `422: Invalid plant: ${message}`
const noName = noPlant('name must be a string of Unicode text without U+0000, but is missing')

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
    'id,name\n0007,007\n-08,b\n00,c\n "09",d\n" 2.000 ",g\n-9223372036854775808,h\n9223372036854775807,i\n',
    [
      '2: 7 007',
      '3: -8 b',
      '4: 0 c',
      `5: ${noPlant('id must be an integer from -9223372036854775808 to 9223372036854775807, but was "\\"09\\""')}`,
      '6: 2 g',
      '7: -9223372036854775808 h',
      '8: 9223372036854775807 i',
    ],
  ],
  [
    'ids as spreadsheets and catalogues write them',
    'id,name\n1E3,a\n1.000.000,a\n2026-03-01,a\n1.3.2026,a\n,a\n"",a\n1.5,a\n+1,a\n9223372036854775808,a\n',
    [
      '2: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1E3"',
      '3: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1.000.000"',
      '4: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "2026-03-01"',
      '5: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1.3.2026"',
      '6: id must be an integer from -9223372036854775808 to 9223372036854775807, but is missing',
      '7: id must be an integer from -9223372036854775808 to 9223372036854775807, but is missing',
      '8: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "1.5"',
      '9: id must be an integer from -9223372036854775808 to 9223372036854775807, but was "+1"',
      '10: id must be an integer from -9223372036854775808 to 9223372036854775807, but was 9223372036854775808',
    ].map((line) => line.replace(': ', ': 422: Invalid plant: ')),
  ],
  [
    'empty cells, which are no values, in quotes or not',
    'id,name,tag\n1,"""",\n2,"b, ""","""c\n"\n3,"",x\n4,"d",""\n5,,x\n"","",""\n',
    ['2: 1 "', '3: 2 b, "/"c\n', `5: ${noName}`, '6: 4 d', `7: ${noName}`],
  ],
  [
    'too few cells and too many, where empty ones at the end do not count',
    'id,name,tag\n1\n2,b,,\n,,,,\n3,c,,d\n4,d\n',
    [`2: ${noName}`, '3: 2 b', '5: 400: The row has 4 cells, but the header has 3', '6: 4 d'],
  ],
  [
    'columns without a name, also at the end',
    ',id,,name," ",\n,1,,a\n,2,,b,x,y\n,3,,c,,,\n,4,,d,,,z\n',
    ['2: 1 a', '3: 2 b', '4: 3 c', '5: 400: The row has 7 cells, but the header has 6'],
  ],
  [
    'text after a closing quote, which belongs to the cell, and carriage returns, which end no row',
    'id,name\n1,"Peace" rose\n2,"a, ""b""" c\r\n3,"a" \n4,c\rd\n5,\rf\r\r\n',
    ['2: 1 "Peace" rose', '3: 2 "a, ""b""" c', '4: 3 a', '5: 4 c\rd', '6: 5 f'],
  ],
  [
    'quotes in cells that do not begin with one, which are characters',
    'id,name,tag\n1,5" pot,a""b\n2,Rosa "Peace", "x"\n3,\\"c\\","d, ""e"""\n4,f","\n"\n',
    ['2: 1 5" pot/a""b', '3: 2 Rosa "Peace"/"x"', '4: 3 \\"c\\"/d, "e"', '5: 4 f"/\n'],
  ],
  [
    'rows that end with CR alone, as the first ones do',
    'id;"na\rme";name\r1;;"a\rb\rc"\r\r2;;"e\r"\r3;;f\r4;;g\r',
    ['3: 1 a\rb\rc', '7: 2 e\r', '9: 3 f', '10: 4 g'],
  ],
  [
    'errors of formulas, which are no values without quotes',
    'id,name,tag\n#N/A,a,\n2,#REF!,\n3,c, #DIV/0! \n4,"#N/A",#1\n',
    [
      `2: ${noPlant('id has the error #N/A')}`,
      `3: ${noPlant('name has the error #REF!')}`,
      `4: ${noPlant('tag has the error #DIV/0!')}`,
      '5: 4 #N/A/#1',
    ],
  ],
])('%s', async (_, input, records) => {
  expect(shown(await readRecords(input, csv))).toEqual(records)
})

test('an id of a million digits is rejected at once', async () => {
  const { records } = await readRecords(
    `id,name\n${'1'.repeat(1_000_000)},a\n0${'9'.repeat(30)},a\n`,
    csv,
  )
  expect(records.map(({ plant }) => plant)).toEqual([undefined, undefined])
})

test('TSV has its own delimiter', async () => {
  const read = await readRecords('id\tname\n1\t a, b\n2\t"a"b\n3\t5" pot\n', { format: 'tsv' })
  expect(shown(read)).toEqual(['2: 1 a, b', `3: 2 "a"b`, '4: 3 5" pot'])
})

test.each<[string, string | Buffer, string]>([
  [
    'is not UTF-8',
    Buffer.from('id,name\n1,\xc3\xbc\n2,\xff\n', 'latin1'),
    'stdin is not UTF-8 in line 3',
  ],
  ['has a quote that is not closed', 'id,name\n1,b\n2,"a\n3,c\n', 'stdin:3: A quote is not closed'],
  ['has a quote that another row closes', 'id,name\n1,b\n2,"a\n3,c\n4,"d"\n', 'stdin:3: A quote'],
])('the input ends where a row %s', async (_, input, message) => {
  for (const cuts of [[], [18, 19, 20, 21, 22]])
    await expect(readRecords(input, { ...csv, cuts })).rejects.toThrow(message)
})

test('other columns are named where they hold something', async () => {
  const input = 'id,name,colour,__proto__,,rejected_line\n1,a,,x,\n2,b,red,y,,7\n3,c,"",,\n'
  const read = await readRecords(input, csv)
  expect(shown(read)).toEqual(['2: 1 a', '3: 2 b', '4: 3 c'])
  expect(read.otherFields).toEqual(new Set(['__proto__', 'colour']))
})

const choose =
  'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name. Plants without ids: --id-from next'
const several = 'Choose one with --map name=COLUMN, or give each a different name'

test.each<[message: string, hint: string, input: string, map?: Record<string, string>]>([
  ['stdin has no column "name": line 1 has only "No", "Nom"', choose, 'No;Nom\n', { id: 'No' }],
  [
    'stdin has no column "id", "name": line 2 has only "Oak & Sons,\\n2026"',
    choose,
    '\n"Oak & Sons,\n2026"; ;\n;;\n\n Nr. ;Nom;\n1;Acer;\n',
  ],
  [
    'stdin has no column "Family": line 1 has only "id", "name"',
    choose,
    'id,name\n',
    { tag: 'Family' },
  ],
  ['stdin has no column "name", "Family": line 1 has only "id"', choose, 'id\n', { tag: 'Family' }],
  ['Several columns of stdin may be the name', several, 'id,name,Name\n'],
  [
    'stdin has no column "name": line 1 has only "id", "b", "c", "d", "e", "f", "g", "h"',
    choose,
    'id,b,c,d,e,f,g,h,i,j\n',
  ],
  ['Several columns of stdin may be the name', several, 'id,name,name\n', { name: 'name' }],
])('a header is rejected: %s', async (message, hint, input, map = {}) => {
  const error = { kind: 'input', message, hint } satisfies Partial<PlantsError>
  await expect(readRecords(input, { ...csv, map })).rejects.toEqual(expect.objectContaining(error))
})

test('the first of twenty rows that has the columns is the header', async () => {
  const titles = (rows: number) =>
    `${Array.from({ length: rows }, (_, row) => `Stock;${row}`).join('\n')}\n`
  const table = 'ID;Name\n1;Acer\n'
  expect(shown(await readRecords(titles(19) + table, csv))).toEqual(['21: 1 Acer'])
  await expect(readRecords(titles(20) + table, csv)).rejects.toThrow(
    'stdin has no column "id", "name": line 1 has only "Stock", "0"',
  )
})

test('--columns has columns without a name, also at the end', async () => {
  const columns = ['id', '', 'name', '', '']
  expect(shown(await readRecords('1,x,a,,y\n2,x,b\n', { ...csv, columns }))).toEqual([
    '1: 1 a',
    '2: 2 b',
  ])
})

test.each([
  ['letters in any case', 'sıra no', 'İSİM', 'SIRA NO', 'isim'],
  ['composed and decomposed letters', 'No', 'Sorte scho\u0308n', 'no', 'Sorte sch\u00f6n'],
  ['what nobody sees', 'N\u00ado', 'Na\u200bme', 'no', 'name'],
])('a column is found by %s', async (_, id, name, mappedId, mappedName) => {
  const map = { id: mappedId, name: mappedName }
  expect(shown(await readRecords(`${id},${name}\n1,a\n`, { map }))).toEqual(['2: 1 a'])
})

test('white space in a header counts as one space, also for --map', async () => {
  const input = '\u3000ID\u00a0,"Common\nname",Latin\u00a0\u2003name \n1,a,b\n'
  for (const [name, record] of [
    ['common name', '3: 1 a'],
    [' Latin\tname', '3: 1 b'],
  ] as const)
    expect(shown(await readRecords(input, { ...csv, map: { name } }))).toEqual([record])
})

test('a header that comes first counts, whatever columns another delimiter finds below it', async () => {
  const input = 'id,name,note\n1,Rose,\n2,Lily,"once:\nid|name|tag|note\nall"\n3,Fern,\n'
  expect(shown(await readRecords(input, csv))).toEqual(['2: 1 Rose', '3: 2 Lily', '6: 3 Fern'])
  const later = 'Stock\nid,name\n1,a\nid;name;tag\n'
  for (const cuts of [[], [17, 20]])
    expect(shown(await readRecords(later, { ...csv, cuts }))[0]).toBe('3: 1 a')
})

describe('a row larger than 1 MiB', () => {
  const limit = 1_048_576
  const cuts = Array.from({ length: 50 }, (_, index) => 65_521 * (index + 1))

  test.each<[string, string]>([
    ['ends the import', `1,${'a'.repeat(limit - 1)}\n`],
    ['ends the import, when it is longer', `1,${'\u00e4'.repeat(limit)}\r\n`],
    ['ends the import, with a quote', `1,"${'a'.repeat(limit / 2)}\n",${'a'.repeat(limit)}\r\n`],
  ])('%s', async (_, row) => {
    for (const places of [[], cuts])
      await expect(
        readRecords(`id,name\n1,a\n${row}2,b\n`, { ...csv, cuts: places }),
      ).rejects.toThrow(/^stdin:3: /)
  })

  test('is not one of 1 MiB', async () => {
    const row = `1,"${'a'.repeat(limit - 5)}"\r\n`
    for (const places of [[], cuts]) {
      const read = await readRecords(`id,name\n${row}2,b\n`, { ...csv, cuts: places })
      expect(shown(read)).toEqual([`2: 1 ${'a'.repeat(limit - 5)}`, '3: 2 b'])
    }
  })

  test('may be one with a quote that is not closed', async () => {
    const input = `id,name\n1,"a\n${`9,${'b'.repeat(1021)}\n`.repeat(2048)}2,b\n`
    const message = 'stdin:2: A quote is not closed'
    await expect(readRecords(input, { ...csv, cuts })).rejects.toThrow(message)
  })
})

test('blocks of any size give what one block gives', () => {
  const someCuts = fc.array(fc.nat({ max: 200 }), { maxLength: 8 })
  return check(100, [nearCsv(), someCuts, fc.boolean()], async (input, places, isEach) => {
    const outcome = (cuts: number[]) =>
      readRecords(input, { ...csv, cuts }).catch(({ kind }: PlantsError) => kind)
    expect(await outcome(isEach ? [...input.keys()] : places)).toEqual(await outcome([]))
  })
})

/** A table with rows that are often right, and now and then a byte that is not UTF-8. */
function nearCsv(): fc.Arbitrary<Uint8Array> {
  const piece = fc.constantFrom(
    ...'",\r\na 1',
    '""',
    '\r\n',
    '\n1,',
    ',"',
    '"\n',
    '"\r\n',
    '\n\n',
    'ü€🌵',
    '\0',
  )
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
