import { expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { readRecords, shown } from '../../../helpers/records.js'

const plant = '{"id":1,"name":"a"}'
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

test.each([
  ['ndjson', 'stdin', ' \r\n\t'],
  ['ndjson', 'stdin', `\ufeff\r\n ${plant} \r\n${plant}`],
  ['ndjson', 'stdin', `{"id":1,}\n${plant}\n`],
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
  ['json', 'stdin', '{\n"id":1,"name":"a"\n}\n'],
  ['json', 'plants.json', `[${plant}]\n`],
])('%s is the format of %s with %j', async (format, name, input) => {
  expect(await readRecords(input, { name })).toMatchObject({ format })
})

const saveIt = 'Save it as CSV, JSON or .xlsx'
const asText = `${saveIt}. If it is a text in UTF-16: --encoding utf-16le`

test.each<[string | Buffer, message: string, hint: string]>([
  [latin1('\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1'), 'an old workbook (.xls)', saveIt],
  [latin1('SQLite format 3\0'), 'an SQLite database', saveIt],
  ['<!DOCTYPE html>\n<p>a, b</p>\n', 'HTML or XML', saveIt],
  ['\ufeff\n <TABLE><tr>', 'HTML or XML', saveIt],
  ['<?xml version="1.0"?>\n<plants/>', 'HTML or XML', saveIt],
  [latin1('\x89PNG\r\n\x1a\n\0\0\0\rIHDR'), 'a binary file', asText],
  [latin1('\x1f\x8b\x08\0\0'), 'a binary file', asText],
  [utf16('id,name\n'), 'a binary file', asText],
])('what is no list is named: %j', async (input, what, hint) => {
  for (const name of ['stdin', 'plants.csv']) {
    const error = { kind: 'input', message: `${name} is ${what}`, hint } as const
    await expect(readRecords(input, { name })).rejects.toEqual(
      expect.objectContaining(error satisfies Partial<PlantsError>),
    )
  }
})

test('--format says that a table begins like something else', async () => {
  for (const first of ['version https://git-lfs', '-- SQL dump'])
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
  ['a name of Python', latin1('id,name\n1,\x87\x40\xfc\x4b\n'), '1 ①黑', 'cp932'],
  ['Korean beyond EUC', latin1('id,name\n1,\x8c\x8d\xb3\xaa\n'), '1 뙇나', 'euc-kr'],
  ['a Korean name of Python', latin1('id,name\n1,\x8c\x8d\xb3\xaa\n'), '1 뙇나', 'cp949'],
  ['Big5 of Hong Kong', latin1('id,name\n1,\x8b\xc4\xa4\xf4\n'), '1 靑水', 'big5-hkscs'],
  ['the name of Excel', latin1('id,name\n1,Caf\xe9 \x80\n'), '1 Café €', 'ANSI'],
  ['what Node alone has', latin1('id,name\n1,\x80\xdf\n'), '1 Ая', 'x-mac-cyrillic'],
])('a table in %s is decoded', async (_, input, record, encoding) => {
  for (const cuts of [[], [16, 17, 18, 19, 21]])
    expect(shown(await readRecords(input, { encoding, cuts }))).toEqual([`2: ${record}`])
})

const byHand = 'Correct that line, or save the file as UTF-8'
const ofOldSpreadsheet =
  'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'

test.each<[string, Buffer, hint: string, string?]>([
  ['UTF-8 in line 3', latin1('id,name\n1,x\n2,\xe4\n3,\xe4\n'), ofOldSpreadsheet],
  ['UTF-8 in line 2', latin1('[\n"\xe4"]'), ofOldSpreadsheet],
  ['UTF-8 in line 3', latin1('\xef\xbb\xbfid,name\n1,x\n2,\xe4\n'), ofOldSpreadsheet],
  ['shift_jis in line 3', latin1('id,name\n1,\x83\x56\n2,\x83\n3,\x83\x56\n'), byHand, 'shift_jis'],
  ['cp949 in line 3', latin1('id,name\n1,\x8c\x8d\n2,\xff\n3,\xff\n'), byHand, 'cp949'],
  ['cp949 in line 2', latin1('id,name\n1,\x8c'), byHand, 'cp949'],
  ['windows-1252 in line 2', latin1('id,name\n1,\x81\n'), byHand, 'latin1'],
  ['iso-8859-2 in line 3', latin1('id,name\n1,a\n2,\x9c\n'), byHand, 'l2'],
  ['utf-16le in line 2', utf16('\ufeffid,name\n1,\ud800x\n\u0a0d'), byHand],
  ['utf-16le in line 3', utf16('\ufeffid,name\n1,\u0a0d\u0d0a\n2,x\n').subarray(0, -1), byHand],
  ['utf-16be in line 3', utf16('\ufeffid,name\n1,\u0a0d\n2,\udc00\n').swap16(), byHand],
])('a table or an array ends where it is not %s', async (what, input, hint, encoding) => {
  for (const cuts of [[], [...input.keys()]])
    await expect(readRecords(input, { encoding, cuts })).rejects.toEqual(
      expect.objectContaining({ kind: 'input', message: `stdin is not ${what}`, hint }),
    )
})

test('in NDJSON, too, a line that is not of the encoding ends the input', async () => {
  const lines = ['{"id":1,"name":"\x83\x56"}', '{"id":2,"name":"\x83"}', '{"id":3}']
  const input = latin1(lines.join('\r\n'))
  for (const cuts of [[], [...input.keys()]])
    await expect(readRecords(input, { encoding: 'shift_jis', cuts })).rejects.toThrow(
      'stdin is not shift_jis in line 2',
    )
})

test('a rejects file that a spreadsheet saved in another encoding is of --encoding', async () => {
  const saved = latin1('rejected_line;rejected_reason;id;name\r\n7;Invalid;1;\x8cliwa\r\n')
  const encoding = 'windows-1250'
  expect(shown(await readRecords(saved, { encoding }))).toEqual(['2: 1 Śliwa'])
  const unmarked = 'rejected_line;rejected_reason;id;name\n7;Invalid;1;Śliwa\n'
  expect(shown(await readRecords(unmarked, { encoding }))).toEqual(['2: 1 Śliwa'])
})

test('an encoding that nobody knows is an error', async () => {
  const unknown = { kind: 'usage', message: 'The encoding is unknown' }
  await expect(readRecords('id,name\n', { encoding: 'utf-1' })).rejects.toEqual(
    expect.objectContaining({ ...unknown, hint: 'For example: --encoding windows-1252' }),
  )
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
