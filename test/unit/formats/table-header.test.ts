import { expect, test } from 'vitest'
import { findLikeliestHeader } from '../../../src/fields/header.js'
import type { ColumnsError } from '../../../src/fields/missing-fields.js'
import { formatRecords, readRecords } from './records.js'

// Which row of a table is its header, and how its columns are found.

const csv = { format: 'csv' } as const

test('the fields that no plant has are reported if they have values', async () => {
  const input = 'id,name,colour,__proto__,,rejected_line\n1,a,,x,\n2,b,red,y,,7\n3,c,"",,\n'
  const read = await readRecords(input, csv)
  expect(formatRecords(read)).toEqual(['2: 1 a', '3: 2 b', '4: 3 c'])
  expect(read.otherFields).toEqual(new Set(['__proto__', 'colour']))
})

test.each<{ message: string; input: string; details?: string[]; map?: Record<string, string[]> }>([
  {
    message: 'stdin has no column "name"',
    details: ['line 1: "No", "Nom"'],
    input: 'No;Nom\n',
    map: { id: ['No'] },
  },
  {
    message: 'stdin has no columns "id", "name"',
    details: ['line 6: "Nr.", "Nom"'],
    input: '\n"Oak & Sons,\n2026"; ;\n;;\n\n Nr. ;Nom;\n1;Acer;\n',
  },
  {
    message: 'stdin has no columns "name", "Family"',
    details: ['line 1: "id"'],
    input: 'id\n',
    map: { tag: ['Family'] },
  },
  { message: 'Several columns of stdin could be the name: 2, 3', input: 'id,name,Name\n' },
  {
    message: 'Several columns of stdin could be the name: 2, 3',
    input: 'id,name,name\n',
    map: { name: ['name'] },
  },
])('the header of the table $input is rejected: $message', async (example) => {
  const { message, details, input, map = {} } = example
  const error = { kind: 'input', message, ...(details && { details }) }
  await expect(readRecords(input, { ...csv, map })).rejects.toMatchObject(error)
})

test('the header is the first of twenty rows that has the columns', async () => {
  const titles = (rows: number) =>
    `${Array.from({ length: rows }, (_, row) => `Stock;${row}`).join('\n')}\n`
  const table = 'ID;Name\n1;Acer\n'
  expect(formatRecords(await readRecords(titles(19) + table, csv))).toEqual(['21: 1 Acer'])
  await expect(readRecords(titles(20) + table, csv)).rejects.toThrow(
    'stdin has no columns "id", "name"',
  )
})

test('the error for a missing header shows the row with the most cells, divided by its delimiter', async () => {
  const input =
    'Stock, 2026, with, some, commas\n\nNr.;Name 1;Name 2;Beet;Art;Sorte\n1;a;b;c;d;e\n2;a;b;c;d;e\n'
  await expect(readRecords(input, csv)).rejects.toMatchObject({
    details: ['line 3: "Nr.", "Name 1", "Name 2", "Beet", "Art", "Sorte"'],
  })
  const wide = `${Array.from({ length: 43 }, (_, index) => `c${index}`).join()}\n`
  await expect(readRecords(wide, csv)).rejects.toMatchObject({
    details: [expect.stringMatching(/"c6", "c7" and 35 more$/)],
  })
})

test.each<[title: string, input: string, names: string]>([
  ['without a name for a column', ',Sorte,Beet\n0,Rosa,a\n1,Oak,b\n', 'line 1: "Sorte", "Beet"'],
  ['above a surplus cell', 'Nr,Sorte,Beet\n1,Oak, English,b\n', 'line 1: "Nr", "Sorte"'],
  ['below a title', 'Stock,2026\nNr,Sorte,Beet\n1,Oak, red,b\n', 'line 2: "Nr"'],
  ['without a name for the names', ';Sorte;Beet\nx;y;z\na;b;c\n', 'line 1: "Sorte", "Beet"'],
  ['with years', 'Stock\nTree,2025,2026\nOak,1,2\n', 'line 2: "Tree", "2025", "2026"'],
])('the error for a missing header shows a header %s', async (_, input, names) => {
  await expect(readRecords(input, csv)).rejects.toMatchObject({
    details: [expect.stringContaining(names)],
  })
})

test.each<{ title: string; input: string; map: Record<string, string[]>; records: string[] }>([
  {
    title: 'below titles',
    input: 'Stock, 2026\n\nNr;Sorte;Beet\n1;Rosa;2\n',
    map: { id: ['1'], name: ['2'] },
    records: ['4: 1 Rosa'],
  },
  {
    title: 'whatever is in the cells of plants',
    input: 'Nr,Beet,Name\n1,3,Fern\n3,1,Moss\n',
    map: { id: ['1'], name: ['3'] },
    records: ['2: 1 Fern', '3: 3 Moss'],
  },
  {
    title: 'above plants that have more cells',
    input: ',Sorte,Beet\n0,Rosa,a\n1,Oak,b,c\n',
    map: { id: ['1'], name: ['2'] },
    records: ['2: 0 Rosa', '3: 400'],
  },
  {
    title: 'next to columns by name',
    input: 'a\nNr,2,Kind\n1,x,Fern\n',
    map: { id: ['1'], name: ['kind'] },
    records: ['3: 1 Fern'],
  },
  {
    title: 'of a column without a name',
    input: 'id,,,\n1,,Fern,x\n',
    map: { name: ['3'], tag: ['4'] },
    records: ['2: 1 Fern/x'],
  },
  {
    title: 'without those of a rejects file, whose header is its first row',
    input: 'rejected_line,rejected_reason,Nr,Sorte,\n7,x,1,Rosa,y,z\n8,x,2,Oak,,\n',
    map: { id: ['1'], name: ['2'] },
    records: ['2: 400', '3: 2 Oak'],
  },
])('the columns of a table are found by their numbers $title', async ({ input, map, records }) => {
  expect(formatRecords(await readRecords(input, { ...csv, map }))).toEqual(records)
})

test('a number in --map that is the name of a column is that name', async () => {
  const input = 'Trees\n1,2,3\nOak,7,9\n'
  const map = { id: ['2'], name: ['1'] }
  expect(formatRecords(await readRecords(input, { ...csv, map }))).toEqual(['3: 7 Oak'])
})

test('a number in --map that is above the last column is rejected', async () => {
  const input = 'Nr,Name\n1,a\n'
  await expect(
    readRecords(input, { ...csv, map: { id: ['1'], name: ['3'] } }),
  ).rejects.toMatchObject({
    message: 'stdin has no column "3"',
    details: ['line 1: "Nr", "Name"'],
  })
})

test('the error for missing columns has the first rows for a dialogue', async () => {
  const error = await readRecords('Stock\nNr;Sorte\n1;Rosa\n', csv).catch((reason) => reason)
  const { sample } = error as ColumnsError
  expect(sample).toMatchObject({
    noun: 'column',
    heads: [{ rows: [['Stock'], ['Nr', 'Sorte'], ['1', 'Rosa']] }],
  })
  expect(findLikeliestHeader(sample.heads[0]?.rows ?? [])).toBe(1)
})

test('white space, case and accents in a header do not matter, also for --map', async () => {
  const input = '\u3000ID\u00a0,"Common\nname",Lat\u00edn\u00a0\u2003na\u00adme \n1,a,b\n'
  for (const [name, record] of [
    ['common name', '3: 1 a'],
    [' Latin\tname', '3: 1 b'],
  ] as const)
    expect(formatRecords(await readRecords(input, { ...csv, map: { name: [name] } }))).toEqual([
      record,
    ])
})

test.each([
  { header: 'sıra no,İSİM', id: 'SIRA NO', name: 'isim' },
  { header: 'No,Sorte scho\u0308n', id: 'no', name: 'Sorte sch\u00f6n' },
  { header: 'N\u00ado,Na\u200bme', id: 'no', name: 'name' },
])('the columns of the header $header are found as $id and $name', async ({ header, id, name }) => {
  const read = await readRecords(`${header}\n1,a\n`, { ...csv, map: { id: [id], name: [name] } })
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

test('a table with one column may have commas in its cells', async () => {
  const options = { format: 'tsv', byName: true } as const
  expect(await readRecords('name\nRose, red\nRose, white\n', options)).toBeDefined()
})

const askHint = 'On a terminal, the import of a file asks'

test.each<{ input: string; options: object; message: string; hint: string }>([
  {
    input: 'Nr,Kind\n1,Fern\n',
    options: {},
    message: 'stdin has no columns "id", "name"',
    hint: `${askHint}. Without one, add --map id=Nr,name=Kind`,
  },
  {
    input: 'id,tag\n1,red\n',
    options: {},
    message: 'stdin has no column "name"',
    hint: 'See: plants help tables',
  },
  {
    input: 'name,tag\nFern,wet\n',
    options: {},
    message: 'stdin has no column "id"',
    hint: `${askHint}. Without one, add --by-name`,
  },
  {
    input: 'Fern,shade,12\nMoss,shade,4\nAloe,dry,4\n',
    options: {},
    message: 'stdin has no columns "id", "name"',
    hint: `${askHint}. Without one, add --columns name,tag, --by-name`,
  },
  {
    input: '7,Acer,rubrum,Sapindaceae\n8,Quercus,robur,Fagaceae\n',
    options: {},
    message: 'stdin has no columns "id", "name"',
    hint: `${askHint}. Without one, add --columns id,genus,species,tag --map name=genus,name=species`,
  },
  {
    input: '{"id":1,"kind":"red"}\n',
    options: { format: 'ndjson' },
    message: 'stdin has no key "name"',
    hint: `${askHint}. Without one, add --map name=kind`,
  },
  {
    input: '1,Rose,red\n',
    options: { columns: ['name'], byName: true },
    message: 'The first row of stdin has 3 cells, but names are given for only 1',
    hint: 'Name all columns, and leave the names of those empty that are not read: --columns name,,',
  },
  {
    input: 'Nr,Kind\n1,Fern\n',
    options: { map: { id: ['Nr'], name: ['Kid'] } },
    message: 'stdin has no column "Kid"',
    hint: `Correct name=COLUMN in --map. ${askHint}`,
  },
])('the error for $input with $options says what to do', async (example) => {
  const { input, options, message, hint } = example
  await expect(readRecords(input, { ...csv, ...options })).rejects.toMatchObject({ message, hint })
})
