import { expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { readRecords, shown } from '../../../helpers/records.js'

const plant = '{"id":1,"name":"a"}'
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

test.each([
  ['ndjson', 'stdin', ' \r\n\t'],
  ['ndjson', 'stdin', `\ufeff\r\n ${plant} \r\n${plant}`],
  ['ndjson', 'stdin', `{"id":1,]\n${plant}\n`],
  ['ndjson', 'stdin', `${plant}\n{"id":2,"name":"\0"}\n`],
  ['json', 'stdin', `\n [\n${plant}\n]`],
  ['csv', 'stdin', '\ufeff"id","na\tme",name\r\n1,a\n'],
  ['csv', 'stdin', 'id\tname\n1\ta, b\n'],
  ['csv', 'stdin', 'Plants: 2024\nid|name\n1|a\n'],
  ['csv', 'plants.csv', '[id],id,name\n'],
  ['ndjson', 'plants.ndjson', 'id,name\n'],
  ['ndjson', 'plants.jsonl.gz', '[1]\n'],
  ['tsv', 'plants.TSV', 'id\tname\n'],
  ['ndjson', 'plants.json', `${plant}\n`],
  ['ndjson', 'plants.json.gz', `${plant}\n${plant}\n`],
  ['ndjson', 'plants.jsonl', '{\n"id":1,"name":"a"\n}\n'],
  ['ndjson', 'stdin', '{\n"id":1,"name":"a"\n}\n'],
  ['json', 'plants.json', `[${plant}]\n`],
])('%s is the format of %s with %j', async (format, name, input) => {
  expect(await readRecords(input, { name })).toMatchObject({ format })
})

const spreadsheet = 'xmlns="urn:schemas-microsoft-com:office:spreadsheet"'
const tar = Buffer.alloc(512, 'plants.csv\0').fill('ustar\0', 257, 263)

test.each<[string | Buffer, message: string, hint: string, name?: string]>([
  [
    latin1('\xfd7zXZ\0\0\x04\xe6\xd6'),
    'compressed with xz',
    'Unpack it first: xz -d',
    'plants.csv',
  ],
  [latin1('BZh91AY&SY\xf1\xd6'), 'compressed with bzip2', 'Unpack it first: bzip2 -d'],
  [latin1('\x28\xb5\x2f\xfd\x24'), 'compressed with zstd', 'Unpack it first: zstd -d'],
  [latin1('\x1f\x8b\x08'), 'compressed with gzip twice', 'Unpack it first: gzip -d'],
  [latin1('7z\xbc\xaf\x27\x1c\0\x04'), 'a 7-Zip archive', 'Unpack it first'],
  [latin1('Rar!\x1a\x07\x01\0'), 'a RAR archive', 'Unpack it first'],
  [tar, 'a tar archive', 'Unpack it first: tar -xf'],
  [
    latin1('SQLite format 3\0'),
    'an SQLite database',
    'If it is a store of plants, name it with --store',
  ],
  [latin1('PAR1\x15\x04'), 'a Parquet file', 'Convert it to CSV first'],
  [
    latin1('%PDF-1.7\n'),
    'a PDF document',
    'Import the list that it was made from, such as a workbook',
  ],
  [latin1('\x89PNG\r\n\x1a\n'), 'a picture', 'Import the list that it shows', 'plants.csv'],
  [latin1('\xff\xd8\xff\xe0'), 'a picture', 'Import the list that it shows'],
  [
    'version https://git-lfs.github.com/spec/v1\n',
    'a pointer of Git LFS',
    'Fetch the file itself: git lfs pull',
  ],
  [
    '{\\rtf1\\ansi\n}',
    'rich text (RTF)',
    'Save it as plain text, or its table as .xlsx',
    'plants.csv',
  ],
  [
    '<!DOCTYPE html>\n<p>a, b</p>\n',
    'HTML',
    'If it shows a table, save that as .xlsx',
    'plants.csv',
  ],
  [utf16('\ufeff\n <TABLE>'), 'HTML', 'If it shows a table, save that as .xlsx', 'plants.xls'],
  [
    `<?xml version="1.0"?>\n<Workbook ${spreadsheet}>`,
    'an XML Spreadsheet 2003',
    'Save it as .xlsx',
  ],
  ['\ufeff<?xml version="1.0"?>\n<plants/>', 'XML', 'Convert it to CSV or JSON first'],
  ['-- phpMyAdmin SQL Dump\n-- version 5', 'a dump of SQL', 'Export the table as CSV instead'],
  ['--\n-- PostgreSQL database dump\n--', 'a dump of SQL', 'Export the table as CSV instead'],
  [
    latin1('\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6'),
    'no text, and of no format that is known',
    'Save it as CSV, JSON or .xlsx',
  ],
  [
    latin1('\x7fELF\x02\x01\x01\0'),
    'no text, and of no format that is known',
    'Save it as CSV, JSON or .xlsx',
  ],
])('what is no list is named: %j', async (input, what, hint, name = 'stdin') => {
  const error = {
    kind: 'input',
    message: `${name} is ${what}`,
    hint,
  } satisfies Partial<PlantsError>
  await expect(readRecords(input, { name })).rejects.toEqual(expect.objectContaining(error))
})

test.each<[string, Buffer]>([
  ['utf-16le', utf16('id,name\n')],
  ['utf-16be', utf16('id,name\n').swap16()],
])('%s without a mark is named', async (encoding, input) => {
  const error = {
    message: 'stdin seems to be in UTF-16',
    hint: `Name its encoding: --encoding ${encoding}`,
  }
  await expect(readRecords(input)).rejects.toEqual(expect.objectContaining(error))
})

test('--format says that a table begins like something else', async () => {
  for (const first of ['version https://git-lfs', '<table>', '-- SQL dump'])
    expect(shown(await readRecords(`${first},id,name\n,1,a\n`, { format: 'csv' }))).toEqual([
      '2: 1 a',
    ])
})

test.each<[string, Buffer, string, string?]>([
  ['UTF-8 with a mark', Buffer.from('\ufeffid,name\n1,ü\n'), '1 ü', 'shift_jis'],
  ['UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n'), '1 ü', 'windows-1252'],
  ['big-endian UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n').swap16(), '1 ü'],
  ['UTF-16 without a mark', utf16('id,name\n1,ü\n'), '1 ü', 'utf-16le'],
  ['windows-1252', latin1('id,name\n1,Caf\xe9 \x80\n'), '1 Café €', 'windows-1252'],
  ['shift_jis', latin1('id,name\n1,\x83\x56\x83\x5f\n'), '1 シダ', 'shift_jis'],
])('a table in %s is decoded', async (_, input, record, encoding) => {
  for (const cuts of [[], [16, 17, 18, 19, 21]])
    expect(shown(await readRecords(input, { encoding, cuts }))).toEqual([`2: ${record}`])
})

const byHand = 'Correct that line, or save the file as UTF-8'
const ofOldSpreadsheet =
  'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'

test.each<[string, Buffer, hint: string, string?]>([
  ['UTF-8 in line 3', latin1('id,name\n1,x\n2,\xe4\n3,\xe4\n'), ofOldSpreadsheet],
  ['UTF-8 in line 3', latin1('id,name\r1,x\r2,\xe4\r'), ofOldSpreadsheet],
  ['UTF-8 in line 2', latin1('[\n"\xe4"]'), ofOldSpreadsheet],
  ['UTF-8 in line 3', latin1('\xef\xbb\xbfid,name\n1,x\n2,\xe4\n'), byHand],
  ['shift_jis in line 3', latin1('id,name\n1,\x83\x56\n2,\x83\n3,\x83\x56\n'), byHand, 'shift_jis'],
  ['shift_jis in line 4', latin1('id,name\r1,"\r"\r2,\x83\r'), byHand, 'shift_jis'],
  ['utf-16le in line 2', utf16('\ufeffid,name\n1,\ud800x\n\u0a0d'), byHand],
  ['utf-16le in line 3', utf16('\ufeffid,name\n1,\u0a0d\u0d0a\n2,x\n').subarray(0, -1), byHand],
  ['utf-16be in line 3', utf16('\ufeffid,name\n1,\u0a0d\n2,\udc00\n').swap16(), byHand],
])('a table or an array ends where it is not %s', async (what, input, hint, encoding) => {
  for (const cuts of [[], [...input.keys()]])
    await expect(readRecords(input, { encoding, cuts })).rejects.toEqual(
      expect.objectContaining({ kind: 'input', message: `stdin is not ${what}`, hint }),
    )
})

test('in NDJSON, a line that is not of the encoding is a problem of its own', async () => {
  const lines = [
    '{"id":1,"name":"\x83\x56"}',
    '{"id":2,"name":"\x83"}',
    '{"id":3,"name":"\x83\x56"}',
  ]
  const read = await readRecords(latin1(lines.join('\r\n')), { encoding: 'shift_jis' })
  expect(shown(read)).toEqual(['1: 1 シ', '2: 400: Not shift_jis', '3: 3 シ'])
  const marked = utf16('\ufeff{"id":1,"name":"a"}\n\ud800\n{"id":3,"name":"b"}\n')
  expect(shown(await readRecords(marked))).toEqual(['1: 1 a', '2: 400: Not utf-16le', '3: 3 b'])
})

test('a rejects file is UTF-8, has a header and no sheets, whatever the options say', async () => {
  const options = {
    encoding: 'windows-1252',
    sheet: 'Stock',
    columns: ['id', 'name'],
    delimiter: ',',
  }
  const table = '\ufeffrejected_line,rejected_reason,id,name\n7,Invalid,1,ü\n'
  expect(shown(await readRecords(table, options))).toEqual(['2: 1 ü'])
  const json = '{"rejected_line":7,"rejected_reason":"Invalid","id":1,"name":"ü"}\n'
  expect(shown(await readRecords(json, { encoding: 'utf-16le', sheet: '1' }))).toEqual(['1: 1 ü'])
})
