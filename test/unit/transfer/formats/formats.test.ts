import { expect, test } from 'vitest'
import type { FormatName } from '../../../../src/plant/records.js'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { formatOf, headSize, type InputOptions } from '../../../../src/transfer/formats/formats.js'
import { fc } from '../../../helpers/fast-check.js'
import { rounds } from '../../../helpers/rounds.js'

const plant = '{"id":1,"name":"a"}'
const nothing: InputOptions = {
  format: undefined,
  sheet: undefined,
  encoding: undefined,
  rules: { map: {}, idFrom: undefined },
}

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
  [`{"id":1,"name":"a","seen":[${'{"year":2024},'.repeat(headSize)}`.slice(0, headSize), 'ndjson'],
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
  ['id,name\n1,a\n', 'csv'],
  ['\ufeff"id","na\tme"\r\n1,a\n', 'csv'],
  ['name\nFern\n', 'csv'],
  ['"a;b"\n1\n', 'csv'],
  ['id\tname\n1\ta, b\n', 'csv'],
  ['id;name\n1;a\n', 'csv'],
  ['Plants: 2024\nid,name\n1,a\n', 'csv'],
  ['Stra\u00dfe\nFern\n', 'csv'],
])('%j is %s', (text, format) => {
  expect(formatOf(Buffer.from(text), text.length < headSize, 'stdin', nothing)).toBe(format)
})

test.each<[string, string | Buffer, string, string]>([
  [
    'UTF-16 without a mark',
    Buffer.from('id,name\n', 'utf16le'),
    'plants.csv is not UTF-8, but seems to be utf-16le',
    'Run it again with: --encoding utf-16le',
  ],
  [
    'the other UTF-16 without a mark',
    Buffer.from(plant, 'utf16le').swap16(),
    'plants.csv is not UTF-8, but seems to be utf-16be',
    'Run it again with: --encoding utf-16be',
  ],
  [
    'a byte that is no character of Windows-1252',
    Buffer.from('id,name\n1,M\x81hle\n', 'latin1'),
    'plants.csv is not UTF-8',
    'Set its encoding with --encoding, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis',
  ],
  [
    'bytes of a program',
    Buffer.from('\x7fELF\x02\x01\x01\0\0\0'),
    'plants.csv is not text: it contains U+0000',
    'Use a file of CSV, TSV, NDJSON or JSON',
  ],
  [
    'a table of bytes of a program',
    Buffer.from('id,name\n\x7f\xe9\x01\0\n', 'latin1'),
    'plants.csv is not text: it contains U+0000',
    'Use a file of CSV, TSV, NDJSON or JSON',
  ],
  [
    'a store',
    'SQLite format 3\0\x10\0\x01\x01',
    'plants.csv contains an SQLite database, not records',
    'If it is a store, import the output of: plants export --store ./plants.csv',
  ],
  [
    'HTML',
    '<!DOCTYPE html>\n<p>a, b</p>\n',
    'plants.csv is not CSV, TSV, NDJSON or JSON',
    'See the formats: plants help formats',
  ],
  [
    'YAML',
    '- id: 1\n  name: a\n',
    'plants.csv is not CSV, TSV, NDJSON or JSON',
    'See the formats: plants help formats',
  ],
  [
    'an object with plants',
    '{"plants":[{"id":1,"name":"a"}]}',
    'plants.csv is an object with the plants at .plants',
    "Instead, import the output of: jq -c '.plants[]' plants.csv",
  ],
  [
    'an object with plants that are cut',
    `{\n "plants": [\n${'  {"id":1,"name":"a"},\n'.repeat(5000)}`.slice(0, headSize),
    'plants.csv is an object with the plants at .plants',
    "Instead, import the output of: jq -c '.plants[]' plants.csv",
  ],
  [
    'an object with an object with plants',
    '{"total": 2, "next": null, "data": {"page": "1", "my plants": [ {"id":1}]}}',
    'plants.csv is an object with the plants at .data."my plants"',
    'Instead, import the output of: jq -c \'.data."my plants"[]\' plants.csv',
  ],
])('%s is rejected', (_, head, message, hint) => {
  const error = { type: 'malformed', message, hint } satisfies Partial<PlantsError>
  const read = () =>
    formatOf(Buffer.from(head), head.length < headSize, 'plants.csv', {
      ...nothing,
    })
  expect(read).toThrow(expect.objectContaining(error))
})

test.each(['stdin', 'plants.db.gz'])(
  'a store that cannot be opened where it is, from %s, is to be saved first',
  (source) => {
    const message = `${source} contains an SQLite database, not records`
    const hint =
      'If it is a store, save it to a file without compression, then import the output of: plants export --store FILE'
    expect(() => formatOf(Buffer.from('SQLite format 3\0'), true, source, nothing)).toThrow(
      expect.objectContaining({ message, hint }),
    )
  },
)

test.each<[string, Buffer, Partial<InputOptions>]>([
  ['one bad byte among letters of UTF-8', Buffer.from('id,name\n1,Caf\xc3\xa9\n2,\xff\n', 'latin1'), {}],
  ['a letter that is cut', Buffer.from('id,name\n1,a\n2,Caf\xc3', 'latin1'), {}],
  ['letters whose encoding was given', Buffer.from('id,name\n1,Caf\xe9\n', 'latin1'), { encoding: 'utf-8' }],
])('%s is a matter of its line', (_, head, options) => {
  expect(formatOf(head, false, 'stdin', { ...nothing, ...options })).toBe('csv')
})

test('U+0000 in a later line is a matter of that line', () => {
  expect(formatOf(Buffer.from(`${plant}\n{"id":2,"name":"\0"}\n`), true, 'stdin', nothing)).toBe('ndjson')
})

test('NDJSON is detected whatever its lines hold, and so is an indented value', { timeout: rounds(60_000) }, () => {
  const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  const both = (values: object[]) => {
    const lines = values.map((one) => `${JSON.stringify({ ...one, id: 1 })}\n`).join('')
    expect(formatOf(Buffer.from(lines), true, 'stdin', nothing)).toBe('ndjson')
    const indented = values.map((one) => `${JSON.stringify({ ...one, id: 1 }, null, 2)}\n`).join('')
    expect(formatOf(Buffer.from(indented), true, 'stdin', nothing)).toBe('json')
  }
  fc.assert(fc.property(fc.array(value, { minLength: 1, maxLength: 3 }), both), { numRuns: rounds(500) })
})
