import { expect, test } from 'vitest'
import type { PlantsError } from '../../../../src/platform/errors.js'
import { formatOf, headSize, type InputOptions } from '../../../../src/transfer/formats/formats.js'
import { check, fc } from '../../../helpers/fast-check.js'

const plant = '{"id":1,"name":"a"}'
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const formatIn = (head: string | Buffer, source = 'plants.csv', encoding?: string) =>
  formatOf(Buffer.from(head), head.length < headSize, source, {
    ...{ format: undefined, sheet: undefined, encoding },
    rules: { map: {}, idFrom: undefined },
  } satisfies InputOptions)

test.each(
  Object.entries({
    ndjson: [
      '',
      ' \r\n\t',
      plant,
      `\ufeff\r\n ${plant} \r\n${plant}`,
      `{"id":1,"name":"a"\n${plant}\n`,
      `{"id":1,"name":"a\n${plant}\n`,
      `{"id":1,]\n${plant}\n`,
      `${plant},\n${plant},\n`,
      `{"id":1,"na`,
      `{"name":"${'a'.repeat(headSize)}`,
      `{"id":1,"name":"a","seen":[${'{"year":2024},'.repeat(headSize)}`.slice(0, headSize),
      `# plants\n${plant}\n`,
      `"id":1}\n${plant}\n`,
      `${plant}\n{"id":2,"name":"\0"}\n`,
    ],
    json: [
      '[',
      `\n [\n${plant}\n]`,
      `${plant}${plant}\n`,
      '{"id":1,\n "name":"a"}',
      '{\n  "id": 1\n  "name": "a"\n}\n',
      '{\n  "id": 1,\n  "na',
    ],
    csv: [
      '\ufeff"id","na\tme"\r\n1,a\n',
      'id\tname\n1\ta, b\n',
      'id;name\n1;a\n',
      'Plants: 2024\nid,name\n1,a\n',
      'Stra\u00dfe\nFern\n',
      latin1('id,name\n1,Caf\xc3\xa9\n2,\xff\n'), // a byte that is not UTF-8 among letters that are
    ],
  }).flatMap(([format, heads]) => heads.map((head) => [format, head] as const)),
)('%s is detected in %j', (format, head) => {
  expect(formatIn(head)).toBe(format)
})

test('letters of a given encoding, and one that is cut, are a matter of their line', () => {
  expect(formatIn(latin1('id,name\n1,Caf\xe9\n'), 'stdin', 'utf-8')).toBe('csv')
  expect(formatIn(latin1(`id,name\n1,a\n2,${'a'.repeat(headSize)}\xc3`))).toBe('csv')
})

const seems = (encoding: string) => `is not UTF-8, but seems to be ${encoding}`
const noText = 'is not text: it contains U+0000'
const useText = 'Use a file of CSV, TSV, NDJSON or JSON'
const unknown = 'is not CSV, TSV, NDJSON or JSON'
const plantsAt = (path: string) => `is an object with the plants at ${path}`
const help = 'See the formats: plants help formats'
const jq = (path: string) => `Instead, import the output of: jq -c '${path}[]' plants.csv`
const long = `{\n "plants": [\n${'  {"id":1,"name":"a"},\n'.repeat(5000)}`.slice(0, headSize)
const nested = '{"total": 2, "next": null, "data": {"page": "1", "my plants": [ {"id":1}]}}'

test.each<[what: string, hint: string, head: string | Buffer]>([
  [seems('utf-16le'), 'Run it again with: --encoding utf-16le', Buffer.from('id,name\n', 'utf16le')],
  [seems('utf-16be'), 'Run it again with: --encoding utf-16be', Buffer.from(plant, 'utf16le').swap16()],
  [
    'is not UTF-8', // nor Windows-1252
    'Set its encoding with --encoding, such as utf-8, utf-16le, windows-1252, iso-8859-2, shift_jis',
    latin1('id,name\n1,M\x81hle\n'),
  ],
  [noText, useText, latin1('\x7fELF\x02\x01\x01\0\0\0')],
  [noText, useText, latin1('id,name\n\x7f\xe9\x01\0\n')],
  [unknown, help, '<!DOCTYPE html>\n<p>a, b</p>\n'],
  [unknown, help, '- id: 1\n  name: a\n'],
  [plantsAt('.plants'), jq('.plants'), long],
  [plantsAt('.data."my plants"'), jq('.data."my plants"'), nested],
])('is rejected, because it %s', (what, hint, head) => {
  const error = { type: 'malformed', message: `plants.csv ${what}`, hint } satisfies Partial<PlantsError>
  expect(() => formatIn(head)).toThrow(expect.objectContaining(error))
})

test.each([
  ['plants.csv', '', './plants.csv'],
  ...['stdin', 'plants.db.gz'].map((source) => [source, ' save it to a file without compression, then', 'FILE']),
])('a store is to be exported: %s', (source, save, path) => {
  const message = `${source} contains an SQLite database, not records`
  const hint = `If it is a store,${save} import the output of: plants export --store ${path}`
  const read = () => formatIn('SQLite format 3\0\x10\0\x01\x01', source)
  expect(read).toThrow(expect.objectContaining({ message, hint }))
})

test('NDJSON and indented values are detected whatever they hold', () => {
  const value = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }))
  return check(500, [fc.array(value, { minLength: 1, maxLength: 3 })], (values) => {
    const text = (indent?: number) =>
      values.map((one) => `${JSON.stringify({ ...one, id: 1 }, null, indent)}\n`).join('')
    expect([formatIn(text()), formatIn(text(2))]).toEqual(['ndjson', 'json'])
  })
})
