import { expect, test } from 'vitest'
import type { PlantsError } from '../../../src/errors.js'
import { formatRecords, readRecords } from './records.js'

const plant = '{"id":1,"name":"a"}'
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

test.each([
  { format: 'ndjson', name: 'stdin', input: ' \r\n\t' },
  { format: 'ndjson', name: 'stdin', input: `\ufeff\r\n ${plant} \r\n${plant}` },
  { format: 'ndjson', name: 'stdin', input: `{"id":1,}\n${plant}\n` },
  { format: 'json', name: 'stdin', input: `\n [\n${plant}\n]` },
  { format: 'csv', name: 'stdin', input: '\ufeff"id","na\tme",name\r\n1,a\n' },
  { format: 'csv', name: 'stdin', input: 'id\tname\n1\ta, b\n' },
  { format: 'csv', name: 'stdin', input: 'Plants: 2024\nid|name\n1|a\n' },
  { format: 'csv', name: 'plants.csv', input: '[id],id,name\n' },
  { format: 'ndjson', name: 'plants.ndjson', input: 'x,y\n' },
  { format: 'tsv', name: 'plants.TSV', input: 'id\tname\n' },
  { format: 'ndjson', name: 'plants.json', input: `${plant}\n` },
  { format: 'ndjson', name: 'plants.jsonl', input: '{\n"id":1,"name":"a"\n}\n' },
  { format: 'json', name: 'stdin', input: '{\n"id":1,"name":"a"\n}\n' },
])(
  'the format $format is detected for the file $name with $input',
  async ({ format, name, input }) => {
    expect(await readRecords(input, { name })).toMatchObject({ format })
  },
)

test.each<{ input: string | Buffer; what: string }>([
  { input: latin1('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'), what: 'an old Office file' },
  { input: latin1('SQLite format 3\0'), what: 'a SQLite database' },
  { input: '<!DOCTYPE html>\n<p>a, b</p>\n', what: 'HTML or XML' },
  { input: '\ufeff\n <TABLE><tr>', what: 'HTML or XML' },
  { input: latin1('%PDF-1.4\n%\xe2\xe3\n'), what: 'a PDF document' },
  { input: latin1('\x89PNG\r\n\x1a\n\0'), what: 'a picture' },
  { input: latin1('\xff\xd8\xff\xe0JFIF'), what: 'a picture' },
  { input: latin1('BZh91AY&SY'), what: 'an archive' },
  { input: latin1('\xfd7zXZ\0'), what: 'an archive' },
  { input: latin1('\x28\xb5\x2f\xfd\x04'), what: 'an archive' },
  { input: latin1('7z\xbc\xaf\x27\x1c'), what: 'an archive' },
  { input: `${'plants.csv'.padEnd(257, '\0')}ustar`, what: 'an archive' },
  {
    input: latin1('PGDMP\x01\x0f\0'),
    what: 'a binary file: line 1 contains the character U+0000',
  },
  { input: 'id,name\n\0\x01\x02', what: 'a binary file: line 2 contains the character U+0000' },
  {
    input: 'id,name\n1,a\n\0\n2,bcd\n3,e\n',
    what: 'a binary file: line 3 contains the character U+0000',
  },
  {
    input: utf16('id,name\n1,Färn\n'),
    what: 'a binary file: line 1 contains the character U+0000',
  },
])(
  'the error for the input $input says that it is $what, which is no list',
  async ({ input, what }) => {
    for (const name of ['stdin', 'plants.csv']) {
      const error: Partial<PlantsError> = { kind: 'input', message: `${name} is ${what}` }
      await expect(readRecords(input, { name })).rejects.toMatchObject(error)
    }
  },
)

test.each([
  ['a.csv', '[{"id":1,"name":"a"}]', 'json', 'a.csv has no columns "id", "name"'],
  ['a.csv.gz', `${plant}\n${plant}\n`, 'ndjson', 'a.csv.gz has no columns "id", "name"'],
  ['a.json', 'id;name\n1;a\n', 'csv', 'a.json:1: Not JSON: "id" is not a value of JSON'],
] as const)('the name %s decides the format of %s unless --format does', async (...row) => {
  const [name, input, format, message] = row
  const error: unknown = await readRecords(input, { name }).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ kind: 'input', message: expect.stringContaining(message) })
  expect(await readRecords(input, { name, format })).toBeDefined()
})

test.each([
  { name: 'a.json', input: 'id,name\n1,a\n', format: 'csv', records: ['2: 1 a'] },
  { name: 'stdin', input: '- Stock: 2026\nid,name\n1,a\n', format: 'csv', records: ['3: 1 a'] },
  { name: 'stdin', input: '<id>,<name>,id,name\n,,1,a\n', format: 'csv', records: ['2: 1 a'] },
  { name: 'a.csv', input: `${plant}\n`, format: 'ndjson', records: ['1: 1 a'] },
  { name: 'a.csv', input: `[\n${plant}]`, format: 'json', records: ['2: 1 a'] },
] as const)('--format wins over what $name with $input looks like', async (row) => {
  const { name, input, format, records } = row
  expect(formatRecords(await readRecords(input, { name, format }))).toEqual(records)
})

test('a table whose first cell begins with a bracket is no JSON', async () => {
  const records = await readRecords('[no],name,id\nx,a,1\n')
  expect(formatRecords(records)).toEqual(['2: 1 a'])
})

test.each<[string, Buffer, string, string?]>([
  [
    'UTF-8 with a mark, whatever the option says',
    Buffer.from('\ufeffid,name\n1,ü\n'),
    '1 ü',
    'shift_jis',
  ],
  ['UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n'), '1 ü', 'windows-1252'],
  ['big-endian UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n').swap16(), '1 ü'],
  ['UTF-16 without a mark', utf16('id,name\n1,ü\n'), '1 ü', 'utf-16le'],
  ['windows-1252', latin1('id,name\n1,Caf\xe9 \x80\n'), '1 Café €', 'windows-1252'],
  ['a name of Python', latin1('id,name\n1,\x87\x40\xfc\x4b\n'), '1 ①黑', 'cp932'],
  ['a Korean name of Python', latin1('id,name\n1,\x8c\x8d\xb3\xaa\n'), '1 뙇나', 'cp949'],
  ['Big5 of Hong Kong', latin1('id,name\n1,\x8b\xc6\xa4\xf4\n'), '1 乛水', 'big5-hkscs'],
  ['UTF-16 of JSON', utf16('\ufeff\n[{"id":1,"name":"ü"}]').swap16(), '1 ü'],
  ['UTF-16 of NDJSON', utf16('\n{"id":1,"name":"ü"}\n'), '1 ü', 'utf-16le'],
])('the decoder reads %s', async (_, input, record, encoding) => {
  for (const cuts of [[], [16, 17, 18, 19, 21]])
    expect(formatRecords(await readRecords(input, { encoding, cuts }))).toEqual([`2: ${record}`])
})

test('the decoder loses no character of GB18030 where a block begins in the middle of it', async () => {
  const input = latin1('id,name\n1,\x95\x32\x82\x36\n2,b\n3,c')
  const records = await readRecords(input, { encoding: 'gb18030', cuts: [13] })
  expect(formatRecords(records)).toEqual(['2: 1 𠀀', '3: 2 b', '4: 3 c'])
})

test.each<[string, Buffer, string?]>([
  ['UTF-8 (line 3)', latin1('id,name\n1,x\n2,\xe4\n3,\xe4\n')],
  ['UTF-8 (line 2)', latin1('[\n"\xe4"]')],
  ['shift_jis (line 3)', latin1('id,name\n1,\x83\x56\n2,\x83\n3,\x83\x56\n'), 'shift_jis'],
  ['cp949 (line 3)', latin1('id,name\n1,\x8c\x8d\n2,\xff\n3,\xff\n'), 'cp949'],
  ['windows-1252 (line 2)', latin1('id,name\n1,\x81\n'), 'latin1'],
  ['iso-8859-2 (line 2)', latin1('id,name\n1,\x8cliwa\n'), 'latin2'], // as windows-1250 has it
  ['utf-16le (line 2)', utf16('\ufeffid,name\n1,\ud800x\n\u0a0d')],
  ['utf-16le (line 3)', utf16('\ufeffid,name\n1,\u0a0d\u0d0a\n2,x\n').subarray(0, -1)],
  ['utf-16be (line 3)', utf16('\ufeffid,name\n1,\u0a0d\n2,\udc00\n').swap16()],
])('reading ends with an error where the input is not %s', async (what, input, encoding) => {
  for (const cuts of [[], input.keys()]) {
    const error = await readRecords(input, { encoding, cuts }).catch((error: PlantsError) => error)
    expect(error).toMatchObject({ kind: 'input' })
    expect(`${error}`).toMatch(`PlantsError: stdin is not ${what}`)
  }
})

test('a rejects file that a spreadsheet saved in another encoding is read with --encoding', async () => {
  const saved = latin1('rejected_line;rejected_reason;id;name\r\n7;Invalid;1;\x8cliwa\r\n')
  expect(formatRecords(await readRecords(saved, { encoding: 'windows-1250' }))).toEqual([
    '2: 1 Śliwa',
  ])
})

test('a rejects file is read as UTF-8, with its header and without sheets, whatever the options say', async () => {
  const options = {
    encoding: 'windows-1252',
    sheet: 'Stock',
    columns: ['id', 'name'],
    delimiter: ',',
  }
  const table = '\ufeffrejected_line,rejected_reason,id,name\n7,Invalid,1,ü\n'
  expect(formatRecords(await readRecords(table, options))).toEqual(['2: 1 ü'])
  const json = '{"rejected_line":7,"rejected_reason":"Invalid","id":1,"name":"ü"}\n'
  expect(formatRecords(await readRecords(json, { encoding: 'utf-16le', sheet: '1' }))).toEqual([
    '1: 1 ü',
  ])
})
