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
  ['json', 'plants.json', `[${plant}]\n`],
])('%s is the format of %s with %j', async (format, name, input) => {
  expect(await readRecords(input, { name })).toMatchObject({ format })
})

test.each<string | Buffer>([
  utf16('id,name\n'),
  latin1('\x7fELF\x02\x01\x01\0\0\0'),
  '<!DOCTYPE html>\n<p>a, b</p>\n',
  '{\n  "id": 1,\n  "name": "a"\n}\n',
])('is rejected, because it has no format that is known: %j', async (input) => {
  const hint = 'Save a workbook as .xlsx. A text in UTF-16 needs --encoding utf-16le'
  const message = 'stdin is not CSV, TSV, NDJSON or JSON'
  const error = { type: 'malformed', message, hint } satisfies Partial<PlantsError>
  await expect(readRecords(input)).rejects.toEqual(expect.objectContaining(error))
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

test('what is not of the named encoding ends the import', async () => {
  const hint = 'Name its encoding, such as --encoding windows-1252'
  for (const input of [utf16('\ufeffid,name\n1,\ud800x\n'), utf16('\ufeffid,name\n1,x\n').subarray(0, -1)])
    await expect(readRecords(input)).rejects.toEqual(
      expect.objectContaining({ type: 'malformed', message: 'stdin is not utf-16le', hint }),
    )
})

test('a rejects file is UTF-8, has a header and no sheets, whatever the options say', async () => {
  const options = { encoding: 'windows-1252', sheet: 'Stock', columns: ['id', 'name'], delimiter: ',' }
  const table = '\ufeffrejected_line,rejected_reason,id,name\n7,Invalid,1,ü\n'
  expect(shown(await readRecords(table, options))).toEqual(['2: 1 ü'])
  const json = '{"rejected_line":7,"rejected_reason":"Invalid","id":1,"name":"ü"}\n'
  expect(shown(await readRecords(json, { encoding: 'utf-16le', sheet: '1' }))).toEqual(['1: 1 ü'])
})
