import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const all = [
  plant('-9223372036854775808', '', ''),
  plant(1, 'Fern', 'shade'),
  plant(2, 'a, "b"\tc'),
  plant(3, 'two\r\nlines', '}]'),
  plant('9007199254740993', '\u5171\u{1f331}'),
].map((line) => line.trimEnd())

const ways: Record<string, string> = {
  NDJSON: all.join('\n'),
  'a JSON array over many lines': `[\n  ${all.join('\n  ,\n').replaceAll(/,"(name|tag)":/g, ',\n    "$1" : ')}\n]`,
  'CSV in another order':
    'tag,id,name\n"",-9223372036854775808,""\nshade,1,Fern\n,2,"a, ""b""\tc"\n}],3,"two\r\nlines"\n,9007199254740993,\u5171\u{1f331}\n',
}

test.each(Object.entries(ways))('imports %s, and with a mark, packed and with CRLF', async (_, text) => {
  const same = [text, `\ufeff${text}`, zlib.gzipSync(text), text.replaceAll(/\r?\n/g, '\r\n')]
  const files = ['first', 'marked', 'packed', 'returns'].map((name, index) => user.write(name, same[index] ?? ''))
  const other = user.write('other', all.join('\n'))
  const counts = { created: 5, skipped: 20 }
  expect(await user.import([...files, other, '--if-exists=same'])).toEqual({ code: 0, ...counts, err: '' })
  expect(await user.list()).toBe(all.map((line) => `${line}\n`).join(''))
})

test.each<[string, string, (text: string) => string, [line: number, record: string][]]>([
  [
    'CSV',
    'id,name\n1,A\nx,B\n3,C,D\n4,D\n5\n',
    (text) => text.replace(',x,', ',2,').replace(',D', '').replace(/,5$/m, ',5,E'),
    [
      [3, 'x,B'],
      [4, '3,C,D'],
      [6, '5'],
    ],
  ],
])('rejected rows of %s can be corrected', async (_, text, correct, rejected) => {
  user.write('plants', text)
  await user.import('plants --rejects bad')
  expect(user.rejected('bad').map(({ line, record }) => [line, record])).toEqual(rejected)
  user.write('bad', correct(user.read('bad')))
  expect(await user.import('bad')).toMatchObject({ code: 0, err: '' })
  expect(await user.list()).toBe([...'ABCDE'].map((name, index) => plant(index + 1, name)).join(''))
})

test('rejected elements of a JSON array are lines of NDJSON', async () => {
  const array =
    '[{"id":1,"name":"A"},\n {"id":"2","name":"B"}, {"id":3,"nmae":"C"},\n {"id":4,"name":"D"},\n\n {"name":\n"E"}]'
  user.write('plants', array)
  await user.import('plants --rejects bad')
  const rejected = [
    { line: 2, record: { id: '2', name: 'B' } },
    { line: 2, record: { id: 3, nmae: 'C' } },
    { line: 5, record: { name: 'E' } },
  ]
  expect(user.rejected('bad')).toMatchObject(rejected)
  user.write(
    'bad',
    user.read('bad').replace('"2"', '2').replace('nmae', 'name').replace('"name": "E"', '"id":5,"name":"E"'),
  )
  expect(await user.import('bad')).toMatchObject({ code: 0, err: '' })
  expect(await user.list()).toBe([...'ABCDE'].map((name, index) => plant(index + 1, name)).join(''))
})

test.each([
  ['headers', 'name,id\nC,y\n'],
  ['formats', '{"id":"y","name":"C"}\n'],
])('inputs with several %s have no common rejects file', async (_, other) => {
  user.write('one', 'id,name\nx,A\n')
  user.write('other', other)
  const differs = 'The format or the header of other differs, so its rejected records need a file of their own'
  const err = `plants: ${differs}\n  Import it alone, with another --rejects\n`
  expect(await user.import('one other --rejects bad')).toEqual({ code: 2, err })
  expect([user.has('data'), user.has('bad'), user.journals]).toEqual([false, false, []])
})

test.each([plant(1, 'A'), `[${plant(1, 'A')}]`])('JSON in UTF-16 is decoded: %j', async (text) => {
  const little = utf16(`\ufeff${text}`)
  for (const stdin of [little, Buffer.from(little).swap16()]) {
    for (const flags of ['', ' --encoding utf-16'])
      expect(await user.import(`--if-exists same${flags}`, stdin)).toMatchObject({ code: 0, err: '' })
    expect(await user.import('', stdin.subarray(2))).toMatchObject({ code: 2 })
    const flag = `--encoding utf-16${stdin === little ? 'le' : 'be'}`
    expect(await user.import(`--if-exists same ${flag}`, stdin.subarray(2))).toMatchObject({ code: 0, skipped: 1 })
  }
  expect(await user.list()).toBe(plant(1, 'A'))
})

const utf16 = (text: string) => Buffer.from(text, 'utf16le')
const latin1 = (text: string) => Buffer.from(text, 'latin1')

test.each<[string, string, (text: string) => Buffer]>([
  ['UTF-8 with a mark', '', (text) => Buffer.from(`\ufeff${text}`)],
  ['UTF-16', '', (text) => utf16(`\ufeff${text}`)],
  ['big-endian UTF-16 without a mark', '--encoding utf-16be', (text) => utf16(text).swap16()],
  ['Latin 1', '--encoding latin1', latin1],
])('a table in %s is resumed, with its rejected rows in UTF-8', async (_, flags, encode) => {
  const many = Array.from({ length: 7000 }, (__, id) => `${id + 10};Bärlauch ${id}`)
  const rows = ['1;Bärlauch;Blüte', 'x;Fern;', '3;"Moos\nund Gras"', '4;Ü;;;é', '5;Ähre']
  user.write('plants', encode(['sep=;', 'id;name;tag', ...many, ...rows, ''].join('\r\n')))
  const args = `plants ${flags} --max-errors 1 --rejects bad`
  for (const created of [7001, 7002]) expect(await user.import(args)).toMatchObject({ created, rejected: { 422: 1 } })
  expect(await user.import(args)).toMatchObject({ code: 6, created: 7003, rejected: { 400: 1, 422: 1 } })
  const head = '\ufeffrejected_line;rejected_reason;id;name;tag\n'
  const reasons = [
    '"Invalid plant: id must be an integer, in digits only, but was ""x"""',
    'The row has 5 cells, but the header has 3',
  ]
  expect(user.read('bad')).toBe(`${head}7004;${reasons[0]};x;Fern\n7007;${reasons[1]};4;Ü;;;é\n`)
  user.write('bad', user.read('bad').replace(';x;', ';2;').replace(';;;é', ''))
  expect(await user.import(`bad ${flags}`)).toMatchObject({ code: 0, err: '' })
  const texts = [plant(1, 'Bärlauch', 'Blüte'), plant(2, 'Fern'), plant(3, 'Moos\nund Gras'), plant(4, 'Ü')]
  expect((await user.list()).startsWith([...texts, plant(5, 'Ähre'), plant(10, 'Bärlauch 0')].join(''))).toBe(true)
})

test('a table that is not UTF-8 later ends there, and its chunk is not stored', async () => {
  const rows = Array.from({ length: 200_000 }, (_, index) => `${index + 10},plain\n`).join('')
  user.write('mixed.csv', Buffer.concat([Buffer.from(`id,name\n${rows}`), latin1('2,Caf\xe9\n3,Z\n')]))
  const err =
    'plants: mixed.csv is not UTF-8 in line 200002\n  If it is of an old spreadsheet, add --encoding windows-1252\n'
  const { out, ...end } = await user.run('import mixed.csv')
  expect(end).toEqual({ code: 2, err })
  const { created } = JSON.parse(out)
  expect(created).toBeGreaterThan(0)
  expect(await user.list()).toBe(Array.from({ length: created }, (_, index) => plant(index + 10, 'plain')).join(''))
})

describe('a spreadsheet', () => {
  const quoted = '1;Fern;shade\r\n2;"Bärlauch; wild"'
  const plain = '1,Fern,shade\n2,Bärlauch; wild'
  const skipped = 'plants: Skipped 2 rows above the header of stdin in line 4\n'

  test.each<[string, string | Uint8Array, string?, string?]>([
    ['of a German Excel', `\ufeffID;Name;Tag\r\n${quoted};\r\n`],
    [
      'of a French Excel, with a line that names the delimiter',
      `sep=;\r\nid;name;tag\r\n${quoted}\r\n`,
      '',
      'plants: Skipped 1 row above the header of stdin in line 2\n',
    ],
    ['as Unicode text', utf16(`\ufeffid\tname\ttag\r\n${plain.replaceAll(',', '\t')}\t\r\n`)],
    ['in Windows-1252', latin1(`id;name;tag\r\n${quoted};\r\n`), '--encoding cp1252'],
    ['with titles', `My plants 2024;;\r\n;;\r\nStand;1 March\r\nid;name;tag\r\n${quoted};\r\n`, '', skipped],
    ['without a header, with --map', `${plain},\r\n`, '--columns No,Plant,x --map id=No,name=Plant,tag=x'],
    [
      'with spaces and a column that is not read',
      '1 Fern x shade\n2 "Bärlauch; wild" y\n',
      '--delimiter ^ --columns id,name,,tag',
    ],
  ])('%s', async (_, content, flags = '', err = '') => {
    const words = flags === '' ? [] : flags.split(' ').map((word) => word.replace('^', ' '))
    expect(await user.import(words, content)).toEqual({ code: 0, created: 2, err })
    expect(await user.list()).toBe(plant(1, 'Fern', 'shade') + plant(2, 'Bärlauch; wild'))
  })
})

test('a line just below the limit of a record is soon found to be no header', async () => {
  user.write('plants.csv', ','.repeat(1_040_000))
  const err = expect.stringMatching('^plants: plants.csv has no header: line 1 has no column for id and name, only ')
  expect(await user.import('plants.csv')).toEqual({ code: 2, err })
  expect([user.has('data'), user.journals]).toEqual([false, []])
})

test('a header may have many more columns than its rows', async () => {
  const header = `id,name,${Array.from({ length: 140_000 }, (_, index) => `c${index}`).join()}`
  const rows = Array.from({ length: 100_000 }, (_, id) => `${id},x\n`).join('')
  expect(await user.import('', `${header}\n${rows}`)).toEqual({ code: 0, created: 100_000, err: '' })
})

test.each(['', 'a', 'ab'])('a row that is too large is not kept, however it is cut: %j', async (begin) => {
  const table = (...rows: string[]) => utf16(['\ufeffid;name;tag', ...rows, ''].join('\r\n'))
  user.write('plants', table(`1;${begin}${'蕨'.repeat(3_000_000)};`, 'x;Moss;', '3;Fern;'))
  expect(await user.import('plants --rejects bad')).toMatchObject({ created: 1, rejected: { 413: 1, 422: 1 } })
  expect(user.rejected('bad').map(({ line, record }) => [line, record])).toEqual([
    [2, ''],
    [3, 'x;Moss'],
  ])
})
