import { expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { check, fc } from '../../../helpers/fast-check.js'
import { readRecords, shown } from '../../../helpers/records.js'

const plant = '{"id":1,"name":"a"}'
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const utf16 = (text: string) => Buffer.from(text, 'utf16le')

test.each(
  Object.entries({
    ndjson: [
      '',
      ' \r\n\t',
      plant,
      `\ufeff\r\n ${plant} \r\n${plant}`,
      `{"id":1,"name":"a"\n${plant}\n`,
      `{"id":1,]\n${plant}\n`,
      `${plant},\n${plant},\n`,
      `{"name":"${'a'.repeat(70_000)}`,
      `${plant}\n{"id":2,"name":"\0"}\n`,
    ],
    json: ['[]', `\n [\n${plant}\n]`, `[${plant}]`],
    csv: [
      '\ufeff"id","na\tme"\r\n1,a\n',
      'id\tname\n1\ta, b\n',
      'id;name\n1;a\n',
      'Plants: 2024\nid,name\n1,a\n',
      '[id],id,name\n',
      'sep=|\nid|name\n',
    ].map((text) => text.replace('na\tme"', 'na\tme",name')),
  }).flatMap(([format, inputs]) => inputs.map((input) => [format, input] as const)),
)('%s is detected in %j', async (format, input) => {
  const name = input.startsWith('[id]') ? 'plants.csv' : 'stdin' // by its name
  expect(await readRecords(input, { name })).toMatchObject({ format })
})

test.each([
  ['plants.ndjson', 'id,name\n', 'ndjson'],
  ['plants.jsonl.gz', '[1]\n', 'ndjson'],
  ['plants.TSV', 'id\tname\n', 'tsv'],
  ['plants.json', `${plant}\n`, 'ndjson'],
  ['plants.json', `[${plant}]\n`, 'json'],
])('the name of %s counts', async (name, input, format) => {
  expect(await readRecords(input, { name })).toMatchObject({ format })
})

const noText = 'is not text: it contains U+0000'
const utf16Hint = 'Save an old workbook as .xlsx. For a text in UTF-16, add --encoding utf-16le'
const asArray = 'Write the plants as an array, or as NDJSON: one on each line'

test.each<[what: string, hint: string, input: string | Buffer]>([
  [noText, utf16Hint, utf16('id,name\n')],
  [noText, utf16Hint, utf16(plant).swap16()],
  [noText, utf16Hint, latin1('\x7fELF\x02\x01\x01\0\0\0')],
  ['is not CSV, TSV, NDJSON or JSON', 'See: plants help import', '<!DOCTYPE html>\n<p>a, b</p>\n'],
  ['is a JSON object over several lines', asArray, '{\n  "id": 1,\n  "name": "a"\n}\n'],
  [noText, utf16Hint, 'SQLite format 3\0'],
  ...['d0cf11e0a1b11ae10000', '28b52ffd0000', 'fd377a585a00000004'].map((head): [string, string, Buffer] => [
    noText,
    utf16Hint,
    Buffer.from(head, 'hex'),
  ]),
])('is rejected, because it %s', async (what, hint, input) => {
  const error = { type: 'malformed', message: `stdin ${what}`, hint } satisfies Partial<PlantsError>
  await expect(readRecords(input)).rejects.toEqual(expect.objectContaining(error))
})

test.each<[string, Buffer, string, string?]>([
  ['UTF-8 with a mark', Buffer.from('\ufeffid,name\n1,ü\n'), '1 ü', 'shift_jis'],
  ['UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n'), '1 ü', 'windows-1252'],
  ['big-endian UTF-16 with a mark', utf16('\ufeffid,name\n1,ü\n').swap16(), '1 ü'],
  ['UTF-16 without a mark', utf16('id,name\n1,ü\n'), '1 ü', 'utf-16le'],
  ['windows-1252', latin1('id,name\n1,Caf\xe9 \x80\n'), '1 Café €', 'windows-1252'],
  ['iso-8859-2', latin1('id,name\n1,L\xedpa \xb9\n'), '1 Lípa š', 'iso-8859-2'],
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

test('NDJSON is detected whatever it holds', () => {
  const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  return check(500, [fc.array(value, { minLength: 1, maxLength: 3 })], async (values) => {
    const text = values.map((one) => `${JSON.stringify({ ...one, id: 1 })}\n`).join('')
    expect(await readRecords(text)).toMatchObject({ format: 'ndjson', records: { length: values.length } })
  })
})
