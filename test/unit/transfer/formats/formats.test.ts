import { expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import type { FormatName } from '../../../../src/transfer/formats/format.js'
import { detectFormat, headSize } from '../../../../src/transfer/formats/formats.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'

const plant = '{"id":1,"name":"a"}'

test.each<[string, FormatName]>([
  ['', 'ndjson'],
  [' \r\n\t', 'ndjson'],
  [plant, 'ndjson'],
  [`${plant}\n${plant}\n`, 'ndjson'],
  [`\ufeff\r\n ${plant} \r\n${plant}`, 'ndjson'],
  [`{"id":1,"name":"a"\n${plant}\n`, 'ndjson'],
  [`{"id":1,"name":"a\n${plant}\n`, 'ndjson'],
  [`{"id":1,"name":\n${plant}\n${plant}\n`, 'ndjson'],
  [`{"id":1,"name":"a",\n${plant}\n${plant}\n`, 'ndjson'],
  [`{"id":1,]\n${plant}\n`, 'ndjson'],
  [`${plant},\n${plant},\n`, 'ndjson'],
  [`${plant}}\n${plant}\n`, 'ndjson'],
  [`{"id":1,"na`, 'ndjson'],
  [`{"name":"${'a'.repeat(headSize)}`, 'ndjson'],
  [`# plants\n${plant}\n`, 'ndjson'],
  [`"id":1}\n${plant}\n`, 'ndjson'],
  ['[', 'json'],
  [`\n [\n${plant}\n]`, 'json'],
  [`${plant}${plant}\n`, 'json'],
  [`${plant} ${plant}\n`, 'json'],
  ['{\n  "id": 1,\n  "name": "a"\n}\n', 'json'],
  ['{"id":1,\n "name":"a"}', 'json'],
  ['{\n  "id": 1\n  "name": "a"\n}\n', 'json'],
  ['{\n  "id": 1,\n  "na', 'json'],
  ['{"plants":[\n{"id":1,"name":"a"},\n{"id":2,"name":"b"}\n]}\n', 'json'],
  [`{\n "plants": [\n${'  {"id":1,"name":"a"},\n'.repeat(5000)}`.slice(0, headSize), 'json'],
  ['id,name\n1,a\n', 'csv'],
  ['\ufeff"id","na\tme"\r\n1,a\n', 'csv'],
  ['name\nFern\n', 'csv'],
  ['"a;b"\n1\n', 'csv'],
  ['id\tname\n1\ta, b\n', 'tsv'],
  ['id\tname, or so\n1\ta, b\n', 'tsv'],
])('%j is %s', (text, format) => {
  expect(detectFormat(Buffer.from(text), text.length < headSize, 'stdin')).toBe(format)
})

test.each<[string, Buffer, string, string]>([
  ['UTF-16 with its mark', Buffer.from('\ufeffid,name\n', 'utf16le'), 'plants.csv is UTF-16, not UTF-8', 'UTF-16'],
  ['UTF-16 with the other mark', Buffer.from('\ufeffid,name\n', 'utf16le').swap16(), 'plants.csv is UTF-16, not UTF-8', 'UTF-16'],
  ['UTF-16 without a mark', Buffer.from('id,name\n', 'utf16le'), 'plants.csv is UTF-16, not UTF-8', 'UTF-16LE'],
  ['the other UTF-16 without a mark', Buffer.from(plant, 'utf16le').swap16(), 'plants.csv is UTF-16, not UTF-8', 'UTF-16BE'],
  [
    'bytes of a program',
    Buffer.from('\x7fELF\x02\x01\x01\0\0\0'),
    'plants.csv is no text in UTF-8: its first line holds U+0000',
    'ENCODING',
  ],
])('%s is refused', (_, head, message, encoding) => {
  const hint = `If it is a text, convert it first: iconv -f ${encoding} -t UTF-8`
  const error = { kind: 'malformed', message, hint } satisfies Partial<PlantsError>
  expect(() => detectFormat(head, true, 'plants.csv')).toThrow(expect.objectContaining(error))
})

test('a table with semicolons is refused', () => {
  const hint = 'Save it with commas or tabs between its cells. If it has one column, say so with: --format csv'
  const message = 'plants.csv seems to be a table with ";" between its cells'
  expect(() => detectFormat(Buffer.from('id;name\n1;a\n'), true, 'plants.csv')).toThrow(expect.objectContaining({ message, hint }))
})

test('U+0000 in a later line is a matter of that line', () => {
  expect(detectFormat(Buffer.from(`${plant}\n{"id":2,"name":"\0"}\n`), true, 'stdin')).toBe('ndjson')
})

test('NDJSON is detected whatever its lines hold, and so is an indented value', { timeout: rounds(60_000) }, () => {
  const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  const both = (values: object[]) => {
    const lines = values.map((one) => `${JSON.stringify(one)}\n`).join('')
    expect(detectFormat(Buffer.from(lines), true, 'stdin')).toBe('ndjson')
    const indented = values.map((one) => `${JSON.stringify({ ...one, id: 1 }, null, 2)}\n`).join('')
    expect(detectFormat(Buffer.from(indented), true, 'stdin')).toBe('json')
  }
  fc.assert(fc.property(fc.array(value, { minLength: 1, maxLength: 3 }), both), { numRuns: rounds(500) })
})
